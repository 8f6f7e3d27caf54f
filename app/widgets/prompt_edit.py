"""The box a prompt is typed into: plain text, any length, whole lines."""

from __future__ import annotations

import math
import re

from PySide6.QtCore import QEvent, QMimeData, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QGuiApplication,
    QInputMethodEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPaintEvent,
    QTextCharFormat,
    QTextCursor,
    QTextOption,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from app.i18n import tr
from app.plain import UNSEEN
from app.widgets.hidden_characters import HiddenCharacters

MAX_PASTE = 1_000_000
LONG_WORD = 2_000
_LONG_WORD = re.compile(rf"\S{{{LONG_WORD + 1}}}")
WRAP_MS = 300
"""How long after the last key a long text is looked through for words that cannot be wrapped."""
MOST_CHARACTERS = 500_000
MOST_LAYOUT_MS, ASCII_MS, OTHER_MS = 60.0, 0.00035, 0.002
"""What laying out one paragraph may take, and what a character of it costs: Qt lays out all of it at every key."""
HEAD, TAIL = 400, 150
LAST_CONTROL = 0x9F  # up to here a key's text is what the key does: Esc, Backspace
OTHER_LINE_ENDS = re.compile("\r\n|[\r\u2029\ufdd0\ufdd1]")
"""What Qt's documents make a new paragraph of, besides a newline."""
Keys = QKeySequence.StandardKey


def can_be_edited(text: str) -> bool:
    """Whether the window stays quick while `text` is laid out again at every key."""
    if len(text) * ASCII_MS <= MOST_LAYOUT_MS and len(text) * OTHER_MS <= MOST_LAYOUT_MS:
        return True
    if len(text) > MOST_CHARACTERS:
        return False
    return all(_layout_ms(paragraph) <= MOST_LAYOUT_MS for paragraph in text.split("\n"))


def _layout_ms(paragraph: str) -> float:
    plain = len(paragraph.encode("ascii", "ignore"))
    return plain * ASCII_MS + (len(paragraph) - plain) * OTHER_MS


