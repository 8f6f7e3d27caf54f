"""A panel behind another tab draws nothing and asks nothing until its tab is chosen; then it catches up once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QTabBar
from pytestqt.qtbot import QtBot

from app.main import Application
from app.panels.base import Changes, Panel
from app.session import Topic
from tests.app.shell import close_window, open_window


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = open_window(tmp_path / "config", monkeypatch, qtbot)
    made.window.resize(1400, 900)
    yield made
    close_window(made)


def test_a_panel_behind_another_tab_costs_nothing(
    application: Application, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    window = application.window
    assert application.ctx is not None
    docks = {name: dock for name, dock in window.docks.items() if dock.tabbed}
    assert len(docks) >= 2
    qtbot.waitUntil(lambda: any(dock.panel.seen() for dock in docks.values()))
    front = next(name for name, dock in docks.items() if dock.panel.seen())
    hidden = {name: dock.panel for name, dock in docks.items() if name != front}
    assert not any(panel.seen() for panel in hidden.values())
    refreshed: list[str] = []
    for dock in docks.values():

        def refresh(_changes: Changes, panel: Panel = dock.panel) -> None:
            refreshed.append(panel.panel_id)

        monkeypatch.setattr(dock.panel, "refresh", refresh)
    for _ in range(3):
        application.ctx.session.changed.emit(Topic.RUN)
        qtbot.wait(60)
    assert set(refreshed) == {docks[front].panel.panel_id}
    name, panel = next(iter(hidden.items()))
    bar = next(bar for bar in window.findChildren(QTabBar) if bar.count() >= len(docks))
    titles = [bar.tabText(index) for index in range(bar.count())]
    bar.setCurrentIndex(titles.index(docks[name].windowTitle()))
    qtbot.waitUntil(lambda: panel.panel_id in refreshed)
    qtbot.wait(60)
    assert refreshed.count(panel.panel_id) == 1


def test_a_table_that_is_asked_for_is_brought_into_sight(application: Application, qtbot: QtBot) -> None:
    """The panel behind another tab was changed, and nothing was seen to happen."""
    window = application.window
    qtbot.waitUntil(window.docks["kv"].panel.seen)
    for name in ("rope", "feed_forward", "kv"):
        (command,) = (each for each in application.commands if each.id == f"{name}.table")
        command.run()
        qtbot.waitUntil(window.docks[name].panel.seen)
