"""The frame of one cell of a heat map, that shows on any colour of any map in either theme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

if TYPE_CHECKING:
    from app.theme import Palette

DARK, ROOM_INSIDE = QColor(0, 0, 0, 190), 10.0
"""The outline's colour, and from which side on (px) a cell has room for a line inside its frame."""


def draw_frame(painter: QPainter, palette: Palette, rect: QRectF, *, chosen: bool) -> None:
    """White with a dark outline: white shows on dark cells, the outline on light ones. The chosen cell's has a line of
    the accent inside, where there is room for it, the hovered one's a dark line."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    inside = min(rect.width(), rect.height()) >= ROOM_INSIDE
    painter.setPen(QPen(DARK, 1))
    painter.drawRect(rect.adjusted(-1.5, -1.5, 1.5, 1.5))
    if inside:
        painter.setPen(QPen(palette.accent if chosen else DARK, 1))
        painter.drawRect(rect.adjusted(1.5, 1.5, -1.5, -1.5))
    painter.setPen(QPen(palette.cursor, 2))
    painter.drawRect(rect)
