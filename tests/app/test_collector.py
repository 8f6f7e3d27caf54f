"""The collector of cycles: never in a thread of ours, on the GUI thread when it is due, and started with the window."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.health.collector import Collector, collect_due
from tests.app.shell import close_window, open_window


@pytest.fixture(autouse=True)
def _collector_as_python_has_it() -> Iterator[None]:
    """Runs by itself before, as in a new process; the tests' own process has it off (conftest.py)."""
    gc.collect()
    gc.enable()
    yield
    gc.disable()


class Knot(QWidget):
    """A widget that only a cycle keeps alive."""

    def __init__(self, ended_in: list[int]) -> None:
        super().__init__()
        self.me = self
        weakref.finalize(self, lambda: ended_in.append(threading.get_ident()))


def allocate_in_a_thread(kept: list[list[int]]) -> int:
    """Makes work for a collector, which would run where it is allocated; the thread's number."""
    thread = threading.Thread(target=lambda: kept.extend([number] for number in range(50_000)))
    thread.start()
    number = thread.ident
    thread.join()
    assert number is not None
    return number


def test_a_widget_in_a_cycle_ends_on_the_gui_thread(qtbot: QtBot) -> None:
    collector, ended, kept = Collector(), list[int](), list[list[int]]()
    Knot(ended)
    allocate_in_a_thread(kept)
    assert ended == []
    qtbot.waitUntil(lambda: bool(ended))
    assert ended == [threading.get_ident()]
    collector.deleteLater()


def test_without_it_a_thread_ends_the_widget(qtbot: QtBot) -> None:
    ended = list[int]()
    Knot(ended)
    assert ended == [allocate_in_a_thread([])] or pytest.fail("Python collects otherwise now: is the Collector needed?")


def test_it_collects_what_is_due_the_old_last(qtbot: QtBot) -> None:
    gc.disable()
    gc.collect()
    assert collect_due() is None
    kept = [[number] for number in range(gc.get_threshold()[0] + 100)]
    seen = [collect_due()]
    for _ in range(200):
        kept += [[number] for number in range(gc.get_threshold()[0] + 100)]
        seen.append(collect_due())
    assert seen[0] == 0
    assert seen.count(0) > seen.count(1) > seen.count(2) > 0


def test_the_window_starts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    application = open_window(tmp_path / "settings.json", monkeypatch, qtbot)
    try:
        assert not gc.isenabled()
        [collector] = application.window.findChildren(Collector)
        assert collector._timer.isActive()
    finally:
        close_window(application)
