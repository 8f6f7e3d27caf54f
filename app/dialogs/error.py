"""An error with its way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from app.i18n import tr
from app.plain import one_line
from app.widgets.elided_label import ElidedLabel

if TYPE_CHECKING:
    from app.notify import Trouble
    from app.theme import Theme

from app.dialogs.label import label
from app.dialogs.sheet import Sheet

MOST_DETAILS = 420
"""Px of the details, however large the text: they scroll by themselves."""
MAX_TITLE, MAX_MESSAGE, MAX_LINES = 100, 2_000, 16  # characters and lines shown; what is copied is whole


def beginning(text: str) -> str:
    """A message in the room a dialog has: its first lines, with … where there are more."""
    shown = "\n".join(text[:MAX_MESSAGE].splitlines()[:MAX_LINES])
    return shown if shown == text else f"{shown.rstrip()} …"


class ErrorDialog(Sheet):
    """What went wrong, where, why, and what to do. Esc closes it; nothing is lost."""

    def __init__(self, theme: Theme, trouble: Trouble, parent: QWidget | None = None, *, about: str = "") -> None:
        """`about`: releases and system, copied with the rest."""
        super().__init__(theme, parent, width=600 if trouble.expanded else 440, widest=640, spacing=12)
        self.trouble = trouble
        self.setObjectName("error-dialog")
        self.setWindowTitle(tr("Decoderscope"))
        column, row = self.column, self.foot
        head = QHBoxLayout()
        picture = QLabel()
        picture.setPixmap(theme.pixmap("warning", "red", 22, 2))
        head.addWidget(picture)
        title = ElidedLabel(one_line(trouble.title, MAX_TITLE))
        title.setProperty("role", "title")
        head.addWidget(title, 1)
        column.addLayout(head)
        self.message = label(beginning(trouble.message), wrap=True)
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column.addWidget(self.message)
        self.details = QPlainTextEdit("\n\n".join(filter(None, (trouble.details, about))))
        self.details.setReadOnly(True)
        self.details.setFont(theme.font("mono_small"))
        self.details.setMinimumHeight(min(theme.px(300 if trouble.expanded else 140), MOST_DETAILS))
        self.details.setVisible(trouble.expanded)
        column.addWidget(self.details, 1)
        column.addStretch(0)
        text = "\n".join(filter(None, (trouble.title, trouble.message, trouble.details, about)))
        self.copy = QPushButton(tr("Copy details"))
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        row.addWidget(self.copy)
        if trouble.details and not trouble.expanded:
            show = QPushButton(tr("Show details"))
            show.setCheckable(True)
            show.toggled.connect(self.details.setVisible)
            row.addWidget(show)
        row.addStretch(1)
        for way in trouble.ways_out:
            button = QPushButton(way.label)
            button.clicked.connect(self.accept)
            button.clicked.connect(lambda _checked=False, run=way.run: run())
            row.addWidget(button)
        close = QPushButton(tr("Close"))
        close.setProperty("primary", True)
        close.setDefault(True)
        close.clicked.connect(self.accept)
        row.addWidget(close)
        close.setFocus()
