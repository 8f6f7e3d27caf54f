"""The models every family's tests run on: configurations real checkpoints use, the less obvious ones first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.model.family_mutants import (
    Mutant,
    changed,
    interleaved,
    moe,
    other_groups,
    renamed,
    rope,
    shifted_positions,
    swapped,
    swapped_layers,
    windows,
    without,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A reference config class (`Llama` of LlamaConfig), its fields, and wrong versions of our config or weights."""

    reference: str
    fields: Mapping[str, Any]
    mutants: Mapping[str, Mutant] = field(default_factory=dict)
    gain: float = 1.4
    prompt: int = 24
    attention: str = "eager"


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
            "rotary layout": interleaved,
            "no rotation": changed(positions="none", rope=None),
            "scale": changed(attn_scale=0.25),
            "activation": changed(activation="gelu_tanh"),
            "norm eps": changed(norm_eps=1e-1),
            "groups of heads": other_groups,
        },
    ),
    "llama, head wider than d_model / n_heads, biases, tied": Case(
        reference="Llama",
        fields=SMALL
        | {"head_dim": 16, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 1e-3},
        mutants={
            "scale": changed(attn_scale=8**-0.5),
            "no biases": without("proj.bias", qkv_bias=False, out_bias=False, mlp_bias=False),
        },
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

GPT2_SMALL: dict[str, Any] = {"n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 64}
NEOX_SMALL: dict[str, Any] = {
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 80,
    "max_position_embeddings": 64,
}
EARLY = {
    "gpt2": Case(
        reference="GPT2",
        fields=GPT2_SMALL,
        mutants={
            "positions": shifted_positions,
            "order in the fused matrix": swapped("q_proj", "k_proj"),
            "scale": changed(attn_scale=1.0),
            "activation": changed(activation="silu"),
            "norm eps": changed(norm_eps=1e-1),
        },
    ),
    "gpt2, scaled by depth, own width, untied": Case(
        reference="GPT2",
        fields=GPT2_SMALL
        | {
            "scale_attn_by_inverse_layer_idx": True,
            "n_inner": 100,
            "tie_word_embeddings": False,
            "activation_function": "relu",
        },
        gain=2.0,
        mutants={"depth": changed(attn_scale_by_depth=False)},
    ),
    "gpt2, scores not scaled": Case(reference="GPT2", fields=GPT2_SMALL | {"scale_attn_weights": False}),
    "gpt_neox": Case(
        reference="GPTNeoX",
        fields=NEOX_SMALL,
        mutants={
            "rotary width": rope(dim=8),
            "rotary layout": interleaved,
            "theta": rope(theta=500.0),
            "sequential": changed(parallel_residual=False),
            "order in the fused matrix": swapped("q_proj", "k_proj"),
            "no biases": without("q_proj.bias", "k_proj.bias", "v_proj.bias", qkv_bias=False),
        },
    ),
    "gpt_neox, sequential, whole heads rotated, no attention bias, tied": Case(
        reference="GPTNeoX",
        fields=NEOX_SMALL
        | {
            "use_parallel_residual": False,
            "attention_bias": False,
            "tie_word_embeddings": True,
            "hidden_act": "gelu_fast",
            "rope_parameters": {"rope_type": "default", "rope_theta": 1_000.0, "partial_rotary_factor": 1.0},
        },
        mutants={"parallel": changed(parallel_residual=True), "theta": rope(theta=2_000.0)},
    ),
    "bloom, heads not a power of two": Case(
        reference="Bloom",
        fields={"hidden_size": 48, "n_layer": 3, "n_head": 6},
        mutants={
            "slopes": changed(alibi_scaled=True),
            "no ALiBi": changed(positions="none"),
            "order in the fused matrix": swapped("q_proj", "k_proj"),
        },
    ),
    "bloom, residual from the norm": Case(
        reference="Bloom",
        fields={"hidden_size": 48, "n_layer": 3, "n_head": 4, "apply_residual_connection_post_layernorm": True},
        mutants={
            "residual": changed(residual_from_norm=False),
            "embedding norm": without("embed_layernorm", embed_norm=False),
        },
    ),
}

FALCON_SMALL: dict[str, Any] = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6}
FALCON = {
    "falcon, one KV head, one norm": Case(
        reference="Falcon",
        fields=FALCON_SMALL,
        mutants={
            "theta": rope(theta=20_000.0),
            "rotary layout": interleaved,
            "scale": changed(attn_scale=0.25),
        },
    ),
    "falcon, grouped, two norms": Case(
        reference="Falcon",
        fields=FALCON_SMALL | {"new_decoder_architecture": True, "num_kv_heads": 2, "ffn_hidden_size": 100},
        mutants={
            "one norm": without("post_attention_layernorm", shared_norm=True),
            "norms": swapped("input_layernorm", "post_attention_layernorm"),
            "groups of heads": other_groups,
        },
    ),
    "falcon, grouped, one norm, untied": Case(
        reference="Falcon",
        fields=FALCON_SMALL
        | {
            "new_decoder_architecture": True,
            "num_kv_heads": 3,
            "num_ln_in_parallel_attn": 1,
            "tie_word_embeddings": False,
        },
    ),
    "falcon, sequential, ALiBi, biases": Case(
        reference="Falcon",
        fields=FALCON_SMALL | {"alibi": True, "bias": True, "multi_query": False, "parallel_attn": False},
        attention="sdpa",  # transformers 5.24's eager path adds the bias twice
        mutants={"slopes": changed(alibi_scaled=False), "parallel": changed(parallel_residual=True)},
    ),
    "falcon, sequential, every head its own": Case(
        reference="Falcon", fields=FALCON_SMALL | {"multi_query": False, "parallel_attn": False}
    ),
}

WINDOWED = {
    "mistral": Case(
        reference="Mistral",
        fields=SMALL | {"sliding_window": 7, "head_dim": 16},
        mutants=windows(7) | {"theta": rope(theta=20_000.0)},
    ),
    "mistral, no window": Case(reference="Mistral", fields=SMALL | {"sliding_window": None, "hidden_act": "gelu"}),
    "mistral, window wider than the prompt": Case(reference="Mistral", fields=SMALL | {"sliding_window": 26}),
    "qwen2": Case(
        reference="Qwen2",
        fields=SMALL | {"tie_word_embeddings": True},
        mutants={
            "theta": rope(theta=20_000.0),
            "no biases": without("q_proj.bias", "k_proj.bias", "v_proj.bias", qkv_bias=False),
        },
    ),
    "qwen2, later layers slide": Case(
        reference="Qwen2",
        fields=SMALL | {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
        mutants=windows(5) | {"layers": swapped_layers},
    ),
    "qwen3": Case(
        reference="Qwen3",
        fields=SMALL | {"head_dim": 16},
        mutants={"no q/k norm": without("q_norm", "k_norm", qk_norm="none"), "theta": rope(theta=20_000.0)},
    ),
    "qwen3, biases, window, one KV head": Case(
        reference="Qwen3",
        fields=SMALL
        | {
            "head_dim": 12,
            "num_key_value_heads": 1,
            "attention_bias": True,
            "use_sliding_window": True,
            "sliding_window": 6,
            "max_window_layers": 2,
            "tie_word_embeddings": True,
        },
        mutants=windows(6),
    ),
    "olmo2": Case(
        reference="Olmo2",
        fields=SMALL,
        mutants={
            "norm eps": changed(norm_eps=1e-1),
            "theta": rope(theta=20_000.0),
            "rotary layout": interleaved,
            "no q/k norm": without("q_norm", "k_norm", qk_norm="none"),
            "norms before": renamed(
                {"attn_out_layernorm": "input_layernorm", "mlp_out_layernorm": "post_attention_layernorm"},
                pre_norm=True,
                post_norm=False,
            ),
        },
    ),
    "olmo2, biases, every head its own": Case(
        reference="Olmo2", fields=SMALL | {"attention_bias": True, "num_key_value_heads": 6}
    ),
}

PHI3 = {
    "phi3": Case(
        reference="Phi3",
        fields=SMALL | {"sliding_window": 6},
        mutants=windows(6) | {"theta": rope(theta=20_000.0)},
    ),
    "phi3, longrope past its switch, partial, tied": Case(
        reference="Phi3",
        fields=SMALL
        | {
            "hidden_size": 96,
            "original_max_position_embeddings": 16,
            "tie_word_embeddings": True,
            "partial_rotary_factor": 0.75,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 100.0,
                "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
                "long_factor": [2.0, 2.5, 3.0, 3.5, 4.0, 4.5],
                "partial_rotary_factor": 0.75,
            },
        },
        mutants={
            "short factors": rope(long_factor=(1.0, 1.1, 1.2, 1.3, 1.4, 1.5)),
            "attention factor": rope(attention_factor=1.0),
            "rotary layout": interleaved,
            "rotary width": rope(dim=16, short_factor=(1.0,) * 8, long_factor=(2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 4.5, 4.5)),
        },
    ),
    "phi3, longrope switching while it decodes": Case(
        reference="Phi3",
        fields=SMALL
        | {
            "original_max_position_embeddings": 24,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 100.0,
                "short_factor": [1.0, 1.1, 1.2, 1.3],
                "long_factor": [2.0, 2.5, 3.0, 3.5],
            },
        },
        mutants={"long factors": rope(original_ctx=23)},
    ),
}

