"""What is measured: our model in any dtype, runs on it, and the reference that reads the same file."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.checkpoint import catalogue
from model.checkpoint.fetch import local_path
from model.kv_cache import KVCache
from model.loading import LoadedModel, open_model
from model.protocol.values import SamplerSettings
from model.run import Run

GREEDY = SamplerSettings(temperature=0.0)
SEED = 0


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Lengths in tokens, pictures in pixels a side; what the promises say, or less for a test."""

    short: int = 64
    medium: int = 512
    long: int = 1_024
    whole: int = 4_096
    picture: int = 1_024
    vocabulary: int = 151_936


class Subject:
    """The model that `source` names ("": the default one), on `device`, opened when first wanted."""

    def __init__(self, source: str = "", sizes: Sizes | None = None, device: str = "cpu") -> None:
        self.source, self.device = source, device
        self.sizes = sizes or Sizes()
        self._models: dict[str, LoadedModel] = {}
        self._whole: Run | None = None

    def model(self, dtype: str = "float32") -> LoadedModel:
        """Ours in `dtype`; the last one in half precision and the one in float32 are kept."""
        if dtype not in self._models:
            self._models = {name: model for name, model in self._models.items() if name == "float32"}
            self._models[dtype] = open_model(self.source, device=self.device, dtype=dtype)
        return self._models[dtype]

    def ids(self, tokens: int) -> list[int]:
        """The same random ids in every row, for ours and the reference."""
        return random_ids(tokens, self.model().info.d_vocab)

    def run(self, tokens: int, dtype: str = "float32") -> Run:
        """A new run, prefilled."""
        made = Run(self.model(dtype), budget_bytes=4 << 30)
        made.prefill(self.ids(tokens))
        return made

    @property
    def whole(self) -> Run:
        """A run of `sizes.whole` tokens, kept for the rows that look at one."""
        if self._whole is None:
            self._whole = self.run(self.sizes.whole)
        return self._whole

    def bare_cache(self, run: Run) -> KVCache:
        """A cache of its own with the keys and values of `run`, and room for as many steps again."""
        cache_of_its_own = run.decoder.new_cache()
        cache_of_its_own.reserve(run.length + 256)
        for layer in range(run.config.n_layers):
            cache_of_its_own.append(layer, run.k(layer), run.v(layer))
        cache_of_its_own.advance(run.length)
        return cache_of_its_own

    @cached_property
    def reference(self) -> Any:
        """The reference implementation in float32, from the same file."""
        place = Path(self.source) if self.source else local_path(catalogue.DEFAULT)
        assert place is not None, "the default model is not here: make setup"
        return _reference(place, self.device)

    def tensor(self, ids: Sequence[int]) -> Tensor:
        """(T,) int64 where the model is."""
        return torch.tensor(ids, device=self.device)


@cache
def _reference(place: Path, device: str) -> Any:
    import transformers

    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    folder, options = (place, {}) if place.is_dir() else (place.parent, {"gguf_file": place.name})
    with contextlib.redirect_stderr(io.StringIO()):  # progress bars between our lines
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options)
    return model.eval().to(device)


def has_reference() -> bool:
    """Whether the reference implementation is installed."""
    return importlib.util.find_spec("transformers") is not None


def random_ids(tokens: int, d_vocab: int) -> list[int]:
    """Ids that are the same wherever they are made."""
    ids: list[int] = torch.randint(d_vocab, (tokens,), generator=torch.Generator().manual_seed(SEED)).tolist()
    return ids
