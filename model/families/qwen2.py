"""Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv:2407.10671): Llama's layers with biases on q, k and v."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap
from model.families.gguf_layout import CONFIG_TENSORS, gguf_config, gguf_names, unchanged
from model.families.llama_layout import IGNORED, llama_rules
from model.families.reading import ConfigReader, llama_like, qwen_sliding


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Qwen2 config.json."""
    fields = llama_like(values, n_ctx=32_768, kv_default=32)
    sliding = qwen_sliding(ConfigReader(values), fields["n_layers"])
    return DecoderConfig(family="qwen2", **fields, **sliding, qkv_bias=True)


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Qwen2 config.json from GGUF metadata."""
    return gguf_config(meta, names, tensors, arch="qwen2", model_type="qwen2")


QWEN2 = Family(
    name="qwen2",
    model_types=("qwen2",),
    read_config=read_config,
    rules=llama_rules,
    ignored=IGNORED,
    gguf=GGUFMap(
        arch="qwen2", hf_config=gguf_to_config, names=gguf_names, fix=unchanged, config_tensors=CONFIG_TENSORS
    ),
)
