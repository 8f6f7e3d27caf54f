"""GPT-NeoX and Pythia (Black et al. 2022, arXiv:2204.06745): parallel attention and MLP, partly rotated heads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap
from model.families.fused_qkv import Names, fused_gguf_names, fused_rules, regroup_qkv
from model.families.gguf_layout import gguf_config, gguf_head_size, partial_for
from model.families.reading import ConfigReader, read_rope

THETA_NAME, PARTIAL_NAME = "rotary_emb_base", "rotary_pct"


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a GPT-NeoX config.json, which has names of its own for what others call otherwise."""
    reader = ConfigReader(values)
    d_model = reader.size("d_model", "hidden_size")
    n_heads, _ = reader.heads()
    d_head = reader.head_size(d_model, n_heads)
    n_ctx = reader.size("n_ctx", "max_position_embeddings", default=2048)
    attention_bias = reader.flag("attention_bias", default=True)
    scaling = reader.section("rope_scaling", "rope_parameters") or ConfigReader({})
    for name, own, default in (("rope_theta", THETA_NAME, 10_000.0), ("partial_rotary_factor", PARTIAL_NAME, 0.25)):
        if scaling.find(name)[1] is None:
            used = reader.number(own, default=default)
            reader.refuse(name, unless=used, why=f"{used:g}, as {own} has it")
    return DecoderConfig(
        family="gpt_neox",
        d_vocab=reader.size("d_vocab", "vocab_size"),
        d_model=d_model,
        n_layers=reader.size("n_layers", "num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=n_heads,
        d_head=d_head,
        d_mlp=reader.size("d_mlp", "intermediate_size"),
        n_ctx=n_ctx,
        tied_head=reader.flag("tie_word_embeddings", default=False),
        rope=read_rope(reader, d_head, n_ctx, partial=0.25, partial_names=(PARTIAL_NAME,)),
        qkv_bias=attention_bias,
        out_bias=attention_bias,
        norm="layer",
        norm_eps=reader.number("layer_norm_eps", default=1e-5),
        parallel_residual=reader.flag("use_parallel_residual", default=True),
        activation=reader.activation("hidden_act", default="gelu"),
        gated_mlp=False,
        mlp_bias=True,
    )


NAMES = Names(
    prefix="gpt_neox.",
    embed="embed_in",
    layers="layers",
    attention="attention",
    final_norm="final_layer_norm",
    norms={"input_layernorm": "input_layernorm", "post_attention_layernorm": "post_attention_layernorm"},
    head="embed_out.weight",
)


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A GPT-NeoX config.json from GGUF metadata."""
    found = gguf_config(meta, names, tensors, arch="gptneox", model_type="gpt_neox", whole_heads=False, norm="layer")
    found["use_parallel_residual"] = meta.get("gptneox.use_parallel_residual")
    found["attention_bias"] = names is None or "blk.0.attn_qkv.bias" in names
    found[THETA_NAME] = found["rope_theta"]
    found[PARTIAL_NAME] = partial_for(meta, "gptneox.rope.dimension_count", gguf_head_size(found))
    return found


def gguf_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names."""
    norms = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    return fused_gguf_names(config, NAMES, norms)


GPT_NEOX = Family(
    name="gpt_neox",
    model_types=("gpt_neox",),
    read_config=read_config,
    rules=partial(fused_rules, names=NAMES),
    ignored=("*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq"),
    gguf=GGUFMap(arch="gptneox", hf_config=gguf_to_config, names=gguf_names, fix=regroup_qkv),
)
