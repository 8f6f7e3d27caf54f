"""The RoPE panel on tiny models of every kind, driven by mouse and keys; the engine's own handlers answer."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.frame.docks import PanelScroll
from app.panels.rope import RopePanel
from app.theme import Theme
from app.widgets.bar_plot import BarPlot
from app.widgets.ticks import figure
from model.loading import LoadedModel
from model.protocol.figure_requests import ExportRope
from model.protocol.rope_requests import GetRope
from model.rope import RopeSpec
from model.views.rope import rope_reply
from tests.app.model_bench import FAMILIES, ModelBench, bench_with
from tests.app.saving import save
from tests.model.tiny import llama, loaded, made, model_of

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


def ink(widget: QWidget) -> int:
    """How many rows of pixels of a widget have more than one colour."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)[:, : image.width()]
    return int((pixels != pixels[:, :1]).any(1).sum())


def shown(
    qtbot: QtBot, folder: Path, model: LoadedModel, size: tuple[int, int] = (1360, 200), n: int = 14
) -> tuple[ModelBench, RopePanel]:
    bench, panel = bench_with(qtbot, folder, model, RopePanel, size, n)
    settled(qtbot, bench, panel)
    return bench, panel


def settled(qtbot: QtBot, bench: ModelBench, panel: RopePanel) -> None:
    qtbot.waitUntil(lambda: not bench.engine.waiting and panel.settled and panel.reply is not None, timeout=8000)


def expected(bench: ModelBench, **fields: int) -> tuple[object, dict[str, np.ndarray]]:
    run = bench.engine.context.run
    assert run is not None
    return rope_reply(run, GetRope(**({"layer": 1, "head": 3, "query": 9, "key": 4, "distances": 401} | fields)))


