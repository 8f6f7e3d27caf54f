"""Mixtral (Jiang et al. 2024, arXiv:2401.04088): Mistral with a few of many experts in every layer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import LIMITS, DecoderConfig, MoeSpec
from model.families.base import Family, GGUFMap, TensorRule
from model.families.experts import expert_rules, router_rule, stacked_gguf_names, stacked_rules
from model.families.gguf_layout import CONFIG_TENSORS, gguf_names, unpermute_qk
from model.families.llama import gguf_to_config as llama_gguf_to_config
from model.families.llama_layout import IGNORED, llama_rules
from model.families.reading import ConfigReader, all_sliding, llama_like

ROUTER = "model.layers.{layer}.block_sparse_moe.gate.weight"


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Mixtral config.json."""
    reader = ConfigReader(values)
    fields = llama_like(values, n_ctx=131_072, kv_default=8, norm_eps=1e-5, theta=1_000_000.0)
    n_experts = reader.size("n_experts", "num_local_experts", "num_experts", default=8)
    moe = MoeSpec(
        n_experts=n_experts,
        top_k=reader.whole("num_experts_per_tok", high=n_experts, default=2),
        d_expert=fields["d_mlp"],
        layers=tuple(range(fields["n_layers"])),
    )
    window = reader.maybe_whole("sliding_window", high=LIMITS["n_ctx"][1])
    return DecoderConfig(family="mixtral", **fields, **all_sliding(fields["n_layers"], window), moe=moe)


def rules(config: DecoderConfig) -> list[TensorRule]:
    """Llama's names, w1 (gate), w3 (up) and w2 (down) of every expert."""
    parts = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
    found = llama_rules(config)
    for layer in range(config.n_layers):
        at = f"layers.{layer}.block_sparse_moe"
        found.append(router_rule(config, layer, f"{at}.gate.weight"))
        found += expert_rules(config, layer, f"{at}.experts", parts)
    return found


def gguf_rules(config: DecoderConfig) -> list[TensorRule]:
    """The same with stacked experts."""
    found = llama_rules(config)
    for layer in range(config.n_layers):
        found.append(router_rule(config, layer, f"layers.{layer}.block_sparse_moe.gate.weight"))
        found += stacked_rules(config, layer)
    return found


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Mixtral config.json from GGUF metadata, which calls it llama with experts."""
    found = llama_gguf_to_config(meta, tensors, names)
    return found | {
        "model_type": "mixtral",
        "num_local_experts": meta.get("llama.expert_count"),
        "num_experts_per_tok": ConfigReader(meta).size("n_experts", "llama.expert_used_count"),
    }


def gguf_tensor_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → rule names."""
    return gguf_names(config) | stacked_gguf_names(config, ROUTER)


def has_experts(meta: Mapping[str, Any]) -> bool:
    """True for llama files with experts."""
    return bool(meta.get("llama.expert_count"))


MIXTRAL = Family(
    name="mixtral",
    model_types=("mixtral",),
    read_config=read_config,
    rules=rules,
    ignored=IGNORED,
    gguf=GGUFMap(
        arch="llama",
        hf_config=gguf_to_config,
        names=gguf_tensor_names,
        fix=unpermute_qk,
        accepts=has_experts,
        config_tensors=CONFIG_TENSORS,
        rules=gguf_rules,
    ),
)
