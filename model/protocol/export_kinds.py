"""What can be exported and as what: one list for the window, the command line and the notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args

from model.protocol.errors import DecoderscopeError
from model.protocol.export_requests import (
    ActivationFormat,
    DrawnRequest,
    ExportActivations,
    ExportAttention,
    ExportRun,
    ExportSheet,
    FigureFormat,
    FileRequest,
    RunFormat,
    SheetFormat,
)
from model.protocol.figure_requests import (
    DrawnFormat,
    ExportKvGrowth,
    ExportLens,
    ExportRope,
    ExportSampler,
    ExportText,
)
from model.protocol.file_names import safe_stem


@dataclass(frozen=True, kw_only=True)
class ExportKind:
    """One kind: the request that makes it and its formats, the first of which is the default."""

    request: type[FileRequest]
    formats: tuple[str, ...]

    @property
    def drawn(self) -> bool:
        """Whether it has figures."""
        return issubclass(self.request, DrawnRequest)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of its figures in inches unless asked; (0, 0) for what has none."""
        if not self.drawn:
            return 0.0, 0.0
        values: dict[str, Any] = {entry.name: entry.default for entry in fields(self.request)}
        assert MISSING not in (values["width"], values["height"])
        return values["width"], values["height"]


_DRAWN = get_args(DrawnFormat)
_SHEET = get_args(SheetFormat)
_TENSORS = get_args(ActivationFormat)
EXPORT_KINDS: Mapping[str, ExportKind] = {
    "attention": ExportKind(request=ExportAttention, formats=get_args(FigureFormat)),
    "sheet": ExportKind(request=ExportSheet, formats=_SHEET),
    "grid": ExportKind(request=ExportSheet, formats=_SHEET),
    "sampler": ExportKind(request=ExportSampler, formats=_DRAWN),
    "kv-growth": ExportKind(request=ExportKvGrowth, formats=_DRAWN),
    "lens": ExportKind(request=ExportLens, formats=_DRAWN),
    "rope": ExportKind(request=ExportRope, formats=_DRAWN),
    "text": ExportKind(request=ExportText, formats=_DRAWN),
    "activation": ExportKind(request=ExportActivations, formats=_TENSORS),
    "logits": ExportKind(request=ExportActivations, formats=_TENSORS),
    "kv": ExportKind(request=ExportActivations, formats=_TENSORS),
    "run": ExportKind(request=ExportRun, formats=get_args(RunFormat)),
}
"""In the order in which they are offered."""


def file_names(message: FileRequest) -> tuple[str, ...]:
    """The names of the files of `message` that are known before it is asked: for looking what is there already."""
    stem = safe_stem(message.stem)
    names = [f"{stem}.{name}" for name in message.formats]
    return (*names, f"{stem}.csv-metadata.json") if "csv" in message.formats else tuple(names)


class IndexListError(DecoderscopeError):
    """A list of layers or heads that names something else, or nothing."""

    code = "index_list"

    def __init__(self, word: str, count: int) -> None:
        good = word.isascii() and word.replace("-", "").replace(" ", "").isdecimal()
        nothing = good and "-" in word.strip("-")
        super().__init__(
            f"{word!r} " + ("names nothing" if nothing else f"is not a whole number from 0 to {count - 1}")
        )


def indices(text: str, count: int) -> tuple[int, ...]:
    """A list of layers or heads as a person writes it: "0,3-5" → (0, 3, 4, 5); "2,all" → 2 and every other one. Each
    once. Raises IndexListError."""
    found: list[int] = []
    for part in text.split(","):
        if part.strip() == "all":
            found += range(count)
            continue
        ends = [_index(word.strip(), count) for word in part.split("-", 1)]
        found += range(ends[0], ends[-1] + 1)
    if not found:
        raise IndexListError(text, count)
    return tuple(dict.fromkeys(found))


def _index(word: str, count: int) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) < 10 and int(word) < count):
        raise IndexListError(word, count)
    return int(word)
