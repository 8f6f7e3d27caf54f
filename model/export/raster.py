"""From a matrix to pixels: pooling that loses no bright cell, enlarging that blurs none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Array = NDArray[Any]

GATHERED = 16
"""Cells a pixel up to which cells are gathered pixel by pixel: many times faster than short runs of `reduceat`."""


ENOUGH = 3_000
"""Pixels a side past which a page's viewer smooths nothing that can be seen; more of them only take time and room."""


def pool(values: Float32, height: int, width: int, *, signed: bool = False) -> Float32:
    """(…, h, w) → at most (…, height, width): each cell the maximum of those under it, or, `signed`, the one of largest
    magnitude. NaN (masked) only where every cell under it is. Never an average."""
    high = _reduce(_reduce(values, np.fmax, -2, height), np.fmax, -1, width)
    if not signed:
        return high
    low = _reduce(_reduce(values, np.fmin, -2, height), np.fmin, -1, width)
    return np.where(np.abs(low) > np.abs(high), low, high)


def _reduce(values: Float32, ufunc: np.ufunc, axis: int, size: int) -> Float32:
    count = values.shape[axis]
    if count <= size:
        return values
    starts = -(-np.arange(size + 1, dtype=np.int64) * count // size)  # cell i lies on pixel ⌊i · size / count⌋
    reduced: Float32
    if count > GATHERED * size:
        reduced = ufunc.reduceat(values, starts[:-1], axis=axis)
        return reduced
    reduced = values.take(starts[:-1], axis)
    for cell in range(1, -(-count // size)):  # the next cell of every pixel, or its last one again
        ufunc(reduced, values.take(np.minimum(starts[:-1] + cell, starts[1:] - 1), axis), out=reduced)
    return reduced


def enlarge(pixels: Array, height: int, width: int) -> Array:
    """(h, w, …) → (height, width, …) by repeating cells; h ≤ height, w ≤ width, so that each cell is kept."""
    rows = np.arange(height, dtype=np.int64) * pixels.shape[0] // height
    enlarged: Array = widen(pixels, width)[rows]
    return enlarged


def widen(pixels: Array, width: int) -> Array:
    """(h, w, …) → (h, width, …) by repeating cells; w ≤ width, so that each cell is kept."""
    cols = np.arange(width, dtype=np.int64) * pixels.shape[1] // width
    widened: Array = pixels[:, cols]
    return widened


def repeat_whole(pixels: Array, height: int, width: int) -> Array:
    """(h, w, …) → each cell repeated a whole number of times, to at least about (height, width) where that is more, and
    ENOUGH where that is less: for formats whose viewers smooth small images."""
    tall = max(1, -(-min(height, ENOUGH) // pixels.shape[0]))
    wide = max(1, -(-min(width, ENOUGH) // pixels.shape[1]))
    return pixels.repeat(tall, axis=0).repeat(wide, axis=1)
