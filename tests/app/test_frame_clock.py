"""One clock an owner: closing one window must not stop the clock of the next."""

from __future__ import annotations

from PySide6.QtCore import QObject
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
