"""Phi-3 and Phi-4-mini (Abdin et al. 2024, arXiv:2404.14219): fused qkv and gate-up, LongRoPE, partial rotation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import ConfigError, DecoderConfig
from model.families.base import Family, GGUFMap, TensorRule, rule
from model.families.gguf_layout import (
    CONFIG_TENSORS,
    LONG_FACTORS,
    SHORT_FACTORS,
    TOP_NAMES,
    gguf_config,
    gguf_head_size,
    gguf_names,
    partial_for,
    unchanged,
)
from model.families.llama_layout import IGNORED, LLAMA_NORMS, head_rule, norm_rules, split_rule
from model.families.reading import ConfigReader, all_sliding, llama_like


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Phi-3 config.json, whose first release called LongRoPE "su" or "yarn"."""
    values = dict(values)
    for name in ("rope_scaling", "rope_parameters"):
        scaling = values.get(name)
        if not isinstance(scaling, Mapping) or "short_factor" not in scaling:
            continue
        if scaling.get("rope_type", scaling.get("type")) == "yarn":
            values[name] = {**scaling, "rope_type": "longrope"}
    reader = ConfigReader(values)
    if reader.find("original_max_position_embeddings")[1] is None:
        values["original_max_position_embeddings"] = reader.size("n_ctx", "max_position_embeddings", default=4096)
    fields = llama_like(values, n_ctx=4096, norm_eps=1e-5)
    window = reader.maybe_whole("sliding_window")
    return DecoderConfig(family="phi3", **fields, **all_sliding(fields["n_layers"], window))


def rules(config: DecoderConfig) -> list[TensorRule]:
    """Every tensor of a Phi-3 checkpoint."""
    d_model, q_width, kv_width = config.d_model, config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    found = [
        rule("model.embed_tokens.weight", (config.d_vocab, d_model), "embed_tokens.weight"),
        rule("model.norm.weight", (d_model,), "norm.weight"),
        head_rule(config),
    ]
    for layer in range(config.n_layers):
        at = f"layers.{layer}"
        widths = {"q": q_width, "k": kv_width, "v": kv_width}
        qkv = {f"{at}.self_attn.{part}_proj.weight": width for part, width in widths.items()}
        gate_up = {f"{at}.mlp.{part}_proj.weight": config.d_mlp for part in ("gate", "up")}
        o_proj, down_proj = f"{at}.self_attn.o_proj.weight", f"{at}.mlp.down_proj.weight"
        found += norm_rules(config, layer, LLAMA_NORMS)
        found.append(split_rule(f"model.{at}.self_attn.qkv_proj.weight", qkv, d_model))
        found.append(split_rule(f"model.{at}.mlp.gate_up_proj.weight", gate_up, d_model))
        found.append(rule(f"model.{o_proj}", (d_model, q_width), o_proj))
        found.append(rule(f"model.{down_proj}", (d_model, config.d_mlp), down_proj))
    return found


GGUF_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_qkv": "self_attn.qkv_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_up": "mlp.gate_up_proj",
    "ffn_down": "mlp.down_proj",
}


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Phi-3 config.json from GGUF metadata; LongRoPE's factors are tensors of the file."""
    has_tables = tensors is not None and LONG_FACTORS in tensors and SHORT_FACTORS in tensors
    stated = dict(meta)
    attention_factor = stated.pop("phi3.rope.scaling.attn_factor", 1.0) if has_tables else 1.0
    if has_tables and stated.get("phi3.rope.scaling.type") == "longrope":
        del stated["phi3.rope.scaling.type"]
    found = gguf_config(stated, names, tensors, arch="phi3", model_type="phi3", whole_heads=False)
    found["sliding_window"] = found.get("sliding_window") or None
    original = meta.get("phi3.rope.scaling.original_context_length")
    if original is not None:
        found["original_max_position_embeddings"] = original
    d_head = ConfigReader(found).size("d_head", "head_dim", default=gguf_head_size(found))
    found["partial_rotary_factor"] = partial_for(meta, "phi3.rope.dimension_count", d_head)
    if has_tables and tensors is not None:
        if found["rope_scaling"] is not None:
            kind = found["rope_scaling"]["rope_type"]
            raise ConfigError("phi3.rope.scaling", kind, f"none beside the table {LONG_FACTORS}")
        found["rope_scaling"] = {
            "rope_type": "longrope",
            "long_factor": [float(value) for value in tensors[LONG_FACTORS].flatten()],
            "short_factor": [float(value) for value in tensors[SHORT_FACTORS].flatten()],
            "attention_factor": attention_factor,
        }
    return found


def gguf_tensor_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names."""
    return gguf_names(config, GGUF_LAYER, TOP_NAMES)


PHI3 = Family(
    name="phi3",
    model_types=("phi3",),
    read_config=read_config,
    rules=rules,
    ignored=IGNORED,
    gguf=GGUFMap(
        arch="phi3", hf_config=gguf_to_config, names=gguf_tensor_names, fix=unchanged, config_tensors=CONFIG_TENSORS
    ),
)
