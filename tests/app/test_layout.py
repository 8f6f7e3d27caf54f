"""The docks' places: what Qt leaves of earlier ones, and when the standard layout is in force."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest
from PySide6.QtCore import QEventLoop, QRect, Qt, QTimer
from PySide6.QtWidgets import QLabel, QWidgetItem
from pytestqt.qtbot import QtBot
from shiboken6.Shiboken import getAllValidWrappers

from app.frame import pages
from app.frame.docks import PanelDock
from app.frame.title_bar import LEAST_ALONE
from app.main import Application
from app.panels.lens import LensPanel
from app.panels.timeline import TimelinePanel
from tests.app.shell import close_window, open_window, tab_bars


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    opened = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield opened
    close_window(opened)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_no_tab_bar_of_an_earlier_layout_is_left_in_sight(application: Application, qtbot: QtBot, scale: float) -> None:
    """Qt takes one away when control is back in the event loop it was given up in, which another may run inside."""
    window, seen = application.window, list[list[QRect]]()
    application.settings.update(text_scale=scale)
    window.resize(1000, 700)
    qtbot.wait(300)

    def again_and_again() -> None:
        for _ in range(4):
            window.docks["rope"].raise_()
            window.reset_layout()
            loop = QEventLoop()
            QTimer.singleShot(200, loop, loop.quit)
            loop.exec()
            seen.append([bar.geometry() for bar in tab_bars(application)])
        outer.quit()

    outer = QEventLoop()
    QTimer.singleShot(0, outer, again_and_again)
    outer.exec()
    assert len(seen) == 4
    for bars in seen:
        assert len(bars) == (2 if scale == 2.0 else 1)
        assert not any(a.intersects(b) for a, b in combinations(bars, 2))


@pytest.mark.parametrize("name", ["prompt", "timeline", "attention", "sampling", "kv", "model"])
def test_a_panel_that_floated_and_is_back_in_its_place_leaves_the_standard_layout(
    application: Application, qtbot: QtBot, name: str
) -> None:
    """It was the person's own from then on: at 1000 x 700 its row below had no height, large text's sizes stayed."""
    window = application.window
    qtbot.wait(300)
    sizes = {dock: dock.size() for dock in window.docks.values() if not dock.visibleRegion().isEmpty()}
    dock = window.docks[name]
    dock.toggle_floating()
    qtbot.wait(50)
    assert not window.standard.in_force
    dock.toggle_floating()
    qtbot.waitUntil(lambda: window.standard.in_force)
    assert window.layout_text() == ""
    window.resize(1000, 700)
    qtbot.waitUntil(lambda: len(window.area.tabifiedDockWidgets(window.docks["attention"])) == 6)
    application.settings.update(text_scale=2.0)
    qtbot.wait(300)
    application.settings.update(text_scale=1.0)
    window.resize(1400, 900)
    qtbot.waitUntil(lambda: not window.docks["attention"].tabbed)
    shown = [each for each in sizes if each is not dock and each.panel.area != "bottom"]
    qtbot.waitUntil(lambda: all((each.size() - sizes[each]).isNull() for each in shown))


def test_a_panel_docked_elsewhere_and_sizes_of_ones_own_stay(application: Application, qtbot: QtBot) -> None:
    window = application.window
    qtbot.wait(300)
    timeline, lens = window.docks["timeline"], window.docks["lens"]
    moves: tuple[Callable[[], object], ...] = (
        lambda: window.area.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, timeline),
        lambda: window.area.splitDockWidget(window.docks["sampling"], timeline, Qt.Orientation.Vertical),
        lambda: window.area.tabifyDockWidget(window.docks["prompt"], timeline),
    )
    for move in moves:
        timeline.toggle_floating()
        move()
        timeline.setFloating(False)
        qtbot.wait(300)
        assert not window.standard.in_force and window.layout_text()
        window.reset_layout()
        qtbot.wait(200)
        assert window.standard.in_force
    window.area.separatorMoved.emit()
    lens.toggle_floating()
    lens.toggle_floating()
    qtbot.wait(300)
    assert not window.standard.in_force and window.layout_text()


def test_the_standard_layout_follows_what_the_window_became_while_a_panel_had_it(
    application: Application, qtbot: QtBot
) -> None:
    window = application.window
    qtbot.wait(300)
    window.toggle_maximised(window.docks["kv"])
    window.resize(1000, 700)
    qtbot.wait(300)
    window.toggle_maximised(window.docks["kv"])
    qtbot.waitUntil(lambda: len(window.area.tabifiedDockWidgets(window.docks["attention"])) == 6)


def test_a_title_has_the_room_of_buttons_that_are_out_of_sight(application: Application, qtbot: QtBot) -> None:
    """Of a panel that had been maximised it read "Sampli…" with 160 px free."""
    window, dock = application.window, application.window.docks["sampling"]
    application.settings.update(text_scale=2.0)
    window.resize(1000, 700)
    qtbot.wait(300)
    width = dock.bar.label.width()
    for _ in range(2):
        window.toggle_maximised(dock)
        qtbot.wait(200)
    qtbot.waitUntil(lambda: dock.bar.label.width() == width)
    assert dock.bar.label.fontMetrics().horizontalAdvance(dock.bar.label.text()) <= width


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_choices_without_a_model_stand_beside_or_below_one_another_with_whole_words(
    application: Application, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """They lay over one another, and the last ran off the window; a change of text size cut a word."""
    window, ctx = application.window, application.ctx
    assert ctx is not None
    monkeypatch.setattr(
        pages, "default_words", lambda _: "SmolLM2-135M-Instruct, Apache-2.0: a download of 93 MB, once."
    )
    window.resize(1400, 900)
    ctx.session.modelAbsent.emit("")
    page = window._absent
    assert page is not None
    for scale, size in itertools.product((1.0, 1.5, 2.0), ((1400, 900), (1000, 700), (720, 480))):
        application.settings.update(text_scale=scale, language=language)
        window.resize(*size)
        if scale == 2.0:
            ctx.session.modelAbsent.emit("")  # made in it, not brought to it
        qtbot.wait(150)
        page = window._absent
        assert page is not None
        places = [QRect(choice.mapTo(page, choice.rect().topLeft()), choice.size()) for choice in page.choices]
        assert not any(a.intersects(b) for a, b in combinations(places, 2))
        assert all(place.left() >= 0 and place.right() < page.width() for place in places)
        assert all(choice.width() >= choice.least_width() for choice in page.choices)
        row = places[0].top() == places[1].top()
        assert row or (scale, size) == (2.0, (720, 480))
        middle = (places[0].left() + places[-1].right()) / 2
        assert abs(middle - page.rect().center().x()) < 12
        for choice in page.choices:
            for label in choice.findChildren(QLabel):
                assert label.height() >= label.heightForWidth(label.width())


def test_what_an_empty_panel_says_is_in_the_middle_of_what_is_in_sight_of_it(
    application: Application, qtbot: QtBot
) -> None:
    """In large text in a small window Sampling was blank: its sentence was in the middle of what is scrolled."""
    window = application.window
    application.settings.update(text_scale=2.0)
    window.resize(1000, 700)
    qtbot.wait(300)
    scroller, panel = window.docks["sampling"].scroller, window.docks["sampling"].panel
    (empty,) = panel.findChildren(pages.EmptyState)
    bar, view = scroller.verticalScrollBar(), scroller.viewport()
    assert bar.maximum() > view.height() / 2
    for value in (0, bar.maximum()):
        bar.setValue(value)
        for words in (empty.picture, empty.hint):
            place = QRect(words.mapTo(view, words.rect().topLeft()), words.size())
            assert view.rect().contains(place)
        middle = empty.mapTo(view, empty.rect().center()).y()
        assert abs(middle - view.rect().center().y()) <= 8


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_panel_alone_in_a_window_has_its_title_whole_however_small_that_is(
    application: Application, qtbot: QtBot, scale: float
) -> None:
    application.settings.update(text_scale=scale)
    qtbot.wait(200)
    least = application.theme.px(LEAST_ALONE)

    def whole(dock: PanelDock) -> bool:
        label = dock.bar.label
        return dock.width() >= least and label.width() >= label.fontMetrics().horizontalAdvance(label.text())

    for dock in application.window.docks.values():
        dock.setFloating(True)
        qtbot.waitUntil(dock.isVisible)
        dock.resize(10, 10)
        qtbot.waitUntil(partial(whole, dock))
        dock.setFloating(False)
        qtbot.waitUntil(partial(lambda bar: bar.minimumSizeHint().width() == 60, dock.bar))  # docked it gives way


def test_a_panel_made_in_another_language_out_of_sight_is_laid_out(application: Application, qtbot: QtBot) -> None:
    """Its note of what was stopped asked a wrapper of the view it lies over, which was gone, for that view's width."""
    window, ctx = application.window, application.ctx
    assert ctx is not None
    ctx.session.modelAbsent.emit("")
    window.resize(720, 480)
    application.settings.update(language="zh_CN")
    qtbot.wait(1200)
    window.resize(1000, 700)
    window.grab()
    for dock in window.docks.values():
        dock.grab()


