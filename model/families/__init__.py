"""The families of decoders that open. A new one is one file here and one line in `FAMILIES`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from model.errors import DecoderscopeError, shown
from model.families.base import Family, GGUFMap, Target, TensorRule
from model.families.bloom import BLOOM
from model.families.falcon import FALCON
from model.families.gemma import GEMMA
from model.families.gemma2 import GEMMA2
from model.families.gemma3 import GEMMA3
from model.families.gpt2 import GPT2
from model.families.gpt_neox import GPT_NEOX
from model.families.llama import LLAMA
from model.families.mistral import MISTRAL
from model.families.mixtral import MIXTRAL
from model.families.olmo2 import OLMO2
from model.families.phi3 import PHI3
from model.families.qwen2 import QWEN2
from model.families.qwen3 import QWEN3
from model.families.qwen3_moe import QWEN3_MOE

FAMILIES: tuple[Family, ...] = (
    BLOOM,
    FALCON,
    GEMMA,
    GEMMA2,
    GEMMA3,
    GPT2,
    GPT_NEOX,
    LLAMA,
    MISTRAL,
    MIXTRAL,
    OLMO2,
    PHI3,
    QWEN2,
    QWEN3,
    QWEN3_MOE,
)

ENCODERS = frozenset(  # the usual ones, so that the refusal can say why
    {"albert", "bert", "camembert", "clip", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "esm"}
    | {"longformer", "modernbert", "mpnet", "nomic_bert", "roberta", "siglip", "vit", "wav2vec2", "xlm-roberta"}
)


class UnsupportedModelError(DecoderscopeError):
    """A kind of model the decoder can't run; `supported` lists those it can."""

    code = "unsupported_model"

    def __init__(self, what: str, supported: Iterable[str]) -> None:
        self.supported = tuple(supported)
        super().__init__(f"{what} Supported: {', '.join(self.supported)}.")


def model_types() -> tuple[str, ...]:
    """Every `model_type` that opens, in order."""
    return tuple(name for family in FAMILIES for name in family.model_types)


def family_for(config: Mapping[str, Any]) -> Family:
    """The family of a config.json by its `model_type`; code the config points to (`auto_map`) is never looked at."""
    found = config.get("model_type")
    for family in FAMILIES:
        if found in family.model_types:
            return family
    if not isinstance(found, str) or not found:
        what = f"The model's configuration has no model_type (found {shown(found)})."
        raise UnsupportedModelError(what, model_types())
    if found in ENCODERS:
        what = f"{found[:60]!r} is an encoder-only model: it has no next token to predict."
    elif config.get("is_encoder_decoder") is True:
        what = f"{found[:60]!r} is an encoder-decoder model; this is a microscope for decoder-only ones."
    else:
        what = f"The model type {found[:60]!r} is not supported."
    raise UnsupportedModelError(what, model_types())


def family_for_gguf(meta: Mapping[str, Any]) -> Family:
    """The family of a GGUF file by its metadata."""
    arch = meta.get("general.architecture")
    maps = [family for family in FAMILIES if family.gguf is not None]
    for family in maps:
        if family.gguf is not None and family.gguf.arch == arch and family.gguf.accepts(meta):
            return family
    known = sorted({family.gguf.arch for family in maps if family.gguf is not None})
    raise UnsupportedModelError(f"The GGUF architecture {str(arch)[:60]!r} is not supported.", known)


__all__ = [
    "FAMILIES",
    "Family",
    "GGUFMap",
    "Target",
    "TensorRule",
    "UnsupportedModelError",
    "family_for",
    "family_for_gguf",
    "model_types",
]
