"""One clock an owner: closing one window must not stop the clock of the next."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.panels.base import Changes, FrameClock, Panel
from app.theme import Theme
from tests.app.attention_bench import Bench
from tests.leftovers import flush_qt


def test_clock_is_shared_within_an_owner_and_ends_with_it(qtbot: QtBot) -> None:
    first, second = QObject(), QObject()
    clock, other = FrameClock.shared(first), FrameClock.shared(second)
    assert FrameClock.shared(first) is clock
    assert other is not clock
    first.deleteLater()
    flush_qt()
    assert not isValid(clock)
    assert isValid(other)
    assert FrameClock.shared(second) is other


def test_answers_take_turns_in_their_order_and_the_first_does_not_wait(qtbot: QtBot) -> None:
    owner = QObject()
    clock, seen, turns = FrameClock.shared(owner), list[int](), list[int]()
    timer = clock.findChild(QTimer)
    assert timer is not None
    timer.timeout.connect(lambda: turns.append(len(seen)))
    for number in range(4):
        clock.pace(lambda number=number: seen.append(number))  # type: ignore[misc]
    assert seen == [0]
    qtbot.waitUntil(lambda: len(seen) == 4)
    assert seen == [0, 1, 2, 3]
    qtbot.waitUntil(lambda: len(turns) == 4)
    assert turns == [2, 3, 4, 4]  # the last one leaves room behind it too
    clock.pace(lambda: seen.append(4))
    assert seen[-1] == 4


class Plain(Panel):
    """Counts what it is told; fails once where `fails`."""

    panel_id = "plain"
    title = "Plain"
    watches = frozenset({"layer"})
    fails = False

    def build(self) -> None:
        self.refreshed = 0

    def refresh(self, changes: Changes) -> None:
        self.refreshed += 1
        if self.fails:
            raise ValueError("on purpose")


def test_what_a_panel_raises_stops_no_other(qtbot: QtBot, tmp_path: Path) -> None:
    bench = Bench(tmp_path, Theme("dark"))
    panels = [Plain(bench.ctx), Plain(bench.ctx)]
    for panel in panels:
        qtbot.addWidget(panel)
        panel.show()
        qtbot.waitExposed(panel)
    qtbot.waitUntil(lambda: all(panel.refreshed == 1 for panel in panels))
    panels[0].fails = True
    with qtbot.captureExceptions() as raised:
        bench.selection.set_layer(3)
        bench.open()
        bench.selection.set_layer(2)
        qtbot.waitUntil(lambda: panels[1].refreshed == 2)
    assert [kind for kind, *_ in raised] == [ValueError]


def test_a_panel_that_comes_into_sight_as_only_its_surroundings_grow_is_drawn(qtbot: QtBot, tmp_path: Path) -> None:
    bench = Bench(tmp_path, Theme("dark"))
    around = QWidget()
    panel = Plain(bench.ctx, around)
    panel.setGeometry(0, 120, 80, 60)
    qtbot.addWidget(around)
    around.resize(80, 100)
    around.show()
    qtbot.waitExposed(around)
    qtbot.wait(60)
    assert panel.refreshed == 0 and not panel.seen()
    around.resize(80, 200)
    qtbot.waitUntil(lambda: panel.refreshed == 1)
