"""What a window's event loop and its thread spend: gaps between ticks, own time, and where the slow calls were.

A tick of a precise 4 ms timer measures two things: the wall time since the tick before (a gap) and the processor time
that the GUI thread itself used in between, whatever else the machine was doing (a turn of the loop, often many calls).
A call is what Qt hands us in one piece: an event with all that it causes, and of a repaint each widget's paintEvent.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING

import numpy as np
import psutil
from PySide6.QtCore import QEvent, QObject, QPointF, Qt, QTimer
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.health.stalls import stack_of

if TYPE_CHECKING:
    from app.main import Application

TICK_MS, ACTION_MS = 4, 16
RATIO, CALL_MS, GAP_MS = 1.5, 30.0, 150.0
QUIET = 0.15
"""Share of one core above which other programs are named as a cause of gaps."""
LOOK_SECONDS, SLOW_MS = 0.004, 20.0
OPENING_SECONDS = 180
NONE, LEFT = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton
WORDS = re.findall(r"\S+", "The animal did not cross the wide street because it was far too tired to move today .")


class TimedApplication(QApplication):
    """Keeps the processor time of the longest call since `longest` was last set to 0, and what it was."""

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.longest, self.what = 0.0, ""
        self.doing = ""
        """What the call under way is, where its maker says so."""
        self._depth, self._repainting = 0, 0

    def notify(self, receiver: QObject, event: QEvent) -> bool:
        kind, depth = event.type(), self._depth
        repaint = kind is QEvent.Type.UpdateRequest
        counts = not repaint and (depth == 0 or (self._repainting == depth and kind is QEvent.Type.Paint))
        if repaint and depth == 0:
            self._repainting = 1
        name = _name_of(receiver) if counts else ""
        begun = time.thread_time()
        self._depth += 1
        try:
            return super().notify(receiver, event)
        finally:
            self._depth = depth
            took = (time.thread_time() - begun) * 1000
            if counts and took > self.longest:
                self.longest, self.what = took, self.doing or f"{kind.name} of {name}"
            if depth == 0:
                self._repainting, self.doing = 0, ""


def _name_of(receiver: QObject) -> str:
    """Its class and its parent's. What C++ made may have the wrapper, of any class, of what was there before."""
    parent = getattr(receiver, "parent", None)
    return f"{type(receiver).__name__} in {type(parent()).__name__ if parent else 'nothing'}"


def isolate() -> None:
    """A home of its own, with the real cache, so that a person's preferences neither count nor change."""
    from model.checkpoint.paths import cache_dir

    os.environ["DECODERSCOPE_CACHE_DIR"] = str(cache_dir())
    home = tempfile.mkdtemp(prefix="decoderscope-gaps-")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "DECODERSCOPE_CONFIG"):
        os.environ[name] = home


def open_example(size: tuple[int, int] = (1400, 900)) -> Application:
    """The real window with the real engine on the default model, once its example is up."""
    from app.main import create, spare_collector

    TimedApplication.instance() or TimedApplication(["decoderscope"])
    application = create()
    spare_collector(application.window)  # as `run` does
    application.window.resize(*size)
    application.window.show()
    wait_until(lambda: application.ctx is not None, 60, "the panels")
    assert application.ctx is not None
    session = application.ctx.session
    wait_until(
        lambda: session.run is not None and not session.busy and len(session.nodes) >= 7, OPENING_SECONDS, "the example"
    )
    wait_until(lambda: session.distribution is not None, 60, "the distribution")
    return application


