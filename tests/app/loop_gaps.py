"""Event-loop gaps of the real window, with the engine busy and idle: the same script of keys and mouse in both.

`python tests/app/loop_gaps.py [--check]` prints a table. It needs a display (`xvfb-run -a python …`).

Busy: opening the default model, prefilling 1,000 tokens and decoding 50, the script repeated meanwhile. Idle: as many
actions over the run those left. `--check` exits 1 when p99 busy is over 1.5 × idle, a call of ours over 30 ms, or a gap
over 150 ms. The script of five minutes that opens every panel is long_session.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QSlider

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.app.gui_time import (
    ACTION_MS,
    LEFT,
    NONE,
    Measure,
    Others,
    isolate,
    mouse,
    open_example,
    report,
    tell,
    text_of,
)

if TYPE_CHECKING:
    from app.main import Application

WARM_UP_ACTIONS = 150
PROMPT_TOKENS, STEPS = 1000, 50


def script(application: Application) -> Iterator[None]:
    """What a person does, round after round: an action a yield, the same ones every round."""
    while True:
        yield from look_and_type(application)


def look_and_type(application: Application) -> Iterator[None]:
    """One round: the matrix by mouse and keys, the temperature dragged, a few letters typed and taken back."""
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


def measure(application: Application) -> dict[str, list[Measure]]:
    """Both phases on an open window whose example is up."""
    assert application.ctx is not None
    session, steps, rounds = application.ctx.session, script(application), dict[str, list[Measure]]()

    def phase(name: str, ready: Callable[[], bool], seconds: float = 240) -> None:
        rounds[name] = [Measure(steps)]
        rounds[name][0].until(ready, seconds, name)

    warm_up = Measure(steps)
    warm_up.until(lambda: warm_up.actions >= WARM_UP_ACTIONS, 120, "the warm-up")
    session.open_model(session.source)
    phase("busy: opening", lambda: session.model is not None and not session.busy)
    session.set_prompt(text_of(PROMPT_TOKENS))
    session.prefill()
    phase("busy: prefill", lambda: not session.busy)
    tell(f"prefilled {session.n_prompt:,} tokens")
    session.step(STEPS)
    phase("busy: decode", lambda: not session.busy)
    tell(f"decoded {session.length - session.n_prompt} tokens")
    QTest.qWait(1500)
    actions = sum(each.actions for measures in rounds.values() for each in measures)
    idle = Measure(steps)
    rounds["idle"] = [idle]
    idle.until(lambda: idle.actions >= actions, 60 + actions * ACTION_MS / 200, "the idle script")
    return rounds


def main(arguments: list[str]) -> int:
    """Runs the window through both phases; 1 when `--check` is asked for and a bound is broken."""
    isolate()
    application, others = open_example(), Others()
    broken = report(measure(application), others.cores())
    application.window.close()
    QTest.qWait(300)
    return 1 if "--check" in arguments and broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