GEMMA_SMALL = SMALL | {"head_dim": 16}
GEMMA = {
    "gemma": Case(
        reference="Gemma",
        fields=GEMMA_SMALL | {"num_key_value_heads": 1},
        mutants={
            "embedding scale": changed(embed_scale=1.0),
            "norm offset": changed(norm_unit_offset=False),
            "activation": changed(activation="silu"),
            "theta": rope(theta=20_000.0),
        },
    ),
    "gemma, untied, biases": Case(
        reference="Gemma", fields=GEMMA_SMALL | {"tie_word_embeddings": False, "attention_bias": True}
    ),
    "gemma2": Case(
        reference="Gemma2",
        fields=GEMMA_SMALL
        | {
            "attn_logit_softcapping": 4.0,
            "final_logit_softcapping": 5.0,
            "query_pre_attn_scalar": 10,
            "sliding_window": 5,
        },
        gain=2.0,
        mutants=windows(5)
        | {
            "no attention cap": changed(attn_softcap=None),
            "no logit cap": changed(logit_softcap=None),
            "query scale": changed(attn_scale=None),
            "layers": swapped_layers,
            "no post norms": without("out_layernorm", post_norm=False),
        },
    ),
    "gemma2, no caps, all layers full": Case(
        reference="Gemma2",
        fields=GEMMA_SMALL
        | {
            "attn_logit_softcapping": None,
            "final_logit_softcapping": None,
            "query_pre_attn_scalar": 16,
            "layer_types": ["full_attention"] * 3,
        },
    ),
    "gemma3_text": Case(
        reference="Gemma3Text",
        fields=GEMMA_SMALL
        | {
            "num_hidden_layers": 4,
            "sliding_window": 6,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
            "query_pre_attn_scalar": 12,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 2_000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
            },
        },
        mutants=windows(6)
        | {
            "one rotary base": changed(rope_sliding=None),
            "factor": rope(factor=2.0),
            "theta": rope(theta=4_000.0),
            "layers": swapped_layers,
            "query scale": changed(attn_scale=None),
            "no q/k norm": without("q_norm", "k_norm", qk_norm="none"),
        },
    ),
    "gemma3_text, default pattern, capped": Case(
        reference="Gemma3Text",
        fields=GEMMA_SMALL
        | {
            "num_hidden_layers": 7,
            "sliding_window": 9,
            "final_logit_softcapping": 3.0,
            "attn_logit_softcapping": 1.0,  # read by nobody
            "query_pre_attn_scalar": 4,
        },
        mutants=windows(9) | {"no logit cap": changed(logit_softcap=None), "attention cap": changed(attn_softcap=1.0)},
    ),
}

