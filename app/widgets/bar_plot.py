"""Signed bars side by side, one of them chosen: what each of many adds to a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.widgets.ticks import figure, short, ticks

if TYPE_CHECKING:
    from app.theme import Theme

Floats = NDArray[np.float32]


class BarPlot(QWidget):
    """`barHovered` (-1: none) and `barClicked` carry a bar's number; arrow keys choose."""

    barHovered = Signal(int)
    barClicked = Signal(int)

    def __init__(self, theme: Theme, label: str, *, title: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._title = theme, title
        self.values: Floats = np.empty(0, dtype=np.float32)
        self._names: Sequence[str] = ()
        self.chosen = -1
        self.hovered = -1
        self.setAccessibleName(label)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def set_values(self, values: Floats, names: Sequence[str]) -> None:
        """`names`: what stands under each bar, where there is room."""
        self.values, self._names = values, names
        self.update()

    def set_chosen(self, bar: int) -> None:
        if bar != self.chosen:
            self.chosen = bar
            self.update()

    def set_hovered(self, bar: int) -> None:
        if bar != self.hovered:
            self.hovered = bar
            self.update()

    def plot_rect(self) -> QRectF:
        """Where the bars are drawn."""
        metrics = QFontMetricsF(self._theme.font("hint"))
        low, high = self._range()
        shown = ticks(low, high, self._most_ticks(metrics, self.height() - 2 * metrics.height() - 6))
        widest = max((metrics.horizontalAdvance(short(v)) for v in shown), default=12.0)
        return QRectF(self.rect()).adjusted(widest + 7, metrics.height() + 3, -2, -metrics.height() - 3)

    def bar_at(self, point: QPointF) -> int:
        """The bar whose column a point is in, -1 for none."""
        plot, count = self.plot_rect(), len(self.values)
        if not count or not plot.left() <= point.x() < plot.right():
            return -1
        return min(int((point.x() - plot.left()) / plot.width() * count), count - 1)

    def sizeHint(self) -> QSize:
        return QSize(240, self._theme.px(150))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._theme.px(96))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(self.bar_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        bar = self.bar_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and bar >= 0:
            self._choose(bar)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self.values) - 1
        moves = {
            Qt.Key.Key_Left: self.chosen - 1, Qt.Key.Key_Right: self.chosen + 1, Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
        }  # fmt: skip
        target = moves.get(Qt.Key(event.key()))
        if target is None:
            event.ignore()
        elif 0 <= target <= last:
            self._choose(target)

    def focusInEvent(self, event: object) -> None:
        super().focusInEvent(event)  # type: ignore[arg-type] # QFocusEvent
        self.update()

    def focusOutEvent(self, event: object) -> None:
        super().focusOutEvent(event)  # type: ignore[arg-type] # QFocusEvent
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, colours, plot = QPainter(self), self._theme.palette, self.plot_rect()
        font = self._theme.font("hint")
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        painter.setPen(colours.secondary)
        shown = self.hovered if self.hovered >= 0 else self.chosen
        words = self._title
        if 0 <= shown < len(self.values):
            words += f"   {self._names[shown]}: {short(float(self.values[shown]))}"
        room = self.width() - plot.left()
        painter.drawText(
            QPointF(plot.left(), metrics.ascent()), metrics.elidedText(words, Qt.TextElideMode.ElideRight, room)
        )
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

    def _paint_bars(self, painter: QPainter, plot: QRectF, low: float, high: float) -> None:
        colours, pitch = self._theme.palette, plot.width() / len(self.values)
        zero = plot.bottom() + low / (high - low) * plot.height()
        painter.setPen(Qt.PenStyle.NoPen)
        for bar, value in enumerate(self.values.tolist()):
            left = plot.left() + bar * pitch
            if bar in {self.hovered, self.chosen}:
                painter.setBrush(colours.accent_tint if bar == self.chosen else colours.hover)
                painter.drawRect(QRectF(left, plot.top(), pitch, plot.height()))
            height = value / (high - low) * plot.height()
            painter.setBrush(colours.accent if value >= 0 else colours.amber)
            gap = min(1.5, pitch * 0.2)
            painter.drawRect(QRectF(left + gap / 2, zero - max(height, 0), pitch - gap, max(abs(height), 0.6)))

    def _paint_names(self, painter: QPainter, plot: QRectF, metrics: QFontMetricsF) -> None:
        painter.setPen(self._theme.palette.secondary)
        pitch, free = plot.width() / len(self.values), plot.left() - 20
        for bar, name in enumerate(self._names):
            width = metrics.horizontalAdvance(name)
            left = min(max(plot.left() + (bar + 0.5) * pitch - width / 2, plot.left() - 4), plot.right() - width)
            if left >= free:
                painter.drawText(QPointF(left, plot.bottom() + metrics.ascent() + 3), name)
                free = left + width + 8

    def _most_ticks(self, metrics: QFontMetricsF, height: float) -> int:
        return max(2, int(height / (metrics.height() * 1.7)))

    def _range(self) -> tuple[float, float]:
        low, high = float(self.values.min(initial=0.0)), float(self.values.max(initial=0.0))
        room = (high - low) * 0.05 or 1.0
        return (low - room if low < 0 else 0.0), high + room

    def _hover(self, bar: int) -> None:
        if bar != self.hovered:
            self.set_hovered(bar)
            self.barHovered.emit(bar)

    def _choose(self, bar: int) -> None:
        self.set_chosen(bar)
        self.setAccessibleDescription(f"{self._names[bar]}: {figure(float(self.values[bar]))}")
        self.barClicked.emit(bar)
