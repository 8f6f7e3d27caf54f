"""Gemma 2 (Gemma Team 2024, arXiv:2408.00118): soft caps, norms on both sides, every other layer a sliding window."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from model.config import DecoderConfig, LayerKind
from model.families.base import Family, GGUFMap
from model.families.gemma import gemma_fields, subtract_one
from model.families.gguf_layout import (
    LAYER_NAMES,
    SANDWICH_NAMES,
    gguf_config,
    gguf_head_size,
    gguf_layer_types,
    gguf_names,
)
from model.families.llama_layout import IGNORED, SANDWICH_NORMS, llama_rules
from model.families.reading import ConfigReader


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Gemma 2 config.json."""
    reader = ConfigReader({"final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0, **values})
    fields = gemma_fields(values, n_ctx=8192, kv_default=4)
    n_layers = fields["n_layers"]
    alternating: tuple[LayerKind, ...] = tuple("full" if layer % 2 else "sliding" for layer in range(n_layers))
    return DecoderConfig(
        family="gemma2",
        **fields,
        attn_scale=reader.number("query_pre_attn_scalar", default=256) ** -0.5,
        attn_softcap=reader.maybe_number("attn_logit_softcapping"),
        logit_softcap=reader.maybe_number("final_logit_softcapping"),
        sliding_window=reader.whole("sliding_window", high=1 << 31, default=4096),
        layer_kinds=reader.layer_kinds(n_layers, alternating),
        post_norm=True,
    )


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Gemma 2 config.json from GGUF metadata, which does not state the query scale: 27B's differs from 1/√d_head."""
    found = gguf_config(meta, names, tensors, arch="gemma2", model_type="gemma2", tied=True)
    found["layer_types"] = gguf_layer_types(meta, found, arch="gemma2", period=2)
    theta = found["rope_theta"]
    ConfigReader(meta).refuse(
        "gemma2.rope.freq_base_swa", unless=theta, why=f"{theta:g}, as of the layers that see all"
    )
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        if f"gemma2.{name}" in meta:
            found[name] = meta[f"gemma2.{name}"]
    is_27b = found.get("num_hidden_layers") == 46
    found["query_pre_attn_scalar"] = gguf_head_size(found) if is_27b else found.get("head_dim", 256)
    return found


def gguf_tensor_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names."""
    return gguf_names(config, LAYER_NAMES | SANDWICH_NAMES)


GEMMA2 = Family(
    name="gemma2",
    model_types=("gemma2",),
    read_config=read_config,
    rules=partial(llama_rules, norms=SANDWICH_NORMS),
    ignored=IGNORED,
    gguf=GGUFMap(arch="gemma2", hf_config=gguf_to_config, names=gguf_tensor_names, fix=subtract_one),
)
