"""Where the values of a line plot lie on its widget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF

Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The rectangle of the plot and the values at its edges."""

    plot: QRectF
    x: tuple[float, float]
    left: tuple[float, float]
    right: tuple[float, float]
    log: bool = False
    ticks: list[float] = field(default_factory=list)
    right_ticks: list[float] = field(default_factory=list)

    def px(self, x: float) -> float:
        return self.plot.left() + (x - self.x[0]) / (self.x[1] - self.x[0]) * self.plot.width()

    def py(self, y: Floats, *, right: bool = False) -> Floats:
        low, high = self.right if right else self.left
        if self.log and not right:
            y, low, high = np.log10(np.maximum(y, 1e-30)), math.log10(low), math.log10(high)
        # Outside values end at the edge of the plot, not somewhere on the widget beyond it.
        share = np.clip((y - low) / (high - low), -0.02, 1.02)
        placed: Floats = self.plot.bottom() - share * self.plot.height()
        return placed


def value_range(values: Sequence[Floats], *, log: bool, zero: bool = True) -> tuple[float, float]:
    """The lowest and highest value with a little room; with `zero` 0 is in it, unless it is logarithmic."""
    seen = [part[np.isfinite(part) & ((part > 0) | (not log))] for part in values]
    seen = [part for part in seen if len(part)]
    if not seen:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = min(float(part.min()) for part in seen), max(float(part.max()) for part in seen)
    if log:
        top = max(high * 1.3, low * 1.7)
        ten = 10.0 ** math.ceil(math.log10(high))
        # A power of ten that is near is in it: it has the figure by which the others are read.
        return low / 1.3, max(top, ten * 1.02) if ten <= 2 * high else top
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return (low - room if low < 0 or not zero else 0.0), high + room


def tick_labels(
    frame: Frame, metrics: QFontMetricsF, found: Sequence[tuple[float, str]], end: float
) -> list[tuple[float, str]]:
    """Of the ticks of x those whose words have room before `end`, px, with the left edge of the words: centred under
    the tick."""
    labels, free = [], -math.inf
    for value, text in found:
        width = metrics.horizontalAdvance(text)
        left = max(frame.px(value) - width / 2, 0.0)
        if left > free and left + width <= end:
            labels.append((left, text))
            free = left + width + 6
    return labels
