"""Qwen3 with experts (Yang et al. 2025, arXiv:2505.09388): in all layers, every n-th, or all but some."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import LIMITS, ConfigError, DecoderConfig, MoeSpec
from model.families.base import Family, GGUFMap, TensorRule
from model.families.experts import PARTS, expert_rules, router_rule, stacked_gguf_names, stacked_rules
from model.families.gguf_layout import (
    CONFIG_TENSORS,
    LAYER_NAMES,
    QK_NORM_NAMES,
    gguf_config,
    gguf_names,
    unchanged,
)
from model.families.llama_layout import IGNORED, llama_rules
from model.families.reading import ConfigReader, all_sliding, llama_like

ROUTER = "model.layers.{layer}.mlp.gate.weight"


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Qwen3-MoE config.json."""
    reader = ConfigReader(values)
    fields = llama_like({"intermediate_size": 6144, **values}, n_ctx=32_768, kv_default=4)
    n_layers = fields["n_layers"]
    n_experts = reader.size("n_experts", "num_experts", "num_local_experts", default=128)
    step = reader.whole("decoder_sparse_step", high=1 << 31, default=1)
    name, dense = reader.find("mlp_only_layers")
    if not isinstance(dense or [], list) or not all(type(item) is int for item in dense or []):
        raise ConfigError(name, dense, "a list of layer numbers")
    without = frozenset(dense or ())
    moe = MoeSpec(
        n_experts=n_experts,
        top_k=reader.whole("num_experts_per_tok", high=n_experts, default=8),
        d_expert=reader.size("d_mlp", "moe_intermediate_size", default=768),
        layers=tuple(layer for layer in range(n_layers) if (layer + 1) % step == 0 and layer not in without),
        renormalize=reader.flag("norm_topk_prob", default=False),
    )
    window = None
    if reader.flag("use_sliding_window", default=False):
        window = ConfigReader({"sliding_window": 4096, **values}).maybe_whole("sliding_window", high=LIMITS["n_ctx"][1])
    bias = reader.flag("attention_bias", default=False)
    return DecoderConfig(
        family="qwen3_moe",
        **fields,
        **all_sliding(n_layers, window),
        qk_norm="head",
        qkv_bias=bias,
        out_bias=bias,
        moe=moe,
    )


def rules(config: DecoderConfig) -> list[TensorRule]:
    """Llama's names and the experts'."""
    found = llama_rules(config)
    for layer in filter(config.has_experts, range(config.n_layers)):
        found.append(router_rule(config, layer, f"layers.{layer}.mlp.gate.weight"))
        found += expert_rules(config, layer, f"layers.{layer}.mlp.experts", {part: part for part in PARTS})
    return found


def gguf_rules(config: DecoderConfig) -> list[TensorRule]:
    """The same with stacked experts."""
    found = llama_rules(config)
    for layer in filter(config.has_experts, range(config.n_layers)):
        found.append(router_rule(config, layer, f"layers.{layer}.mlp.gate.weight"))
        found += stacked_rules(config, layer)
    return found


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Qwen3-MoE config.json from GGUF metadata; llama.cpp renormalises the chosen experts' weights."""
    found = gguf_config(meta, names, tensors, arch="qwen3moe", model_type="qwen3_moe")
    n_layers = ConfigReader(found).size("n_layers", "num_hidden_layers")
    dense = [i for i in range(n_layers) if names is not None and f"blk.{i}.ffn_gate_inp.weight" not in names]
    return found | {
        "attention_bias": names is not None and "blk.0.attn_q.bias" in names,
        "num_experts": meta.get("qwen3moe.expert_count"),
        "num_experts_per_tok": ConfigReader(meta).size("n_experts", "qwen3moe.expert_used_count"),
        "moe_intermediate_size": meta.get("qwen3moe.expert_feed_forward_length"),
        "mlp_only_layers": dense,
        "norm_topk_prob": True,
    }


def gguf_tensor_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → rule names."""
    return gguf_names(config, LAYER_NAMES | QK_NORM_NAMES) | stacked_gguf_names(config, ROUTER)


QWEN3_MOE = Family(
    name="qwen3_moe",
    model_types=("qwen3_moe",),
    read_config=read_config,
    rules=rules,
    ignored=IGNORED,
    gguf=GGUFMap(
        arch="qwen3moe",
        hf_config=gguf_to_config,
        names=gguf_tensor_names,
        fix=unchanged,
        config_tensors=CONFIG_TENSORS,
        rules=gguf_rules,
    ),
)
