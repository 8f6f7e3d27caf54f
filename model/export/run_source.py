"""The numbers of a live run, for exports."""

from __future__ import annotations

import math

import numpy as np

from model.export.attention import SIGNED_STAGES, Check, Tile
from model.export.raster import Float32, pool
from model.protocol.attention_requests import HeadView
from model.run import Run
from model.views.attention_exact import exact
from model.views.selection import chosen

_BAND_CELLS = 2**21
"""Exact cells held at a time while a picture is pooled from them."""


class RunSource:
    """A run's matrices. `check` is called between blocks of rows and may raise to end the work."""

    def __init__(self, run: Run, *, check: Check) -> None:
        self._run, self._check = run, check

    def exact(self, view: HeadView, rows: tuple[int, int], cols: tuple[int, int]) -> Float32:
        """(t, S) float32, NaN where masked: what a hover shows."""
        return exact(self._run, chosen(self._run, view), rows, cols, yield_point=self._check)

    def pooled(self, view: HeadView, rows: tuple[int, int], cols: tuple[int, int], height: int, width: int) -> Tile:
        """The rectangle on at most height × width cells, and its extremes, in bands of rows."""
        count, signed = rows[1] - rows[0], view.stage in SIGNED_STAGES
        height = min(height, count)
        edges = [rows[0] + index * count // height for index in range(height)] + [rows[1]]
        each = max(1, _BAND_CELLS // (cols[1] - cols[0]) * height // count)
        low, high = math.inf, -math.inf
        bands = []
        for first in range(0, height, each):
            last = min(first + each, height)
            values = self.exact(view, (edges[first], edges[last]), cols)
            visible = values[~np.isnan(values)]
            if visible.size:
                low, high = min(low, float(visible.min())), max(high, float(visible.max()))
            # the same rows a pixel as in one go: `pool` divides a band by its own count, so a pixel row at a time
            bands += [
                pool(values[edges[row] - edges[first] : edges[row + 1] - edges[first]], 1, width, signed=signed)
                for row in range(first, last)
            ]
        found = low <= high
        return Tile(values=np.concatenate(bands), low=low if found else math.nan, high=high if found else math.nan)
