"""Gemma 3, the text decoder (Gemma Team 2025, arXiv:2503.19786): five sliding layers with their own rotary base to
one full layer, RMSNorm on q and k, norms on both sides.

A multimodal checkpoint opens as its decoder; the vision tower is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from model.config import ConfigError, DecoderConfig, LayerKind
from model.families.base import Family, GGUFMap, TensorRule
from model.families.gemma import gemma_fields, subtract_one
from model.families.gguf_layout import (
    LAYER_NAMES,
    QK_NORM_NAMES,
    SANDWICH_NAMES,
    gguf_config,
    gguf_head_size,
    gguf_layer_types,
    gguf_names,
)
from model.families.llama_layout import IGNORED, SANDWICH_NORMS, llama_rules
from model.families.reading import ConfigReader, read_rope

THETA, LOCAL_THETA, PATTERN = 1_000_000.0, 10_000.0, 6


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Gemma 3 config.json, of the text model or of a multimodal one's `text_config`."""
    inner = values.get("text_config")
    if inner is not None:
        if not isinstance(inner, Mapping):
            raise ConfigError("text_config", inner, "an object")
        values = {key: value for key, value in values.items() if key == "tie_word_embeddings"} | dict(inner)
    reader = ConfigReader(values)
    ropes = ConfigReader(values).section("rope_parameters")
    nested = ropes is not None and any(kind in ropes.values for kind in ("full_attention", "sliding_attention"))
    plain = {key: value for key, value in values.items() if not (nested and key == "rope_parameters")}
    fields = gemma_fields(plain, n_ctx=131_072, kv_default=4, theta=THETA)
    d_head, n_ctx, n_layers = fields["d_head"], fields["n_ctx"], fields["n_layers"]
    local_theta = reader.number("rope_local_base_freq", default=LOCAL_THETA)
    local = read_rope(ConfigReader({}), d_head, n_ctx, theta=local_theta)
    if nested and ropes is not None:
        full, sliding = ropes.section("full_attention"), ropes.section("sliding_attention")
        bare = ConfigReader({})
        fields["rope"] = read_rope(bare, d_head, n_ctx, theta=fields["rope"].theta, section=full)
        local = read_rope(bare, d_head, n_ctx, theta=local_theta, section=sliding)
    pattern = reader.whole("sliding_window_pattern", high=1 << 20, default=PATTERN)
    kinds: tuple[LayerKind, ...] = tuple("sliding" if (layer + 1) % pattern else "full" for layer in range(n_layers))
    return DecoderConfig(
        family="gemma3_text",
        **fields,
        rope_sliding=local,
        qk_norm="head",
        attn_scale=reader.number("query_pre_attn_scalar", default=256) ** -0.5,
        logit_softcap=reader.maybe_number("final_logit_softcapping"),
        sliding_window=reader.whole("sliding_window", high=1 << 31, default=4096),
        layer_kinds=reader.layer_kinds(n_layers, kinds),
        post_norm=True,
    )


def rules(config: DecoderConfig) -> list[TensorRule]:
    """Llama's names, and the prefixes under which multimodal checkpoints keep the decoder."""

    def also(rule: TensorRule) -> TensorRule:
        bare = rule.source.removeprefix("model.")
        nested = (f"language_model.{rule.source}", f"model.language_model.{bare}")
        return replace(rule, aliases=(*rule.aliases, *nested))

    return [also(rule) for rule in llama_rules(config, SANDWICH_NORMS)]


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Gemma 3 config.json from GGUF metadata. The query scale is 1/√d_head, except for 27B (62 layers)."""
    found = gguf_config(meta, names, tensors, arch="gemma3", model_type="gemma3_text", tied=True)
    scaling = found.pop("rope_scaling") or {"rope_type": "default"}
    found["rope_parameters"] = {
        "full_attention": scaling | {"rope_theta": found["rope_theta"]},
        "sliding_attention": {
            "rope_type": "default",
            "rope_theta": meta.get("gemma3.rope.freq_base_swa", LOCAL_THETA),
        },
    }
    found["final_logit_softcapping"] = meta.get("gemma3.final_logit_softcapping")
    is_27b = found.get("num_hidden_layers") == 62
    found["query_pre_attn_scalar"] = gguf_head_size(found) if is_27b else found.get("head_dim", 256)
    if found.get("sliding_window", 0) == 0:
        return found | {"sliding_window": None, "sliding_window_pattern": 1}
    return found | {"layer_types": gguf_layer_types(meta, found, arch="gemma3", period=PATTERN)}


def gguf_tensor_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names."""
    return gguf_names(config, LAYER_NAMES | SANDWICH_NAMES | QK_NORM_NAMES)


GEMMA3 = Family(
    name="gemma3_text",
    model_types=("gemma3_text", "gemma3"),
    read_config=read_config,
    rules=rules,
    ignored=(*IGNORED, "vision_tower.*", "multi_modal_projector.*", "model.vision_tower.*", "model.multi_modal_*"),
    gguf=GGUFMap(arch="gemma3", hf_config=gguf_to_config, names=gguf_tensor_names, fix=subtract_one),
)
