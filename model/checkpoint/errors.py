"""What can go wrong with a model's files, as sentences: which file, which tensor or field, found, expected, way out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from model.errors import DecoderscopeError, shown
from model.protocol.events import cut_words

_SHOWN_NAMES = 8


def shown_list(names: Sequence[str]) -> str:
    """Up to eight names, then how many more."""
    head = ", ".join(shown(name) for name in names[:_SHOWN_NAMES])
    return head + (f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else "")


class CheckpointError(DecoderscopeError):
    """A model that can't be opened."""

    code = "checkpoint"


GET_AGAIN = "Get the file again, or open another one."


class BadFileError(CheckpointError):
    """One file that is not what it should be; `where` names the tensor, field or offset inside it. Without a `remedy`
    of its own: `GET_AGAIN`."""

    code = "bad_file"

    def __init__(
        self,
        path: str | Path,
        problem: str,
        *,
        where: str = "",
        found: object = None,
        expected: object = None,
        remedy: str = "",
    ) -> None:
        self.path, self.problem, self.where = str(path), problem, where
        self.found, self.expected, self.remedy = found, expected, remedy or GET_AGAIN
        sentence = f"{shown(self.path, 300)}: " + (f"{shown(where)}: " if where else "") + problem
        values = [f"found {shown(found)}"] if found is not None else []
        values += [f"expected {shown(expected, 300)}"] if expected is not None else []
        sentence += f" ({', '.join(values)})." if values else "."
        super().__init__(f"{sentence} {self.remedy}")


class WeightsCutError(CheckpointError):
    """The prepared copy that an open model's weights are mapped from has lost bytes, or holds others: the weights are
    gone."""

    code = "weights_cut"

    def __init__(self, path: str | Path, *, found: int, expected: int) -> None:
        self.path, self.found, self.expected = str(path), found, expected
        super().__init__(cut_words(self.path, found=found, expected=expected))


class UnsupportedError(CheckpointError):
    """A model or a file kind we do not read; says what it is and what to do."""

    code = "unsupported"

    def __init__(self, path: str | Path, what: str, remedy: str) -> None:
        self.path, self.what, self.remedy = str(path), what, remedy
        super().__init__(f"{shown(self.path, 300)}: {what}. {remedy}")


class TensorsError(CheckpointError):
    """The checkpoint's tensors are not those the configuration asks for: one report that names them all.

    `misshaped` maps a name to (found shape, expected shape); `unusable` maps a name to the dtype that can't be read.
    """

    code = "tensors"

    def __init__(
        self,
        path: str | Path,
        *,
        missing: Sequence[str] = (),
        unexpected: Sequence[str] = (),
        misshaped: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] | None = None,
        unusable: Mapping[str, str] | None = None,
    ) -> None:
        self.path = str(path)
        self.missing, self.unexpected = tuple(missing), tuple(unexpected)
        self.misshaped, self.unusable = dict(misshaped or {}), dict(unusable or {})
        parts = []
        if self.missing:
            parts.append(f"missing {len(self.missing)}: {shown_list(self.missing)}")
        if self.unexpected:
            parts.append(f"unexpected {len(self.unexpected)}: {shown_list(self.unexpected)}")
        if self.misshaped:
            lines = [
                f"{name} is {list(found)}, expected {list(want)}" for name, (found, want) in self.misshaped.items()
            ]
            parts.append(f"wrong shape {len(lines)}: {shown_list(lines)}")
        if self.unusable:
            lines = [f"{name} ({dtype})" for name, dtype in self.unusable.items()]
            parts.append(f"quantised, not supported {len(lines)}: {shown_list(lines)}")
        super().__init__(
            f"{shown(self.path, 300)}: the tensors do not fit the configuration: {'; '.join(parts)}. "
            "Nothing was loaded: check that config.json belongs to these weights."
        )


class TooBigError(CheckpointError):
    """A model that would not fit in the memory there is."""

    code = "too_big"

    def __init__(self, name: str, *, needed: int, available: int, device: str, remedy: str) -> None:
        self.needed, self.available, self.device = needed, available, device
        super().__init__(
            f"{shown(name)} needs {needed / 1e9:.1f} GB on {device}, where {available / 1e9:.1f} GB are free. {remedy}"
        )


class FetchError(CheckpointError):
    """A download that failed."""

    code = "fetch"

    def __init__(self, what: str, reason: str, remedy: str) -> None:
        self.what, self.reason = what, reason
        super().__init__(f"Could not fetch {shown(what)}: {reason}. {remedy}")
