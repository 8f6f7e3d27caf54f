from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.selection import MAX_PINS, Selection
from model.protocol.attention_requests import HeadView
from model.protocol.values import ModelInfo

MODEL = ModelInfo(
    name="m", family="llama", source="", sha256="", n_layers=4, n_heads=6, n_kv_heads=2, d_model=12, d_head=2, d_mlp=24,
    d_vocab=50, n_ctx=64, dtype="float32", device="cpu", parameters=1, weight_bytes=4, positions="rope",
    attention_kind="GQA",
)  # fmt: skip


@pytest.fixture
def selection(qapp: object) -> Selection:
    made = Selection()
    made.set_model(MODEL)
    made.set_length(10)
    return made


def layer_of(selection: Selection) -> object:
    return selection.layer


def test_everything_is_clamped(selection: Selection) -> None:
    selection.set_layer_head(99, 99)
    selection.set_cell(99, -5)
    assert (selection.layer, selection.head, selection.query, selection.key) == (3, 5, 9, 0)
    assert selection.kv_head == 1
    selection.set_length(4)
    assert selection.query == 3
    selection.set_model(None)
    assert (selection.layer, selection.head) == (0, 0)


def test_the_chosen_cell_comes_back_with_the_length(selection: Selection) -> None:
    selection.set_cell(8, 6)
    for length, shown in ((4, (3, 3)), (0, (0, 0)), (7, (6, 6)), (12, (8, 6))):
        selection.set_length(length)
        assert (selection.query, selection.key) == shown
    selection.set_length(5)
    selection.set_query(2)  # chosen anew; the key still waits for its place
    selection.set_length(12)
    assert (selection.query, selection.key) == (2, 6)
    selection.set_length(5)
    selection.step_query(1)
    selection.set_key(99)
    selection.set_length(12)
    assert (selection.query, selection.key) == (3, 4)


def test_all_layers_and_heads_remember_the_last_single_one(selection: Selection) -> None:
    selection.set_layer_head(3, 5)
    selection.set_layer_head("all", "mean")
    assert (selection.single_layer, selection.single_head, selection.single_kv_head) == (3, 5, 1)
    selection.set_head("max")
    selection.set_length(4)
    assert (selection.single_layer, selection.single_head) == (3, 5)
    selection.step_head(1)
    assert (selection.single_layer, selection.single_head, selection.single_kv_head) == (3, 0, 0)
    selection.set_model(None)
    assert (selection.single_layer, selection.single_head) == (0, 0)


def test_one_signal_names_what_changed(selection: Selection, qtbot: QtBot) -> None:
    with qtbot.waitSignal(selection.changed) as changed:
        selection.set_layer_head(2, 3)
    assert changed.args == [frozenset({"layer", "head"})]
    with qtbot.assertNotEmitted(selection.changed):
        selection.set_layer_head(2, 3)


def test_steps_leave_all_mean_and_max_at_the_ends(selection: Selection) -> None:
    selection.set_layer("all")
    selection.step_layer(1)
    assert layer_of(selection) == 0
    selection.set_layer("all")
    selection.step_layer(-1)
    assert layer_of(selection) == 3
    selection.set_head("mean")
    assert selection.kv_head is None
    selection.step_head(-1)
    assert selection.head == 5


def test_hover_ends_where_the_path_does(selection: Selection) -> None:
    selection.set_hover(token=9, cell=(9, 2))
    assert (selection.hover_token, selection.hover_cell) == (9, (9, 2))
    selection.set_length(5)
    assert (selection.hover_token, selection.hover_cell) == (None, None)
    selection.set_hover(token=7, cell=(-1, 0))
    assert (selection.hover_token, selection.hover_cell) == (None, None)


def test_stages_and_scales_go_round(selection: Selection) -> None:
    stages = [selection.stage]
    for _ in range(5):
        selection.cycle_stage()
        stages.append(selection.stage)
    assert stages[0] == stages[5]
    assert len(set(stages)) == 5


def test_pins_are_few_and_belong_to_the_model(selection: Selection) -> None:
    views = [HeadView(layer=layer, head=0) for layer in (0, 1, 2, 3)] + [HeadView(layer="all", head="mean")]
    for view in views:
        selection.toggle_pin(view)
    assert selection.pins == tuple(views[-MAX_PINS:])
    selection.toggle_pin(views[-1])
    assert views[-1] not in selection.pins
    selection.set_model(None)
    assert selection.pins == ()
