"""The colour bar of a heat map: the map, the values at its ends and middle, and the scale in force, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QImage, QPainter

from app.i18n import tr
from app.widgets.ticks import short

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours

THICKNESS = 8.0
PLACES = (0.0, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True)
class BarText:
    """What is printed: values at the places 0, ½ and 1 of the bar, and the scale's name with what bounds it."""

    values: tuple[float, float, float]
    scale: str


def scale_words(scale: str, *, fixed: bool) -> str:
    """The scale in force in words."""
    name = {"linear": tr("linear"), "sqrt": tr("√ scale"), "log": tr("log scale")}[scale]
    return f"{name} · {tr('fixed')}" if fixed else name


def draw_bar(painter: QPainter, theme: Theme, rect: QRectF, table: Colours, text: BarText, length: float) -> None:
    """One line at the right of `rect`: the scale in words, low value, the map over `length` px, high value."""
    font = theme.font("hint")
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    baseline = rect.center().y() + (metrics.ascent() - metrics.descent()) / 2
    low, middle, high = (short(value) for value in text.values)
    x = rect.right() - metrics.horizontalAdvance(high)
    painter.setPen(theme.palette.secondary)
    painter.drawText(QPointF(x, baseline), high)
    bar = QRectF(x - 6 - length, rect.center().y() - THICKNESS / 2, length, THICKNESS)
    _draw_map(painter, bar, table)
    x = bar.left() - 6 - metrics.horizontalAdvance(low)
    painter.drawText(QPointF(x, baseline), low)
    words = metrics.elidedText(text.scale, Qt.TextElideMode.ElideRight, max(0.0, x - 12 - rect.left()))
    painter.drawText(QPointF(x - 12 - metrics.horizontalAdvance(words), baseline), words)
    if rect.height() >= THICKNESS + 2 * metrics.height():
        width = metrics.horizontalAdvance(middle)
        painter.drawText(QPointF(bar.center().x() - width / 2, bar.bottom() + metrics.ascent() + 1), middle)


def bar_width(theme: Theme, text: BarText, length: float) -> float:
    """Px that `draw_bar` needs with all its words."""
    metrics = QFontMetricsF(theme.font("hint"))
    ends = metrics.horizontalAdvance(short(text.values[0])) + metrics.horizontalAdvance(short(text.values[2]))
    return length + ends + 12 + 12 + metrics.horizontalAdvance(text.scale)


def _draw_map(painter: QPainter, bar: QRectF, table: Colours) -> None:
    line = table[1:].copy()
    image = QImage(line.data, len(line), 1, 4 * len(line), QImage.Format.Format_RGB32)
    painter.drawImage(bar, image)
