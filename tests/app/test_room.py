"""Nothing of the window lies outside it or over anything else, in any size of text, however both came about."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.frame.docks import fitted
from app.main import Application
from app.theme import Theme
from app.widgets.mapping import Linear
from app.widgets.slider_row import SliderRow
from tests.app.shell import close_window, open_window

Step = tuple[int, int, float]
"""Width and height of the window, size of the text; the text's comes first."""


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    opened = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield opened
    close_window(opened)


def frame(widget: QWidget) -> QRect:
    return QRect(widget.mapTo(widget.window(), QPoint()), widget.size())


def misplaced(application: Application) -> list[str]:
    """What lies outside the window, or over another dock."""
    window = application.window
    parts = [child for bar in (window.run_bar, window.status) for child in (bar, *bar.findChildren(QWidget))]
    parts = [part for part in parts if part.isVisible() and not part.size().isEmpty()]
    found = [f"outside: {type(part).__name__} {part.accessibleName()}" for part in parts
             if not window.rect().contains(frame(part))]  # fmt: skip
    return found + misplaced_docks(application)


def misplaced_docks(application: Application) -> list[str]:
    window = application.window
    docks = {name: dock for name, dock in window.docks.items() if not dock.visibleRegion().isEmpty()}
    inside = frame(window.area)
    found = [f"outside: {name}" for name, dock in docks.items() if not inside.contains(frame(dock))]
    for a, b in itertools.combinations(docks, 2):
        if frame(docks[a]).intersects(frame(docks[b])):
            found.append(f"{a} over {b}")
    return found


def go(application: Application, qtbot: QtBot, step: Step) -> None:
    width, height, scale = step
    if scale != application.theme.text_scale:
        application.settings.update(text_scale=scale)
        qtbot.wait(250)
    if application.window.size().toTuple() != (width, height):
        application.window.resize(width, height)
    qtbot.wait(550)


ORDERS: list[list[Step]] = [
    [(1400, 900, 1.0), (1400, 900, 1.25), (1000, 700, 1.25), (1000, 700, 1.0)],
    [(1000, 700, 1.0), (1000, 700, 2.0), (1920, 1080, 2.0), (1000, 700, 2.0), (1400, 900, 1.0)],
    [(1400, 900, 2.0), (1000, 700, 1.5), (1400, 900, 1.5), (1000, 700, 1.75), (720, 480, 2.0)],
]


@pytest.mark.parametrize("order", ORDERS)
def test_everything_is_inside_and_apart_in_any_order_of_size_and_text(
    application: Application, qtbot: QtBot, order: list[Step]
) -> None:
    for step in order:
        go(application, qtbot, step)
        qtbot.waitUntil(lambda: not misplaced(application), timeout=1500)
        for name in ("attention", "block_walk", "lens", "model"):
            application.window.docks[name].raise_()
            qtbot.wait(60)
            assert misplaced(application) == [], (step, name)


class Pictures(QObject):
    """What was misplaced in each picture of the window, in the order in which they were drawn."""

    def __init__(self, application: Application) -> None:
        super().__init__(application.window)
        self.found: list[list[str]] = []
        self._application = application
        application.window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.UpdateRequest:
            self.found.append(misplaced_docks(self._application))
        return super().eventFilter(watched, event)


@pytest.mark.parametrize("order", ORDERS)
def test_no_picture_shows_docks_over_others_on_the_way_either(
    application: Application, qtbot: QtBot, order: list[Step]
) -> None:
    """Where there was no room they lay over others until their shares followed, a fifth of a second later."""
    pictures = Pictures(application)
    for step in order:
        pictures.found.clear()
        go(application, qtbot, step)
        assert pictures.found and not [found for found in pictures.found if found], step


def test_panels_without_room_are_scrolled_and_have_it_back(application: Application, qtbot: QtBot) -> None:
    go(application, qtbot, (1000, 700, 2.0))
    docks = application.window.docks
    assert docks["sampling"].scroller.squeezed
    docks["block_walk"].raise_()
    scroller = docks["block_walk"].scroller
    assert scroller.viewport().width() < scroller.needed_width()
    assert scroller.horizontalScrollBar().maximum() == 0, "its parts have lines of their own first"
    go(application, qtbot, (780, 700, 2.0))
    qtbot.waitUntil(lambda: scroller.horizontalScrollBar().maximum() > 0)
    assert scroller.viewport().width() < docks["block_walk"].panel.width()
    go(application, qtbot, (1000, 700, 1.0))
    assert not any(dock.scroller.squeezed for dock in docks.values())
    for name in ("prompt", "sampling", "block_walk"):
        assert docks[name].panel.width() == docks[name].scroller.viewport().width()
        assert docks[name].panel.width() >= docks[name].panel.minimumSizeHint().width()


def test_the_prompt_has_the_room_of_its_example_in_chinese_too(application: Application, qtbot: QtBot) -> None:
    """Its options are shorter there, and the column was as narrow as they let it be: the example did not fit."""
    go(application, qtbot, (1000, 700, 1.0))
    before = application.window.docks["prompt"].width()
    application.settings.update(language="zh_CN")
    qtbot.wait(1200)
    prompt = application.window.docks["prompt"]
    assert prompt.windowTitle() == "提示词"
    assert prompt.width() >= before


def test_columns_share_what_is_there_and_those_that_need_most_give_way() -> None:
    assert fitted([21, 55, 24], [100, 100, 100], 1000) == [210, 550, 240]
    assert fitted([21, 55, 24], [300, 100, 100], 1000) == [300, 487, 212]
    assert fitted([21, 55, 24], [424, 362, 309], 968) == [330, 329, 309]
    assert fitted([21, 55, 24], [50, 900, 900], 650) == [50, 300, 300]
    assert fitted([0.5, 0.5], [10, 10], 0) == [0, 0]


def test_what_a_row_of_a_slider_needs_is_the_same_however_wide_it_is(qtbot: QtBot) -> None:
    row = SliderRow(Theme("dark"), "temperature", Linear(low=0, high=5, step=0.01, default=0.8), label_width=78)
    qtbot.addWidget(row)
    needs = set()
    for width in (600, 200, 300):
        row.resize(width, 26)
        row.updateGeometry()
        needs.add(row.minimumSizeHint().width())
    assert len(needs) == 1
    assert needs.pop() < 250
