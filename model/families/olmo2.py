"""OLMo 2 (OLMo Team 2024, arXiv:2501.00656): norms on what leaves attention and MLP, and on whole rows of q and k."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap
from model.families.gguf_layout import (
    LAYER_NAMES,
    OUTPUT_NORM_NAMES,
    QK_NORM_NAMES,
    gguf_config,
    gguf_names,
    unchanged,
)
from model.families.llama_layout import IGNORED, OUTPUT_NORMS, llama_rules
from model.families.reading import ConfigReader, llama_like


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of an OLMo 2 config.json."""
    bias = ConfigReader(values).flag("attention_bias", default=False)
    return DecoderConfig(
        family="olmo2",
        **llama_like(values, n_ctx=2048, norm_eps=1e-5),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="row",
        pre_norm=False,
        post_norm=True,
    )


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """An OLMo 2 config.json from GGUF metadata. With a sliding window it is OLMo 3, whose layers are of two kinds."""
    window = "olmo2.attention.sliding_window"
    ConfigReader(meta).refuse(window, unless=0, why="0: OLMo 2's layers see everything, and OLMo 3 is not supported")
    return gguf_config(meta, names, tensors, arch="olmo2", model_type="olmo2")


def gguf_tensor_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names."""
    kept = {gguf: hf for gguf, hf in LAYER_NAMES.items() if "norm" not in gguf}
    return gguf_names(config, kept | OUTPUT_NORM_NAMES | QK_NORM_NAMES)


OLMO2 = Family(
    name="olmo2",
    model_types=("olmo2",),
    read_config=read_config,
    rules=partial(llama_rules, norms=OUTPUT_NORMS),
    ignored=IGNORED,
    gguf=GGUFMap(arch="olmo2", hf_config=gguf_to_config, names=gguf_tensor_names, fix=unchanged),
)
