"""The colour bar of a heat map: the map, the values at its ends and middle, and the scale in force, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.widgets.ticks import short

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours

THICKNESS, TIP = 8.0, 6.0
"""Px of the map across, and of the point at either end that stands for values beyond it."""
DARKER = 0.4
PLACES = (0.0, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True)
class BarText:
    """What is printed: values at the places 0, ½ and 1 of the bar, and the scale's name with what bounds it; `brief`:
    the same where there is no room for it. `beyond`: there are values outside of it, in the colours of `with_ends`."""

    values: tuple[float, float, float]
    scale: str
    brief: str = ""
    beyond: bool = False


def with_ends(lut: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(256, 3 or 4) colours whose first and last, those of values outside the levels, are told from the rest."""
    table = lut.copy()
    for end in (1, -1):
        table[end, :3] = (table[end, :3] * DARKER).astype(np.uint8)
    return table


def scale_words(scale: str, *, fixed: bool) -> str:
    """The scale in force in words."""
    name = {"linear": tr("linear"), "sqrt": tr("√ scale"), "log": tr("log scale")}[scale]
    return f"{name} · {tr('fixed')}" if fixed else name


def scale_brief(scale: str) -> str:
    """The scale in force in a word."""
    return {"linear": tr("linear"), "sqrt": "√", "log": tr("log")}[scale]


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
    tip = TIP + 1 if text.beyond else 0.0
    bar = QRectF(x - 6 - tip - length, rect.center().y() - THICKNESS / 2, length, THICKNESS)
    if text.beyond:
        _draw_tips(painter, bar, table)
        painter.setPen(theme.palette.secondary)
    _draw_map(painter, bar, table[1:-1] if text.beyond else table)
    x = bar.left() - tip - 6 - metrics.horizontalAdvance(low)
    painter.drawText(QPointF(x, baseline), low)
    room = max(0.0, x - 12 - rect.left())
    words = words_in(text, metrics, room)
    painter.drawText(QPointF(x - 12 - metrics.horizontalAdvance(words), baseline), words)
    if rect.height() >= THICKNESS + 2 * metrics.height():
        width = metrics.horizontalAdvance(middle)
        painter.drawText(QPointF(bar.center().x() - width / 2, bar.bottom() + metrics.ascent() + 1), middle)


def words_in(text: BarText, metrics: QFontMetricsF, room: float) -> str:
    """The scale in so many px: no ellipsis alone, which says nothing."""
    words = text.brief if text.brief and metrics.horizontalAdvance(text.scale) > room else text.scale
    words = metrics.elidedText(words, Qt.TextElideMode.ElideRight, room)
    return "" if words == "…" or metrics.horizontalAdvance(words) > room else words


def bar_width(theme: Theme, text: BarText, length: float, *, brief: bool = False) -> float:
    """Px that `draw_bar` needs with all its words, or with the brief ones."""
    metrics = QFontMetricsF(theme.font("hint"))
    ends = metrics.horizontalAdvance(short(text.values[0])) + metrics.horizontalAdvance(short(text.values[2]))
    ends += 2 * (TIP + 1) if text.beyond else 0
    return length + ends + 12 + 12 + metrics.horizontalAdvance((brief and text.brief) or text.scale)


class ColourBar(QWidget):
    """The bar of a map that has no room for its own, in brief."""

    LENGTH = 48.0

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text: BarText | None = None
        self._table: Colours | None = None
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        theme.changed.connect(self.updateGeometry)

    def set_bar(self, text: BarText | None, table: Colours) -> None:
        """What is printed and the map's 256 colours."""
        if text != self._text or table is not self._table:
            self._text, self._table = text, table
            self.setAccessibleName("" if text is None else text.scale)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        if self._text is None:
            return QSize(0, 0)
        return QSize(math.ceil(bar_width(self._theme, self._text, self.LENGTH, brief=True)) + 1, self._theme.px(16))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._text is not None and self._table is not None:
            draw_bar(QPainter(self), self._theme, QRectF(self.rect()), self._table, self._text, self.LENGTH)


def _draw_map(painter: QPainter, bar: QRectF, table: Colours) -> None:
    line = table[1:].copy()
    image = QImage(line.data, len(line), 1, 4 * len(line), QImage.Format.Format_RGB32)
    painter.drawImage(bar, image)


def _draw_tips(painter: QPainter, bar: QRectF, table: Colours) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    for x, way, colour in ((bar.left() - 1, -TIP, table[1]), (bar.right() + 1, TIP, table[-1])):
        painter.setBrush(QColor.fromRgb(int(colour)))
        points = [QPointF(x, bar.top()), QPointF(x + way, bar.center().y()), QPointF(x, bar.bottom())]
        painter.drawPolygon(QPolygonF(points))
