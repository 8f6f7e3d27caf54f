"""A sentence over what has nothing to show yet: it takes no room, so that nothing moves when it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.theme import Theme

AWAY, INSIDE = 8, 8
"""Px from the edges of what lies under it, and from its own edge to the words."""


class FloatingNote(QWidget):
    """In the middle of its parent, as wide as that allows; clicks pass through it."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme, self._text = theme, ""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        parent.installEventFilter(self)
        theme.changed.connect(self._place)
        self.hide()

    def set_text(self, text: str) -> None:
        """ "": there is nothing to say."""
        if text != self._text:
            self._text = text
            self.setAccessibleName(text)
            self.setVisible(bool(text))
            self._place()

    def text(self) -> str:
        return self._text

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return bool(super().eventFilter(watched, event))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, colours = QPainter(self), self._theme.palette
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colours.line, 1))
        painter.setBrush(colours.panel)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.setFont(self._theme.font("hint"))
        painter.setPen(colours.secondary)
        painter.drawText(QRectF(self.rect()).adjusted(INSIDE, INSIDE, -INSIDE, -INSIDE), _FLAGS, self._text)

    def _place(self) -> None:
        parent = self.parentWidget()
        if parent is None or not self._text:
            return
        room = QRectF(0, 0, max(parent.width() - 2 * (AWAY + INSIDE), 40), 1e4)
        words = QFontMetricsF(self._theme.font("hint")).boundingRect(room, _FLAGS, self._text)
        self.resize(round(words.width()) + 2 * INSIDE + 2, round(words.height()) + 2 * INSIDE)
        self.move((parent.width() - self.width()) // 2, max((parent.height() - self.height()) // 3, 0))
        self.raise_()
        self.update()


_FLAGS = Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