EXPERTS = {
    "mixtral": Case(
        reference="Mixtral",
        fields=SMALL | {"num_local_experts": 5, "num_experts_per_tok": 2, "head_dim": 16},
        mutants={
            "top k": moe(top_k=1),
            "weights not renormalised": moe(renormalize=False),
            "theta": rope(theta=20_000.0),
            "gate and up": swapped("gate_proj", "up_proj"),
        },
    ),
    "mixtral, window": Case(
        reference="Mixtral",
        fields=SMALL | {"num_local_experts": 4, "num_experts_per_tok": 3, "sliding_window": 6},
        mutants=windows(6),
    ),
    "qwen3_moe": Case(
        reference="Qwen3Moe",
        fields=SMALL
        | {
            "head_dim": 16,
            "num_experts": 6,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 24,
            "norm_topk_prob": True,
        },
        mutants={
            "top k": moe(top_k=2),
            "weights not renormalised": moe(renormalize=False),
            "theta": rope(theta=20_000.0),
            "no q/k norm": without("q_norm", "k_norm", qk_norm="none"),
        },
    ),
    "qwen3_moe, some layers dense": Case(
        reference="Qwen3Moe",
        fields=SMALL
        | {
            "num_hidden_layers": 4,
            "head_dim": 16,
            "num_experts": 6,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [1],
            "tie_word_embeddings": True,
        },
        mutants={"weights renormalised": moe(renormalize=True)},
    ),
}

CASES: dict[str, Case] = {**LLAMA, **EARLY, **FALCON, **WINDOWED, **PHI3, **GEMMA, **EXPERTS}
