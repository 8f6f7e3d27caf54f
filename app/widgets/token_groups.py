"""What a strip of tokens is told: their pieces, and which of them together are characters. Hundreds of thousands, as
arrays; only what is in sight is made into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from app.plain import seen

if TYPE_CHECKING:
    from model.protocol.token_run import TokenRun

Int = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Group:
    """Tokens `first` … `last` that together are the characters `text`, with a code for what can't be seen."""

    first: int
    last: int
    text: str


class Pieces(Sequence[str]):
    """`distinct` pieces, and which of them each token is, (T,)."""

    def __init__(self, distinct: Sequence[str], kind: Int) -> None:
        self.distinct, self.kind = distinct, kind

    @classmethod
    def of(cls, pieces: Sequence[str]) -> Pieces:
        """The same pieces."""
        if isinstance(pieces, Pieces):
            return pieces
        known = {piece: at for at, piece in enumerate(dict.fromkeys(pieces))}
        return cls(tuple(known), np.fromiter((known[piece] for piece in pieces), np.int32, len(pieces)))

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.distinct[kind] for kind in self.kind[index].tolist()]
        return self.distinct[int(self.kind[index])]


class Groups(Sequence[Group]):
    """`first`, `last`: tokens of each group, (G,)."""

    def __init__(self, first: Int, last: Int, texts: Sequence[str] | None = None) -> None:
        self.first, self.last, self._texts = first, last, texts
        self._text, self._start, self._end = "", first, last
        self._members: tuple[Int, Int] | None = None

    @classmethod
    def of(cls, tokens: TokenRun, text: str) -> Groups:
        """Runs of neighbouring tokens that hold parts of the same characters of `text`."""
        parts = tokens.parts
        joins = np.zeros(len(tokens) + 1, dtype=bool)
        joins[1:-1] = parts[1:] & parts[:-1] & (tokens.start[1:] < tokens.end[:-1])
        found = cls(np.flatnonzero(parts & ~joins[:-1]), np.flatnonzero(parts & ~joins[1:]))
        found._text, found._start, found._end = text, tokens.start, tokens.end
        return found

    @classmethod
    def taken(cls, groups: Sequence[Group]) -> Groups:
        """The same groups."""
        if isinstance(groups, Groups):
            return groups
        first, last = (np.array([getattr(group, end) for group in groups], np.int64) for end in ("first", "last"))
        return cls(first, last, [group.text for group in groups])

    def members(self) -> tuple[Int, Int]:
        """Tokens that stay with the one before them, and all that are of a group, in order."""
        if self._members is None:
            self._members = self._find_members()
        return self._members

    def _find_members(self) -> tuple[Int, Int]:
        count = int(self.last.max(initial=-1)) + 2
        edges = np.zeros(count, np.int64)
        edges[self.first] += 1
        edges[self.last + 1] -= 1
        every = np.flatnonzero(np.cumsum(edges))
        begins = np.zeros(count, dtype=bool)
        begins[self.first] = True
        return every[~begins[every]], every

    def between(self, first: int, end: int) -> list[Group]:
        """The groups with a token of first … end - 1."""
        begin, stop = int(np.searchsorted(self.last, first)), int(np.searchsorted(self.first, end))
        return [self[at] for at in range(begin, stop)]

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        first, last = int(self.first[index]), int(self.last[index])
        if self._texts is not None:
            return Group(first=first, last=last, text=self._texts[index])
        return Group(first=first, last=last, text=seen(self._text[int(self._start[first]) : int(self._end[last])]))
