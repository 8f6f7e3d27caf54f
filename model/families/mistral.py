"""Mistral (Jiang et al. 2023, arXiv:2310.06825): Llama's layers with a sliding window.

llama.cpp writes it as a llama file, without the window; such a file opens as Llama, as llama.cpp runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model.config import DecoderConfig
from model.families.base import Family
from model.families.llama_layout import IGNORED, llama_rules
from model.families.reading import ConfigReader, all_sliding, llama_like


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a Mistral config.json. An absent `sliding_window` means 4,096, a null none."""
    fields = llama_like(values, n_ctx=131_072, kv_default=8)
    window = ConfigReader({"sliding_window": 4096, **values}).maybe_whole("sliding_window")
    return DecoderConfig(family="mistral", **fields, **all_sliding(fields["n_layers"], window))


MISTRAL = Family(name="mistral", model_types=("mistral",), read_config=read_config, rules=llama_rules, ignored=IGNORED)
