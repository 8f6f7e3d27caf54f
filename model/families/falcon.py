"""Falcon (Almazrouei et al. 2023, arXiv:2311.16867) in its three generations.

RefinedWeb-1B: sequential, ALiBi, biases. 7B: one KV head, attention and MLP in parallel behind one norm. 40B and 11B
("new decoder architecture"): grouped queries, in parallel, behind two norms or one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from model.config import ConfigError, DecoderConfig
from model.families.base import Family, GGUFMap, TensorRule
from model.families.fused_qkv import Names, fused_gguf_names, fused_rules, regroup_qkv
from model.families.gguf_layout import gguf_config
from model.families.reading import ConfigReader, read_rope

NAMES = Names(
    prefix="transformer.",
    embed="word_embeddings",
    layers="h",
    attention="self_attention",
    final_norm="ln_f",
    norms={"input_layernorm": "input_layernorm", "post_attention_layernorm": "post_attention_layernorm"},
)
TWO_NORMS = {"ln_attn": "input_layernorm", "ln_mlp": "post_attention_layernorm"}
ONE_NORM = {"input_layernorm": "input_layernorm"}


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Falcon config.json."""
    reader = ConfigReader(values)
    d_model = reader.size("d_model", "hidden_size", "n_embed")
    heads = ("num_attention_heads", "n_head")
    n_heads, n_kv_heads = reader.heads("num_kv_heads", "n_head_kv", names=heads)
    d_head = reader.head_size(d_model, n_heads)
    n_ctx = reader.size("n_ctx", "max_position_embeddings", default=2048)
    new = reader.flag("new_decoder_architecture", default=False)
    parallel = reader.flag("parallel_attn", default=True)
    if new and not parallel:
        raise ConfigError("parallel_attn", False, "true with new_decoder_architecture")
    if not new:
        n_kv_heads = 1 if reader.flag("multi_query", default=True) else n_heads
    n_norms = reader.whole("num_ln_in_parallel_attn", high=2, default=2) if new else 1
    alibi = reader.flag("alibi", default=False)
    bias = reader.flag("bias", default=False)
    return DecoderConfig(
        family="falcon",
        d_vocab=reader.size("d_vocab", "vocab_size"),
        d_model=d_model,
        n_layers=reader.size("n_layers", "num_hidden_layers", "n_layer"),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_head=d_head,
        d_mlp=reader.size("d_mlp", "ffn_hidden_size", default=4 * d_model),
        n_ctx=n_ctx,
        tied_head=reader.flag("tie_word_embeddings", default=True),
        positions="alibi" if alibi else "rope",
        rope=None if alibi else read_rope(reader, d_head, n_ctx),
        alibi_scaled=True,
        alibi_bfloat16=True,
        qkv_bias=bias,
        out_bias=bias,
        norm="layer",
        norm_eps=reader.number("layer_norm_epsilon", default=1e-5),
        parallel_residual=parallel,
        shared_norm=parallel and n_norms == 1,
        activation=reader.activation("activation", default="gelu"),
        gated_mlp=False,
        mlp_bias=bias,
    )


def _names(config: DecoderConfig) -> Names:
    if not config.parallel_residual:
        return NAMES
    return replace(NAMES, norms=ONE_NORM if config.shared_norm else TWO_NORMS)


def rules(config: DecoderConfig) -> list[TensorRule]:
    """Every tensor of a Falcon checkpoint."""
    return fused_rules(config, _names(config))


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Falcon config.json from GGUF metadata (llama.cpp writes only the parallel, rotary ones)."""
    found = gguf_config(meta, names, tensors, arch="falcon", model_type="falcon", tied=True, norm="layer")
    two_norms = names is not None and "blk.0.attn_norm_2.weight" in names
    n_kv_heads = ConfigReader(found).size("n_kv_heads", "num_key_value_heads", default=1)
    return found | {
        "num_kv_heads": n_kv_heads,
        "new_decoder_architecture": two_norms or n_kv_heads > 1,
        "num_ln_in_parallel_attn": 2 if two_norms else 1,
        "ffn_hidden_size": found.get("intermediate_size"),
        "bias": names is not None and "blk.0.attn_qkv.bias" in names,
    }


def gguf_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names; with two norms the first is the MLP's."""
    norms = (
        {"attn_norm": "input_layernorm"} if config.shared_norm else {"attn_norm": "ln_mlp", "attn_norm_2": "ln_attn"}
    )
    return fused_gguf_names(config, _names(config), norms)


FALCON = Family(
    name="falcon",
    model_types=("falcon", "RefinedWeb", "RefinedWebModel"),
    read_config=read_config,
    rules=rules,
    ignored=("*.rotary_emb.inv_freq", "*.self_attention.rotary.inv_freq"),
    gguf=GGUFMap(arch="falcon", hf_config=gguf_to_config, names=gguf_names, fix=regroup_qkv),
)
