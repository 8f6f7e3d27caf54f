"""The box a prompt is typed into: plain text, any length, whole lines."""

from __future__ import annotations

import math

from PySide6.QtCore import QMimeData, QRect, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPaintEvent, QTextCharFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from app.i18n import tr

MAX_PASTE = 1_000_000
LONG_WORD = 2_000


class PromptEdit(QPlainTextEdit):
    """Plain text only; files dropped on it go to the window. `typed` once a change is no longer being composed."""

    typed = Signal()
    caretMoved = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabChangesFocus(True)
        self.setPlaceholderText(tr("Type a prompt"))
        self.setAccessibleName(tr("Prompt"))
        self.setInputMethodHints(Qt.InputMethodHint.ImhMultiLine)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        # A line that is wrapped needs none, and until it is, the bar would lie over half of the box.
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(2)
        self.textChanged.connect(self._on_text)
        self.selectionChanged.connect(self.caretMoved.emit)
        self.cursorPositionChanged.connect(self.caretMoved.emit)

    def _on_text(self) -> None:
        self._choose_wrap()
        self.typed.emit()

    def _choose_wrap(self) -> None:
        # Qt looks for a place to break a long word in quadratic time: 1.3 s a key at 100,000 letters.
        text = self.toPlainText() if self.document().characterCount() > LONG_WORD else ""
        long = max(map(len, text.split()), default=0) > LONG_WORD
        mode = QTextOption.WrapMode.WrapAnywhere if long else QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
        if mode != self.wordWrapMode():
            self.setWordWrapMode(mode)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return not source.hasUrls() and source.hasText()

    def insertFromMimeData(self, source: QMimeData) -> None:
        if not source.hasUrls():
            text = source.text()[:MAX_PASTE]
            if len(text) > LONG_WORD:
                self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
            self.insertPlainText(text)

    def text(self) -> str:
        """What was typed. Qt's own paragraph separators come back as newlines."""
        return self.toPlainText()

    def set_text(self, text: str) -> None:
        """Replaces the text without saying so; Undo brings the old one back."""
        blocked = self.blockSignals(True)
        cursor = QTextCursor(self.document())
        if len(text) > LONG_WORD:  # before it is laid out for the first time
            self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        cursor.beginEditBlock()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        cursor.endEditBlock()
        self.blockSignals(blocked)
        self._choose_wrap()
        self.viewport().update()

    def height_of(self, lines: int) -> int:
        """Px that so many lines of text take, with what is around them."""
        self.ensurePolished()  # before that the style sheet's frame and font are not there
        frame = self.contentsMargins().top() + self.contentsMargins().bottom()
        line = math.ceil(QFontMetricsF(self.font()).lineSpacing()) + 1  # Qt lays lines out on whole pixels
        return lines * line + round(2 * self.document().documentMargin()) + 2 + frame

    def whole_bottom(self) -> int:
        """Px from the top of the viewport to where the last line ends that shows whole: a sliver of the next one reads
        as a fault. The viewport's height where nothing is cut."""
        height, block = self.viewport().height(), self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        while block.isValid() and top < height:
            layout = block.layout()
            pitch = max(layout.lineAt(0).height(), 1.0) if layout.lineCount() else 1.0
            for index in range(max(0, int(-top // pitch)), layout.lineCount()):
                line = layout.lineAt(index)
                begins, ends = top + line.y(), top + line.y() + line.height()
                if 0 < begins < height < ends:
                    return math.floor(begins)
                if begins >= height:
                    break
            top += self.blockBoundingRect(block).height()
            block = block.next()
        return height

    def paintEvent(self, event: QPaintEvent) -> None:
        whole = event.rect().intersected(QRect(0, 0, self.viewport().width(), self.whole_bottom()))
        if not whole.isEmpty():
            super().paintEvent(QPaintEvent(whole))

    def mark(self, start: int, end: int, background: QTextCharFormat) -> None:
        """Shades characters start … end - 1 (UTF-16 units); nothing when they are the same."""
        if start >= end:
            self.setExtraSelections([])
            return
        selection = QTextEdit.ExtraSelection()
        cursor = QTextCursor(self.document())
        last = self.document().characterCount() - 1
        cursor.setPosition(min(start, last))
        cursor.setPosition(min(end, last), QTextCursor.MoveMode.KeepAnchor)
        selection.cursor = cursor
        selection.format = background
        self.setExtraSelections([selection])
