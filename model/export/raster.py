"""From a matrix to pixels: pooling that loses no bright cell, enlarging that blurs none."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Array = NDArray[Any]

GATHERED = 16
"""Columns a pixel up to which they are gathered pixel by pixel: many times faster than short runs of `reduceat`."""

ENOUGH = 3_000
"""Pixels a side past which a page's viewer smooths nothing that can be seen; more of them only take time and room."""


def pool(values: Float32, height: int, width: int, *, signed: bool = False) -> Float32:
    """(…, h, w) → at most (…, height, width): each cell the maximum of those under it, or, `signed`, the one of largest
    magnitude. NaN (masked) only where every cell under it is. Never an average."""
    high = _reduce_cols(_reduce_rows(values, np.fmax, height), np.fmax, width)
    if not signed:
        return high
    low = _reduce_cols(_reduce_rows(values, np.fmin, height), np.fmin, width)
    return np.where(np.abs(low) > np.abs(high), low, high)


def _starts(count: int, size: int) -> NDArray[np.int64]:
    """The first cell of every pixel, and the end: cell i lies on pixel ⌊i · size / count⌋."""
    return -(-np.arange(size + 1, dtype=np.int64) * count // size)


def _reduce_rows(values: Float32, ufunc: np.ufunc, size: int) -> Float32:
    """(…, h, w) → (…, size, w) where h is more. Pixel by pixel: whole rows at a time are several times faster than
    gathering them, and than `reduceat`."""
    count = values.shape[-2]
    if count <= size:
        return values
    reduced = np.empty((*values.shape[:-2], size, values.shape[-1]), dtype=values.dtype)
    for pixel, (start, stop) in enumerate(itertools.pairwise(_starts(count, size).tolist())):
        ufunc.reduce(values[..., start:stop, :], axis=-2, out=reduced[..., pixel, :])
    return reduced


def _reduce_cols(values: Float32, ufunc: np.ufunc, size: int) -> Float32:
    """(…, h, w) → (…, h, size) where w is more."""
    count = values.shape[-1]
    if count <= size:
        return values
    starts = _starts(count, size)
    reduced: Float32
    if count > GATHERED * size:
        reduced = ufunc.reduceat(values, starts[:-1], axis=-1)
        return reduced
    reduced = values.take(starts[:-1], -1)
    for cell in range(1, -(-count // size)):  # the next cell of every pixel, or its last one again
        ufunc(reduced, values.take(np.minimum(starts[:-1] + cell, starts[1:] - 1), -1), out=reduced)
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
