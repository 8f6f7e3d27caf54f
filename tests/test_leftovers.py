"""The guard against leftovers sees each kind, and lets a test that cleans up pass."""

from __future__ import annotations

import subprocess
import sys
import threading

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QMenu, QWidget
from pytestqt.qtbot import QtBot

from tests.leftovers import Snapshot

SHORT = 0.1


def test_clean_test_leaves_nothing() -> None:
    assert Snapshot().leftovers(SHORT) == []


def test_thread_is_seen_until_it_ends() -> None:
    before, stop = Snapshot(), threading.Event()
    thread = threading.Thread(target=stop.wait, name="forgotten")
    thread.start()
    try:
        (line,) = before.leftovers(SHORT)
        assert line.startswith("thread left behind")
        assert "forgotten" in line
    finally:
        stop.set()
        thread.join()
    assert before.leftovers(SHORT) == []


def test_child_process_is_seen_until_it_ends() -> None:
    before = Snapshot()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        (line,) = before.leftovers(SHORT)
        assert line.startswith(f"process left behind: {child.pid}")
        child.communicate(b"\n")
    assert before.leftovers(SHORT) == []


def test_running_timer_is_seen_until_it_stops(qapp: object) -> None:
    before, timer = Snapshot(), QTimer()
    timer.start(10_000)
    (line,) = before.leftovers(SHORT)
    assert line.startswith("timer left behind")
    assert "10000 ms" in line
    timer.stop()
    assert before.leftovers(SHORT) == []


def test_window_is_seen_until_it_is_deleted(qtbot: QtBot) -> None:
    before, window = Snapshot(), QWidget()
    window.setWindowTitle("forgotten")
    window.show()
    qtbot.waitExposed(window)
    (line,) = before.leftovers(SHORT)
    assert line.startswith("window left behind")
    assert "forgotten" in line
    window.close()
    window.deleteLater()
    assert before.leftovers(SHORT) == []


def test_closed_window_that_nobody_deletes_is_seen(qtbot: QtBot) -> None:
    before, menu = Snapshot(), QMenu()
    (line,) = before.leftovers(SHORT)
    assert "QMenu" in line
    menu.deleteLater()
    assert before.leftovers(SHORT) == []


def test_window_manager_gives_focus_and_maximises(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(300, 200)
    window.show()
    with qtbot.waitActive(window):
        window.activateWindow()
    window.showMaximized()
    qtbot.waitUntil(lambda: window.width() > 1000)
