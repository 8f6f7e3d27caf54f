"""The list beside an operation's picture: nearest rows of the table, keys read most, likeliest tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.i18n import tr
from app.panels.block_walk_words import list_title, list_value
from app.widgets.bar_table import BarTable

if TYPE_CHECKING:
    from app.panels.block_walk_cell import Shown
    from app.session import Session
    from app.theme import Theme

WIDTH, HEIGHT = 220, 128
"""Px at 100 % text: how wide it is at the picture's side, how high under it."""
QWIDGETSIZE_MAX = (1 << 24) - 1


class SideList(QWidget):
    """Hidden where an operation has none."""

    def __init__(self, theme: Theme, least: int) -> None:
        """`least`: px at 100 % text of its height at the picture's side."""
        super().__init__()
        self._theme, self._least = theme, least
        self.title = QLabel()
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.title.setWordWrap(True)
        self.title.setProperty("role", "hint")
        self.table = BarTable(theme, tr("Tokens beside the operation"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.title)
        column.addWidget(self.table, 1)
        self.place(under=False)

    def place(self, *, under: bool) -> None:
        """At the picture's side it has its own width, under it the picture's."""
        px = self._theme.px
        self.table.setMinimumWidth(0 if under else px(WIDTH))
        self.table.setMaximumWidth(QWIDGETSIZE_MAX if under else px(WIDTH))
        self.table.setMinimumHeight(px(HEIGHT if under else self._least))

    def minimumSizeHint(self) -> QSize:
        """With every line of its title."""
        layout, least = self.layout(), super().minimumSizeHint()
        return QSize(least.width(), max(least.height(), layout.minimumHeightForWidth(self.width()) if layout else 0))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def show_op(self, shown: Shown, session: Session) -> None:
        """Fills it where there is something to list."""
        op = shown.op
        if not op.tokens:
            return
        self.title.setText(list_title(op))
        if op.id == "attn.pattern":
            pieces = [token.piece for token in session.path_tokens()]
            first = session.n_prompt if session.length > session.n_prompt else None
            self.table.set_values(pieces, shown.values[0], name=list_value(op), first_decode=first)
            return
        pieces = [token.piece or tr("expert {n}", n=token.id) for token in op.tokens]
        values = np.array([token.value for token in op.tokens], np.float32)
        self.table.set_values(pieces, values, name=list_value(op), ranked=True)
