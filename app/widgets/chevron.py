"""The arrow of everything that opens a list, and of what counts up and down: one shape everywhere."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

HALF_WIDTH, HALF_HEIGHT, LINE = 3.5, 1.8, 1.4


def draw_chevron(painter: QPainter, colour: QColor, middle: QPointF, *, up: bool = False, size: float = 1.0) -> None:
    """Around `middle`, pointing down, or `up`; `size` as a share of the usual one."""
    rise = (-HALF_HEIGHT if up else HALF_HEIGHT) * size
    wide = HALF_WIDTH * size
    painter.setPen(QPen(colour, LINE * max(size, 1.0), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPolyline([middle + QPointF(-wide, -rise), middle + QPointF(0, rise), middle + QPointF(wide, -rise)])
