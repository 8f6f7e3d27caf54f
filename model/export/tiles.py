"""Whole matrices pooled to tiles as they pass by, so that a sheet and its table are computed once."""

from __future__ import annotations

import math

import numpy as np

from model.export.raster import Float32, pool


class Tiles:
    """`values` (N, h, w) float32 of N matrices (T, S), NaN masked, and the extremes of their cells, NaN where there is
    none; with `ignore_first` those of key 0 do not count."""

    def __init__(self, count: int, side: int, *, signed: bool, ignore_first: bool) -> None:
        self.values = np.empty((count, side, side), dtype=np.float32)
        self.signed, self.ignore_first = signed, ignore_first
        self.low, self.high = math.nan, math.nan
        self._done = 0

    @property
    def complete(self) -> bool:
        """Whether all have passed."""
        return self._done == len(self.values)

    def take(self, matrices: Float32) -> None:
        """The next of them, (n, T, S)."""
        side, count = self.values.shape[1], len(matrices)
        made = self.values[self._done : self._done + count]
        made[:] = pool(matrices, side, side, signed=self.signed)
        ignored = self.ignore_first and matrices.shape[-1] > 1
        counted = matrices[..., 1:] if ignored else matrices
        highest = counted if ignored or self.signed else made  # else every tile has the highest of its cells
        self.low = float(np.fmin(self.low, np.fmin.reduce(counted, axis=None)))
        self.high = float(np.fmax(self.high, np.fmax.reduce(highest, axis=None)))
        self._done += count
