"""A long row of numbers as a rectangle: folded like lines of text, so that it can be seen whole."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
WIDTHS = (8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True, kw_only=True, eq=False)
class Folded:
    """`values` (rows, width), NaN after the last of `count` numbers; cell (r, c) is number r · width + c."""

    values: Floats
    count: int

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def index(self, row: int, col: int) -> int | None:
        """The number a cell stands for; None in what is left over of the last line."""
        found = row * self.width + col
        return found if found < self.count else None

    def cell(self, index: int) -> tuple[int, int]:
        return divmod(index, self.width)


def fold(row: Floats, *, aspect: float = 4.0) -> Folded:
    """A row (n,) as lines about `aspect` times as wide as they are many; a power of two wide, so that lines line up."""
    count = len(row)
    if count <= WIDTHS[1]:
        return Folded(values=row.reshape(1, -1), count=count)
    wanted = math.sqrt(count * aspect)
    width = min((w for w in WIDTHS if w <= count), key=lambda w: abs(math.log(w / wanted)))
    lines = -(-count // width)
    padded = np.full(lines * width, np.nan, dtype=np.float32)
    padded[:count] = row
    return Folded(values=padded.reshape(lines, width), count=count)  # (lines, width)


def strongest(values: Floats, height: int, width: int) -> Floats:
    """At most height × width numbers, each the one of largest magnitude of those it stands for."""
    for axis, most in ((0, height), (1, width)):
        size = values.shape[axis]
        if size > most:
            starts = (np.arange(most) * size / most).astype(np.int64)
            top = np.fmax.reduceat(values, starts, axis=axis)
            low = np.fmin.reduceat(values, starts, axis=axis)
            values = np.where(-low > top, low, top)
    return values
