"""What is drawn when the engine is gone: still true of what is named, and dimmed, as nothing answers any more."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.wire import Request

DIM = 0.4
"""How much of what is under it is the panel's ground."""
OF_SIGHT = frozenset({"rows", "cols", "height", "width", "size", "positions", "depths", "layers"})
"""Fields of a request that follow a view's size and zoom: with others of them the answer tells of the same thing."""


class Veil(QWidget):
    """Lies over a panel and lets the mouse through."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def paintEvent(self, _event: QPaintEvent) -> None:
        ground = QColor(self._theme.palette.panel)
        ground.setAlphaF(DIM)
        QPainter(self).fillRect(self.rect(), ground)


def subject(message: Request) -> tuple[object, ...]:
    """What a request asks about, whatever part of it is in sight and how large."""
    told = ((field.name, getattr(message, field.name)) for field in fields(message) if field.name not in OF_SIGHT)
    return (type(message), *told)
