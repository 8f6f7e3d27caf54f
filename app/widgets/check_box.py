"""A check box with a tick, in the theme's colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QWidget

if TYPE_CHECKING:
    from app.theme import Theme

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
        box = QRectF(1, (self.height() - side) / 2, side, side).adjusted(0.5, 0.5, -0.5, -0.5)
        lit = self.underMouse() or self.hasFocus()
        painter.setPen(QPen(colours.accent if self.isChecked() or lit else colours.secondary, 1.5 if lit else 1))
        painter.setBrush(colours.accent if self.isChecked() else colours.window)
        painter.drawRoundedRect(box, 4, 4)
        if self.isChecked():
            painter.setPen(QPen(colours.accent_text, 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            at = (QPointF(0.22, 0.54), QPointF(0.43, 0.74), QPointF(0.78, 0.28))
            painter.drawPolyline([QPointF(box.x() + p.x() * box.width(), box.y() + p.y() * box.height()) for p in at])
        painter.setFont(self._theme.font("table"))
        painter.setPen(colours.accent if self.hasFocus() else colours.text)
        place = QRectF(box.right() + GAP, 0, self.width(), self.height())
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, self.text())
