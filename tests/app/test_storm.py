"""Nothing that was asked of the engine is lost for good, however the window changes meanwhile."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main import Application
from tests.app.shell import close_window, window_with, with_run
from tests.app.storm import Storm
from tests.app.tiny_folder import tiny_folder

SHORT = pytest.param(1, 2, ("language",), id="short")  # which makes every panel anew, at half a second each time
SEEDS = os.environ.get("STORM_SEEDS", "2 3 4 5").split()
"""Of the long ones; others by hand: STORM_SEEDS="6 7" pytest -m long …"""
LONG = [pytest.param(int(seed), 5, (), marks=pytest.mark.long, id=f"long {seed}") for seed in SEEDS]
CHANGES = 70

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("storm") / "model", "llama")


@pytest.fixture
def application(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(source))
    yield made
    close_window(made)


@pytest.mark.parametrize(("seed", "rounds", "without"), [SHORT, *LONG])
def test_all_that_is_in_sight_comes_to_rest_after_any_changes(
    qtbot: QtBot, application: Application, seed: int, rounds: int, without: tuple[str, ...]
) -> None:
    with_run(application, qtbot, "The animal did not cross the street", 4)
    storm = Storm(application, seed, without)
    for _ in range(rounds):
        storm.blow(CHANGES)
        waiting = storm.rest()
        assert not waiting, f"{waiting} after {storm.done}"
        heat = storm.attention.main.heat
        (_, end), (start, _) = heat.wanted()[:2]
        value = heat.value_of((end - 1, start))
        if value is not None:  # else cells share pixels
            assert (None if math.isnan(value) else value) == storm.exact(end - 1, start)
