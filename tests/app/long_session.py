"""Five minutes at the real window with the default model, measured: engine busy against the same script idle.

`python tests/app/long_session.py [--seconds 300] [--check]`. It needs a display (`xvfb-run -a python …`).

Busy: the model is opened, 2,048 tokens are prefilled, 100 decoded, any node sought, another token chosen (a branch);
and again from the prefill until the time is over. Meanwhile a hand never rests: every panel is opened and looked at,
every slider dragged over its range and back, the grid of all heads shown, the matrix walked by mouse and keys, letters
typed. Idle: as many actions over the run those left. `--check` exits 1 when a bound of gui_time.py is broken.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

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
    wait_until,
)
from tests.app.loop_gaps import look_and_type

if TYPE_CHECKING:
    from app.main import Application
    from app.session import Session

PROMPT_TOKENS, STEPS, SEEKS = 2048, 100, 12
SECONDS = 300.0
KEYS = (Qt.Key.Key_Down, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Left)


def script(application: Application) -> Iterator[None]:
    """What the hand does, round after round: an action a yield, the same ones every round."""
    while True:
        yield from look_and_type(application)
        for name in application.window.docks:
            yield from open_panel(application, name)
        yield from drag_sliders(application)
        yield from show_grid(application)


def open_panel(application: Application, name: str) -> Iterator[None]:
    """Opens a panel, runs the mouse over each of its parts, walks each with keys; the selection moves under it."""
    assert application.ctx is not None
    selection, dock = application.ctx.selection, application.window.docks[name]
    dock.close()
    yield
    dock.show()
    dock.raise_()
    yield
    for part in parts(dock.panel):
        for i in range(8):
            mouse(part, 0.1 + 0.1 * i, 0.15 + 0.09 * i, QEvent.Type.MouseMove, NONE)
            yield
        part.setFocus()
        for key in KEYS:
            QTest.keyClick(part, key)
            yield
    for change in (
        lambda: selection.step_layer(-1),
        lambda: selection.step_head(1),
        lambda: selection.step_query(-3),
        lambda: selection.set_key(selection.key + 2),
        selection.cycle_stage,
        lambda: selection.step_layer(1),
        lambda: selection.step_head(-1),
    ):
        change()  # type: ignore[no-untyped-call]
        for _ in range(5):
            yield
    while selection.stage != "weights":
        selection.cycle_stage()
        yield


def parts(panel: QWidget) -> list[QWidget]:
    """What of a panel takes the focus and is in sight: maps, tables, plots, strips. Not fields, where keys are text."""
    kinds = {"QLineEdit", "NumberBox", "PromptEdit", "ValueCombo", "TravelSlider", "InfoButton", "QToolButton"}
    found = [
        each
        for each in panel.findChildren(QWidget)
        if each.focusPolicy() & Qt.FocusPolicy.TabFocus and each.isVisible() and not each.visibleRegion().isEmpty()
    ]
    return [each for each in found if type(each).__name__ not in kinds and min(each.width(), each.height()) >= 60]


def drag_sliders(application: Application) -> Iterator[None]:
    """Every slider of the window over its whole range and back."""
    from app.widgets.slider_row import TravelSlider

    application.window.docks["sampling"].raise_()
    for slider in application.window.findChildren(TravelSlider):
        mouse(slider, 0.5, 0.5, QEvent.Type.MouseButtonPress, LEFT)
        for i in range(40):
            mouse(slider, 1 - abs(i - 20) / 20, 0.5, QEvent.Type.MouseMove, LEFT)
            yield
        mouse(slider, 0.5, 0.5, QEvent.Type.MouseButtonRelease, LEFT)
        yield
        reset_sampler(application)
        yield


def reset_sampler(application: Application) -> None:
    """The sampler as it is at the start, so that every round draws the same."""
    from model.protocol.values import SamplerSettings

    assert application.ctx is not None
    fresh, session = SamplerSettings(), application.ctx.session
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
    session.set_sampler(**{name: getattr(fresh, name) for name in names})


def show_grid(application: Application) -> Iterator[None]:
    """The grid of all heads, shown where it is not, scrolled from end to end, put away and brought back."""
    from app.widgets.head_grid import HeadGrid

    window = application.window
    window.docks["attention"].raise_()
    yield

    def press() -> None:
        window.setFocus()
        QTest.keyClick(window, Qt.Key.Key_G)

    def grids() -> list[HeadGrid]:
        return [grid for grid in window.findChildren(HeadGrid) if grid.isVisible()]

    if not grids():
        press()
        yield
    for grid in grids():
        bar = grid.verticalScrollBar()
        for i in range(60):
            bar.setValue(round(bar.maximum() * abs(1 - i / 30)))
            mouse(grid.viewport(), 0.1 + 0.8 * (i % 20) / 20, 0.5, QEvent.Type.MouseMove, NONE)
            yield
    for _ in range(2):
        press()
        yield


class Work:
    """What keeps the engine busy: each phase is begun and measured until it is over."""

    def __init__(self, application: Application, steps: Iterator[None]) -> None:
        assert application.ctx is not None
        self.session: Session = application.ctx.session
        self.rounds: dict[str, list[Measure]] = {}
        self._steps = steps

    def phase(self, name: str, begin: Callable[[], object], seconds: float = 240) -> None:
        begin()
        measure = Measure(self._steps)
        self.rounds.setdefault(name, []).append(measure)
        measure.until(lambda: not self.session.busy, seconds, name)

    def round(self) -> None:
        """Prefill, 100 steps, seek to a dozen nodes, a branch and its steps, back to the first branch."""
        session = self.session
        session.set_prompt(text_of(PROMPT_TOKENS))
        wait_until(lambda: len(session.live_tokens) >= PROMPT_TOKENS - 2, 60, "tokenising")
        self.phase("prefill", session.prefill)
        self.phase("decode", lambda: session.step(STEPS))
        last, path = session.current_node, [node.id for node in session.path_nodes()]
        for node in path[:: max(1, len(path) // SEEKS)]:
            self.phase("seek", lambda node=node: session.seek(node))  # type: ignore[misc]
        here = path[len(path) // 2]
        self.phase("seek", lambda: session.seek(here))
        wait_until(lambda: session.distribution and session.distribution.node == here, 30, "the distribution")
        assert session.distribution is not None
        taken = {node.token_id for node in session.branches_after(here)}
        other = next(each.id for each in session.distribution.candidates if each.id not in taken)
        self.phase("branch", lambda: session.branch(here, other))
        self.phase("decode", lambda: session.step(STEPS // 4))
        self.phase("seek", lambda: session.seek(last))


def measure(application: Application, seconds: float) -> dict[str, list[Measure]]:
    """Opening and rounds of work for `seconds`, then as many actions without any."""
    steps = script(application)
    work, end = Work(application, steps), time.monotonic() + seconds
    work.phase("opening", lambda: work.session.open_model(work.session.source))
    while time.monotonic() < end:
        work.round()
        session = work.session
        tell(f"prefilled {session.n_prompt:,}, decoded {len(session.nodes)} in {len(work.rounds['prefill'])} rounds")
    QTest.qWait(1500)
    actions = sum(each.actions for measures in work.rounds.values() for each in measures)
    idle = Measure(steps)
    idle.until(lambda: idle.actions >= actions, 60 + actions * ACTION_MS / 200, "the idle script")
    return {**work.rounds, "idle": [idle]}


def main(arguments: list[str]) -> int:
    """Runs it; 1 when `--check` is asked for and a bound is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of work (default: 300)")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bound is broken")
    options = parser.parse_args(arguments)
    isolate()
    application, others = open_example(), Others()
    broken = report(measure(application, options.seconds), others.cores())
    for each in broken:
        tell(f"broken: {each}")
    application.window.close()
    QTest.qWait(300)
    return 1 if options.check and broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
