"""A checkpoint as the rest sees it: named tensors with dtype and shape, read one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from model.checkpoint.progress import CheckCancel

if TYPE_CHECKING:
    import torch

FLOAT_BYTES: Mapping[str, int] = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Bytes an element of the dtypes weights may have, by safetensors' names."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A tensor of a file: `dtype` in safetensors' or GGUF's spelling, `nbytes` on disk."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    start: int
    nbytes: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        product = 1
        for size in self.shape:
            product *= size
        return product


class TensorSource(Protocol):
    """Where weights come from."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every tensor, by the name the family's rules use."""

    def is_float(self, name: str) -> bool:
        """Whether the tensor's values can be read as numbers (dequantised if need be)."""

    def read(self, name: str, check_cancel: CheckCancel) -> torch.Tensor:
        """The tensor, in its own memory or in a private mapping; BadFileError if the file changed meanwhile."""

    def close(self) -> None:
        """Gives the files back."""
