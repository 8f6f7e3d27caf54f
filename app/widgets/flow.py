"""Where chips go: left to right, row after row, thousands at a time, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Flow:
    """`before`: px of all chips and gaps before each chip, on one line; `width`: of each. `starts`: first chip of each
    row, with the count of chips at the end. `tops`: top of each row, with the whole height at the end."""

    before: Float
    width: Float
    starts: Int
    tops: Float

    def row_of(self, index: int) -> int:
        """The row of a chip."""
        return int(np.searchsorted(self.starts, index, side="right")) - 1

    def left_of(self, index: int) -> float:
        """Px before a chip in its row."""
        return float(self.before[index] - self.before[self.starts[self.row_of(index)]])

    def lefts(self, row: int) -> Float:
        """The same of each chip of a row."""
        first, end = int(self.starts[row]), int(self.starts[row + 1])
        found: Float = self.before[first:end] - self.before[first]
        return found

    @property
    def row(self) -> Int:
        """Each chip's row."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def left(self) -> Float:
        """Px before each chip in its row."""
        return self.before - self.before[self.starts[self.row]] if len(self.before) else self.before

    @property
    def height(self) -> float:
        return float(self.tops[-1])

    def closer(self, px: float) -> Flow:
        """The same rows, so many px nearer to one another."""
        return replace(self, tops=self.tops - px * np.arange(len(self.tops)))

    def rows_between(self, top: float, bottom: float) -> range:
        """The rows that show between two heights."""
        first = int(np.searchsorted(self.tops, top, side="right")) - 1
        last = int(np.searchsorted(self.tops, bottom, side="left"))
        return range(max(0, first), min(last, len(self.tops) - 1))

    def at(self, x: float, y: float) -> int | None:
        """The chip under a point; the gap right of a chip belongs to nobody."""
        row = int(np.searchsorted(self.tops, y, side="right")) - 1
        if not 0 <= row < len(self.tops) - 1:
            return None
        first, end = int(self.starts[row]), int(self.starts[row + 1])
        lefts = self.lefts(row)
        at = int(np.searchsorted(lefts, x, side="right")) - 1
        return first + at if 0 <= at < end - first and x < lefts[at] + self.width[first + at] else None

    def vertical(self, index: int, rows: int) -> int:
        """The chip `rows` below (above when negative) the middle of chip `index`; clamped to the ends."""
        row = int(np.clip(self.row_of(index) + rows, 0, len(self.tops) - 2))
        first, end = int(self.starts[row]), int(self.starts[row + 1])
        middle = self.left_of(index) + self.width[index] / 2
        return first + int(np.argmin(np.abs(self.lefts(row) + self.width[first:end] / 2 - middle)))


def flow(
    widths: Float, *, line: float, gap: float, row_height: float, row_gap: float, glue: Int, tall: Int, extra: float
) -> Flow:
    """Chips of `widths` on lines of `line` px. `glue`: chips that stay on the row of the one before them where they
    fit. Rows that hold one of `tall` are `extra` px higher, at their top. Sorted, both."""
    count = len(widths)
    width = np.minimum(widths, line)
    ends = np.cumsum(width + gap)
    before = ends - width - gap
    # Where a row would end that began at each chip, at once; then from row to row.
    chip = np.arange(count + 1, dtype=np.int32)
    end = np.maximum(np.searchsorted(ends, before + (line + gap + 1e-6), side="right").astype(np.int32), chip[1:])
    if len(glue):  # back to where what holds together begins, unless the row does
        begins = chip.copy()
        begins[glue] = 0
        whole = np.maximum.accumulate(begins)[end]
        end = np.where(whole > chip[:-1], whole, end)
    after, starts, start = memoryview(end.tobytes()).cast("i"), [0], 0
    while start < count:
        start = after[start]
        starts.append(start)
    edges = np.array(starts, dtype=np.int64)
    heights = np.full(len(edges) - 1, row_height + row_gap)
    if len(tall):
        taller = np.searchsorted(tall, edges)
        heights[taller[1:] > taller[:-1]] += extra
    return Flow(before=before, width=width, starts=edges, tops=np.concatenate([[0.0], np.cumsum(heights)]))
