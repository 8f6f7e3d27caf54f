"""Characters that Qt hides or obeys, in the prompt's box: seen where they stand, and out again as they came in."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QMimeData, Qt
from PySide6.QtGui import QGuiApplication, QImage, QInputMethodEvent, QKeyEvent, QTextCursor, QTextFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.plain import UNSEEN, seen
from app.theme import Theme
from app.widgets import hidden_characters
from app.widgets.hidden_characters import MOST
from app.widgets.prompt_edit import PromptEdit

EVERY = "".join(character for character in map(chr, range(0x10000)) if UNSEEN.match(character))
TEXTS = [
    "a\u202eb\u202cc",
    "\x00",
    "\u200b\u200b\u200b",
    "x\ufffcy\ufffc",
    "\u2066שלום\u2069\nמה\u00a0b",
    "😀\u200e😀\n\u202e",
    EVERY,
]


def edit_with(qtbot: QtBot, text: str = "") -> PromptEdit:
    edit = PromptEdit()
    qtbot.addWidget(edit)
    edit.set_text(text)
    edit.resize(260, 90)
    edit.show()
    qtbot.waitExposed(edit)
    edit.setFocus()
    edit.moveCursor(QTextCursor.MoveOperation.End)
    return edit


def type_in(edit: PromptEdit, text: str) -> None:
    for character in text:
        QApplication.sendEvent(edit, QKeyEvent(QEvent.Type.KeyPress, 0, Qt.KeyboardModifier.NoModifier, character))


def commit(edit: PromptEdit, text: str) -> None:
    event = QInputMethodEvent("", [])
    event.setCommitString(text)
    QApplication.sendEvent(edit, event)


def picture_of(edit: PromptEdit) -> QImage:
    edit.clearFocus()  # no caret
    return edit.grab().toImage()


def raw_of(edit: PromptEdit) -> str:
    return edit.document().toRawText()


def test_every_one_of_them_is_a_format_or_control_character() -> None:
    assert {unicodedata.category(character) for character in EVERY} <= {"Cc", "Cf", "Cn"}
    assert not {"\n", "\t", "\u200c", "\u200d", " "} & set(EVERY) and {"\u202e", "\u2066", "\x1b", "\u061c"} <= set(
        EVERY
    )
    assert all(seen(character) == f"⟨U+{ord(character):04X}⟩" for character in EVERY)  # as its token is written


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_comes_out_as_it_went_in_however_it_came(qtbot: QtBot, text: str) -> None:
    edit = edit_with(qtbot)
    told: list[str] = []
    edit.told.connect(told.append)
    edit.set_text(text)
    assert edit.text() == text
    mime = QMimeData()
    mime.setText(text)
    edit.set_text("before")
    edit.moveCursor(QTextCursor.MoveOperation.End)
    edit.insertFromMimeData(mime)
    wanted = "before" + text
    assert edit.text() == wanted
    edit.undo()
    assert edit.text() == "before"
    edit.redo()
    assert edit.text() == wanted
    edit.moveCursor(QTextCursor.MoveOperation.End)
    edit.insertPlainText(text)
    assert edit.text() == wanted + text
    assert not UNSEEN.search(raw_of(edit))
    assert not told


@given(st.text(st.sampled_from("ab \n\u202e\u200b\ufffc\x00\u00a0😀ש"), max_size=12), st.data())
def test_any_edit_leaves_the_rest(text: str, data: st.DataObject) -> None:
    edit = PromptEdit()
    edit.set_text(text)
    units = text.encode("utf-16-le")
    at = data.draw(st.integers(0, len(text)))
    unit = len(text[:at].encode("utf-16-le")) // 2
    cursor = edit.textCursor()
    cursor.setPosition(unit)
    edit.setTextCursor(cursor)
    commit(edit, "z\u202e")
    assert edit.text() == text[:at] + "z\u202e" + text[at:]
    type_in(edit, "y")
    assert edit.text() == text[:at] + "z\u202ey" + text[at:]
    for _ in range(3):
        QTest.keyClick(edit, Qt.Key.Key_Backspace)
    assert edit.text().encode("utf-16-le") == units
    assert not UNSEEN.search(raw_of(edit))
    edit.deleteLater()


@pytest.mark.parametrize("put", [type_in, commit])
def test_what_is_typed_is_shown_and_undone_as_one_step(qtbot: QtBot, put: object) -> None:
    edit = edit_with(qtbot, "ab")
    before = picture_of(edit)
    edit.setFocus()
    put(edit, "\u202e")  # type: ignore[operator]
    assert edit.text() == "ab\u202e" and raw_of(edit) == "ab\ufffc"
    assert picture_of(edit) != before
    edit.undo()
    assert edit.text() == raw_of(edit) == "ab"
    edit.redo()
    assert edit.text() == "ab\u202e"
    edit.setFocus()
    type_in(edit, "cd")
    assert edit.text() == "ab\u202ecd" and raw_of(edit) == "ab\ufffccd"
    for _ in range(3):
        if edit.text() != "ab":
            edit.undo()
        assert not UNSEEN.search(raw_of(edit))
    assert edit.text() == "ab"
    while edit.document().isRedoAvailable():
        edit.redo()
    assert edit.text() == "ab\u202ecd" and raw_of(edit) == "ab\ufffccd"


def test_what_comes_from_qts_own_menu_is_shown_too(qtbot: QtBot) -> None:
    edit = edit_with(qtbot, "ab")
    QTextCursor(edit.document()).insertText("\u202e")  # as the menu of control characters does: past all of ours
    assert edit.text() == "\u202eab" and raw_of(edit) == "\ufffcab"
    texts: list[str] = []
    while edit.document().isUndoAvailable() and len(texts) < 5:
        edit.undo()
        texts.append(edit.text())
    assert texts[:2] == ["\u202eab", "ab"]
    while edit.document().isRedoAvailable():
        edit.redo()
    assert edit.text() == "\u202eab" and raw_of(edit) == "\ufffcab"


def test_text_after_a_mark_of_direction_stays_in_its_order(qtbot: QtBot) -> None:
    edit = edit_with(qtbot, "\u202eabc")
    places = []
    for position in range(1, 5):
        cursor = edit.textCursor()
        cursor.setPosition(position)
        places.append(edit.cursorRect(cursor).left())
    assert places == sorted(set(places))


def test_one_of_them_is_as_wide_as_its_words_and_one_step(qtbot: QtBot) -> None:
    edit = edit_with(qtbot, "a\u200bb")
    edit.moveCursor(QTextCursor.MoveOperation.Start)
    lefts = [edit.cursorRect().left()]
    for _ in range(3):
        QTest.keyClick(edit, Qt.Key.Key_Right)
        lefts.append(edit.cursorRect().left())
    assert edit.textCursor().atEnd()
    words = edit.fontMetrics().horizontalAdvance("⟨U+200B⟩")
    assert lefts[2] - lefts[1] == pytest.approx(words, abs=2)
    line = edit_with(qtbot, "b")
    alone = edit_with(qtbot, "\u200b")
    assert alone.cursorRect().height() == pytest.approx(line.cursorRect().height(), abs=3)


def test_copy_cut_and_drag_give_the_characters_themselves(qtbot: QtBot) -> None:
    text = "a\u202eb\u00a0c\nd\u200b"
    edit = edit_with(qtbot, text)
    edit.selectAll()
    edit.copy()
    assert QGuiApplication.clipboard().text() == text
    assert edit.createMimeDataFromSelection().text() == text
    cursor = edit.textCursor()
    cursor.setPosition(1)
    cursor.setPosition(2, QTextCursor.MoveMode.KeepAnchor)
    edit.setTextCursor(cursor)
    edit.cut()
    assert QGuiApplication.clipboard().text() == "\u202e" and edit.text() == text.replace("\u202e", "")
    edit.paste()
    assert edit.text() == text


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_selected_one_is_read_as_well_as_the_letters_beside_it(qtbot: QtBot, qapp: QApplication, theme: str) -> None:
    Theme(theme, 1.0).install(qapp)  # type: ignore[arg-type]
    edit = edit_with(qtbot, "\u202e")
    letters = edit_with(qtbot, "⟨U+202E⟩")

    def contrast(of: PromptEdit) -> float:
        of.activateWindow()
        of.setFocus()
        of.selectAll()
        image = of.viewport().grab(of.viewport().rect().adjusted(4, 2, -170, -60)).toImage()
        light = [image.pixelColor(x, y).lightnessF() for x in range(image.width()) for y in range(image.height())]
        return max(light) - min(light)

    assert contrast(edit) > 0.9 * contrast(letters) > 0.2


def test_those_beyond_many_stay_as_they_are_and_it_is_known(qtbot: QtBot) -> None:
    text = "ab\u200b" * MOST
    edit = edit_with(qtbot, text)
    assert edit.shows_all and edit.text() == text
    edit.set_text(text + "\u202e")
    assert not edit.shows_all and not edit.excerpted and edit.text() == text + "\u202e"
    assert raw_of(edit).count("\ufffc") == MOST
    edit.moveCursor(QTextCursor.MoveOperation.End)
    type_in(edit, "\u200bz")
    assert edit.text() == text + "\u202e\u200bz" and raw_of(edit).count("\ufffc") == MOST
    edit.selectAll()
    type_in(edit, "\u202e")
    assert edit.shows_all and edit.text() == "\u202e"


def test_a_key_asks_the_document_for_no_character_it_knows(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    real = hidden_characters._code_of

    def count(text_format: QTextFormat) -> int | None:
        asked.append(text_format)
        return real(text_format)

    edit = edit_with(qtbot, "ab\u200b" * 300)
    assert edit.text() == "ab\u200b" * 300
    monkeypatch.setattr(hidden_characters, "_code_of", count)
    type_in(edit, "xyz")
    assert edit.text() == "ab\u200b" * 300 + "xyz"
    assert len(asked) < 20
