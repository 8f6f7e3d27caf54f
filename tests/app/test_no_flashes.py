"""Filling the window opens no other one: a widget shown before it has a parent flashes up and takes the focus."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from tests.app.shell import close_window, open_window


class Shown(QObject):
    """Names of the windows that were shown while it watched."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.names.append(type(watched).__name__)
        return False


def test_filling_the_window_shows_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    qt = QApplication.instance()
    assert qt is not None
    shown = Shown()
    qt.installEventFilter(shown)
    try:
        application = open_window(tmp_path / "config", monkeypatch, qtbot)
        application.settings.update(language="zh_CN")  # every panel is made again
        panels = [dock.panel for dock in application.window.docks.values()]
        qtbot.waitUntil(lambda: not {*panels} & {dock.panel for dock in application.window.docks.values()})
        close_window(application)
    finally:
        qt.removeEventFilter(shown)
    assert set(shown.names) == {"MainWindow"}
