"""The axes of a line plot: lines across it, figures beside and under it, what x is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.widgets.line_frame import Frame, tick_labels
from app.widgets.ticks import between_decades, named_ticks, short

if TYPE_CHECKING:
    from app.theme import Theme

BESIDE, APART, STROKE, MOST = 10.0, 10.0, 4.0, 14
"""Px from the plot to the figures at its right; between two figures under it; of a stroke between powers of ten;
figures under it."""
NAMED_FROM = 128
"""Px of height at 100 % text from which the name of x has a line of its own under the figures."""


def strokes(frame: Frame) -> list[float]:
    """Between the figures of a logarithmic axis: 2 … 9 times powers of ten, as far as they are told apart."""
    if not frame.log:
        return []
    low, high = frame.left
    return between_decades(low, high, frame.plot.height() / np.log10(high / low))


def x_ticks(
    frame: Frame, metrics: QFontMetricsF, names: Mapping[float, str], *, whole: bool
) -> list[tuple[float, str]]:
    """As many round values of x, and the places of `names`, as stand apart under the plot."""
    for most in range(min(MOST, max(1, int(frame.plot.width() / APART))), 0, -1):
        found = named_ticks(*frame.x, most, names, whole=whole)
        widest = max((metrics.horizontalAdvance(text) for value, text in found if value not in names), default=0.0)
        places = [frame.px(value) for value, _ in found if value not in names]
        if all(after - before >= widest + APART for before, after in pairwise(places)):
            break
    return found


def paint(
    painter: QPainter, theme: Theme, frame: Frame, x_ticks: Sequence[tuple[float, str]], size: tuple[float, float],
    x_name: str, *, below: bool,
) -> None:  # fmt: skip
    """Draws them. `size`: px (wide, high) of all that is drawn, but for names beside it; `x_name` stands `below` the
    figures, in the middle, or at the end of their line."""
    colours, plot, metrics = theme.palette, frame.plot, QFontMetricsF(theme.font("hint"))
    high, (wide, bottom) = metrics.height(), size
    for value in frame.ticks:
        y = round(float(frame.py(np.array([value]))[0])) + 0.5
        painter.setPen(QPen(colours.secondary if value == 0 else colours.line, 1))
        painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
        painter.setPen(colours.secondary)
        place = QRectF(0, y - high / 2, plot.left() - 5, high)
        painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, short(value))
    painter.setPen(QPen(colours.secondary, 1))
    for value in strokes(frame):
        y = round(float(frame.py(np.array([value]))[0])) + 0.5
        painter.drawLine(QPointF(plot.left(), y), QPointF(plot.left() + STROKE, y))
    painter.setPen(colours.secondary)
    for value in frame.right_ticks:
        y = float(frame.py(np.array([value]), right=True)[0])
        place = QRectF(plot.right() + BESIDE, y - high / 2, wide - plot.right() - BESIDE, high)
        painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, short(value))
    baseline, end = plot.bottom() + metrics.ascent() + 3, wide
    if x_name and below:
        place = QRectF(plot.left(), bottom - high, plot.width(), high)
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip, x_name)
    elif x_name:
        end = plot.right() - metrics.horizontalAdvance(x_name)
        painter.drawText(QPointF(end, baseline), x_name)
        end -= 8
    for left, text in tick_labels(frame, metrics, x_ticks, end):
        painter.drawText(QPointF(left, baseline), text)
