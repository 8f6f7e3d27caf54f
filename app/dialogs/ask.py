"""A question with one field: a name, or a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QDialog, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.dialogs.label import label
from app.i18n import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.theme import Theme


class AskDialog(QDialog):
    """`question` over `field`, Cancel and one action, which the field's Enter does too."""

    def __init__(
        self, theme: Theme, title: str, question: str, field: QWidget, action: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.field = field
        self.setObjectName("ask-dialog")
        self.setWindowTitle(title)
        self.setMinimumWidth(theme.px(340))
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        words = label(question, "title")
        words.setBuddy(field)
        field.setAccessibleName(question)
        column.addWidget(words)
        column.addWidget(field)
        column.addSpacing(6)
        row = QHBoxLayout()
        row.addStretch(1)
        self.cancel, self.go = QPushButton(tr("Cancel")), QPushButton(action)
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(self.reject)
        self.go.setProperty("primary", True)
        self.go.setDefault(True)
        self.go.clicked.connect(self.accept)
        row.addWidget(self.cancel)
        row.addWidget(self.go)
        column.addLayout(row)
        field.setFocus()


class NameDialog(AskDialog):
    """Asks for a name; `take` is given one that is not empty."""

    def __init__(
        self, theme: Theme, title: str, question: str, take: Callable[[str], object], parent: QWidget | None = None
    ) -> None:
        self.edit = QLineEdit()
        super().__init__(theme, title, question, self.edit, tr("Save"), parent)
        self.go.setEnabled(False)
        self.edit.textChanged.connect(lambda text: self.go.setEnabled(bool(text.strip())))
        self.accepted.connect(lambda: take(self.edit.text().strip()))


class ConfirmDialog(QDialog):
    """A sentence, a way back and the action; `exec` is true where the action was chosen."""

    def __init__(
        self, theme: Theme, sentence: str, *, keep: str, action: str, title: str = "", parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("confirm-dialog")
        self.setWindowTitle(title or tr("Decoderscope"))
        self.setMinimumWidth(theme.px(340))
        self.setMaximumWidth(theme.px(560))
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(16)
        self.sentence = label(sentence, wrap=True)
        column.addWidget(self.sentence)
        row = QHBoxLayout()
        row.addStretch(1)
        self.keep, self.go = QPushButton(keep), QPushButton(action)
        self.keep.setDefault(True)
        self.go.setAutoDefault(False)
        self.go.setProperty("danger", True)
        self.keep.clicked.connect(self.reject)
        self.go.clicked.connect(self.accept)
        row.addWidget(self.keep)
        row.addWidget(self.go)
        column.addLayout(row)
        self.keep.setFocus()
