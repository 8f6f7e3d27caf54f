"""Bars under the lines of a plot: how high they are, and the outline that words keep off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRectF

from app.widgets.free_place import Curve

if TYPE_CHECKING:
    from app.widgets.line_frame import Frame
    from app.widgets.line_plot import Line

BAR_SHARE = 0.55
"""Of the plot's height, what the highest bar takes: lines are seen over it."""


def most(line: Line) -> float:
    """The highest bar's value."""
    return float(np.nanmax(line.y)) if len(line.y) and np.nanmax(line.y) > 0 else 1.0


def axis(lines: Sequence[Line]) -> tuple[float, float] | None:
    """The range of the right axis that the bars of `lines` are measured on; None: on none."""
    found = next((line for line in lines if line.style == "bars" and line.right), None)
    return None if found is None else (0.0, most(found) / BAR_SHARE)


def rects(line: Line, frame: Frame) -> list[QRectF]:
    """A line's bars, a pixel apart."""
    step = float(line.x[1] - line.x[0]) if len(line.x) > 1 else 1.0
    width, scale = step * _scale(frame), frame.plot.height() * BAR_SHARE / most(line)
    return [
        QRectF(frame.px(x) - width / 2, frame.plot.bottom() - y * scale, width - 1, y * scale)
        for x, y in zip(line.x.tolist(), line.y.tolist(), strict=True)
    ]


def outlines(lines: Sequence[Line], frame: Frame) -> list[Curve]:
    """Of each line that is drawn as bars what a word must not cross: down to the axis at every bar."""
    found = []
    for line in lines:
        if line.style == "bars" and len(line.x) > 1:
            middle = frame.plot.left() + (line.x - frame.x[0]) * _scale(frame)
            half = float(line.x[1] - line.x[0]) * _scale(frame) / 2
            high = frame.plot.bottom() - line.y / most(line) * frame.plot.height() * BAR_SHARE
            low = np.where(line.y > 0, frame.plot.bottom(), np.nan)
            high = np.where(line.y > 0, high, np.nan)
            x = np.stack([middle - half, middle, middle + half], 1).ravel()
            found.append((x.astype(np.float32), np.stack([high, low, high], 1).ravel().astype(np.float32)))
    return found


def _scale(frame: Frame) -> float:
    return frame.plot.width() / (frame.x[1] - frame.x[0])
