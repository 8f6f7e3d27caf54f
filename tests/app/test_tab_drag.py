"""Docks dragged by their tabs and titles, with the window system's own mouse events."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.frame.docks import PanelDock
from app.main import Application
from tests.app.shell import close_window, open_window, tab_bars

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    opened = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield opened
    QTest.mouseRelease(opened.window.windowHandle(), LEFT, NONE, QPoint(1, 1))
    close_window(opened)


class Hand:
    """Holds the window by a tab or a title."""

    def __init__(self, application: Application, held: QWidget, index: int = 0) -> None:
        self._window = application.window
        place = held.tabRect(index) if isinstance(held, QTabBar) else held.rect()
        self.screen = held.mapToGlobal(place.center())
        QTest.mousePress(self._window.windowHandle(), LEFT, NONE, self._inside())

    def move(self, by: QPoint) -> None:
        self.screen += by
        QTest.mouseMove(self._window.windowHandle(), self._inside())
        QTest.qWait(5)

    def let_go(self) -> None:
        QTest.mouseRelease(self._window.windowHandle(), LEFT, NONE, self._inside())
        QTest.qWait(5)

    def _inside(self) -> QPoint:
        return self._window.mapFromGlobal(self.screen)


def test_a_tab_dragged_out_takes_its_dock_along_and_drops_it_anywhere(application: Application, qtbot: QtBot) -> None:
    window = application.window
    [bar] = tab_bars(application)
    rope, sampling = window.docks["rope"], window.docks["sampling"]
    index = [bar.tabText(i) for i in range(bar.count())].index(rope.windowTitle())
    hand = Hand(application, bar, index)
    hand.move(QPoint(12, -8))  # along the bar: its place among the others
    assert not rope.isFloating()
    for _ in range(8):
        hand.move(QPoint(0, -20))
    qtbot.waitUntil(rope.isFloating)
    assert QWidget.mouseGrabber() is rope
    hand.move(QPoint(30, -40))
    qtbot.waitUntil(lambda: rope.bar.rect().contains(rope.bar.mapFromGlobal(hand.screen)))
    target = sampling.mapToGlobal(sampling.rect().center())
    for way in (target - hand.screen, QPoint(2, 2), QPoint(-2, -2)):
        hand.move(way)
        qtbot.wait(100)
    hand.let_go()
    qtbot.waitUntil(lambda: not rope.isFloating())
    assert window.area.tabifiedDockWidgets(rope) == [sampling]
    assert QWidget.mouseGrabber() is None and QApplication.mouseButtons() == Qt.MouseButton.NoButton


@pytest.mark.parametrize("seed", range(3))
def test_any_tabs_dragged_out_one_after_another(application: Application, qtbot: QtBot, seed: int) -> None:
    """Qt's own way, docks dragged in groups, ended the process at the third or fourth."""
    chance = random.Random(seed)
    floated = set[str]()
    for _ in range(12):
        docks = application.window.docks
        if not tab_bars(application):
            application.window.reset_layout()
            qtbot.waitUntil(lambda: bool(tab_bars(application)))
        bar = chance.choice(tab_bars(application))
        hand = Hand(application, bar, chance.randrange(bar.count()))
        for _ in range(5):
            hand.move(QPoint(chance.randrange(-60, 60), chance.randrange(-90, 40)))
        hand.let_go()
        floated |= {name for name, dock in docks.items() if dock.isFloating()}
        qtbot.wait(chance.choice((1, 30, 80)))
    assert floated
    assert not any(dock.isHidden() for dock in application.window.docks.values())


def test_a_maximised_panel_is_not_dragged_by_its_title(application: Application, qtbot: QtBot) -> None:
    """It floated, and with the others brought back under the mouse Qt ended the process."""
    window = application.window
    attention = window.docks["attention"]
    attention.maximiseAsked.emit()
    qtbot.wait(50)
    hand = Hand(application, attention.bar)
    for way in (QPoint(30, 60), QPoint(40, 80), QPoint(-90, 100)):
        hand.move(way)
    hand.let_go()
    assert window.maximised is attention and not attention.isFloating()
    window.restore_maximised()
    hand = Hand(application, attention.bar)
    for way in (QPoint(30, 60), QPoint(40, 80), QPoint(-90, 100)):
        hand.move(way)
    assert attention.isFloating()
    hand.let_go()


@pytest.mark.parametrize(
    ("away", "back"), [(PanelDock.close, PanelDock.show), (PanelDock.toggle_floating, PanelDock.toggle_floating)]
)
def test_the_last_of_some_tabs_has_its_title_again(
    application: Application, qtbot: QtBot, away: Callable[[PanelDock], object], back: Callable[[PanelDock], object]
) -> None:
    """It had neither tab nor title: nothing to close, float or move it by."""
    docks = application.window.docks
    [bar] = tab_bars(application)
    names = [name for name, dock in docks.items() if dock.tabbed and name != "rope"]
    assert len(names) == bar.count() - 1
    for name in names:
        away(docks[name])
        qtbot.wait(10)
    qtbot.waitUntil(docks["rope"].bar.isVisible, timeout=5000)
    assert docks["rope"].bar.height() > 0
    back(docks[names[0]])
    qtbot.waitUntil(lambda: not docks["rope"].bar.isVisible(), timeout=5000)


@pytest.mark.parametrize("by_tab", [False, True])
def test_a_window_closed_in_the_middle_of_a_drag_lets_go_of_the_panel(
    application: Application, qtbot: QtBot, by_tab: bool
) -> None:
    """By SIGTERM or the window manager: Qt ended the process when the window went with a dock in the hand."""
    dock = application.window.docks["rope" if by_tab else "attention"]
    [bar] = tab_bars(application)
    held: QWidget = bar if by_tab else dock.bar
    index = [bar.tabText(i) for i in range(bar.count())].index(dock.windowTitle()) if by_tab else 0
    hand = Hand(application, held, index)
    for _ in range(8):
        hand.move(QPoint(30, -30 if by_tab else 25))
    qtbot.waitUntil(dock.isFloating)
    assert QWidget.mouseGrabber() is dock
    application.window.close()
    assert QWidget.mouseGrabber() is None
