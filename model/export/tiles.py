"""Whole matrices pooled to tiles as they pass by, so that a sheet and its table are computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from model.export.raster import Float32, pool


class Tiles:
    """`values` (N, h, w) float32 of N matrices (T, S), NaN masked, and the extremes of their cells, NaN where there is
    none; with `ignore_first` those of key 0 do not count. `complete` once all have passed."""

    def __init__(self, count: int, side: int, *, signed: bool, ignore_first: bool) -> None:
        self.values = np.empty((count, side, side), dtype=np.float32)
        self.signed, self.ignore_first = signed, ignore_first
        self.low, self.high = math.nan, math.nan
        self.complete = False

    def watch(self, matrices: Iterable[Float32]) -> Iterator[Float32]:
        """Hands on what comes, (n, T, S) each time, in order."""
        done, side = 0, self.values.shape[1]
        for block in matrices:
            self.values[done : done + len(block)] = pool(block, side, side, signed=self.signed)
            done += len(block)
            counted = block[..., 1:] if self.ignore_first and block.shape[-1] > 1 else block
            self.low = float(np.fmin(self.low, np.fmin.reduce(counted, axis=None)))
            self.high = float(np.fmax(self.high, np.fmax.reduce(counted, axis=None)))
            yield block
        self.complete = done == len(self.values)
