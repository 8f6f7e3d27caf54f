"""A button that opens a menu, with the arrow of a combo box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QToolButton, QWidget

from app.widgets.chevron import draw_chevron

if TYPE_CHECKING:
    from app.theme import Theme

ARROW = 11.5
"""Px from the right edge to the arrow's middle at 100 % text; the style sheet leaves the room."""


class MenuButton(QToolButton):
    """Opens its menu at once when it is pressed."""

    def __init__(self, theme: Theme, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setText(text)
        self.setAccessibleName(text)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours = self._theme.palette
        colour = colours.secondary if self.isEnabled() else colours.disabled
        grown = self._theme.text_scale
        draw_chevron(painter, colour, QPointF(self.width() - ARROW * grown, self.height() / 2 + 0.5), size=grown)