def test_no_place_is_kept_that_a_widget_leaves(application: Application, qtbot: QtBot) -> None:
    """PySide keeps a wrapper of each place in a layout that is filled before it is added to another one. Once its
    widget has left it, whatever C++ makes at that address is taken for a place in a layout."""
    assert application.ctx is not None
    lens, timeline = LensPanel(application.ctx), application.window.docks["timeline"].panel
    qtbot.addWidget(lens)
    assert isinstance(timeline, TimelinePanel)
    timeline._place_tree(low=True)
    for shared in (True, False, True):
        timeline._place_line(shared=shared)
    kept = [each.widget() for each in getAllValidWrappers() if isinstance(each, QWidgetItem)]
    assert kept and not any(widget in (lens.readout, timeline.tree) for widget in kept)


def test_the_menu_brings_a_panel_to_the_front_and_closes_the_one_there(application: Application, qtbot: QtBot) -> None:
    """One behind another tab was closed, one that was closed came back behind the others."""
    dock, other = application.window.docks["lens"], application.window.docks["kv"]
    other.raise_()
    qtbot.waitUntil(other.panel.seen)
    assert not dock.panel.seen() and not dock.isHidden()
    dock.toggleViewAction().trigger()
    qtbot.waitUntil(dock.panel.seen)
    qtbot.wait(50)
    dock.toggleViewAction().trigger()
    assert dock.isHidden()
    qtbot.wait(50)
    dock.toggleViewAction().trigger()
    qtbot.waitUntil(dock.panel.seen)
    qtbot.wait(50)
    dock.toggleViewAction().trigger()
    assert dock.isHidden()
