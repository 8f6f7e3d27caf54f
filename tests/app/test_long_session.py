"""Five minutes at the real window (long_session.py) hold their bounds; and the bounds can break."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.gui_time import CALL_MS, GAP_MS, QUIET, Measure, report

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.timeout(2400)
@pytest.mark.usefixtures("qapp", "default_model_path")
def test_five_minutes_hold_their_bounds() -> None:
    # A process of its own: pytest-qt's hooks are not in the product, and torch chooses its threads as it does there.
    choices = {name: value for name, value in os.environ.items() if name not in {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}}
    command = [sys.executable, "tests/app/long_session.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, env=choices, capture_output=True, text=True, check=False, timeout=2300)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


def measured(wall: list[float], own: list[float]) -> Measure:
    measure = Measure(itertools.repeat(None))
    measure.wall, measure.own, measure.calls = wall, own, [(each, "paint") for each in own]
    return measure


@pytest.mark.parametrize(
    ("busy", "own", "others", "broken"),
    [
        (12.0, 8.0, 0.0, 0),
        (12.0, CALL_MS + 1, 0.0, 1),
        (20.0, 8.0, 0.0, 1),
        (20.0, 8.0, QUIET + 0.1, 1),
        (GAP_MS + 1, 8.0, 0.0, 2),
        (GAP_MS + 1, CALL_MS + 1, QUIET + 0.1, 3),
    ],
)
def test_each_bound_can_break(qapp: object, busy: float, own: float, others: float, broken: int) -> None:
    del qapp
    rounds = {"decode": [measured([busy] * 100, [own] * 100)], "idle": [measured([10.0] * 100, [5.0] * 100)]}
    assert len(report(rounds, others)) == broken
