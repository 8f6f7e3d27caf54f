"""Signed bars side by side, one of them chosen: what each of many adds to a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.i18n import tr
from app.widgets.cursor_plot import CursorPlot
from app.widgets.sign_colours import sign_colour
from app.widgets.ticks import figure, short, ticks

if TYPE_CHECKING:
    from app.theme import Theme

Floats = NDArray[np.float32]


KEY_SIDE, KEY_GAP = 9.0, 4.0


class BarPlot(CursorPlot):
    """Positions are bars. `keyed`: its title says which bar is the tallest, and the colours of the signs."""

    def __init__(
        self, theme: Theme, label: str, *, title: str = "", keyed: bool = False, parent: QWidget | None = None
    ) -> None:
        super().__init__(theme, label, parent)
        self._title, self._keyed = title, keyed
        self.values: Floats = np.empty(0, dtype=np.float32)
        self._names: Sequence[str] = ()
        self._widest = -1.0

    def set_values(self, values: Floats, names: Sequence[str]) -> None:
        """`names`: what stands under each bar, where there is room."""
        self.values, self._names, self._widest = values, names, -1.0
        self.update()

    def redraw(self) -> None:
        self._widest = -1.0  # the text may have grown
        self.update()

    @property
    def count(self) -> int:
        return len(self.values)

    def plot_rect(self) -> QRectF:
        """Where the bars are drawn."""
        metrics = QFontMetricsF(self._theme.font("hint"))
        low, high = self._range()
        shown = ticks(low, high, self._most_ticks(metrics, self.height() - 2 * metrics.height() - 6))
        widest = max((metrics.horizontalAdvance(short(v)) for v in shown), default=12.0)
        return QRectF(self.rect()).adjusted(widest + 7, metrics.height() + 3, -2, -metrics.height() - 3)

    def position_at(self, point: QPointF) -> int | None:
        plot, count = self.plot_rect(), len(self.values)
        if not count or not plot.left() <= point.x() < plot.right():
            return None
        return min(int((point.x() - plot.left()) / plot.width() * count), count - 1)

    def words(self, position: int | None) -> str:
        return "" if position is None else f"{self._names[position]}: {figure(float(self.values[position]))}"

    def sizeHint(self) -> QSize:
        return QSize(240, self._theme.px(150))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._theme.px(96))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, colours, plot = QPainter(self), self._theme.palette, self.plot_rect()
        font = self._theme.font("hint")
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        painter.setPen(colours.secondary)
        room = self.width() - plot.left() - self._paint_key(painter, metrics)
        words = next((form for form in self.title_forms() if metrics.horizontalAdvance(form) <= room), "")
        words = words or metrics.elidedText(self.title_forms()[-1], Qt.TextElideMode.ElideRight, room)
        painter.drawText(QPointF(plot.left(), metrics.ascent()), words)
        if not len(self.values):
            return
        low, high = self._range()
        for value in ticks(low, high, self._most_ticks(metrics, plot.height())):
            y = round(plot.bottom() - (value - low) / (high - low) * plot.height()) + 0.5
            painter.setPen(QPen(colours.secondary if value == 0 else colours.line, 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            painter.setPen(colours.secondary)
            place = QRectF(0, y - metrics.height() / 2, plot.left() - 5, metrics.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, short(value))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_bars(painter, plot, low, high)
        self._paint_names(painter, plot, metrics)
        if self.hasFocus():
            painter.setPen(QPen(colours.accent, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(plot.adjusted(-1.5, -1.5, 1.5, 1.5))

    def title_forms(self) -> tuple[str, ...]:
        """What stands over the bars, from all to least: the bar pointed at, else the chosen one, else the tallest."""
        shown = self.cursor_at if self.hovered is None else self.hovered
        if shown is not None and shown < len(self.values):
            return (f"{self._title}   {self._bar_words(shown)}",)
        if not self._keyed or not len(self.values):
            return (self._title,)
        tallest = self._bar_words(int(np.abs(self.values).argmax()))
        return f"{self._title}   {tr('tallest: {bar}', bar=tallest)}", f"{self._title}   {tallest}", self._title

    def _bar_words(self, bar: int) -> str:
        return f"{self._names[bar]}: {short(float(self.values[bar]))}"

    def _paint_key(self, painter: QPainter, metrics: QFontMetricsF) -> float:
        """The colours of the signs that there are, at the right; px they take."""
        x = float(self.width())
        if not self._keyed:
            return 0.0
        for sign, seen in (("−", bool((self.values < 0).any())), ("+", bool((self.values > 0).any()))):
            if seen:
                x -= metrics.horizontalAdvance(sign)
                painter.drawText(QPointF(x, metrics.ascent()), sign)
                x -= KEY_GAP + KEY_SIDE
                top = metrics.ascent() - metrics.xHeight() / 2 - KEY_SIDE / 2
                painter.fillRect(QRectF(x, top, KEY_SIDE, KEY_SIDE), sign_colour(negative=sign != "+"))
                x -= 2 * KEY_GAP
        return self.width() - x

    def _paint_bars(self, painter: QPainter, plot: QRectF, low: float, high: float) -> None:
        colours, pitch = self._theme.palette, plot.width() / len(self.values)
        zero = plot.bottom() + low / (high - low) * plot.height()
        painter.setPen(Qt.PenStyle.NoPen)
        for bar, value in enumerate(self.values.tolist()):
            left = plot.left() + bar * pitch
            if bar in {self.hovered, self.cursor_at}:
                painter.setBrush(colours.accent_tint if bar == self.cursor_at else colours.hover)
                painter.drawRect(QRectF(left, plot.top(), pitch, plot.height()))
            height = value / (high - low) * plot.height()
            painter.setBrush(sign_colour(negative=value < 0))
            gap = min(1.5, pitch * 0.2)
            painter.drawRect(QRectF(left + gap / 2, zero - max(height, 0), pitch - gap, max(abs(height), 0.6)))

    def _paint_names(self, painter: QPainter, plot: QRectF, metrics: QFontMetricsF) -> None:
        painter.setPen(self._theme.palette.secondary)
        pitch = plot.width() / len(self.values)
        for bar in self.named_bars():
            name = self._names[bar]
            width = metrics.horizontalAdvance(name)
            left = min(max(plot.left() + (bar + 0.5) * pitch - width / 2, plot.left() - 4), self.width() - width)
            painter.drawText(QPointF(left, plot.bottom() + metrics.ascent() + 3), name)

    def named_bars(self) -> range:
        """The bars with a name under them: every one, or every second, fourth, eighth …, so that steps are even."""
        metrics, pitch = QFontMetricsF(self._theme.font("hint")), self.plot_rect().width() / max(len(self.values), 1)
        if self._widest < 0:
            self._widest = max((metrics.horizontalAdvance(name) for name in self._names), default=0.0)
        step = 1
        while step < len(self._names) and step * pitch < self._widest + 8:
            step *= 2
        return range(0, len(self._names), step)

    def _most_ticks(self, metrics: QFontMetricsF, height: float) -> int:
        return max(2, int(height / (metrics.height() * 1.7)))

    def _range(self) -> tuple[float, float]:
        low, high = float(self.values.min(initial=0.0)), float(self.values.max(initial=0.0))
        room = (high - low) * 0.05 or 1.0
        return (low - room if low < 0 else 0.0), high + room