class PromptEdit(QPlainTextEdit):
    """Plain text only; files dropped on it go to the window. `typed` once a change is no longer being composed.

    A text that cannot be edited without holding the window (`can_be_edited`) is kept whole and shown by its beginning
    and end: it can be replaced, cleared and taken back, not changed inside.
    """

    typed = Signal()
    caretMoved = Signal()
    told = Signal(str)
    """A sentence for the person: what of a text could not be taken as it was."""
    pointedAt = Signal(int)
    """The character under the mouse, in UTF-16 units; -1 when there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTabChangesFocus(True)
        self.setInputMethodHints(Qt.InputMethodHint.ImhMultiLine)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        # A line that is wrapped needs none, and until it is, the bar would lie over half of the box.
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(2)
        self._hidden = HiddenCharacters(self)
        self._kept: str | None = None  # the whole text, where the document has an excerpt
        self._exact: str | None = None  # the text as it was set, where the document cannot hold it, until it is edited
        self._back = ""  # what Undo brings where the document cannot
        self._pointed = -1
        self._wrap = QTimer(self, singleShot=True, interval=WRAP_MS)
        self._wrap.timeout.connect(self._choose_wrap)
        self.viewport().setMouseTracking(True)
        self.textChanged.connect(self._on_text)
        self.selectionChanged.connect(self.caretMoved.emit)
        self.cursorPositionChanged.connect(self.caretMoved.emit)
        self.retranslate()

    def retranslate(self) -> None:
        """Its words in the language in force; a text that is cut is cut in words again."""
        self.setPlaceholderText(tr("Type a prompt"))
        self.setAccessibleName(tr("Prompt"))
        if self._kept is not None:
            back = self._back
            self.set_text(self._kept)
            self._back = back

    @property
    def excerpted(self) -> bool:
        """Whether the text is too long to edit here and shown by its beginning and end."""
        return self._kept is not None

    @property
    def shows_all(self) -> bool:
        """Whether no character is hidden in it: neither by an excerpt nor for being one of too many."""
        return not self.excerpted and UNSEEN.search(self.document().toRawText()) is None

    def _on_text(self) -> None:
        self._hidden.take_foreign()
        if self._exact is not None:
            self._exact = None
            self.told.emit(_other_line_ends())
        block = self.textCursor().block()
        if block.length() > LONG_WORD and _LONG_WORD.search(block.text()):
            self._choose_wrap()
        elif self.document().characterCount() > LONG_WORD or self.wordWrapMode() == QTextOption.WrapMode.WrapAnywhere:
            self._wrap.start()
        self.typed.emit()

    def _choose_wrap(self) -> None:
        # Qt looks for a place to break a long word in quadratic time: 1.3 s a key at 100,000 letters.
        text = self._held() if self.document().characterCount() > LONG_WORD else ""
        mode = (
            QTextOption.WrapMode.WrapAnywhere
            if _LONG_WORD.search(text)
            else QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
        )
        if mode != self.wordWrapMode():
            self.setWordWrapMode(mode)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return not source.hasUrls() and source.hasText()

    def insertFromMimeData(self, source: QMimeData) -> None:
        if source.hasUrls():
            return
        pasted = source.text()
        text = pasted[:MAX_PASTE]
        if len(pasted) > MAX_PASTE:
            self.told.emit(
                tr("Only the first {most:,} of {n:,} characters were pasted.", most=MAX_PASTE, n=len(pasted))
            )
        elif OTHER_LINE_ENDS.search(text):
            self.told.emit(_other_line_ends())
        text = OTHER_LINE_ENDS.sub("\n", text)
        whole = text if self.excerpted else self._with(text)
        if self.excerpted or not can_be_edited(whole):
            self._replace(whole)
            return
        if len(text) > LONG_WORD:
            self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        cursor = self.textCursor()
        self._insert(cursor, text)
        self.setTextCursor(cursor)
        self.ensureCursorVisible()

    def createMimeDataFromSelection(self) -> QMimeData:
        """To the last character: Qt's own has spaces for no-break spaces. Of an excerpt as a whole, what it is of."""
        before, selected, after = self._parts()
        mime = QMimeData()
        mime.setText(self._kept if self._kept is not None and not before + after else selected)
        return mime

    def _parts(self) -> tuple[str, str, str]:
        """The document's text before, in and after the selection."""
        cursor, units = self.textCursor(), self._held().encode("utf-16-le", "surrogatepass")
        start, end = 2 * cursor.selectionStart(), 2 * cursor.selectionEnd()
        before, inside, after = units[:start], units[start:end], units[end:]
        return tuple(part.decode("utf-16-le", "surrogatepass") for part in (before, inside, after))  # type: ignore[return-value]

    def _with(self, text: str) -> str:
        """The whole text once `text` is in place of the selection."""
        before, _, after = self._parts()
        return before + text + after

    def keyPressEvent(self, event: QKeyEvent) -> None:
        replaces = event.matches(Keys.Paste)
        clears = event.matches(Keys.Delete) or event.matches(Keys.Backspace) or event.matches(Keys.Cut)
        if self.excerpted and replaces:
            self.insertFromMimeData(QGuiApplication.clipboard().mimeData())
        elif self.excerpted and clears:
            if event.matches(Keys.Cut):
                QGuiApplication.clipboard().setText(self.text())
            self._replace("")
        elif event.matches(Keys.Undo) and (self.excerpted or (self._back and not self.document().isUndoAvailable())):
            self._replace(self._back)
        elif event.matches(Keys.InsertLineSeparator) and not self.isReadOnly():
            self.insertPlainText("\n")  # Qt's line separator would be another character
        elif not (_is_text(event) and self._type(event.text())):
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        cursor, text = self.textCursor(), event.commitString()
        if self.isReadOnly() or not self._hidden.wants(cursor, text):
            super().inputMethodEvent(event)
            return
        rest = QInputMethodEvent(event.preeditString(), event.attributes())
        rest.setCommitString("", event.replacementStart(), event.replacementLength())
        super().inputMethodEvent(rest)
        self._type(text)

    def insertPlainText(self, text: str) -> None:
        """In the place of the selection, as typed."""
        if not self._type(text):
            super().insertPlainText(text)

    def _type(self, text: str) -> bool:
        """Whether `text` had to be inserted here and not by Qt."""
        cursor = self.textCursor()
        if self.isReadOnly() or not self._hidden.wants(cursor, text):
            return False
        cursor.beginEditBlock()
        self._hidden.insert(cursor, text)
        cursor.endEditBlock()
        self.setTextCursor(cursor)
        self.ensureCursorVisible()
        return True

    def _replace(self, text: str) -> None:
        """As typed, where the document's own undo cannot follow."""
        self.set_text(text)
        self.typed.emit()

    def text(self) -> str:
        """What was typed, or set as long as nothing was typed into it, to the last character."""
        if self._kept is not None:
            return self._kept
        return self._held() if self._exact is None else self._exact

    def _held(self) -> str:
        """What the document holds."""
        return self._hidden.text()

    def _insert(self, cursor: QTextCursor, text: str) -> None:
        """Puts `text` in the place of the selection, as one step of Undo. Qt would take what is typed after it, or was
        before it, for a part of the same step; of a removal, which ends this one, it is none."""
        cursor.beginEditBlock()
        self._hidden.insert(cursor, text + " ")
        cursor.setPosition(cursor.position() - 1, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        cursor.endEditBlock()

    def set_text(self, text: str) -> None:
        """Replaces the text without saying so; Undo brings the old one back."""
        old, was_excerpt = self.text(), self.excerpted
        self._kept = None if can_be_edited(text) else text
        shown = text if self._kept is None else excerpt_of(text)
        blocked = self.blockSignals(True)
        cursor = QTextCursor(self.document())
        if len(shown) > LONG_WORD:  # before it is laid out for the first time
            self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        cursor.select(QTextCursor.SelectionType.Document)
        self._insert(cursor, shown)
        if was_excerpt or self.excerpted:  # an excerpt that Undo put back would be a text
            self.document().clearUndoRedoStacks()
            self._back = old
            self.setReadOnly(self.excerpted)
            self.setToolTip(_what_can_be_done() if self.excerpted else "")
            self.moveCursor(QTextCursor.MoveOperation.Start if self.excerpted else QTextCursor.MoveOperation.End)
        self._exact = text if self._kept is None and self._held() != text else None
        self.blockSignals(blocked)
        self._choose_wrap()
        self.viewport().update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        # A press on what is selected would drag it: away from here, into any field or window that takes text.
        if event.button() is Qt.MouseButton.LeftButton and event.modifiers() is Qt.KeyboardModifier.NoModifier:
            cursor = self.textCursor()
            cursor.clearSelection()
            self.setTextCursor(cursor)
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._point_at(event.position().toPoint())

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point_at(None)

    def _point_at(self, at: QPoint | None) -> None:
        """The character under a point of the viewport: the one whose box holds it, not the nearest gap."""
        pointed = -1
        if at is not None and not self.excerpted and self.document().characterCount() > 1:
            cursor = self.cursorForPosition(at)
            if at.x() < self.cursorRect(cursor).left() and not cursor.atBlockStart():
                cursor.movePosition(QTextCursor.MoveOperation.PreviousCharacter)
            ahead = QTextCursor(cursor)
            ahead.movePosition(QTextCursor.MoveOperation.NextCharacter)
            here, end = self.cursorRect(cursor), self.cursorRect(ahead)
            on_line = here.top() <= at.y() <= here.bottom()
            if on_line and not cursor.atBlockEnd() and (end.top() > here.top() or at.x() <= end.left()):
                pointed = cursor.position()
        if pointed != self._pointed:
            self._pointed = pointed
            self.pointedAt.emit(pointed)

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
            self._hidden.paint_selected(whole)

    def mark(self, start: int, end: int, background: QTextCharFormat) -> None:
        """Shades characters start … end - 1 (UTF-16 units); nothing when they are the same."""
        if start >= end or self.excerpted:
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


def _is_text(event: QKeyEvent) -> bool:
    """Whether a key types its text, as far as the text is one we may have to insert."""
    if event.modifiers() & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier):
        return False
    return bool(event.text()) and all(
        character.isprintable() or (UNSEEN.match(character) and ord(character) > LAST_CONTROL)
        for character in event.text()
    )


def excerpt_of(text: str) -> str:
    """The beginning and the end of a text, with what is between them said in words."""
    head, tail = text[:HEAD], text[-TAIL:]
    words = tr("{n:,} characters, too long to edit.", n=len(text))
    return f"{words} {_what_can_be_done()}\n{head} …\n… {tail}"


def _what_can_be_done() -> str:
    return tr(
        "Delete clears it, {paste} replaces it, {undo} takes that back.",
        paste=_keys(Keys.Paste),
        undo=_keys(Keys.Undo),
    )


def _other_line_ends() -> str:
    return tr("Other signs for the end of a line became newlines: the box keeps only these.")


def _keys(standard: QKeySequence.StandardKey) -> str:
    return QKeySequence(standard).toString(QKeySequence.SequenceFormat.NativeText)
