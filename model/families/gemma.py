"""Gemma (Gemma Team 2024, arXiv:2403.08295): Llama's layers with a scaled embedding, 1 added to norm weights, GeGLU."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap
from model.families.gguf_layout import gguf_config, gguf_names
from model.families.llama_layout import IGNORED, llama_rules
from model.families.reading import ConfigReader, llama_like

ACTIVATION_FIELDS = ("hidden_activation", "hidden_act")


def gemma_fields(values: Mapping[str, Any], *, n_ctx: int, kv_default: int, theta: float = 10_000.0) -> dict[str, Any]:
    """The DecoderConfig fields all Gemma generations share."""
    reader = ConfigReader(values)
    reader.refuse("use_bidirectional_attention", unless=False, why="false: attention to earlier tokens only")
    bias = reader.flag("attention_bias", default=False)
    fields = llama_like(
        values,
        n_ctx=n_ctx,
        kv_default=kv_default,
        d_head=256,
        theta=theta,
        tied=True,
        activation=ACTIVATION_FIELDS,
        activation_default="gelu_pytorch_tanh",
    )
    scale = fields["d_model"] ** 0.5
    return fields | {"embed_scale": scale, "norm_unit_offset": True, "qkv_bias": bias, "out_bias": bias}


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Gemma config.json. Its first release said "gelu" and meant the tanh form."""
    fields = gemma_fields(values, n_ctx=8192, kv_default=16)
    if fields["activation"] == "gelu":
        fields["activation"] = "gelu_tanh"
    return DecoderConfig(family="gemma", **fields)


def subtract_one(name: str, tensor: Tensor, config: DecoderConfig) -> Tensor:  # noqa: ARG001 (GGUFMap.fix's)
    """The converter adds 1 to Gemma's norm weights."""
    return tensor - 1 if name.endswith("norm.weight") else tensor


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A Gemma config.json from GGUF metadata."""
    return gguf_config(meta, names, tensors, arch="gemma", model_type="gemma", tied=True)


GEMMA = Family(
    name="gemma",
    model_types=("gemma",),
    read_config=read_config,
    rules=llama_rules,
    ignored=IGNORED,
    gguf=GGUFMap(arch="gemma", hf_config=gguf_to_config, names=gguf_names, fix=subtract_one),
)
