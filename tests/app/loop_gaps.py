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
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

TICK_MS, ACTION_MS = 4, 16
WARM_UP_ACTIONS = 150
PROMPT_TOKENS, STEPS = 1000, 50
RATIO, CALL_MS, GAP_MS = 1.5, 30.0, 150.0


def isolate() -> None:
    """A home of its own, with the real cache, so that a person's preferences neither count nor change."""
    from model.checkpoint.paths import cache_dir

    os.environ["DECODERSCOPE_CACHE_DIR"] = str(cache_dir())
    home = tempfile.mkdtemp(prefix="decoderscope-gaps-")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        os.environ[name] = home


def main(arguments: list[str]) -> int:
    """Runs the window through both phases; 1 when `--check` is asked for and a bound is broken."""
    isolate()
    from PySide6.QtCore import QEvent, QPoint, QPointF, Qt, QTimer
    from PySide6.QtGui import QMouseEvent
    from PySide6.QtTest import QTest
    from PySide6.QtWidgets import QApplication, QWidget

    from app.main import create
    from app.panels.attention import AttentionPanel
    from app.panels.prompt import PromptPanel
    from app.panels.sampling import SamplingPanel

    application = create()
    application.window.resize(1400, 900)
    application.window.show()

    def until(ready: Callable[[], bool], seconds: float, what: str) -> None:
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                raise TimeoutError(f"{what} took over {seconds:.0f} s")
            QTest.qWait(20)

    until(lambda: application.ctx is not None, 60, "the panels")
    assert application.ctx is not None
    session = application.ctx.session
    until(lambda: session.run is not None and not session.busy and len(session.nodes) >= 7, 180, "the example")
    window = application.window
    attention, sampling, prompt = (
        window.findChild(kind) for kind in (AttentionPanel, SamplingPanel, PromptPanel)
    )  # the panels themselves, as they are docked
    assert attention is not None and sampling is not None and prompt is not None
    until(lambda: session.distribution is not None, 60, "the distribution")

    def mouse(widget: QWidget, x: float, y: float, kind: QEvent.Type, buttons: Qt.MouseButton) -> None:
        point = QPointF(x * widget.width(), y * widget.height())
        button = Qt.MouseButton.NoButton if kind is QEvent.Type.MouseMove else Qt.MouseButton.LeftButton
        where = widget.mapToGlobal(point)
        QApplication.postEvent(widget, QMouseEvent(kind, point, where, button, buttons, Qt.KeyboardModifier.NoModifier))

    def script() -> Iterator[None]:
        """One round of what a person does; a step a yield, the same steps every round."""
        heat, none, left = attention.main.heat, Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton
        slider = sampling.rows["temperature"].slider
        while True:
            for i in range(60):
                mouse(heat, 0.15 + 0.6 * (i % 30) / 30, 0.2 + 0.6 * i / 60, QEvent.Type.MouseMove, none)
                yield
            for key in "]" * 8 + "[" * 8 + "=" * 4 + "-" * 4:
                heat.setFocus()
                QTest.keyClick(heat, key)
                yield
            mouse(slider, 0.1, 0.5, QEvent.Type.MouseButtonPress, left)
            for i in range(60):
                mouse(slider, 0.1 + 0.8 * abs((i % 40) - 20) / 20, 0.5, QEvent.Type.MouseMove, left)
                yield
            mouse(slider, 0.5, 0.5, QEvent.Type.MouseButtonRelease, left)
            for key in "SSSSSLLL":
                QTest.keyClick(heat, key.lower())
                yield
            for letter in "a bat sat ":
                prompt.edit.setFocus()
                QTest.keyClick(prompt.edit, letter)
                yield
            for _ in range(10):
                QTest.keyClick(prompt.edit, Qt.Key.Key_Backspace)
                yield
            target = window.mapFromGlobal(heat.mapToGlobal(QPoint(heat.width() // 2, heat.height() // 2)))
            mouse(window, target.x() / window.width(), target.y() / window.height(), QEvent.Type.MouseMove, none)

    class Measure:
        """Ticks while it runs, driving the script."""

        def __init__(self) -> None:
            self.wall: list[float] = []
            self.own: list[float] = []
            self.actions = 0
            self._steps = script()
            self._tick, self._hand = QTimer(), QTimer()
            self._tick.setTimerType(Qt.TimerType.PreciseTimer)
            self._hand.setTimerType(Qt.TimerType.PreciseTimer)
            self._tick.timeout.connect(self.tick)
            self._hand.timeout.connect(self.act)

        def tick(self) -> None:
            now, own = time.perf_counter(), time.thread_time()
            self.wall.append((now - self._last[0]) * 1000)
            self.own.append((own - self._last[1]) * 1000)
            self._last = (now, own)

        def act(self) -> None:
            self.actions += 1
            next(self._steps)

        def until(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
            self._last = (time.perf_counter(), time.thread_time())
            self._tick.start(TICK_MS)
            self._hand.start(ACTION_MS)
            try:
                until(ready, seconds, what)
            finally:
                self._tick.stop()
                self._hand.stop()

    words = "The animal did not cross the wide street because it was far too tired to move at all today . ".split()
    long_prompt = " ".join(itertools.islice(itertools.cycle(words), PROMPT_TOKENS - 60))
    Measure().until(_counter(WARM_UP_ACTIONS), 120, "the warm-up")

    rounds: dict[str, Measure] = {}
    busy = rounds["busy: opening"] = Measure()
    session.open_model(session.source)
    busy.until(lambda: session.model is not None and not session.busy, 240, "opening")
    session.set_prompt(long_prompt)
    until(lambda: len(session.live_tokens) > PROMPT_TOKENS // 2, 30, "tokenising")
    busy = rounds["busy: prefill"] = Measure()
    session.prefill()
    busy.until(lambda: not session.busy, 240, "prefill")
    print(f"prefilled {session.n_prompt:,} tokens")
    before = session.length
    busy = rounds["busy: decode"] = Measure()
    session.step(STEPS)
    busy.until(lambda: not session.busy, 240, "decode")
    print(f"decoded {session.length - before} tokens")
    actions = sum(measure.actions for measure in rounds.values())
    QTest.qWait(1500)
    idle = rounds["idle"] = Measure()
    idle.until(lambda: idle.actions >= actions, 60 + actions * ACTION_MS / 200, "the idle script")

    wall = {name: np.array(measure.wall) for name, measure in rounds.items()}
    own = {name: np.array(measure.own) for name, measure in rounds.items()}
    names = [name for name in rounds if name != "idle"]
    wall["busy"] = np.concatenate([wall[name] for name in names])
    own["busy"] = np.concatenate([own[name] for name in names])
    print(f"{'':16}{'ticks':>8}{'p50 ms':>9}{'p99 ms':>9}{'longest gap':>13}{'longest own':>13}")
    for name in (*names, "busy", "idle"):
        p50, p99 = np.percentile(wall[name], (50, 99))
        print(f"{name:16}{len(wall[name]):8,}{p50:9.1f}{p99:9.1f}{wall[name].max():13.1f}{own[name].max():13.1f}")
    ratio = float(np.percentile(wall["busy"], 99) / np.percentile(wall["idle"], 99))
    call = float(max(own["busy"].max(), own["idle"].max()))
    gap = float(max(wall["busy"].max(), wall["idle"].max()))
    print(
        f"p99 busy ÷ idle {ratio:.2f} (bound {RATIO}), longest call of ours under {call:.1f} ms (bound {CALL_MS:.0f})"
    )
    print(f"longest gap {gap:.1f} ms (bound {GAP_MS:.0f}); {actions:,} actions in each")
    window.close()
    QTest.qWait(300)
    broken = ratio > RATIO or call > CALL_MS or gap > GAP_MS
    return 1 if broken and "--check" in arguments else 0


def _counter(n: int) -> Callable[[], bool]:
    """True after about `n` actions' time."""
    end = time.monotonic() + n * ACTION_MS / 1000
    return lambda: time.monotonic() > end


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
    sys.exit(main(sys.argv[1:]))