def test_planes_shares_and_facts_are_the_engines(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    reply, arrays = expected(bench)
    assert panel.planes is not None
    np.testing.assert_array_equal(panel.planes.q_after, arrays["q_after"])
    np.testing.assert_array_equal(panel.bars.values, arrays["contribution"])
    still = (arrays["q_before"] * arrays["k_before"]).sum(1)
    assert panel.pair == int(np.abs(arrays["contribution"] - still).argmax())  # where position matters most
    text = panel.facts.text()
    assert figure(reply.raw * reply.scale) in text  # type: ignore[attr-defined]
    assert "half-split: i with i + 4" in text
    assert "8 of 8 dims" in text
    assert "5 positions" in text
    assert f"{reply.shift_error:.1e}" in text  # type: ignore[attr-defined]


def test_click_and_keys_choose_a_pair_everywhere(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, llama()[1])
    QTest.mouseClick(panel.grid, LEFT, NONE, panel.grid.cell(2).center().toPoint())
    assert panel.pair == panel.bars.cursor_at == panel.plane.pair == 2
    panel.grid.setFocus()
    QTest.keyClick(panel.grid, Qt.Key.Key_Right)
    assert panel.pair == panel.bars.cursor_at == 3
    assert "pair 3" in panel.grid.accessibleDescription()
    QTest.keyClick(panel.bars, Qt.Key.Key_Home)
    assert panel.pair == panel.grid.cursor_at == 0


def test_the_curve_chooses_keys_and_shares_the_hover(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    curve = panel.curve
    frame = curve.frame()
    at = QPoint(round(frame.px(7.0)), round(frame.plot.center().y()))
    QTest.mouseMove(panel.window().windowHandle(), curve.mapTo(panel.window(), at))
    QApplication.processEvents()
    assert bench.selection.hover_token == 2
    QTest.mouseClick(curve, LEFT, NONE, at)
    assert bench.selection.key == 2
    settled(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.reply is not None and panel.reply.key == 2)
    line = curve.lines[0]
    assert line.name == "this model"
    assert curve.value_at(line, 7.0) == pytest.approx(panel.reply.raw * panel.reply.scale, abs=1e-4)  # type: ignore[union-attr]
    bench.selection.set_hover(token=6)
    qtbot.waitUntil(lambda: curve._hovered == 3.0)


def test_what_ifs_come_and_go_and_are_remembered(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    _, arrays = expected(bench)
    assert panel.reply is not None
    panel.show_curve("yarn 4", on=True)
    panel.show_curve("base 10", on=False)
    names = [line.name for line in panel.curve.lines]
    assert panel.curve._two_axes and panel.curve._right_name not in names, "an axis says what is counted on it"
    keys = [line.key for line in panel.curve.lines]
    assert "yarn 4" in keys
    assert "base 10" not in keys
    line = panel.curve.lines[keys.index("yarn 4")]
    np.testing.assert_array_equal(line.y, arrays["curve_scores"][panel.reply.curves.index("yarn 4")])
    assert "yarn 4" in bench.settings.panel("rope")["curves"]
    panel._fill_menu()
    assert [a.text() for a in panel._menu.actions() if a.isChecked()].count("YaRN ×4") == 1


def test_a_far_curve_says_the_score_of_the_distance_there_is(qtbot: QtBot, tmp_path: Path) -> None:
    """Its points are far apart: the legend once said what the nearest of them was, beside the dot with the score."""
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    bench.selection.set_cell(9, 5)
    panel.reach_box.keyChosen.emit(1024)
    qtbot.waitUntil(lambda: panel.arrays["distance"][-1] == 1024 and panel.settled)
    assert panel.reply is not None
    assert panel.reply.key == 5
    line = next(line for line in panel.curve.lines if line.key == "model")
    steps = np.diff(line.x)
    assert np.median(steps) == 3
    assert {3.0, 4.0, 5.0} <= set(line.x.tolist())
    assert panel.curve.value_at(line, 4.0) == pytest.approx(panel.reply.raw * panel.reply.scale, abs=1e-5)
    assert "every 3" in panel.curve._x_name


def test_reach_asks_for_a_longer_curve(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    panel.reach_box.keyChosen.emit(128)
    qtbot.waitUntil(lambda: float(panel.curve.lines[0].x[-1]) == 128.0)
    assert [m.reach for m in bench.engine.asked if isinstance(m, GetRope)] == [0, 128]


def test_the_table_holds_the_same_numbers_and_copies(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    _, arrays = expected(bench)
    QTest.mouseClick(panel.pages._segments["table"], LEFT)
    assert panel.table.isVisible()
    assert not panel.grid.isVisible()
    model = panel.table.model()
    assert model.rowCount() == 4
    titles = [model.headerData(column, Qt.Orientation.Horizontal) for column in range(model.columnCount())]
    adds = titles.index("adds to q·k")
    assert model.index(1, adds).data() == figure(float(arrays["contribution"][1]), 3)
    QTest.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert len(QGuiApplication.clipboard().text().split("\n")) == 5
    panel.table.setFocus()
    QTest.keyClick(panel.table, Qt.Key.Key_Down)
    assert panel.grid.cursor_at == panel.pair == panel.table.currentIndex().row()


def test_part_of_a_head_keeps_still(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, made(rope=RopeSpec(theta=100.0, dim=4)))
    assert panel.planes is not None
    assert panel.planes.count == 2
    assert "4 of 8 dims" in panel.facts.text()


def test_a_scaled_model_says_so(qtbot: QtBot, tmp_path: Path) -> None:
    rope = RopeSpec(theta=10_000.0, dim=8, kind="yarn", factor=4.0, original_ctx=64, attention_factor=1.1)
    _, panel = shown(qtbot, tmp_path, made(rope=rope))
    assert "YaRN ×4.00 of 64" in panel.facts.text()
    assert panel.reply is not None
    assert "unscaled" in panel.reply.curves


@pytest.mark.parametrize(("positions", "fields"), [
    ("learned", {"positions": "learned", "rope": None, "n_positions_table": 256}),
    ("alibi", {"positions": "alibi", "rope": None}),
    ("none", {"positions": "none", "rope": None}),
])  # fmt: skip
def test_a_model_without_rope_shows_what_it_has(
    qtbot: QtBot, tmp_path: Path, positions: str, fields: dict[str, object]
) -> None:
    bench, panel = shown(qtbot, tmp_path, made(**fields))
    instead = panel.instead
    assert instead.isVisible()
    assert not panel.grid.isVisible()
    assert not panel.what_if.isVisible()
    assert len(instead.words.text()) > 80
    # The dock's room in the standard layout at 1400×900: nothing is cut off, once what was hidden has left the layout.
    qtbot.waitUntil(lambda: panel.heightForWidth(1360) <= 200)
    assert panel.reply is not None
    assert panel.reply.positions == positions
    if positions == "learned":
        assert instead.plot.value_at(instead.plot.lines[0], 9.0) == pytest.approx(1.0, abs=1e-5)
        assert len(instead.plot.lines) == 2
    elif positions == "alibi":
        assert figure(panel.reply.slope) in instead.facts.text()
        assert instead.plot.value_at(instead.plot.lines[0], 5.0) == pytest.approx(-5 * panel.reply.slope, rel=1e-4)
    else:
        assert not instead.plot.isVisible()
    if positions != "none":
        frame = instead.plot.frame()
        at = QPoint(round(frame.px(3.0)), round(frame.plot.center().y()))
        QTest.mouseClick(instead.plot, LEFT, NONE, at)
        assert bench.selection.key == (6 if positions == "alibi" else 3)


def test_several_heads_are_not_one(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    bench.selection.set_layer_head("all", "mean")
    settled(qtbot, bench, panel)
    assert panel.reply is not None
    assert (panel.reply.layer, panel.reply.head) == (1, 3)  # the last single one


def test_hidden_it_asks_nothing_and_fast_changes_ask_once(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    panel.hide()
    before = len(bench.engine.asked)
    for key in range(8):
        bench.selection.set_key(key)
    QTest.qWait(60)
    assert len(bench.engine.asked) == before
    panel.show()
    settled(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.reply is not None and panel.reply.key == 7)
    assert len(bench.engine.asked) == before + 1
    for key in range(9):
        bench.selection.set_key(key)
    settled(qtbot, bench, panel)
    assert len(bench.engine.asked) <= before + 3


def test_a_later_key_is_told(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    bench.selection.set_cell(2, 8)
    qtbot.waitUntil(lambda: panel.reply is not None and panel.reply.key == 8)
    assert "the mask hides a later key" in panel.facts.text()
    assert panel.curve._cursor is None


@pytest.mark.parametrize("size", [(320, 700), (760, 300), (1000, 150), (1360, 200), (1380, 780)])
def test_every_part_is_there_at_any_size(qtbot: QtBot, tmp_path: Path, size: tuple[int, int]) -> None:
    _, panel = shown(qtbot, tmp_path, llama()[1], size)
    for widget in (panel.plane, panel.grid, panel.curve, panel.facts):
        assert widget.isVisible()
        assert widget.width() >= 100
        assert widget.geometry().right() <= panel._rope.width()
    assert panel.bars.isVisible() or 860 <= size[0] < 1180


def test_every_part_has_a_name(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, llama()[1])
    where = panel.where
    for widget in (panel.plane, panel.grid, panel.bars, panel.table, panel.curve, panel.facts, panel.what_if,
                   panel.pages, panel.reach_box, where.layer_box, where.head_box, where.query_box.box,
                   where.key_box.box):  # fmt: skip
        assert widget.accessibleName()


def test_the_chosen_tokens_grow_with_the_text_also_out_of_sight(qtbot: QtBot, tmp_path: Path) -> None:
    """A label with a style sheet of its own came back in the size it had when it was hidden."""
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    bench.selection.set_cell(8, 2)
    piece = panel.where.query_box.piece
    qtbot.waitUntil(lambda: piece.accessibleName() == bench.session.path_tokens()[8].piece)
    small = ink(piece)
    panel.hide()
    panel.ctx.theme.set_text_scale(2.0)
    panel.show()
    qtbot.waitUntil(lambda: ink(piece) >= 1.6 * small)


def test_typing_a_position_chooses_it(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    box = panel.where.key_box.box
    box.setFocus()
    box.selectAll()
    QTest.keyClicks(box, "6")
    QTest.keyClick(box, Qt.Key.Key_Return)
    assert bench.selection.key == 6
    QTest.keyClick(box, Qt.Key.Key_Up)
    assert bench.selection.key == 7


@pytest.mark.parametrize("positions", ["rope", "learned", "alibi", "none"])
def test_what_is_shown_can_be_exported(qtbot: QtBot, tmp_path: Path, positions: str) -> None:
    fields = {} if positions == "rope" else {"positions": positions, "rope": None, "n_positions_table": 256}
    bench, panel = shown(qtbot, tmp_path, made(**fields))
    save(qtbot, panel, tmp_path / "x.json")
    tables = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert any("score" in line[0] for line in tables["numbers"])
    _, arrays = expected(bench)
    if positions == "rope":
        assert np.float32(tables["pairs"][2][-1]) == arrays["contribution"][1]
        assert tables["by distance"][0][:2] == ["distance", "model"]
        assert np.float32(tables["by distance"][6][1]) == arrays["curve_scores"][0][5]
        message = panel.figure(("svg",), "light", "rope")
        assert isinstance(message, ExportRope)
        assert (message.layer, message.head, message.query, message.key) == (1, 3, 9, 4)
    else:
        assert panel.figure(("svg",), "light", "rope") is None
        assert len(tables) == (2 if positions == "none" else 3)


def test_the_layout_follows_the_room_back_and_forth(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    dock = bench.kept[0]
    assert isinstance(dock, PanelScroll)
    for height, tall in ((760, True), (200, False), (760, True), (160, False)):
        dock.resize(1360, height)
        qtbot.waitUntil(lambda tall=tall: panel._arranged.startswith("tall" if tall else "low"))  # type: ignore[misc]
        qtbot.waitUntil(lambda height=height: panel.height() <= height)  # type: ignore[misc] # nothing is scrolled


@pytest.mark.parametrize(("family", "fields"), FAMILIES)
def test_every_family_shows_its_positions(qtbot: QtBot, tmp_path: Path, family: str, fields: dict[str, Any]) -> None:
    bench, panel = shown(qtbot, tmp_path, model_of(family, **fields)[1])
    rotary = family in {"GPTNeoX", "Mixtral"}
    assert panel.grid.isVisible() == rotary
    assert panel.instead.isVisible() != rotary
    if family == "GPTNeoX":
        assert "4 of 16 dims" in panel.facts.text()
        assert "the rest gives" in panel.facts.text()
    for head in range(panel.where.head_box.count()):
        bench.selection.set_head(head)
        settled(qtbot, bench, panel)
        qtbot.waitUntil(lambda head=head: panel.reply.head == head)  # type: ignore[misc,union-attr]


@pytest.mark.parametrize("width", [130, 180, 240, 420, 900])
@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_numbers_under_the_bars_go_in_even_steps(qtbot: QtBot, width: int, scale: float) -> None:
    bars = BarPlot(Theme("dark", scale), "Shares")
    qtbot.addWidget(bars)
    bars.resize(width, 150)
    bars.set_values(np.arange(32, dtype=np.float32), [str(i) for i in range(32)])
    steps = set(np.diff(list(bars.named_bars())).tolist())
    assert len(steps) == 1
    step = steps.pop()
    assert step & (step - 1) == 0
    wide = QFontMetricsF(bars._theme.font("hint")).horizontalAdvance("31")
    assert step * bars.plot_rect().width() / 32 > wide or step == 1
    assert not bars.grab().isNull()


def test_a_caption_over_the_planes_is_no_plane(qtbot: QtBot, tmp_path: Path) -> None:
    _bench, panel = shown(qtbot, tmp_path, made())
    grid = panel.grid
    for pair in range(grid.count):
        assert grid.cell(pair).top() >= grid.head
        assert grid.position_at(grid.cell(pair).center()) == pair
        assert grid.rect().contains(grid.cell(pair).toAlignedRect().adjusted(1, 1, -1, -1))
    assert grid.position_at(QPointF(4, grid.head / 2)) is None


def test_one_column_s_figures_have_as_many_digits(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, llama()[1])
    column = next(column for column in panel.table._model.columns if column.name == "λ, positions")
    assert panel.planes is not None
    assert list(column.texts) == [figure(float(v), 3) for v in panel.planes.wavelength]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_where_rounding_parts_curve_and_score_both_are_said_and_why(qtbot: QtBot, tmp_path: Path, dtype: str) -> None:
    decoder = copy.deepcopy(llama()[1].decoder).to(getattr(torch, dtype))
    bench, panel = shown(qtbot, tmp_path, loaded(decoder))
    reply, arrays = expected(bench)
    facts = {fact.name: fact for fact in panel.facts.facts}
    if dtype == "float32":
        assert "on the curve" not in facts
        return
    at = int(np.flatnonzero(arrays["distance"] == 5)[0])
    drawn, score = float(arrays["curve_scores"][0][at]), reply.raw * reply.scale  # type: ignore[attr-defined]
    assert drawn != pytest.approx(score, rel=1e-6)
    # The sentence is true: what the curve turns, rounded once more, is what the run used, to the last bit.
    rope = decoder.config.rope
    assert rope is not None
    for name, position in (("q", 9), ("k", 4)):
        before, used = (torch.from_numpy(arrays[f"{name}_{when}"]).T.reshape(1, -1) for when in ("before", "after"))
        turned = rope.rotation(torch.tensor([position]), length=17).turn(before)
        assert torch.equal(turned.to(getattr(torch, dtype)).float(), used) and not torch.equal(turned, used)
    assert facts["on the curve"].value == f"{figure(drawn)}, not rounded"
    assert f"rounds them to {dtype}" in facts["on the curve"].tip
