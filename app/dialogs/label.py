"""A label of plain text, as dialogs use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QLabel,
)

from app.theme import active

if TYPE_CHECKING:
    pass


def label(text: str, role: str = "", *, wrap: bool = False) -> QLabel:
    """A label of plain text in one of the style sheet's roles."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setProperty("role", role)
    if role == "mono":
        made.setFont(active().font("mono"))
    made.setWordWrap(wrap)
    return made
