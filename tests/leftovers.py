"""What a test may leave behind: nothing. Threads, child processes, QTimers and top-level windows are counted."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

GRACE_SECONDS = 3.0
_POLL_SECONDS = 0.02
# tqdm's monitor lives as long as its process, by its own design.
_THIRD_PARTY_THREADS = {"TMonitor"}
# Qt keeps one tool tip window alive and reuses it.
_QT_OWN_WINDOWS = {"QTipLabel"}

_started_timers: weakref.WeakSet[QTimer] = weakref.WeakSet()


@contextmanager
def timers_recorded() -> Iterator[None]:
    """Remembers every QTimer started from Python while it lasts."""
    original: Callable[..., None] = QTimer.start

    def start(timer: QTimer, *args: Any) -> None:
        _started_timers.add(timer)
        original(timer, *args)

    QTimer.start = start  # type: ignore[method-assign]
    try:
        yield
    finally:
        QTimer.start = original  # type: ignore[method-assign]


def flush_qt() -> None:
    """Delivers pending events and deletes what deleteLater() named (processEvents alone does not)."""
    if QCoreApplication.instance() is None:
        return
    QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def threads() -> set[threading.Thread]:
    """Python threads that run now."""
    return {thread for thread in threading.enumerate() if type(thread).__name__ not in _THIRD_PARTY_THREADS}


def children() -> set[psutil.Process]:
    """Child processes, and theirs, that run now."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(process)
        except psutil.NoSuchProcess:
            continue
    return found


def timers() -> set[QTimer]:
    """QTimers started from Python that run now."""
    return {timer for timer in _started_timers if isValid(timer) and timer.isActive()}


def windows() -> set[QWidget]:
    """Top-level widgets without a parent; pop-ups belong to their parents."""
    if not isinstance(QApplication.instance(), QApplication):
        return set()
    return {
        widget
        for widget in QApplication.topLevelWidgets()
        if widget.parent() is None and widget.metaObject().className() not in _QT_OWN_WINDOWS
    }


class Snapshot:
    """What ran before a test, and the sentence about what runs still after it."""

    def __init__(self) -> None:
        self._before = _everything()

    def leftovers(self, grace: float = GRACE_SECONDS) -> list[str]:
        """One line for each thing left, after at most `grace` seconds to end by itself."""
        flush_qt()
        if not self._new():
            return []
        gc.collect()  # a cycle may still hold a closed window
        deadline = time.monotonic() + grace
        while self._new() and time.monotonic() < deadline:
            flush_qt()
            time.sleep(_POLL_SECONDS)
        return sorted(f"{kind} left behind: {_describe(item)}" for kind, item in self._new())

    def _new(self) -> list[tuple[str, Any]]:
        return [(kind, item) for kind, items in _everything().items() for item in items - self._before[kind]]


def _everything() -> dict[str, set[Any]]:
    return {"thread": set(threads()), "process": set(children()), "timer": set(timers()), "window": set(windows())}


def _describe(item: Any) -> str:
    if isinstance(item, psutil.Process):
        try:
            return f"{item.pid} {' '.join(item.cmdline())[:200]}"
        except psutil.Error:
            return str(item.pid)
    if isinstance(item, QTimer):
        return f"{item!r} every {item.interval()} ms, parent {item.parent()!r}"
    if isinstance(item, QWidget):
        return f"{item!r} titled {item.windowTitle()!r}, visible {item.isVisible()}"
    return repr(item)
