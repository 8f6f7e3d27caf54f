"""A check box with a tick, in the theme's colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QWidget

if TYPE_CHECKING:
    from app.theme import Palette, Theme

BOX, GAP = 14, 6


class CheckBox(QCheckBox):
    """QCheckBox with its own paint: the box is outlined, filled and ticked when on."""

    def __init__(self, theme: Theme, text: str, *, tip: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._theme = theme
        self.setToolTip(tip)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self._theme.font("table"))
        width = self._theme.px(BOX) + GAP + metrics.horizontalAdvance(self.text()) + 4
        return QSize(round(width) + 1, self._theme.px(22))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def hitButton(self, _pos: object) -> bool:
        return True

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours, side = self._theme.palette, self._theme.px(BOX)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self.isEnabled():
            painter.setOpacity(0.45)
        box = QRectF(1, (self.height() - side) / 2, side, side)
        draw_box(painter, colours, box, checked=self.isChecked(), lit=self.underMouse() or self.hasFocus())
        painter.setFont(self._theme.font("table"))
        painter.setPen(colours.accent if self.hasFocus() else colours.text)
        place = QRectF(box.right() - 0.5 + GAP, 0, self.width(), self.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, self.text())


def draw_box(painter: QPainter, colours: Palette, box: QRectF, *, checked: bool, lit: bool) -> None:
    """An outlined box, filled and ticked when on; `lit`: pointed at, or in focus."""
    box = box.adjusted(0.5, 0.5, -0.5, -0.5)
    painter.setPen(QPen(colours.accent if checked or lit else colours.secondary, 1.5 if lit else 1))
    painter.setBrush(colours.accent if checked else colours.window)
    painter.drawRoundedRect(box, 4, 4)
    if checked:
        draw_tick(painter, colours.accent_text, box)


def draw_tick(painter: QPainter, colour: QColor, box: QRectF) -> None:
    """The tick of a box, without it."""
    painter.setPen(QPen(colour, 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    at = (QPointF(0.22, 0.54), QPointF(0.43, 0.74), QPointF(0.78, 0.28))
    painter.drawPolyline([QPointF(box.x() + p.x() * box.width(), box.y() + p.y() * box.height()) for p in at])
