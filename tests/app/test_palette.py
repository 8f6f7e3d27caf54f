"""The palette of commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app import i18n
from app.main import Application
from app.palette import CommandPalette, match
from app.panels import PANELS
from tests.app.shell import close_window, dialogs, open_window


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    opened = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield opened
    close_window(opened)


def test_the_palette_finds_and_runs(application: Application, qtbot: QtBot) -> None:
    application.commands.run("view.palette")
    (palette,) = dialogs("command-palette")
    assert isinstance(palette, CommandPalette)
    QTest.keyClicks(palette.field, "light")
    QTest.keyClick(palette.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not dialogs("command-palette"))
    assert application.settings.values.theme == "light"
    application.commands.run("view.theme.dark")


def test_the_palette_has_every_entry_once(application: Application) -> None:
    palette = CommandPalette(application.theme, application.window.registry, application.window)
    said = [palette.list.item(row).text() for row in range(palette.list.count())]
    assert sorted(said) == sorted(set(said))
    assert {"Theme: As the system", "Language: As the system", "Theme: Light"} <= set(said)
    palette.close()


def test_every_panel_can_be_exported_from_the_palette(application: Application, qtbot: QtBot) -> None:
    window = application.window
    palette = CommandPalette(application.theme, window.registry, window)
    qtbot.addWidget(palette)
    palette.field.setText("export")
    found = {palette.list.item(i).data(Qt.ItemDataRole.UserRole) for i in range(palette.list.count())}
    for panel_id, dock in window.docks.items():
        command = window.registry[f"{panel_id}.export"]
        assert command.id in found
        assert command.run == dock.panel.export
        assert not command.enabled()  # nothing is open yet
    i18n.set_language("zh_CN")
    titles = [window.registry[f"{panel_id}.export"].label for panel_id in window.docks]
    assert all("导出" in title for title in titles)
    assert len(set(titles)) == len(PANELS)


def test_the_palette_matches_words_before_letters(application: Application) -> None:
    commands = application.commands
    assert match("", commands["help.keys"]) is not None
    assert match("zzz", commands["help.keys"]) is None
    assert match("larger", commands["view.text_larger"]) < match("lrgr", commands["view.text_larger"])  # type: ignore[operator]
