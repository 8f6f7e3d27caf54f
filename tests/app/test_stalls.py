"""The stall watch: silent while the window lives, one entry with a stack when it stood still, next to no cost."""

from __future__ import annotations

import logging
import threading
import time
import weakref

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.health.stalls import MAX_LOGGED, StallWatch, stack_of


def hold_the_window_up(seconds: float) -> None:
    time.sleep(seconds)


def test_a_stall_is_logged_once_with_where_it_was(qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
    watch = StallWatch()
    try:
        with caplog.at_level(logging.WARNING, "decoderscope.app"):
            QTimer.singleShot(100, lambda: hold_the_window_up(0.6))
            qtbot.waitUntil(lambda: watch.stalls == 1, timeout=5000)
        [record] = [record for record in caplog.records if "stood still" in record.getMessage()]
        assert "hold_the_window_up" in record.getMessage()
        told = int(record.getMessage().split("still for ")[1].split()[0])
        assert 500 < told < 2000
    finally:
        watch.stop()
        watch.deleteLater()


def test_turns_under_150_ms_are_no_stall_and_the_watch_is_cheap(qtbot: QtBot) -> None:
    watch = StallWatch()
    worker = watch._thread
    try:
        for _ in range(5):
            QTimer.singleShot(0, lambda: hold_the_window_up(0.06))
            qtbot.wait(100)
        begun = time.process_time()
        qtbot.wait(1000)
        used = time.process_time() - begun
        assert watch.stalls == 0
        assert used < 0.05  # of a second's processor, with the test's own event loop in it
    finally:
        watch.stop()
        watch.deleteLater()
    assert not worker.is_alive()


class Held:
    """Stands for the QPainter of a paintEvent: it must end where it was made."""


def test_looking_at_a_stack_keeps_nothing_of_it_alive() -> None:
    me, over, ended_on, looks = threading.get_ident(), threading.Event(), [], []

    def look() -> None:
        while not over.is_set():
            looks.append(stack_of(me))

    def paint() -> None:
        held = Held()
        weakref.finalize(held, lambda: ended_on.append(threading.get_ident()))
        sum(range(20_000))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        while len(ended_on) < 500 or len(looks) < 20:
            paint()
    finally:
        over.set()
        watcher.join()
    assert set(ended_on) == {me}
    assert any(" in paint" in stack for stack in looks)


def test_a_swapping_machine_does_not_fill_the_log(qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
    watch = StallWatch()
    watch.stop()
    with caplog.at_level(logging.WARNING, "decoderscope.app"):
        for _ in range(MAX_LOGGED + 20):
            watch._tell(0.2, "here")
    assert len(caplog.records) == MAX_LOGGED
    watch.deleteLater()
