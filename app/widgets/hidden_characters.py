"""Characters of a text that Qt would draw as nothing, or obey (marks of direction), shown where they stand: ⟨U+202E⟩.

In the document each is an inline object: the one character U+FFFC, whose format holds the code of the one it stands
for. Positions stay those of the text, the cursor takes one step over it, Undo keeps it.
"""

from __future__ import annotations

import re
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF
from PySide6.QtGui import (
    QFontMetricsF,
    QPainter,
    QPalette,
    QPyTextObject,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtWidgets import QPlainTextEdit

from app.plain import UNSEEN, escaped

MOST = 500
"""So many are objects in one document, which takes some 30 ms to set; the others stay as Qt has them."""
MOST_FOREIGN = 100
"""Characters that Qt inserts at once by itself: its menu's one, not what an Undo brings back."""
_OBJECT = "\ufffc"
_PARAGRAPH = "\u2029"
_KIND = int(QTextFormat.ObjectTypes.UserObject.value) + 1
_CODE = int(QTextFormat.Property.UserProperty.value) + 1
_HIDDEN = re.compile(f"{UNSEEN.pattern}|{_OBJECT}")  # what is an object in the text itself is shown as one too
_CODES = np.array([code for code in range(0x10000) if UNSEEN.match(chr(code))], np.uint16)


class HiddenCharacters(QPyTextObject):
    """Draws those of one editor's document and gives its text back as it was put in."""

    def __init__(self, edit: QPlainTextEdit) -> None:
        super().__init__(edit)
        self._edit = edit
        self._document = document = edit.document()
        self._read = (-1, "")
        self._changes: list[tuple[int, int, int]] = []  # since it was read: where, units removed, units added
        self._inserted: tuple[int, int] | None = None
        self._busy = False
        self._selected: list[tuple[QPointF, str]] = []
        document.documentLayout().registerHandler(_KIND, self)
        document.contentsChange.connect(self._on_change)

    @property
    def n_objects(self) -> int:
        """How many there are in the document."""
        return self._document.toRawText().count(_OBJECT)

    def text(self) -> str:
        """The text, paragraphs as newlines. Not toPlainText: that makes spaces of no-break spaces."""
        revision = self._document.revision()
        if self._read[0] != revision:
            raw = self._document.toRawText().replace(_PARAGRAPH, "\n")
            self._read = (revision, self._restored(raw) if _OBJECT in raw else raw)
            self._changes.clear()
        return self._read[1]

    def _restored(self, raw: str) -> str:
        """Asking the document for a character's format takes 50 µs: those from before a change are known."""
        units, known = _units(raw), _units(self._read[1])
        for start, removed, added in self._changes:
            known = np.concatenate([known[:start], np.full(added, ord(_OBJECT), np.uint16), known[start + removed :]])
        found = np.flatnonzero(units == ord(_OBJECT))
        if len(known) >= len(units):  # Qt counts the end of the last paragraph too
            units[found] = known[found]
        cursor = QTextCursor(self._document)
        for at in found[~np.isin(units[found], _CODES)].tolist():
            cursor.setPosition(at + 1)  # a format is that of the character before
            code = _code_of(cursor.charFormat())
            units[at] = ord(_OBJECT) if code is None else code
        return units.tobytes().decode("utf-16-le", "surrogatepass")

    def insert(self, cursor: QTextCursor, text: str) -> None:
        """Puts `text` in the place of the cursor's selection."""
        cursor.removeSelectedText()
        at = 0
        for found in islice(_HIDDEN.finditer(text), max(MOST - self.n_objects, 0)):
            if found.start() > at:
                cursor.insertText(text[at : found.start()], QTextCharFormat())
            cursor.insertText(_OBJECT, _format_of(found[0]))
            at = found.end()
        cursor.insertText(text[at:], QTextCharFormat())

    def wants(self, cursor: QTextCursor, text: str) -> bool:
        """Whether Qt would insert `text` wrongly: it has hidden characters, or is typed behind an object, whose format
        it would take."""
        return bool(text) and (_HIDDEN.search(text) is not None or _code_of(cursor.charFormat()) is not None)

    def take_foreign(self) -> None:
        """Makes objects of what came in another way than typed, pasted or set: from Qt's menu of control characters."""
        inserted, self._inserted = self._inserted, None
        if inserted is None or self._busy or self._document.isRedoAvailable():  # of an Undo, which is not edited
            return
        if inserted[1] - inserted[0] > MOST_FOREIGN or self.n_objects >= MOST:
            return
        cursor = QTextCursor(self._document)
        start, end = inserted[0], min(inserted[1], self._document.characterCount() - 1)
        cursor.setPosition(min(start, end))
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        if not self._wrong(cursor.selectedText(), start):
            return
        self._busy = True
        cursor.beginEditBlock()
        for index in range(start, end):
            cursor.setPosition(index)
            cursor.setPosition(index + 1, QTextCursor.MoveMode.KeepAnchor)
            unit, code = cursor.selectedText(), _code_of(cursor.charFormat())
            if unit == _OBJECT and code is not None:
                continue
            if _HIDDEN.fullmatch(unit):
                cursor.insertText(_OBJECT, _format_of(unit))
            elif code is not None and unit != _PARAGRAPH:  # typed behind an object, whose format it took
                cursor.setCharFormat(QTextCharFormat())
        cursor.endEditBlock()
        self._busy = False

    def _wrong(self, typed: str, start: int) -> bool:
        """Whether there is a character among them that should be an object, or has an object's format."""
        if _HIDDEN.search(typed.replace(_OBJECT, "")):
            return True
        cursor, at = QTextCursor(self._document), start
        for character in typed if _OBJECT in typed else typed[:1]:
            at += 1 + (ord(character) > 0xFFFF)
            cursor.setPosition(at)
            if character == _PARAGRAPH:  # there is no character before the first of a paragraph: the format is its own
                continue
            if (character == _OBJECT) != (_code_of(cursor.charFormat()) is not None):
                return True
        return False

    def _on_change(self, start: int, removed: int, added: int) -> None:
        self._changes.append((start, removed, added))
        if added and not self._busy:
            self._inserted = (start, start + added)

    # QTextObjectInterface

    def intrinsicSize(self, doc: QTextDocument, _position: int, format: QTextFormat) -> QSizeF:  # noqa: A002 - Qt's name
        metrics = QFontMetricsF(doc.defaultFont())
        return QSizeF(metrics.horizontalAdvance(_label(format)), metrics.ascent())

    def drawObject(
        self,
        painter: QPainter,
        rect: QRectF | QRect,
        doc: QTextDocument,
        position: int,
        format: QTextFormat,  # noqa: A002 - Qt's name
    ) -> None:
        cursor = self._edit.textCursor()
        if cursor.selectionStart() <= position < cursor.selectionEnd():
            self._selected.append((QRectF(rect).bottomLeft(), _label(format)))
            return
        painter.setFont(doc.defaultFont())
        painter.setPen(self._edit.palette().color(QPalette.ColorRole.PlaceholderText))
        painter.drawText(QRectF(rect).bottomLeft(), _label(format))

    def paint_selected(self, clip: QRect) -> None:
        """Those in the selection, inside `clip` of the viewport and after all else in it: Qt fills over a selected
        object, half transparent."""
        selected, self._selected = self._selected, []
        if selected:
            painter = QPainter(self._edit.viewport())
            painter.setClipRect(clip)
            painter.setFont(self._document.defaultFont())
            painter.setPen(self._edit.palette().color(QPalette.ColorRole.HighlightedText))
            for place, label in dict.fromkeys((place.toTuple(), label) for place, label in selected):
                painter.drawText(QPointF(*place), label)


def _units(text: str) -> NDArray[np.uint16]:
    """UTF-16, as Qt counts."""
    return np.frombuffer(bytearray(text.encode("utf-16-le", "surrogatepass")), np.uint16)


def _format_of(character: str) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setObjectType(_KIND)
    made.setProperty(_CODE, ord(character))
    return made


def _code_of(text_format: QTextFormat) -> int | None:
    return text_format.intProperty(_CODE) if text_format.hasProperty(_CODE) else None


def _label(text_format: QTextFormat) -> str:
    return escaped(chr(text_format.intProperty(_CODE)))
