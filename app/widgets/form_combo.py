"""A combo box for dialogs: the style sheet's frame, and an arrow in the theme's colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QComboBox, QWidget

if TYPE_CHECKING:
    from app.theme import Theme

ARROW_MIDDLE = 12.0


class FormCombo(QComboBox):
    """Plain otherwise."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.palette.secondary, 1.4))
        middle = QPointF(self.width() - ARROW_MIDDLE, self.height() / 2 + 0.5)
        painter.drawPolyline([middle + QPointF(-3.5, -1.8), middle + QPointF(0, 1.8), middle + QPointF(3.5, -1.8)])
