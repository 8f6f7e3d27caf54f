"""Stacks of small maps brought to one size, the strongest pixel kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


def fit_stack(stack: Pixels, size: tuple[int, int], *, signed: bool = False) -> Pixels:
    """(n, h, w) → (n, *size): cells repeated where they are fewer, the strongest kept where they are more."""
    for axis, side in enumerate(size, 1):
        count = stack.shape[axis]
        if count <= side:
            at = ((np.arange(side) + 0.5) * count / side).astype(np.int64)
            stack = np.take(stack, at, axis=axis)
            continue
        starts = (np.arange(side) * count / side).astype(np.int64)
        top: Pixels = np.maximum.reduceat(stack, starts, axis=axis)
        if signed:
            low = np.minimum.reduceat(np.where(stack == 0, np.uint8(255), stack), starts, axis=axis)
            weaker = (128 - low.astype(np.int16)) <= (top.astype(np.int16) - 128)
            top = np.where(weaker | (top == 0), top, low)
        stack = top
    return stack
