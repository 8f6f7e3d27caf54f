"""The drawing of the heads tells from its first moment how far it is; stopped, it says so and is gone on with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panels.attention import AttentionPanel
from app.state.aside import Task
from app.theme import Theme
from model.protocol.attention_requests import GetGrid, GridPart
from tests.app.attention_bench import Asked, Bench, model_info, settled, shown

LEFT = Qt.MouseButton.LeftButton
LAYERS, HEADS = 30, 9


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Bench:
    del qtbot
    return Bench(tmp_path, Theme("dark"), model_info(LAYERS, HEADS, 3))


def drawing(bench: Bench) -> list[Task]:
    """What is told of the drawing of heads."""
    return [task for task in bench.session.aside.tasks if task.title == "Drawing the heads"]


def asked_grid(bench: Bench) -> Asked:
    [asked] = [asked for asked in bench.engine._queue if isinstance(asked.message, GetGrid)]
    return asked


def grids(bench: Bench) -> int:
    """How often heads were asked for."""
    return sum(isinstance(message, GetGrid) for message in bench.engine.asked)


def begun(qtbot: QtBot, bench: Bench, size: tuple[int, int] = (751, 504)) -> tuple[AttentionPanel, Task]:
    """The panel, and the drawing of its heads, which waits for the engine."""
    panel = shown(qtbot, bench, size)
    bench.engine.held = True
    bench.run(19, 7)
    qtbot.waitUntil(lambda: bool(drawing(bench)) and panel.side.grid.isVisible() and not panel._pending)
    [task] = drawing(bench)
    return panel, task


def come(bench: Bench, count: int) -> None:
    """So many layers are there."""
    asked = asked_grid(bench)
    assert isinstance(asked.message, GetGrid) and asked.on_part is not None
    for layer in asked.message.layers[:count]:
        asked.on_part(GridPart(layer=layer), {"pixels": np.full((HEADS, 11, 11), 90, dtype=np.uint8)})


def let(qtbot: QtBot, bench: Bench, panel: AttentionPanel) -> None:
    bench.engine.held = False
    bench.engine.release()
    settled(qtbot, panel, bench)


def test_how_far_the_drawing_is_is_told_from_its_first_moment(qtbot: QtBot, bench: Bench) -> None:
    panel, task = begun(qtbot, bench)
    told: list[tuple[int, int]] = []
    bench.session.aside.changed.connect(lambda: told.append((task.progress.done, task.progress.total)))  # type: ignore[union-attr]
    assert task.progress is not None
    assert (task.progress.done, task.progress.total, task.progress.unit) == (0, LAYERS, "layers")
    come(bench, 5)
    come(bench, 8)  # one that made way begins again
    assert told == sorted(told) and told[-1] == (8, LAYERS)
    let(qtbot, bench, panel)


def test_heads_that_were_stopped_half_way_say_so_until_they_are_gone_on_with(qtbot: QtBot, bench: Bench) -> None:
    panel, task = begun(qtbot, bench)
    note, grid = panel.side.stopped, panel.side.grid
    come(bench, 12)
    task.cancel()
    assert note.isVisible() and not panel.side.waiting.isVisible()
    assert note.text() == "Stopped at 12 of 30 layers"
    qtbot.waitUntil(lambda: note.sentence.shown() == note.text())
    assert grid.viewport().rect().contains(note.geometry())
    asked = grids(bench)
    for size in ((751, 520), (900, 640), (751, 504)):
        panel.resize(*size)
        qtbot.wait(120)
        assert note.isVisible() and note.text() == "Stopped at 12 of 30 layers"
        assert grid.viewport().rect().contains(note.geometry())
    bench.selection.set_layer_head(3, 3)  # another head of the same run
    qtbot.wait(80)
    assert grids(bench) == asked, "nothing asks again by itself"
    QTest.mouseClick(note.action, LEFT)
    qtbot.waitUntil(lambda: grids(bench) > asked)
    assert not note.isVisible()
    message = asked_grid(bench).message
    assert isinstance(message, GetGrid) and len(message.layers) == LAYERS - 12, "what is there is not drawn again"
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: not grid.missing())
    assert not note.isVisible()


@pytest.mark.parametrize("change", ["run", "step", "stage"])
def test_another_run_is_drawn_though_one_was_stopped(qtbot: QtBot, bench: Bench, change: str) -> None:
    panel, task = begun(qtbot, bench)
    task.cancel()
    assert panel.side.stopped.isVisible() and panel.side.waiting.isVisible(), "squares are empty"
    assert panel.side.stopped.text() == "Stopped at 0 of 30 layers"
    if change == "run":
        bench.run(15, 3, run_id=2)
    elif change == "step":
        bench.run(20, 8)
    else:
        bench.selection.set_stage("raw")
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: not panel.side.grid.missing())
    assert not panel.side.stopped.isVisible() and not panel.side.waiting.isVisible()


def test_pictures_that_were_to_be_larger_stay_coarse_where_that_was_stopped(qtbot: QtBot, bench: Bench) -> None:
    panel, _ = begun(qtbot, bench)
    bench.run(200, 7, run_id=2)
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: not panel.side.grid.missing())
    bench.engine.held = True
    panel.resize(900, 900)
    qtbot.waitUntil(lambda: bool(drawing(bench)))
    drawing(bench)[0].cancel()
    assert panel.side.stopped.isVisible() and panel.side.stopped.text() == "Stopped: drawn coarsely"
    bench.engine.held = False
    QTest.mouseClick(panel.side.stopped.action, LEFT)
    qtbot.waitUntil(lambda: not panel.side.grid.missing())
    qtbot.waitUntil(lambda: not panel.side.stopped.isVisible())
