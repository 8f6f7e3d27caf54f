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
