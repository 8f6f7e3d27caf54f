"""While the engine is asked for another head, stage or run, no number and no cell of the old one stands for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.panels.attention import AttentionPanel
from app.state.aside import Task
from app.theme import Theme
from app.widgets.ticks import figure
from model.protocol.attention_requests import GetGrid, GetMatrix, GetMetrics
from model.protocol.wire import ErrorInfo
from tests.app.attention_bench import Bench, settled, shown

CELL = (8, 1)


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Bench:
    del qtbot
    return Bench(tmp_path, Theme("dark"))


def held(qtbot: QtBot, bench: Bench, n: int = 19, decoded: int = 7) -> AttentionPanel:
    """The panel with a run that is drawn, and an engine that answers nothing more until it is let."""
    panel = shown(qtbot, bench)
    bench.run(n, decoded)
    bench.selection.set_cell(*CELL)
    settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: not panel.side.grid.missing())
    assert panel.main.heat.value_of(CELL) is not None
    bench.engine.held = True
    return panel


def let(qtbot: QtBot, bench: Bench, panel: AttentionPanel) -> None:
    bench.engine.held = False
    bench.engine.release()
    settled(qtbot, panel, bench)


@pytest.mark.parametrize("change", ["stage", "layer", "head", "run"])
def test_a_number_never_stands_under_the_name_of_another(qtbot: QtBot, bench: Bench, change: str) -> None:
    panel = held(qtbot, bench)
    heat = panel.main.heat
    old = figure(heat.value_of(CELL) or 0.0, 6)
    said: list[str] = []
    heat.described.connect(lambda: said.append(heat.readout_text()))
    selection = bench.selection
    before = heat.readout_text()
    if change == "run":
        bench.engine.seed = 5
        bench.run(19, 7, run_id=2)
    else:
        {"stage": lambda: selection.set_stage("raw"), "layer": lambda: selection.step_layer(1),
         "head": lambda: selection.step_head(1)}[change]()  # fmt: skip
    qtbot.waitUntil(lambda: heat.readout_text().endswith("…"))
    assert heat.value_of(CELL) is None
    let(qtbot, bench, panel)
    now = float(bench.engine.matrix(selection.view)[CELL])
    qtbot.waitUntil(lambda: heat.value_of(CELL) == now)
    assert figure(now, 6) != old
    assert all(old not in text for text in said if text != before)
    assert heat.readout_text().endswith(figure(now, 6))


def test_values_that_a_step_leaves_as_they_are_stay_in_sight(qtbot: QtBot, bench: Bench) -> None:
    panel = held(qtbot, bench, 19, 7)
    heat, value = panel.main.heat, panel.main.heat.value_of(CELL)
    bench.run(20, 8)
    qtbot.waitUntil(lambda: heat.shape == (20, 20))
    assert heat.value_of(CELL) == value and not heat.readout_text().endswith("…")
    let(qtbot, bench, panel)


def test_rows_of_another_branch_are_not_those_of_this_one(
    qtbot: QtBot, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = held(qtbot, bench, 19, 7)  # decode nodes 12 … 18
    heat = panel.main.heat
    values = {row: heat.value_of((row, 0)) for row in (11, 14, 15, 18)}
    assert None not in values.values()
    path = tuple(replace(node, id=100 + node.id) if node.position > 14 else node for node in bench.session.path_nodes())
    monkeypatch.setattr(bench.session, "path_nodes", lambda: path)
    panel.main.sync(titled=False)
    assert heat.value_of((11, 0)) == values[11] and heat.value_of((14, 0)) == values[14]
    assert heat.value_of((15, 0)) is None and heat.value_of((18, 0)) is None
    let(qtbot, bench, panel)


@pytest.mark.parametrize("change", ["stage", "run"])
def test_the_grid_of_another_run_or_stage_is_cleared(qtbot: QtBot, bench: Bench, change: str) -> None:
    panel = held(qtbot, bench)
    grid = panel.side.grid
    assert not grid.blank
    if change == "run":
        bench.engine.seed = 5
        bench.run(19, 7, run_id=2)
    else:
        bench.selection.set_stage("raw")
    qtbot.waitUntil(lambda: grid.blank)
    assert panel.side.waiting.text() and len(grid.missing()) == 6
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: not grid.missing())
    assert not grid.blank and not panel.side.waiting.text()


def test_the_grid_stays_while_a_head_is_chosen_or_a_token_comes(qtbot: QtBot, bench: Bench) -> None:
    panel = held(qtbot, bench)
    bench.selection.step_layer(1)
    bench.run(20, 8)
    qtbot.waitUntil(lambda: panel.main.heat.shape == (20, 20))
    assert not panel.side.grid.blank and len(panel.side.grid.missing()) == 6
    let(qtbot, bench, panel)


def test_marks_of_another_run_go_with_it(qtbot: QtBot, bench: Bench) -> None:
    panel = held(qtbot, bench)
    bench.engine.held = False
    panel.side.metric_box.set_key("entropy")
    panel.side.metric_box.keyChosen.emit("entropy")
    qtbot.waitUntil(lambda: panel.side.grid.measure is not None)
    bench.engine.held = True
    bench.engine.seed = 5
    bench.run(19, 7, run_id=2)
    qtbot.waitUntil(lambda: panel.side.grid.measure is None)
    assert any(isinstance(each.message, GetMetrics) for each in bench.engine._queue)
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.side.grid.measure is not None)
    measure = panel.side.grid.measure
    assert measure is not None and np.isfinite(measure[1]).all()


@pytest.mark.parametrize("code", ["superseded", "cancelled"])
def test_a_matrix_and_a_grid_that_were_taken_back_are_asked_for_again(qtbot: QtBot, bench: Bench, code: str) -> None:
    panel = held(qtbot, bench)
    bench.selection.set_stage("raw")
    kinds = (GetMatrix, GetGrid)
    qtbot.waitUntil(lambda: all(any(isinstance(a.message, kind) for a in bench.engine._queue) for kind in kinds))
    taken, bench.engine._queue = bench.engine._queue, []
    for each in taken:
        assert each.on_error is not None
        each.on_error(ErrorInfo(code=code, message=""))
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.main.heat.value_of(CELL) == float(bench.engine.matrix(bench.selection.view)[CELL]))
    qtbot.waitUntil(lambda: not panel.side.grid.missing())


def test_what_cannot_be_had_is_not_asked_for_over_and_over(qtbot: QtBot, bench: Bench) -> None:
    panel = held(qtbot, bench)
    bench.selection.set_stage("raw")
    qtbot.waitUntil(lambda: any(isinstance(a.message, GetMatrix) for a in bench.engine._queue))
    taken, bench.engine._queue = bench.engine._queue, []
    before = len(bench.engine.asked)
    for each in taken:
        assert each.on_error is not None
        each.on_error(ErrorInfo(code="failed", message="no"))
    qtbot.wait(200)
    assert len(bench.engine.asked) == before
    bench.selection.set_stage("weights")
    let(qtbot, bench, panel)


def test_a_grid_that_an_equal_question_takes_back_is_asked_for_once(qtbot: QtBot, bench: Bench) -> None:
    """The layers and their size are the same after a step; taken for the old question the new one would be asked again,
    which takes it back too, and so on for as long as the engine is not done."""
    panel = held(qtbot, bench)
    bench.selection.set_stage("raw")
    qtbot.waitUntil(lambda: any(isinstance(asked.message, GetGrid) for asked in bench.engine._queue))
    before = sum(isinstance(message, GetGrid) for message in bench.engine.asked)
    bench.selection.set_stage("weighted")
    qtbot.wait(300)
    assert sum(isinstance(message, GetGrid) for message in bench.engine.asked) == before + 1
    let(qtbot, bench, panel)
    assert not panel.side.grid.missing()


def test_a_tables_block_of_the_path_before_is_no_answer_for_this_one(qtbot: QtBot, bench: Bench) -> None:
    panel = held(qtbot, bench, 20, 8)
    panel.toggle_table()
    table = panel.main._table
    assert table is not None
    qtbot.waitUntil(lambda: any(asked.slot is None for asked in bench.engine._queue))
    blocks = [asked for asked in bench.engine._queue if asked.slot is None]
    bench.engine.seed = 5
    bench.run(20, 8)  # of the same length
    panel.main.sync(titled=False)
    before = table.blocks.matrix
    rows, cols = (0, 20), (0, 20)
    for asked in blocks:
        assert asked.on_reply is not None
        bench.engine._serve(asked)
    qtbot.wait(60)  # answers take turns
    assert table.blocks.matrix == before and table.blocks._blocks.get((0, 0)) is None
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: table.blocks.values(rows, cols) is not None)
    assert table.blocks.value(*CELL) == float(bench.engine.matrix(bench.selection.view)[CELL])


def test_a_view_that_fails_says_why_over_what_is_drawn_and_is_tried_again(qtbot: QtBot, bench: Bench) -> None:
    panel = held(qtbot, bench)
    bench.selection.step_layer(1)
    qtbot.waitUntil(lambda: any(isinstance(a.message, GetMatrix) for a in bench.engine._queue))
    for each in [asked for asked in bench.engine._queue if isinstance(asked.message, GetMatrix)]:
        bench.engine._queue.remove(each)
        assert each.on_error is not None
        each.on_error(ErrorInfo(code="internal", message="Something went wrong inside the engine: on purpose"))
    qtbot.waitUntil(lambda: panel._empty is not None)
    assert panel._empty is not None
    assert panel._empty.isVisible() and panel._empty.sentence.text().endswith("on purpose")
    assert panel._empty.geometry().contains(panel.main.heat.mapTo(panel, panel.main.heat.rect().center()))
    bench.engine.held = False
    panel._empty.action.click()
    qtbot.waitUntil(lambda: panel._empty is None)
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.main.heat.value_of(CELL) == float(bench.engine.matrix(bench.selection.view)[CELL]))


def test_a_failure_of_a_run_that_is_gone_covers_nothing(qtbot: QtBot, bench: Bench) -> None:
    panel = held(qtbot, bench)
    bench.selection.step_layer(1)
    qtbot.waitUntil(lambda: any(isinstance(a.message, GetMatrix) for a in bench.engine._queue))
    taken, bench.engine._queue = bench.engine._queue, []
    bench.run(19, 7, run_id=2)
    for each in taken:
        assert each.on_error is not None
        each.on_error(ErrorInfo(code="internal", message="on purpose"))
    qtbot.wait(60)
    assert panel._empty is None
    let(qtbot, bench, panel)


def test_an_answer_of_another_place_of_the_run_is_not_taken_for_this_one(qtbot: QtBot, bench: Bench) -> None:
    """A seek overtakes a view in the engine, or is under way when it is asked: back and forth in a moment, the matrix
    of the shorter path stood for the longer one for good."""
    panel = held(qtbot, bench)
    here = (bench.session.run_id or 0, bench.session.current_node)
    bench.engine.place = (here[0], here[1] - 1)
    bench.selection.set_stage("raw")
    qtbot.waitUntil(lambda: any(isinstance(asked.message, GetMatrix) for asked in bench.engine._queue))
    bench.engine.held = False
    bench.engine.seed = 5  # what it would draw of there
    bench.engine.release()
    assert panel.main.heat.value_of(CELL) is None
    bench.engine.place, bench.engine.seed = here, 0
    settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: panel.main.heat.value_of(CELL) == float(bench.engine.matrix(bench.selection.view)[CELL]))
    qtbot.waitUntil(lambda: not panel.side.grid.missing())


def drawing(bench: Bench) -> list[Task]:
    """What is told of the drawing of heads, among other views that are held."""
    return [task for task in bench.session.aside.tasks if task.title == "Drawing the heads"]


def test_the_drawing_of_the_heads_is_told_and_can_be_stopped(qtbot: QtBot, bench: Bench) -> None:
    panel = held(qtbot, bench)
    aside = bench.session.aside
    assert aside.newest is None
    bench.selection.set_stage("raw")
    qtbot.waitUntil(lambda: bool(drawing(bench)))
    asked = len([message for message in bench.engine.asked if isinstance(message, GetGrid)])
    (task,) = drawing(bench)
    task.cancel()
    qtbot.waitUntil(lambda: not drawing(bench))
    assert panel.side.waiting.isVisible()
    let(qtbot, bench, panel)
    qtbot.wait(100)
    assert len([message for message in bench.engine.asked if isinstance(message, GetGrid)]) == asked
    assert panel.side.grid.missing()
    bench.selection.set_stage("weights")
    qtbot.waitUntil(lambda: not panel.side.grid.missing())
    qtbot.waitUntil(lambda: aside.newest is None)


def test_the_drawing_of_a_run_that_is_gone_is_told_no_more(qtbot: QtBot, bench: Bench) -> None:
    """Its answers reach nobody; the status bar would have told of it for good."""
    panel = held(qtbot, bench)
    bench.selection.set_stage("raw")
    qtbot.waitUntil(lambda: bool(drawing(bench)))
    bench.run(19, 7, run_id=2)
    let(qtbot, bench, panel)
    qtbot.waitUntil(lambda: not panel.side.grid.missing())
    qtbot.waitUntil(lambda: not bench.session.aside.tasks)
