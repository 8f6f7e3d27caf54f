"""Nothing is cut at the smallest window: tabs, panels, the prompt's two lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QMainWindow, QTabBar, QToolButton
from pytestqt.qtbot import QtBot

from app.frame.dock_tabs import TAB_INSET, TabFrames, TabTools
from app.main import Application
from app.panels.prompt import PromptPanel
from app.theme import Theme
from tests.app.shell import close_window, open_window

SMALL, USUAL = (1000, 700), (1400, 900)


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    opened = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield opened
    close_window(opened)


def sized(application: Application, qtbot: QtBot, size: tuple[int, int]) -> None:
    application.window.resize(*size)
    qtbot.waitUntil(lambda: application.window.docks["attention"].tabbed == (size == SMALL))
    qtbot.wait(300)


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_every_tab_can_be_read(application: Application, qtbot: QtBot, size: tuple[int, int]) -> None:
    sized(application, qtbot, size)
    [bar] = [bar for bar in application.window.area.findChildren(QTabBar) if bar.isVisible()]
    assert bar.count() == (7 if size == SMALL else 6)
    for index in range(bar.count()):
        tab = bar.tabRect(index)
        assert bar.rect().contains(tab), bar.tabText(index)
        assert tab.width() >= bar.fontMetrics().horizontalAdvance(bar.tabText(index)) + 8
    assert bool(bar.property("tight")) == (size == SMALL)


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_no_panel_reaches_over_its_neighbour(application: Application, qtbot: QtBot, size: tuple[int, int]) -> None:
    sized(application, qtbot, size)
    window = application.window
    for name in ("kv", "rope", "feed_forward", "block_walk", "lens", "model"):
        window.docks[name].raise_()
        qtbot.wait(60)
        dock = window.docks[name]
        assert dock.panel.width() <= dock.width()
        frames = {
            key: QRect(other.mapTo(window, QPoint()), other.size())
            for key, other in window.docks.items()
            if key in {name, "prompt", "timeline", "sampling"}
        }
        mine = frames.pop(name)
        assert not [key for key, frame in frames.items() if frame.intersects(mine)], name


@pytest.mark.parametrize("size", [SMALL, USUAL])
def test_two_lines_of_prompt_need_no_scroll_bar(application: Application, qtbot: QtBot, size: tuple[int, int]) -> None:
    sized(application, qtbot, size)
    panel = application.window.docks["prompt"].panel
    assert isinstance(panel, PromptPanel)
    panel.edit.set_text("The animal didn't cross the street because it was")
    block = panel.edit.document().firstBlock()
    qtbot.waitUntil(lambda: block.layout().lineCount() == 2)
    assert panel.edit.verticalScrollBar().maximum() == 0


@pytest.mark.parametrize("scale", [1.25, 2.0])
def test_tabs_without_room_are_whole_or_in_the_menu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot, scale: float
) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot, text_scale=scale)
    try:
        window = application.window
        window.resize(1000, 700)
        qtbot.waitUntil(lambda: window.docks["attention"].tabbed)
        for name in ("model", "attention", "lens"):
            window.docks[name].raise_()
            qtbot.wait(120)
            [bar] = [bar for bar in window.area.findChildren(QTabBar) if bar.isVisible() and bar.count() > 2]
            assert bar.accessibleName() == "Panels"
            tools = bar.findChild(TabTools)
            assert tools is not None and tools.crowded
            assert tools.isVisible() and tools.more.isVisible() and bar.rect().contains(tools.geometry())
            assert tools.more.width() == round(24 * scale)
            assert not any(tool.isVisible() for tool in bar.children() if isinstance(tool, QToolButton))
            shown = [index for index in range(bar.count()) if bar.isTabVisible(index)]
            assert bar.currentIndex() in shown and len(shown) > 1
            assert bar.tabText(bar.currentIndex()) == window.docks[name].windowTitle()
            rects = [bar.tabRect(index) for index in shown] + [tools.geometry()]
            assert all(bar.rect().contains(rect) for rect in rects)
            assert not any(a.intersects(b) for a, b in itertools.combinations(rects, 2))
            for index in shown:
                assert bar.tabRect(index).width() >= bar.fontMetrics().horizontalAdvance(bar.tabText(index)) + 8
        assert tools is not None
        titles = [bar.tabText(index) for index in range(bar.count())]
        tabs = [action for action in tools.menu().actions() if action.text() in titles]
        assert [action.text() for action in tabs] == titles
        assert [action.isChecked() for action in tabs].index(True) == bar.currentIndex()
        tabs[titles.index("RoPE")].trigger()
        qtbot.waitUntil(lambda: not window.docks["rope"].visibleRegion().isEmpty())
        assert tools.isVisible() and tools.more.isVisible()
    finally:
        close_window(application)


def test_the_first_tab_s_text_is_not_at_the_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    """Also where a single tab has room, and after that: with none in sight for a moment Qt had no first tab."""
    application = open_window(tmp_path / "config", monkeypatch, qtbot, text_scale=2.0)
    try:
        window = application.window
        window.resize(1000, 700)
        qtbot.waitUntil(lambda: window.docks["attention"].tabbed)
        alone = set()
        for name in ("block_walk", "attention", "feed_forward", "rope"):
            window.docks[name].raise_()
            qtbot.wait(120)
            [bar] = [bar for bar in window.area.findChildren(QTabBar) if bar.isVisible() and bar.count() > 2]
            first, *others = [index for index in range(bar.count()) if bar.isTabVisible(index)]
            alone.add(not others)
            for index in (first, *others):
                text = bar.fontMetrics().horizontalAdvance(bar.tabText(index))
                room = bar.tabRect(index).width() - text - (TAB_INSET if index == first else 0)
                assert 8 <= room <= 12, (name, bar.tabText(index))
        assert alone == {True, False}
    finally:
        close_window(application)


def test_the_tools_of_a_tab_bar_go_with_it(qtbot: QtBot) -> None:
    """They were kept until the next bar was there."""
    window = QMainWindow()
    qtbot.addWidget(window)
    frames, bar = TabFrames(window, Theme("dark")), QTabBar(window)
    frames.adopt()
    assert list(frames._tools) == [bar]
    bar.deleteLater()
    qtbot.waitUntil(lambda: not frames._tools)