def text_of(tokens: int) -> str:
    """A text of that many tokens of the default model."""
    return " ".join(itertools.islice(itertools.cycle(WORDS), tokens))


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def wait_until(ready: Callable[[], object], seconds: float, what: str) -> None:
    """Turns the event loop until `ready`; raises TimeoutError naming `what`."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} took over {seconds:.0f} s")
        QTest.qWait(20)


def mouse(widget: QWidget, x: float, y: float, kind: QEvent.Type, buttons: Qt.MouseButton) -> None:
    """Posts a mouse event at a share of the widget's size."""
    point = QPointF(x * widget.width(), y * widget.height())
    button = NONE if kind is QEvent.Type.MouseMove else LEFT
    where = QPointF(widget.mapToGlobal(point))
    event = QMouseEvent(kind, point, where, button, buttons, Qt.KeyboardModifier.NoModifier)
    QApplication.postEvent(widget, event)


class Measure:
    """Ticks while it runs, driving the script: wall and own milliseconds between ticks, stacks of what was slow."""

    def __init__(self, steps: Iterator[None]) -> None:
        self.wall: list[float] = []
        self.own: list[float] = []
        self.slow: list[tuple[float, Counter[str]]] = []
        self.gaps: list[tuple[float, Counter[str]]] = []
        self.calls: list[tuple[float, str]] = []
        self.actions = 0
        self._steps = steps
        self._gui = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._gui)
        self._last = (0.0, 0.0)
        self._seen: list[str] = []
        self._tick, self._hand = QTimer(), QTimer()
        self._tick.setTimerType(Qt.TimerType.PreciseTimer)
        self._hand.setTimerType(Qt.TimerType.PreciseTimer)
        self._tick.timeout.connect(self._on_tick)
        self._hand.timeout.connect(self._act)

    def until(self, ready: Callable[[], object], seconds: float, what: str) -> None:
        """Measures until `ready`."""
        over = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(over,), daemon=True)
        qt = QApplication.instance()
        if isinstance(qt, TimedApplication):
            qt.longest = 0.0  # what was before is not measured
        self._last = self._now()
        self._tick.start(TICK_MS)
        self._hand.start(ACTION_MS)
        watcher.start()
        try:
            wait_until(ready, seconds, what)
        finally:
            self._tick.stop()
            self._hand.stop()
            over.set()
            watcher.join()

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), time.clock_gettime(self._clock)

    def _on_tick(self) -> None:
        now, own = self._now()
        self.wall.append((now - self._last[0]) * 1000)
        self.own.append((own - self._last[1]) * 1000)
        self._last = (now, own)
        seen, self._seen = self._seen, []
        qt = QApplication.instance()
        if isinstance(qt, TimedApplication):
            self.calls.append((qt.longest, qt.what))
            qt.longest = 0.0
        if self.own[-1] > SLOW_MS:
            self.slow.append((self.own[-1], Counter(seen)))
        if self.wall[-1] > GAP_MS / 2:
            self.gaps.append((self.wall[-1], Counter(seen)))

    def _act(self) -> None:
        self.actions += 1
        qt = QApplication.instance()
        if isinstance(qt, TimedApplication):
            qt.doing = f"what follows {_line_of(self._steps)}"
        next(self._steps)

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(LOOK_SECONDS):
            now, own = self._now()
            if (own - self._last[1]) * 1000 > SLOW_MS / 2 or (now - self._last[0]) * 1000 > GAP_MS / 2:
                self._seen.append(_where(stack_of(self._gui)))


def _line_of(steps: Iterator[None]) -> str:
    """Where a script waits, innermost."""
    while isinstance(steps, GeneratorType) and isinstance(steps.gi_yieldfrom, GeneratorType):
        steps = steps.gi_yieldfrom
    frame = steps.gi_frame if isinstance(steps, GeneratorType) else None
    return f"{frame.f_code.co_name}:{frame.f_lineno}" if frame is not None else "the end"


def _where(stack: str) -> str:
    """The innermost calls of ours in a stack, the outermost left out."""
    calls = re.findall(r'File "(.*?)", line (\d+) in (\S+)', stack)
    ours = [f"{path.rsplit('/', 1)[-1]}:{line} {name}" for path, line, name in calls if "/app/" in path]
    return " ← ".join(ours[:4])


