"""What this is, its version and the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr

if TYPE_CHECKING:
    from app.session import Session
    from app.theme import Theme

from app.dialogs.label import label

ABOUT = "A microscope for decoder-only language models. Every number on the screen is the number the model used."


class AboutDialog(QDialog):
    """What this is, its version and the engine's."""

    def __init__(self, theme: Theme, session: Session, version: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("About Decoderscope"))
        self.setFixedWidth(theme.px(420))
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 22, 24, 18)
        column.setSpacing(8)
        column.addWidget(label("Decoderscope", "heading"))
        column.addWidget(
            label(
                tr(ABOUT),
                "secondary",
                wrap=True,
            )
        )
        hello = session.hello
        lines = [tr("version {v}", v=version)]
        if hello:
            lines.append(
                tr(
                    "engine {v} · torch {t} · {n} threads · {host}",
                    v=hello.version,
                    t=hello.torch,
                    n=hello.threads,
                    host=hello.host,
                )
            )
            lines += [f"{device.name} · {device.label}" for device in hello.devices]
        text = "\n".join(lines)
        column.addWidget(label(text, "mono", wrap=True))
        row = QHBoxLayout()
        copy, close = QPushButton(tr("Copy")), QPushButton(tr("Close"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(text))
        close.clicked.connect(self.accept)
        close.setDefault(True)
        row.addStretch(1)
        row.addWidget(copy)
        row.addWidget(close)
        column.addLayout(row)
