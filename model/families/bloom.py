"""BLOOM (BigScience 2022, arXiv:2211.05100): ALiBi, a norm after the embedding, biases everywhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap
from model.families.fused_qkv import Names, fused_gguf_names, fused_rules, regroup_qkv
from model.families.gguf_layout import gguf_config
from model.families.reading import ConfigReader

NAMES = Names(
    prefix="transformer.",
    embed="word_embeddings",
    embed_norm="word_embeddings_layernorm",
    layers="h",
    attention="self_attention",
    final_norm="ln_f",
    norms={"input_layernorm": "input_layernorm", "post_attention_layernorm": "post_attention_layernorm"},
)


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a BLOOM config.json. ALiBi has no longest position; `seq_length` is what it was trained on."""
    reader = ConfigReader(values)
    d_model = reader.size("d_model", "hidden_size", "n_embed")
    n_heads, _ = reader.heads(names=("n_head", "num_attention_heads"))
    return DecoderConfig(
        family="bloom",
        d_vocab=reader.size("d_vocab", "vocab_size"),
        d_model=d_model,
        n_layers=reader.size("n_layers", "n_layer", "num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=n_heads,
        d_head=reader.head_size(d_model, n_heads),
        d_mlp=4 * d_model,
        n_ctx=reader.size("n_ctx", "seq_length", "max_position_embeddings", default=2048),
        tied_head=reader.flag("tie_word_embeddings", default=True),
        positions="alibi",
        qkv_bias=True,
        out_bias=True,
        norm="layer",
        norm_eps=reader.number("layer_norm_epsilon", default=1e-5),
        residual_from_norm=reader.flag("apply_residual_connection_post_layernorm", default=False),
        embed_norm=True,
        activation="gelu_tanh",
        gated_mlp=False,
        mlp_bias=True,
    )


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A BLOOM config.json from GGUF metadata."""
    return gguf_config(meta, names, tensors, arch="bloom", model_type="bloom", tied=True, norm="layer")


def gguf_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names."""
    return fused_gguf_names(config, NAMES, {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"})


BLOOM = Family(
    name="bloom",
    model_types=("bloom",),
    read_config=read_config,
    rules=partial(fused_rules, names=NAMES),
    gguf=GGUFMap(arch="bloom", hf_config=gguf_to_config, names=gguf_names, fix=regroup_qkv),
)
