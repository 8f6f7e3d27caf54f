"""Tokens of a text as arrays: hundreds of thousands of them travel and are read as quickly as a few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from model.protocol.framing import Array, Arrays
from model.protocol.values import Token

SPECIAL, PART = 1, 2
"""Bits of `flags`."""
ARRAYS = ("kind", "start", "end", "ids", "flags")


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenRun(Sequence[Token]):
    """A sequence of Token. `kind` int32 (T,): which of the distinct tokens each is; of those, (K,): `pieces`, `ids`
    int32, `flags` uint8. `start`, `end` int32 (T,)."""

    pieces: tuple[str, ...]
    kind: NDArray[np.int32]
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    ids: NDArray[np.int32]
    flags: NDArray[np.uint8]

    @classmethod
    def of(cls, tokens: Iterable[Token]) -> TokenRun:
        """The same tokens."""
        known: dict[tuple[int, str, int], int] = {}
        kind, start, end = [], [], []
        for token in tokens:
            key = (token.id, token.piece, token.special * SPECIAL + token.part * PART)
            kind.append(known.setdefault(key, len(known)))
            start.append(token.start)
            end.append(token.end)
        return cls(
            pieces=tuple(piece for _, piece, _ in known), kind=_ints(kind), start=_ints(start), end=_ints(end),
            ids=_ints([token_id for token_id, _, _ in known]),
            flags=np.array([flags for _, _, flags in known], np.uint8),
        )  # fmt: skip

    @classmethod
    def read(cls, pieces: tuple[str, ...], arrays: Arrays) -> TokenRun:
        """What `arrays` and `pieces` say, as they came."""
        found: dict[str, Any] = {name: np.asarray(arrays[name]) for name in ARRAYS}
        return cls(pieces=pieces, **found)

    def arrays(self) -> dict[str, Array]:
        """What travels beside the pieces."""
        return {name: getattr(self, name) for name in ARRAYS}

    def first(self, count: int) -> TokenRun:
        """The first of them."""
        if count >= len(self):
            return self
        return replace(self, kind=self.kind[:count], start=self.start[:count], end=self.end[:count])

    @property
    def token_ids(self) -> NDArray[np.int32]:
        """The id of each, (T,)."""
        return self.ids[self.kind]

    @property
    def parts(self) -> NDArray[np.bool_]:
        """Whether each holds only part of a character, (T,)."""
        return (self.flags & PART > 0)[self.kind]

    def __len__(self) -> int:
        return len(self.kind)

    @overload
    def __getitem__(self, index: int) -> Token: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Token, ...]: ...
    def __getitem__(self, index: int | slice) -> Token | tuple[Token, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        kind = int(self.kind[index])
        flags = int(self.flags[kind])
        return Token(
            id=int(self.ids[kind]), piece=self.pieces[kind], start=int(self.start[index]), end=int(self.end[index]),
            special=bool(flags & SPECIAL), part=bool(flags & PART),
        )  # fmt: skip


def _ints(values: Sequence[int]) -> NDArray[np.int32]:
    return np.array(values, np.int32)


NO_TOKENS = TokenRun.of(())
