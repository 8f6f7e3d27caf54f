"""A combo box for dialogs: the style sheet's frame, and an arrow in the theme's colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox, QWidget

from app.widgets.chevron import draw_chevron

if TYPE_CHECKING:
    from app.theme import Theme

ARROW_MIDDLE = 12.0


class FormCombo(QComboBox):
    """Plain otherwise."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():  # a dialog that scrolls must not change what is under the mouse
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        grown = self._theme.text_scale
        middle = QPointF(self.width() - ARROW_MIDDLE * grown, self.height() / 2 + 0.5)
        draw_chevron(painter, self._theme.palette.secondary, middle, size=grown)
