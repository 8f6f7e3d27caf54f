"""One clock an owner: closing one window must not stop the clock of the next."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.panels.base import FrameClock
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
