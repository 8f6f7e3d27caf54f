"""The box a prompt is typed into: whole lines at any size, a megabyte without holding the window."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, QRect, Qt, QTimer
from PySide6.QtGui import QDrag, QGuiApplication, QMouseEvent, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.widgets.prompt_edit import MAX_PASTE, PromptEdit

LEFT, NO_KEY = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
TEXT = "The animal didn't cross the street because it was too tired, and so it stayed where it was. " * 3


@pytest.mark.parametrize("height", range(40, 90, 7))
@pytest.mark.parametrize("scrolled", [0, 1, 3])
def test_no_line_is_cut_at_the_bottom(qtbot: QtBot, height: int, scrolled: int) -> None:
    edit = PromptEdit()
    qtbot.addWidget(edit)
    edit.set_text(TEXT)
    edit.resize(220, height)
    edit.show()
    qtbot.waitExposed(edit)
    edit.verticalScrollBar().setValue(scrolled)
    assert edit.verticalScrollBar().value() == scrolled
    viewport, bottom = edit.viewport(), edit.whole_bottom()
    assert 0 < bottom <= viewport.height()
    picture = viewport.grab().toImage()

    def inks(area: QRect) -> int:
        cut = picture.copy(area)
        return len({cut.pixel(x, y) for x in range(cut.width()) for y in range(cut.height())})

    assert inks(QRect(0, 0, viewport.width(), bottom)) > 1
    if bottom < viewport.height():
        assert inks(QRect(0, bottom, viewport.width(), viewport.height() - bottom)) == 1


def test_a_text_that_fits_is_painted_to_the_end(qtbot: QtBot) -> None:
    edit = PromptEdit()
    qtbot.addWidget(edit)
    edit.set_text("one line")
    edit.resize(220, 60)
    edit.show()
    qtbot.waitExposed(edit)
    assert edit.whole_bottom() == edit.viewport().height()


# --- texts too long to lay out at every key


def edit_with(qtbot: QtBot, text: str = "") -> PromptEdit:
    edit = PromptEdit()
    qtbot.addWidget(edit)
    edit.set_text(text)
    edit.resize(260, 90)
    edit.show()
    qtbot.waitExposed(edit)
    return edit


def paste(edit: PromptEdit, text: str) -> None:
    mime = QMimeData()
    mime.setText(text)
    edit.insertFromMimeData(mime)


@pytest.mark.parametrize("text", ["word " * 33_000, "你好" * 14_000, "a line\n" * 70_000, "👩‍👩‍👧 " * 4_900])
def test_what_lays_out_quickly_can_be_edited(qtbot: QtBot, text: str) -> None:
    edit = edit_with(qtbot, text)
    assert not edit.excerpted and edit.text() == text


@pytest.mark.parametrize(
    "text", ["word " * 200_000, "x" * 1_000_000, "你好" * 50_000, "👩‍👩‍👧 " * 10_000, "a line\n" * 100_000]
)
def test_a_text_too_long_to_edit_is_kept_whole_and_shown_by_its_ends(qtbot: QtBot, text: str) -> None:
    edit = edit_with(qtbot, "before")
    edit.selectAll()
    with qtbot.waitSignal(edit.typed):
        paste(edit, text)
    assert edit.excerpted and edit.text() == text[:MAX_PASTE]
    shown = edit.toPlainText()
    assert len(shown) < 1_000 and f"{len(text[:MAX_PASTE]):,}" in shown
    assert text[:300] in shown and text[-100:] in shown
    QTest.keyClick(edit, Qt.Key.Key_A)
    assert edit.text() == text  # nothing is changed inside
    edit.selectAll()
    assert edit.createMimeDataFromSelection().text() == text


def test_an_excerpt_is_cleared_replaced_and_taken_back(qtbot: QtBot) -> None:
    long = "word " * 100_000
    edit = edit_with(qtbot, "before")
    edit.moveCursor(QTextCursor.MoveOperation.End)
    paste(edit, long)
    assert edit.text() == "before" + long  # pasted where the caret was
    QTest.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert not edit.excerpted and edit.text() == "before"
    QTest.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert edit.text() == "before" + long  # and there again
    QTest.keyClick(edit, Qt.Key.Key_Delete)
    assert edit.text() == edit.toPlainText() == "" and not edit.isReadOnly()
    QTest.keyClicks(edit, "hi")
    assert edit.text() == "hi"
    for _ in range(3):  # through the document's own undo, then to what was kept, never to an excerpt as a text
        QTest.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        assert edit.text() in {"", "before" + long}
    assert edit.text() in {"", "before" + long}
    edit.set_text(long)
    QGuiApplication.clipboard().setText("short")
    QTest.keyClick(edit, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert edit.text() == "short" and not edit.excerpted


def test_the_character_under_the_mouse(qtbot: QtBot) -> None:
    edit = edit_with(qtbot, "ab 😀\nl\u202east")
    seen: list[int] = []
    edit.pointedAt.connect(seen.append)

    def middle_of(unit: int) -> QPoint:
        cursor = QTextCursor(edit.document())
        cursor.setPosition(unit)
        here = edit.cursorRect(cursor)
        cursor.movePosition(QTextCursor.MoveOperation.NextCharacter)
        return QPoint((here.left() + edit.cursorRect(cursor).left()) // 2, here.center().y())

    def move_to(point: QPoint) -> None:
        where = QPointF(point)
        none, keys = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
        at = QPointF(edit.viewport().mapToGlobal(point))
        QApplication.sendEvent(edit.viewport(), QMouseEvent(QEvent.Type.MouseMove, where, at, none, none, keys))

    for unit in (0, 1, 3, 6, 7, 8, 10):
        move_to(middle_of(unit))
        assert seen[-1] == unit
    move_to(QPoint(edit.viewport().width() - 3, edit.viewport().height() - 3))
    assert seen[-1] == -1


# --- every character as it is


@pytest.mark.parametrize("text", ["a\u00a0b", "a\u2028b", "tab\there", "\x00\x01", "e\u0301", "\u202eabc\u202c"])
def test_no_character_changes_when_another_is_typed(qtbot: QtBot, text: str) -> None:
    edit = edit_with(qtbot, text)
    told: list[str] = []
    edit.told.connect(told.append)
    edit.moveCursor(QTextCursor.MoveOperation.End)
    QTest.keyClick(edit, Qt.Key.Key_X)
    assert edit.text() == text + "x" and not told


def test_what_the_box_cannot_hold_is_kept_until_it_is_edited_and_then_said(qtbot: QtBot) -> None:
    edit = edit_with(qtbot, "a\r\nb\u2029c\ufdd0")
    assert edit.text() == "a\r\nb\u2029c\ufdd0"
    told: list[str] = []
    edit.told.connect(told.append)
    edit.moveCursor(QTextCursor.MoveOperation.End)
    QTest.keyClick(edit, Qt.Key.Key_X)
    assert edit.text().replace("\n\n", "\n") == "a\nb\nc\nx" and len(told) == 1 and "newlines" in told[0]
    paste(edit, "1\r2")
    assert edit.text().endswith("x1\n2") and len(told) == 2


def test_a_paste_that_is_cut_is_said(qtbot: QtBot) -> None:
    edit = edit_with(qtbot)
    with qtbot.waitSignal(edit.told) as said:
        paste(edit, "ab" * 600_000)
    assert "1,000,000 of 1,200,000" in said.args[0] and len(edit.text()) == MAX_PASTE


def test_shift_enter_is_a_newline_like_any_other(qtbot: QtBot) -> None:
    edit = edit_with(qtbot, "a")
    edit.moveCursor(QTextCursor.MoveOperation.End)
    QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert edit.text() == "a\n"


@pytest.mark.parametrize("text", ["a text that was set", "", "zwj \u200d", "e\u0301", "a\u2028b\n", "中" * 3000])
def test_undo_takes_back_what_was_typed_then_the_paste_then_the_text_that_was_set(qtbot: QtBot, text: str) -> None:
    edit = edit_with(qtbot, "")
    edit.set_text("before")
    edit.set_text(text)
    held = edit._held()
    edit.moveCursor(QTextCursor.MoveOperation.End)
    paste(edit, " pasted")
    assert edit.text() == f"{held} pasted" and edit.textCursor().atEnd()
    QTest.keyClicks(edit, "typed")
    assert edit.text() == f"{held} pastedtyped"
    seen = []
    for _ in range(4):
        QTest.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
        seen.append(edit._held())
    assert seen == [f"{held} pasted", held, "before", ""]


@pytest.fixture
def selected(qtbot: QtBot) -> PromptEdit:
    """A box whose whole text is selected."""
    edit = PromptEdit()
    qtbot.addWidget(edit)
    edit.resize(300, 80)
    edit.show()
    edit.setPlainText("The animal did")
    edit.selectAll()
    return edit


def test_selected_text_is_not_dragged_away(selected: PromptEdit, qtbot: QtBot) -> None:
    """Let go over another field it was gone from the prompt. A press on it begins another selection instead."""
    view, at = selected.viewport(), selected.cursorRect().center() - QPoint(30, 0)
    dragged: list[QDrag] = []
    watch = QTimer(selected, interval=20)
    watch.timeout.connect(lambda: dragged.extend(view.findChildren(QDrag)))
    watch.timeout.connect(QDrag.cancel)  # a drag has a loop of its own
    watch.start()
    QTest.mousePress(view, LEFT, NO_KEY, at)
    for x in range(10, 60, 10):
        QTest.mouseMove(view, at - QPoint(x, 0))
        qtbot.wait(30)
    QTest.mouseRelease(view, LEFT, NO_KEY, at - QPoint(50, 0))
    assert not dragged and selected.text() == "The animal did"
    assert 0 < len(selected.textCursor().selectedText()) < len(selected.text())


def test_three_clicks_select_the_line(selected: PromptEdit) -> None:
    view, at = selected.viewport(), selected.cursorRect().center() - QPoint(30, 0)
    QTest.mouseDClick(view, LEFT, NO_KEY, at)
    QTest.mouseClick(view, LEFT, NO_KEY, at)
    assert selected.textCursor().selectedText() == selected.text()
