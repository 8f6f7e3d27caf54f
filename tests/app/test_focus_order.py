"""The Tab key leads through what can be seen, panel by panel, and to nothing behind another tab."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.frame.docks import PanelDock
from app.main import Application
from tests.app.shell import close_window, window_with
from tests.model.checkpoint import files


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    source = files.folder(tmp_path / "model")
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(source))
    assert made.ctx is not None
    session = made.ctx.session
    qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=20_000)
    yield made
    close_window(made)


def dock_of(widget: QWidget) -> str:
    around: QWidget | None = widget
    while around is not None:
        if isinstance(around, PanelDock):
            return around.panel.panel_id
        around = around.parentWidget()
    return ""


def way(application: Application, qtbot: QtBot, key: Qt.Key) -> list[QWidget]:
    """Once around from the prompt's box."""
    window, start = application.window, application.window.docks["prompt"].panel.edit  # type: ignore[attr-defined]
    start.setFocus()
    qtbot.waitUntil(start.hasFocus)
    stops = [start]
    for _ in range(400):
        QTest.keyClick(window.windowHandle(), key)
        focus = QApplication.focusWidget()
        assert focus is not None
        if focus is start:
            return stops
        assert focus not in stops, "it leads round and round without the prompt"
        assert not focus.visibleRegion().isEmpty(), f"{focus} of {dock_of(focus)} is not in sight"
        stops.append(focus)
    raise AssertionError("it does not come back")


@pytest.mark.parametrize("front", ["kv", "rope", "block_walk"])
def test_tab_leads_through_what_can_be_seen_panel_by_panel(live: Application, qtbot: QtBot, front: str) -> None:
    docks = live.window.docks
    for name in ("rope", "feed_forward", "block_walk", "lens", "model", front):  # all have been seen
        docks[name].raise_()
        qtbot.waitUntil(docks[name].panel.seen)
        qtbot.wait(60)
    stops = way(live, qtbot, Qt.Key.Key_Tab)
    parts = [name for name, _ in itertools.groupby(dock_of(stop) for stop in stops) if name]
    assert parts[0] == parts[-1] == "prompt" or parts.count("prompt") == 1
    assert set(parts) == {"prompt", "timeline", "attention", "sampling", front}
    assert len(parts) - (parts[0] == parts[-1]) == 5, f"no panel is left and come back to: {parts}"
    back = way(live, qtbot, Qt.Key.Key_Backtab)
    assert [stops[0], *reversed(stops[1:])] == back
