"""Llama 1 to 3.x and what copies them (SmolLM2, TinyLlama, Yi, …): RMSNorm, RoPE, grouped queries, SwiGLU.

Touvron et al. 2023, arXiv:2302.13971; config fields as in Hugging Face's LlamaConfig.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap
from model.families.gguf_layout import CONFIG_TENSORS, gguf_config, gguf_names, gguf_rope_scaling, unpermute_qk
from model.families.llama_layout import IGNORED, llama_rules
from model.families.reading import ConfigReader, read_rope


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Llama config.json."""
    reader = ConfigReader(values)
    d_model = reader.size("d_model", "hidden_size")
    n_heads, n_kv_heads = reader.heads("num_key_value_heads")
    d_head = reader.head_size(d_model, n_heads, "head_dim")
    n_ctx = reader.size("n_ctx", "max_position_embeddings", default=2048)
    attention_bias = reader.flag("attention_bias", default=False)
    return DecoderConfig(
        family="llama",
        d_vocab=reader.size("d_vocab", "vocab_size"),
        d_model=d_model,
        n_layers=reader.size("n_layers", "num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_head=d_head,
        d_mlp=reader.size("d_mlp", "intermediate_size"),
        n_ctx=n_ctx,
        tied_head=reader.flag("tie_word_embeddings", default=False),
        rope=read_rope(reader, d_head, n_ctx),
        qkv_bias=attention_bias,
        out_bias=attention_bias,
        norm_eps=reader.number("rms_norm_eps", default=1e-6),
        activation=reader.activation("hidden_act", default="silu"),
        mlp_bias=reader.flag("mlp_bias", default=False),
    )


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Llama config.json from GGUF metadata."""
    config = gguf_config(meta, names, arch="llama", model_type="llama")
    config["rope_scaling"] = gguf_rope_scaling(meta, tensors or {}, arch="llama")
    config["attention_bias"] = names is not None and "blk.0.attn_q.bias" in names
    config["mlp_bias"] = names is not None and "blk.0.ffn_up.bias" in names
    config.pop("sliding_window", None)  # llama.cpp's llama graph has none
    return config


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
        config_tensors=CONFIG_TENSORS,
    ),
)
