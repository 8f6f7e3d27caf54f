"""A path in a line that is too short for it is cut in words that say so, and whole where it is written."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication, QLineEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.path_edit import PathEdit

PATH = "/home/someone/with a long name/Documents/Decoderscope"


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    theme = Theme("dark")
    theme.install(qapp)
    return theme


def test_a_long_path_has_an_ellipsis_and_its_both_ends_until_it_is_written_in(qtbot: QtBot, theme: Theme) -> None:
    del theme
    window, path, other = QWidget(), PathEdit(PATH), QLineEdit()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    column.addWidget(path)
    column.addWidget(other)
    window.resize(260, 90)
    window.show()
    window.activateWindow()
    other.setFocus()
    qtbot.waitUntil(other.hasFocus)
    shown = path.shown()
    assert shown.startswith("/home") and "…" in shown and shown.endswith("scope")
    assert path.fontMetrics().horizontalAdvance(shown) <= path.width() and path.toolTip() == PATH
    plain = QLineEdit(PATH)
    plain.setFixedSize(path.size())
    qtbot.addWidget(plain)
    assert path.grab().toImage() != plain.grab().toImage()  # Qt's own begins in the middle of a letter, or ends there
    path.setFocus()
    qtbot.waitUntil(path.hasFocus)
    assert path.shown() == PATH
    other.setFocus()
    path.setText("/tmp")
    assert path.shown() == "/tmp"
