"""Small matrices as pictures: the value of largest magnitude under each pixel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from model.views.selection import Bins

Floats = NDArray[np.float32]


def shrink(values: Floats, height: int, width: int) -> Floats:
    """(n, m) on at most height × width pixels, each the value of largest magnitude of its cells; NaN where all are."""
    rows = Bins(start=0, stop=values.shape[0], pixels=max(height, 1))
    cols = Bins(start=0, stop=values.shape[1], pixels=max(width, 1))
    if rows.size == cols.size == 1:
        return values
    return _strongest(_strongest(values, rows, 0), cols, 1)


def _strongest(values: Floats, bins: Bins, axis: int) -> Floats:
    starts = bins.edges[:-1]
    top = np.fmax.reduceat(values, starts, axis=axis)
    low = np.fmin.reduceat(values, starts, axis=axis)
    strongest: Floats = np.where(-low > top, low, top)
    return strongest
