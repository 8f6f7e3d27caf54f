"""Llama 1 to 3.x and what copies them (SmolLM2, TinyLlama, Yi, …): RMSNorm, RoPE, grouped queries, SwiGLU.

Touvron et al. 2023, arXiv:2302.13971; config fields as in Hugging Face's LlamaConfig.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap
from model.families.gguf_layout import CONFIG_TENSORS, gguf_config, gguf_names, unpermute_qk
from model.families.llama_layout import IGNORED, llama_rules
from model.families.reading import ConfigReader, llama_like


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Llama config.json."""
    reader = ConfigReader(values)
    attention_bias = reader.flag("attention_bias", default=False)
    return DecoderConfig(
        family="llama",
        **llama_like(values, n_ctx=2048),
        qkv_bias=attention_bias,
        out_bias=attention_bias,
        mlp_bias=reader.flag("mlp_bias", default=False),
    )


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Llama config.json from GGUF metadata."""
    config = gguf_config(meta, names, tensors, arch="llama", model_type="llama")
    config["attention_bias"] = names is not None and "blk.0.attn_q.bias" in names
    config["mlp_bias"] = names is not None and "blk.0.ffn_up.bias" in names
    config.pop("sliding_window", None)  # llama.cpp's llama graph has none
    return config


def has_no_experts(meta: Mapping[str, Any]) -> bool:
    """False for llama files with experts, which are Mixtral."""
    return not meta.get("llama.expert_count")


LLAMA = Family(
    name="llama",
    model_types=("llama",),
    read_config=read_config,
    rules=llama_rules,
    ignored=IGNORED,
    gguf=GGUFMap(
        arch="llama",
        hf_config=gguf_to_config,
        names=gguf_names,
        fix=unpermute_qk,
        accepts=has_no_experts,
        config_tensors=CONFIG_TENSORS,
    ),
)
