"""The models every family's tests run on: configurations real checkpoints use, the less obvious ones first.

A mutant is a config with one feature wrong; the tests show that its error is at least a hundred times the tolerance,
so that the parity of the right one means something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from model.config import DecoderConfig

Mutant = Callable[[DecoderConfig], DecoderConfig]


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A reference class (`Llama` of LlamaForCausalLM), its config fields, and wrong versions of our config."""

    reference: str
    fields: Mapping[str, Any]
    mutants: Mapping[str, Mutant] = field(default_factory=dict)
    gain: float = 1.4
    prompt: int = 24


def changed(**fields: Any) -> Mutant:
    """A mutant with these fields replaced."""
    return lambda config: replace(config, **fields)


def rope(**fields: Any) -> Mutant:
    """A mutant with these fields of its rotary frequencies replaced."""

    def mutate(config: DecoderConfig) -> DecoderConfig:
        assert config.rope is not None
        return replace(config, rope=replace(config.rope, **fields))

    return mutate


SMALL: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 80,
    "max_position_embeddings": 64,
}

LLAMA = {
    "llama": Case(
        reference="Llama",
        fields=SMALL,
        mutants={
            "theta": rope(theta=20_000.0),
            "no rotation": changed(positions="none", rope=None),
            "scale": changed(attn_scale=0.25),
            "activation": changed(activation="gelu_tanh"),
            "norm eps": changed(norm_eps=1e-1),
        },
    ),
    "llama, head wider than d_model / n_heads, biases, tied": Case(
        reference="Llama",
        fields=SMALL
        | {"head_dim": 16, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 1e-3},
    ),
    "llama, one KV head": Case(reference="Llama", fields=SMALL | {"num_key_value_heads": 1}),
    "llama, every head its own": Case(reference="Llama", fields=SMALL | {"num_key_value_heads": 6}),
    "llama, linear scaling": Case(
        reference="Llama",
        fields=SMALL | {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5_000.0}},
        mutants={"factor": rope(factor=2.0), "theta": rope(theta=10_000.0)},
    ),
    "llama, dynamic scaling": Case(
        reference="Llama",
        fields=SMALL
        | {
            "max_position_embeddings": 12,  # the prompt is longer: the frequencies change
            "rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10_000.0},
        },
        mutants={"factor": rope(factor=2.0), "none": rope(kind="default")},
    ),
    "llama, yarn": Case(
        reference="Llama",
        fields=SMALL
        | {
            "head_dim": 16,
            "rope_parameters": {
                "rope_type": "yarn",
                "factor": 4.0,
                "rope_theta": 500.0,
                "original_max_position_embeddings": 64,
                "beta_fast": 8.0,
                "beta_slow": 0.5,
            },
        },
        mutants={
            "factor": rope(factor=2.0),
            "attention factor": rope(attention_factor=1.0),
            "beta": rope(beta_fast=2.0),
            "original context": rope(original_ctx=16),
        },
    ),
    "llama, llama3 scaling": Case(
        reference="Llama",
        fields=SMALL
        | {
            "head_dim": 16,
            "rope_parameters": {
                "rope_type": "llama3",
                "factor": 8.0,
                "rope_theta": 1_000.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
            },
        },
        mutants={
            "factor": rope(factor=2.0),
            "high": rope(high_freq_factor=8.0),
            "low": rope(low_freq_factor=2.0),
            "original context": rope(original_ctx=64),
        },
    ),
}

CASES: dict[str, Case] = {**LLAMA}
