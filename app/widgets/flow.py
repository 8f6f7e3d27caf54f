"""Where chips go: left to right, row after row, thousands at a time, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Flow:
    """`left`, `width`: of each chip, px. `row`: each chip's row. `starts`: first chip of each row, with the count of
    chips at the end. `tops`: top of each row, with the whole height at the end."""

    left: Float
    width: Float
    row: Int
    starts: Int
    tops: Float

    @property
    def height(self) -> float:
        return float(self.tops[-1])

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
        index = first + int(np.searchsorted(self.left[first:end], x, side="right")) - 1
        return index if index >= first and x < self.left[index] + self.width[index] else None

    def vertical(self, index: int, rows: int) -> int:
        """The chip `rows` below (above when negative) the middle of chip `index`; clamped to the ends."""
        row = int(np.clip(self.row[index] + rows, 0, len(self.tops) - 2))
        first, end = int(self.starts[row]), int(self.starts[row + 1])
        middle = self.left[index] + self.width[index] / 2
        nearest = np.argmin(np.abs(self.left[first:end] + self.width[first:end] / 2 - middle))
        return first + int(nearest)


def flow(
    widths: Float, *, line: float, gap: float, row_height: float, row_gap: float, glue: Int, tall: Int, extra: float
) -> Flow:
    """Chips of `widths` on lines of `line` px. `glue`: chips that stay on the row of the one before them where they
    fit. Rows that hold one of `tall` are `extra` px higher, at their top."""
    count = len(widths)
    width = np.minimum(widths, line)
    ends = np.cumsum(width + gap)
    before = ends - width - gap
    loose = np.ones(count + 1, dtype=bool)
    loose[glue] = False
    loose_at = np.maximum.accumulate(np.where(loose, np.arange(count + 1), 0))
    starts = [0]
    while starts[-1] < count:
        start = starts[-1]
        end = int(np.searchsorted(ends, before[start] + line + gap + 1e-6, side="right"))
        end = max(end, start + 1)
        if end < count and loose_at[end] > start:
            end = int(loose_at[end])
        starts.append(end)
    edges = np.array(starts, dtype=np.int64)
    n_rows = len(edges) - 1
    row = np.repeat(np.arange(n_rows), np.diff(edges))
    left = before - before[edges[row]] if count else before
    heights = np.full(n_rows, row_height + row_gap)
    if len(tall):
        heights[row[tall]] += extra  # once a row, however many of it are tall
    tops = np.concatenate([[0.0], np.cumsum(heights)])
    return Flow(left=left, width=width, row=row, starts=edges, tops=tops)
