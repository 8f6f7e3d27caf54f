"""Event-loop gaps of the real window, with the engine busy and idle: the same script of keys and mouse in both.

`python tests/app/loop_gaps.py [--check]` prints a table. It needs a display (`xvfb-run -a python …`). A tick of a
precise 4 ms timer measures two things: the wall time since the tick before (a gap) and the processor time that the GUI
thread itself used in between, which bounds every single call of ours from above whatever else the machine was doing.

Busy: opening the default model, prefilling 1,000 tokens and decoding 50, the script repeated meanwhile. Idle: as many
actions over the run those left. `--check` exits 1 when p99 busy is over 1.5 × idle, a call of ours over 30 ms, or a gap
over 150 ms.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QPointF, Qt, QTimer
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QSlider, QWidget

if TYPE_CHECKING:
    from app.main import Application

TICK_MS, ACTION_MS = 4, 16
WARM_UP_ACTIONS = 150
PROMPT_TOKENS, STEPS = 1000, 50
RATIO, CALL_MS, GAP_MS = 1.5, 30.0, 150.0
NONE, LEFT = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton
WORDS = re.findall(r"\S+", "The animal did not cross the wide street because it was far too tired to move today .")


def isolate() -> None:
    """A home of its own, with the real cache, so that a person's preferences neither count nor change."""
    from model.checkpoint.paths import cache_dir

    os.environ["DECODERSCOPE_CACHE_DIR"] = str(cache_dir())
    home = tempfile.mkdtemp(prefix="decoderscope-gaps-")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        os.environ[name] = home


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def wait_until(ready: Callable[[], bool], seconds: float, what: str) -> None:
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


def script(application: Application) -> Iterator[None]:
    """What a person does, round after round: an action a yield, the same ones every round."""
    from app.panels.attention import AttentionPanel
    from app.panels.prompt import PromptPanel
    from app.panels.sampling import SamplingPanel

    window = application.window
    attention, sampling, prompt = (window.findChild(kind) for kind in (AttentionPanel, SamplingPanel, PromptPanel))
    assert isinstance(attention, AttentionPanel)
    assert isinstance(sampling, SamplingPanel)
    assert isinstance(prompt, PromptPanel)
    heat, edit = attention.main.heat, prompt.edit
    slider = sampling.rows["temperature"].findChild(QSlider)
    assert slider is not None
    while True:
        for i in range(60):
            mouse(heat, 0.15 + 0.6 * (i % 30) / 30, 0.2 + 0.6 * i / 60, QEvent.Type.MouseMove, NONE)
            yield
        for key in "]" * 8 + "[" * 8 + "=" * 4 + "-" * 4 + "sssssll":
            heat.setFocus()
            QTest.keyClicks(heat, key)
            yield
        mouse(slider, 0.1, 0.5, QEvent.Type.MouseButtonPress, LEFT)
        for i in range(60):
            mouse(slider, 0.1 + 0.8 * abs((i % 40) - 20) / 20, 0.5, QEvent.Type.MouseMove, LEFT)
            yield
        mouse(slider, 0.5, 0.5, QEvent.Type.MouseButtonRelease, LEFT)
        yield
        for letter in "a bat sat ":
            edit.setFocus()
            QTest.keyClicks(edit, letter)
            yield
        for _ in range(10):
            QTest.keyClick(edit, Qt.Key.Key_Backspace)
            yield


