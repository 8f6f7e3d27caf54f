"""A curve of more values than pixels: the mean of each pixel as a line, and its lowest to highest as a pale band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPolygonF

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Band:
    """`low`, `mean`, `high` of every stretch (bins,), NaN where it has no value; `middle`: its middle, 0 … 1 of the
    whole."""

    middle: Floats
    low: Floats
    mean: Floats
    high: Floats

    def runs(self) -> list[slice]:
        """Stretches one after the other that have values."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], np.isfinite(self.mean), [False]))))
        return [slice(begin, end) for begin, end in edges.reshape(-1, 2).tolist()]


def band(values: NDArray[np.float32], count: int, bins: int) -> Band:
    """Of `values`, the first of `count` positions that are shared among `bins` stretches, no more than positions."""
    starts = -(-np.arange(bins) * count // bins)
    edges = np.append(starts, count)
    middle = (edges[:-1] + edges[1:]) / 2 / count
    whole = np.full(count, np.nan)
    whole[: len(values)] = values
    good = np.isfinite(whole)
    known = np.add.reduceat(good.astype(np.int64), starts)
    some = np.where(known, 1.0, np.nan)
    return Band(
        middle=middle,
        low=np.minimum.reduceat(np.where(good, whole, np.inf), starts) * some,
        mean=np.add.reduceat(np.where(good, whole, 0.0), starts) / np.maximum(known, 1) * some,
        high=np.maximum.reduceat(np.where(good, whole, -np.inf), starts) * some,
    )


def outlines(found: Band, plot: QRectF, top: float) -> list[QPolygonF]:
    """Where a band is filled: one outline for values that follow one another. A pixel at least is filled everywhere."""
    made = []
    for run in found.runs():
        x = plot.left() + found.middle[run] * plot.width()
        x = np.concatenate((x[:1] - 0.5, x, x[-1:] + 0.5))
        above = plot.bottom() - found.high[run] / top * plot.height() - 0.5
        below = plot.bottom() - found.low[run] / top * plot.height() + 0.5
        ends = [np.concatenate((y[:1], y, y[-1:])) for y in (above, below)]
        there, back = (list(zip(x.tolist(), y.tolist(), strict=True)) for y in ends)
        made.append(QPolygonF([QPointF(*point) for point in (*there, *reversed(back))]))
    return made
