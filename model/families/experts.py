"""Rules for the experts of a layer: one tensor per expert and part, or (GGUF) one per part with all experts stacked."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Take, Target, TensorRule, rule

PARTS = ("gate_proj", "up_proj", "down_proj")


def _shape(config: DecoderConfig, part: str) -> tuple[int, int]:
    assert config.moe is not None
    wide, narrow = config.d_model, config.moe.d_expert
    return (wide, narrow) if part == "down_proj" else (narrow, wide)


def router_rule(config: DecoderConfig, layer: int, source: str) -> TensorRule:
    """The router, (E, M)."""
    assert config.moe is not None
    return rule(f"model.{source}", (config.moe.n_experts, config.d_model), f"layers.{layer}.mlp.gate.weight")


def expert_rules(config: DecoderConfig, layer: int, at: str, parts: Mapping[str, str]) -> list[TensorRule]:
    """`model.{at}.{expert}.{name}.weight` for every expert; `parts`: our name → theirs."""
    assert config.moe is not None
    return [
        rule(
            f"model.{at}.{expert}.{parts[part]}.weight",
            _shape(config, part),
            f"layers.{layer}.mlp.experts.{expert}.{part}.weight",
        )
        for expert in range(config.moe.n_experts)
        for part in PARTS
    ]


def _expert(index: int) -> Take:
    def take(tensor: Tensor) -> Tensor:
        return tensor[index]

    return take


def stacked_name(layer: int, part: str) -> str:
    """The name by which rules know a GGUF tensor of all experts."""
    return f"model.layers.{layer}.mlp.experts.{part}.weight"


def stacked_rules(config: DecoderConfig, layer: int) -> list[TensorRule]:
    """One tensor (E, …) per part."""
    assert config.moe is not None
    n_experts = config.moe.n_experts
    return [
        TensorRule(
            source=stacked_name(layer, part),
            shape=(n_experts, *_shape(config, part)),
            targets=tuple(
                Target(name=f"layers.{layer}.mlp.experts.{expert}.{part}.weight", take=_expert(expert))
                for expert in range(n_experts)
            ),
        )
        for part in PARTS
    ]


def stacked_gguf_names(config: DecoderConfig, router: str) -> dict[str, str]:
    """GGUF names of experts and routers → rule names; `router` has a `{layer}`."""
    names = {}
    for layer in range(config.n_layers):
        names[f"blk.{layer}.ffn_gate_inp.weight"] = router.format(layer=layer)
        for part in PARTS:
            names[f"blk.{layer}.ffn_{part.removesuffix('_proj')}_exps.weight"] = stacked_name(layer, part)
    return names