class Measure:
    """Ticks while it runs, driving the script: wall and own milliseconds between ticks."""

    def __init__(self, steps: Iterator[None]) -> None:
        self.wall: list[float] = []
        self.own: list[float] = []
        self.actions = 0
        self._steps = steps
        self._last = (0.0, 0.0)
        self._tick, self._hand = QTimer(), QTimer()
        self._tick.setTimerType(Qt.TimerType.PreciseTimer)
        self._hand.setTimerType(Qt.TimerType.PreciseTimer)
        self._tick.timeout.connect(self._on_tick)
        self._hand.timeout.connect(self._act)

    def until(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        """Measures until `ready`."""
        self._last = (time.perf_counter(), time.thread_time())
        self._tick.start(TICK_MS)
        self._hand.start(ACTION_MS)
        try:
            wait_until(ready, seconds, what)
        finally:
            self._tick.stop()
            self._hand.stop()

    def _on_tick(self) -> None:
        now, own = time.perf_counter(), time.thread_time()
        self.wall.append((now - self._last[0]) * 1000)
        self.own.append((own - self._last[1]) * 1000)
        self._last = (now, own)

    def _act(self) -> None:
        self.actions += 1
        next(self._steps)


def measure(application: Application) -> dict[str, Measure]:
    """Both phases on an open window whose example is up."""
    assert application.ctx is not None
    session, steps, rounds = application.ctx.session, script(application), dict[str, Measure]()

    def phase(name: str, ready: Callable[[], bool], seconds: float = 240) -> Measure:
        rounds[name] = Measure(steps)
        rounds[name].until(ready, seconds, name)
        return rounds[name]

    warm_up = Measure(steps)
    warm_up.until(lambda: warm_up.actions >= WARM_UP_ACTIONS, 120, "the warm-up")
    session.open_model(session.source)
    phase("busy: opening", lambda: session.model is not None and not session.busy)
    session.set_prompt(" ".join(itertools.islice(itertools.cycle(WORDS), PROMPT_TOKENS)))
    session.prefill()
    phase("busy: prefill", lambda: not session.busy)
    tell(f"prefilled {session.n_prompt:,} tokens")
    session.step(STEPS)
    phase("busy: decode", lambda: not session.busy)
    tell(f"decoded {session.length - session.n_prompt} tokens")
    QTest.qWait(1500)
    actions = sum(each.actions for each in rounds.values())
    idle = Measure(steps)
    rounds["idle"] = idle
    idle.until(lambda: idle.actions >= actions, 60 + actions * ACTION_MS / 200, "the idle script")
    return rounds


def report(rounds: dict[str, Measure]) -> bool:
    """Prints the table; whether every bound holds."""
    wall = {name: np.array(each.wall) for name, each in rounds.items()}
    own = {name: np.array(each.own) for name, each in rounds.items()}
    names = [name for name in rounds if name != "idle"]
    wall["busy"] = np.concatenate([wall[name] for name in names])
    own["busy"] = np.concatenate([own[name] for name in names])
    tell(f"{'':16}{'ticks':>8}{'p50 ms':>9}{'p99 ms':>9}{'longest gap':>13}{'longest own':>13}")
    for name in (*names, "busy", "idle"):
        p50, p99 = np.percentile(wall[name], (50, 99))
        tell(f"{name:16}{len(wall[name]):8,}{p50:9.1f}{p99:9.1f}{wall[name].max():13.1f}{own[name].max():13.1f}")
    ratio = float(np.percentile(wall["busy"], 99) / np.percentile(wall["idle"], 99))
    call = float(max(own["busy"].max(), own["idle"].max()))
    gap = float(max(wall["busy"].max(), wall["idle"].max()))
    tell(f"p99 busy ÷ idle {ratio:.2f} (bound {RATIO}), longest call of ours under {call:.1f} ms (bound {CALL_MS:.0f})")
    tell(f"longest gap {gap:.1f} ms (bound {GAP_MS:.0f}); {rounds['idle'].actions:,} actions in each")
    return ratio <= RATIO and call <= CALL_MS and gap <= GAP_MS


def main(arguments: list[str]) -> int:
    """Runs the window through both phases; 1 when `--check` is asked for and a bound is broken."""
    isolate()
    from app.main import create

    application = create()
    application.window.resize(1400, 900)
    application.window.show()
    wait_until(lambda: application.ctx is not None, 60, "the panels")
    assert application.ctx is not None
    session = application.ctx.session
    wait_until(lambda: session.run is not None and not session.busy and len(session.nodes) >= 7, 180, "the example")
    wait_until(lambda: session.distribution is not None, 60, "the distribution")
    holds = report(measure(application))
    application.window.close()
    QTest.qWait(300)
    return 1 if "--check" in arguments and not holds else 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
    sys.exit(main(sys.argv[1:]))
