"""Dialogs fit their screen and their words, in text of any size; their buttons are always in sight."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QScreen, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.dialogs.error import ErrorDialog
from app.dialogs.key_sheet import KeySheet
from app.dialogs.preferences import PreferencesDialog
from app.dialogs.sheet import Sheet
from app.notify import Trouble
from app.theme import Theme
from app.widgets.form_combo import FormCombo
from app.widgets.form_spin import FormDoubleSpin, FormSpin
from tests.app.shell import close_window, open_window


def on_screen(dialog: QDialog) -> bool:
    return dialog.screen().availableGeometry().contains(dialog.geometry())


def places(within: QWidget) -> list[QRect]:
    """Where what stands directly in it is."""
    shown = [part for part in within.children() if isinstance(part, QWidget) and part.isVisible()]
    return [QRect(part.mapTo(within, QPoint()), part.size()) for part in shown]


def test_more_words_than_the_screen_has_room_for_are_scrolled_over_the_buttons(qtbot: QtBot) -> None:
    sheet = Sheet(Theme("dark"), width=400)
    qtbot.addWidget(sheet)
    for n in range(200):
        sheet.column.addWidget(QLabel(f"line {n}"))
    button = QPushButton("Close")
    sheet.foot.addWidget(button)
    sheet.show()
    qtbot.waitExposed(sheet)
    assert on_screen(sheet) and sheet.scroller.verticalScrollBar().maximum() > 0
    assert sheet.rect().contains(QRect(button.mapTo(sheet, QPoint()), button.size()))


def test_what_is_typed_into_a_sheet_goes_into_its_first_field(qtbot: QtBot) -> None:
    """Its scrolled place had the focus, and what was typed was lost."""
    sheet = Sheet(Theme("dark"), width=400)
    qtbot.addWidget(sheet)
    sheet.setWindowTitle("Open")
    hidden, field = QLineEdit(), QLineEdit()
    hidden.setEnabled(False)
    for widget in (QLabel("A path"), hidden, field):
        sheet.column.addWidget(widget)
    sheet.foot.addWidget(QPushButton("Close"))
    sheet.show()
    qtbot.waitUntil(field.hasFocus)
    assert sheet.scroller.accessibleName() == "Open"
    for key in "ABC":
        QTest.keyClick(sheet.windowHandle(), Qt.Key(ord(key)))
    assert field.text() == "abc"


def test_a_sheet_grows_with_what_it_says(qtbot: QtBot) -> None:
    sheet = Sheet(Theme("dark"), width=400)
    qtbot.addWidget(sheet)
    words = QLabel("short")
    words.setWordWrap(True)
    sheet.column.addWidget(words)
    sheet.foot.addWidget(QPushButton("Close"))
    sheet.show()
    before = sheet.size()
    words.setText("a longer sentence, with words that wrap. " * 12)
    qtbot.waitUntil(lambda: sheet.height() > before.height())
    qtbot.waitUntil(lambda: words.height() >= words.heightForWidth(words.width()))
    words.setText("short")
    qtbot.waitUntil(lambda: sheet.size() == before)


def test_preferences_fit_themselves_to_the_text_they_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot)
    try:
        application.window.registry.run("file.preferences")
        [dialog] = application.window.findChildren(PreferencesDialog)
        qtbot.wait(100)
        before = dialog.size()
        for percent in (200, 150):
            dialog.scale.setValue(percent)
            qtbot.waitUntil(lambda percent=percent: dialog.width() >= 5.6 * percent)  # type: ignore[misc]
            qtbot.wait(100)
            assert on_screen(dialog)
            shown = places(dialog.content)
            assert len(shown) > 15 and not any(a.intersects(b) for a, b in itertools.combinations(shown, 2))
            for words in dialog.content.findChildren(QLabel):
                assert words.height() >= words.heightForWidth(words.width()), words.text()
        dialog.scale.setValue(100)
        qtbot.waitUntil(lambda: dialog.size() == before)
    finally:
        close_window(application)


def test_an_error_s_details_scroll_where_the_text_is_large(qtbot: QtBot) -> None:
    theme = Theme("dark", 2.0)
    lines = "\n".join(f"line {n}" for n in range(200))
    dialog = ErrorDialog(theme, Trouble(title="It stopped", message=lines, details=lines, expanded=True))
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitExposed(dialog)
    assert on_screen(dialog)
    for button in dialog.findChildren(QPushButton):
        assert dialog.rect().contains(QRect(button.mapTo(dialog, QPoint()), button.size())), button.text()


def test_keys_stand_in_one_column_where_two_have_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot)
    try:
        columns = []
        for scale, width in ((1.0, 1400), (2.0, 1200)):
            application.settings.update(text_scale=scale)
            monkeypatch.setattr(QScreen, "availableGeometry", lambda _screen, width=width: QRect(0, 0, width, 800))
            sheet = KeySheet(application.theme, application.window.registry)
            qtbot.addWidget(sheet)
            sheet.show()
            qtbot.waitExposed(sheet)
            layout = sheet.inner.layout()
            assert layout is not None and sheet._scroll.horizontalScrollBar().maximum() == 0
            columns.append(layout.count())
            said = [each.text() for each in sheet.inner.findChildren(QLabel)]
            assert said[said.index("Z, Shift+Z") + 1] == "Zoom in, zoom out"  # a key of no command
        assert columns == [2, 1]
    finally:
        close_window(application)


@pytest.mark.parametrize("kind", [FormSpin, FormDoubleSpin, FormCombo])
def test_the_wheel_scrolls_a_dialog_and_changes_no_field_without_focus(
    qtbot: QtBot, kind: type[FormSpin | FormDoubleSpin | FormCombo]
) -> None:
    theme = Theme("dark")
    sheet, field, other = Sheet(theme), kind(theme), QPushButton("Close")
    qtbot.addWidget(sheet)
    if isinstance(field, FormCombo):
        field.addItems(["one", "two", "three"])
    sheet.column.addWidget(field)
    sheet.foot.addWidget(other)
    sheet.show()
    qtbot.waitExposed(sheet)
    state = field.currentIndex if isinstance(field, FormCombo) else field.value
    seen = []
    for owner in (other, field):
        owner.setFocus()
        qtbot.waitUntil(owner.hasFocus)
        up = 120 if isinstance(field, FormSpin | FormDoubleSpin) else -120
        at = QPointF(field.rect().center())
        event = QWheelEvent(
            at, field.mapToGlobal(at), QPoint(), QPoint(0, up), Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(field, event)
        seen.append(state())
    assert seen == [0, 1]
