"""Whatever a hand does by mouse and keys, the window neither ends by itself nor raises, and leaves no engine behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.app.tiny_folder import tiny_folder

ROOT = Path(__file__).resolve().parents[2]
SEEDS = os.environ.get("HAND_SEEDS", "1 2 3").split()
"""Others by hand: HAND_SEEDS="4 5" pytest -m long tests/app/test_random_hand.py"""
FAMILIES = {"1": "llama", "2": "gpt2", "3": "mixtral"}
SECONDS = 60


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_hand_ends_nothing(tmp_path: Path, seed: str) -> None:
    source = tiny_folder(tmp_path / "model", FAMILIES.get(seed, "llama"))
    script = [sys.executable, "-X", "faulthandler", "tests/app/random_hand.py", seed, "--seconds", str(SECONDS)]
    hand = subprocess.Popen(
        [*script, "--source", str(source)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, wrong = hand.communicate(timeout=5 * SECONDS)
    finally:
        hand.kill()
    last = "\n".join(said.splitlines()[-20:])
    assert hand.returncode == 0, f"{last}\n{wrong[-4000:]}"
    assert "Traceback" not in wrong, wrong
    assert "\nplayed " in said
    assert not left_of(hand.pid), "an engine is left"


def left_of(group: int) -> bool:
    """Whether after five seconds there is still a process of that group."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True
