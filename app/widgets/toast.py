"""A short message over the window's lower edge with one thing to do; goes by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QRectF, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QWidget

from app.i18n import tr

if TYPE_CHECKING:
    from app.theme import Theme

SECONDS = 8
EDGE = 44


class Toast(QFrame):
    """Stays while the mouse or the focus is on it."""

    def __init__(self, theme: Theme, window: QWidget) -> None:
        super().__init__(window)
        self._theme, self._window = theme, window
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._go)
        self._label = QLabel(self)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._act = QPushButton(self)
        self._close = QToolButton(self)
        self._close.setText("×")
        self._close.setAutoRaise(True)
        self._close.setAccessibleName(tr("Close"))
        self._close.clicked.connect(self.close)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 8, 8, 8)
        row.setSpacing(10)
        for widget in (self._label, self._act, self._close):
            row.addWidget(widget)
        window.installEventFilter(self)

    def say(self, text: str, act: str, run: Callable[[], object]) -> None:
        """Shows `text` with a button."""
        self._label.setText(text)
        self._act.setText(act)
        self._act.clicked.connect(run)
        self._act.clicked.connect(self.close)
        self.setAccessibleName(text)
        self._place()
        self.show()
        self.raise_()
        self._timer.start(SECONDS * 1000)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and watched is self._window:
            self._place()
        return False

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(self._theme.palette.raised)
        painter.setPen(QPen(self._theme.palette.line, 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)

    def _go(self) -> None:
        if self.underMouse() or self._act.hasFocus():
            self._timer.start(2000)
        else:
            self.close()

    def _place(self) -> None:
        room = self._window.width() - 32
        self.setMaximumWidth(room)
        self.adjustSize()
        self.move((self._window.width() - self.width()) // 2, self._window.height() - self.height() - EDGE)
