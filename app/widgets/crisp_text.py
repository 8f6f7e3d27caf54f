"""Text whose bars of a norm stand on whole pixels."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF, QPainter

NORM = "‖"
"""Two strokes a pixel or two apart: as a glyph between pixels they blur into a grey block."""


def draw_crisp(painter: QPainter, at: QPointF, text: str) -> None:
    """Draws `text` from the baseline point `at` with the painter's font and pen; NORM as two strokes of its own."""
    if NORM not in text:
        painter.drawText(at, text)
        return
    metrics, x, y = QFontMetricsF(painter.font()), round(at.x()), round(at.y())
    thick = max(1, round(metrics.lineWidth()))
    top, bottom = y - round(metrics.capHeight()) - 1, y + round(metrics.descent() / 2)
    for character in text:
        advance = max(round(metrics.horizontalAdvance(character)), 3 * thick if character == NORM else 0)
        if character == NORM:
            left = x + (advance - 3 * thick) // 2
            for stroke in (left, left + 2 * thick):
                painter.fillRect(QRectF(stroke, top, thick, bottom - top), painter.pen().color())
        else:
            painter.drawText(QPointF(x, y), character)
        x += advance
