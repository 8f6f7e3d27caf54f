"""Says that the run on the screen is of another text than the one in the prompt box, with the way to run this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, Signal, SignalInstance
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip

if TYPE_CHECKING:
    from app.theme import Theme


class ApartLine(QWidget):
    """A tinted line; hidden while there is nothing to say. `prefillWanted`, `backWanted`: its button was pressed."""

    prefillWanted = Signal()
    backWanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 4, 4, 4)
        row.setSpacing(8)
        self.sentence = QLabel()
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setProperty("role", "hint")
        self.sentence.setWordWrap(True)
        row.addWidget(self.sentence, 1)
        self.button = _button(tr("Prefill"), tr("Run the model on the text in the box"), self.prefillWanted)
        self.back = _button(tr("Bring it back"), tr("Put the text of the run into the box"), self.backWanted)
        for button in (self.button, self.back):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        self.hide()

    def show_text(self, text: str, *, can_prefill: bool, can_bring_back: bool) -> None:
        """`text`: the beginning of the run's text; empty: the run is of the text in the box. `can_bring_back`: where
        there is nothing in the box to prefill."""
        if text:
            words = tr("The panels show the run of: {text}", text=f"\u2039{text}\u203a")
            self.sentence.setText(words)
            self.sentence.setToolTip(plain_tip(words))
        self.button.setVisible(can_prefill)
        self.back.setVisible(can_bring_back and not can_prefill)
        self.setVisible(bool(text))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.palette.accent_tint)
        painter.drawRoundedRect(QRectF(self.rect()), 4, 4)


def _button(text: str, tip: str, pressed: SignalInstance) -> QPushButton:
    button = QPushButton(text)
    button.setProperty("compact", True)
    button.setToolTip(tip)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.clicked.connect(lambda _checked=False: pressed.emit())
    return button
