"""Qwen3 (Yang et al. 2025, arXiv:2505.09388): Llama's layers with an RMSNorm on every head's q and k."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap
from model.families.gguf_layout import (
    CONFIG_TENSORS,
    LAYER_NAMES,
    QK_NORM_NAMES,
    gguf_config,
    gguf_names,
    unchanged,
)
from model.families.llama_layout import IGNORED, llama_rules
from model.families.reading import ConfigReader, llama_like, qwen_sliding


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Qwen3 config.json."""
    reader = ConfigReader(values)
    fields = llama_like(values, n_ctx=32_768, kv_default=32, d_head=128)
    sliding = qwen_sliding(reader, fields["n_layers"])
    bias = reader.flag("attention_bias", default=False)
    return DecoderConfig(family="qwen3", **fields, **sliding, qk_norm="head", qkv_bias=bias, out_bias=bias)


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Qwen3 config.json from GGUF metadata."""
    found = gguf_config(meta, names, tensors, arch="qwen3", model_type="qwen3")
    found["attention_bias"] = names is not None and "blk.0.attn_q.bias" in names
    return found


def gguf_tensor_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names."""
    return gguf_names(config, LAYER_NAMES | QK_NORM_NAMES)


QWEN3 = Family(
    name="qwen3",
    model_types=("qwen3",),
    read_config=read_config,
    rules=llama_rules,
    ignored=IGNORED,
    gguf=GGUFMap(
        arch="qwen3", hf_config=gguf_to_config, names=gguf_tensor_names, fix=unchanged, config_tensors=CONFIG_TENSORS
    ),
)
