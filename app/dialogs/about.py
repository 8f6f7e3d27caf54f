"""What this is, its version and the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr

if TYPE_CHECKING:
    from app.session import Session
    from app.theme import Theme

from app.dialogs.label import label
from app.dialogs.sheet import Sheet

ABOUT = "A microscope for decoder-only language models. Every number on the screen is the number the model used."

LOGO = 44


class AboutDialog(Sheet):
    """What this is, its version and the engine's."""

    def __init__(self, theme: Theme, session: Session, version: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent, width=420, spacing=8)
        self.setWindowTitle(tr("About Decoderscope"))
        column, row = self.column, self.foot
        head = QHBoxLayout()
        head.setSpacing(12)
        logo = QLabel()
        logo.setPixmap(theme.pixmap("decoderscope", "accent", LOGO, 2))
        head.addWidget(logo)
        name = QVBoxLayout()
        name.setSpacing(2)
        name.addWidget(label("Decoderscope", "heading"))
        name.addWidget(label(tr("version {v}", v=version), "secondary"))
        head.addLayout(name, 1)
        column.addLayout(head)
        column.addWidget(label(tr(ABOUT), wrap=True))
        hello = session.hello
        lines: list[str] = []
        if hello:
            lines.append(tr("engine {v} · torch {t} · {n} threads", v=hello.version, t=hello.torch, n=hello.threads))
            lines.append(tr("on {host}", host=hello.host))
            lines += [f"{device.name} · {device.label}" for device in hello.devices]
        text = "\n".join([tr("version {v}", v=version), *lines])
        if lines:
            column.addWidget(label("\n".join(lines), "mono", wrap=True))
        column.addStretch(1)
        copy, close = QPushButton(tr("Copy")), QPushButton(tr("Close"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        close.clicked.connect(self.accept)
        close.setDefault(True)
        close.setProperty("primary", True)
        copy.setAutoDefault(False)
        row.addStretch(1)
        row.addWidget(copy)
        row.addWidget(close)