class Others:
    """How busy every program but this one and its children was, in cores."""

    def __init__(self) -> None:
        self._before = self._used()

    @staticmethod
    def _used() -> tuple[float, float, float]:
        times = psutil.cpu_times()
        all_used = sum(times) - times.idle - getattr(times, "iowait", 0.0)
        ours = 0.0
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            try:
                ours += sum(process.cpu_times()[:2])
            except psutil.NoSuchProcess:
                continue
        return time.monotonic(), all_used, ours

    def cores(self) -> float:
        """Since it was made."""
        began, all_before, ours_before = self._before
        now, all_now, ours_now = self._used()
        return max(0.0, (all_now - all_before) - (ours_now - ours_before)) / max(now - began, 1e-9)


def report(rounds: Mapping[str, Sequence[Measure]], others: float) -> list[str]:
    """Prints the table of phases (the one called "idle" against all others together); the bounds that are broken, in
    words. What the GUI thread used between two ticks, often of many calls, is held to the bound of one call."""
    wall = {name: np.concatenate([each.wall for each in measures]) for name, measures in rounds.items()}
    own = {name: np.concatenate([each.own for each in measures]) for name, measures in rounds.items()}
    calls = {name: [call for each in measures for call in each.calls] for name, measures in rounds.items()}
    names = [name for name in rounds if name != "idle"]
    calls["busy"] = [call for name in names for call in calls[name]]
    wall["busy"] = np.concatenate([wall[name] for name in names])
    own["busy"] = np.concatenate([own[name] for name in names])
    tell(f"{'':16}{'ticks':>8}{'p50 ms':>9}{'p99 ms':>9}{'longest gap':>13}{'longest turn':>13}{'longest call':>13}")
    for name in (*names, "busy", "idle"):
        p50, p99 = np.percentile(wall[name], (50, 99))
        tell(
            f"{name:16}{len(wall[name]):8,}{p50:9.1f}{p99:9.1f}{wall[name].max():13.1f}{own[name].max():13.1f}"
            f"{max(calls[name])[0]:13.1f}"
        )
    ratio = float(np.percentile(wall["busy"], 99) / np.percentile(wall["idle"], 99))
    call, what = max(*calls["busy"], *calls["idle"])
    gap = float(max(wall["busy"].max(), wall["idle"].max()))
    actions = sum(each.actions for each in rounds["idle"])
    tell(f"p99 busy ÷ idle {ratio:.2f} (bound {RATIO}), longest call {call:.1f} ms (bound {CALL_MS:.0f}): {what}")
    tell(f"longest gap {gap:.1f} ms (bound {GAP_MS:.0f}); {actions:,} actions in each")
    every = [each for measures in rounds.values() for each in measures]
    for milliseconds, event in sorted(set(calls["busy"] + calls["idle"]), reverse=True)[:8]:
        tell(f"call {milliseconds:6.1f} ms: {event}")
    _tell_where("turn", [slow for each in every for slow in each.slow])
    _tell_where("gap", [slow for each in every for slow in each.gaps])
    tell(f"other programs used {others:.2f} of a core{': the gaps are theirs as well' if others > QUIET else ''}")
    turn = float(max(own["busy"].max(), own["idle"].max()))
    found = (
        (turn > CALL_MS, f"a turn of {turn:.1f} ms, of which the longest call {call:.1f} ms"),
        (ratio > RATIO, f"p99 busy ÷ idle of {ratio:.2f}"),
        (gap > GAP_MS, f"a gap of {gap:.1f} ms"),
    )
    return [words for is_broken, words in found if is_broken]


def _tell_where(kind: str, slow: list[tuple[float, Counter[str]]]) -> None:
    """The longest, and where the window was when it was looked at meanwhile."""
    slow.sort(key=lambda each: -each[0])
    for milliseconds, stacks in slow[:8]:
        places = "; ".join(f"{count}× {where}" for where, count in stacks.most_common(3))
        tell(f"{kind} {milliseconds:7.1f} ms: {places}")
