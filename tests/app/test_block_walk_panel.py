"""The block walk with the engine's own numbers, driven by mouse and keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.export.panel_files import Table
from app.widgets.folding import fold, strongest
from app.widgets.info_button import InfoPopup
from app.widgets.ticks import figure
from model.colormaps import Levels
from model.protocol.walk_requests import GetWalk, GetWalkTensor, WalkTensorReply
from tests.app.walk_bench import family, ids, settled, shown

Key = Qt.Key


def test_it_follows_the_selection_and_proves_its_end(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    assert panel.walk is not None
    assert (panel.walk.position, panel.walk.layer, panel.walk.head, panel.walk.kv_head) == (8, 1, 2, 1)
    assert panel.walk.error < 1e-5
    assert "differs from the run by" in panel.about.text()
    bench.selection.set_layer(2)
    bench.selection.set_query(11)
    settled(qtbot, panel, bench)
    assert (panel.walk.position, panel.walk.layer) == (11, 2)
    assert panel.bar.place == 3
    bench.step()
    settled(qtbot, panel, bench)
    assert panel.walk.length == 16


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("gpt2", {"mlp.post", "attn.norm"}, {"attn.rot_q", "mlp.up", "attn.bias"}),
        ("bloom, heads not a power of two", {"attn.bias"}, {"attn.rot_q", "moe.router"}),
        ("gpt_neox", {"attn.rot_q"}, {"resid_mid", "mlp.up"}),
        ("mixtral", {"moe.router", "moe.weights", "mlp.act"}, {"attn.bias"}),
        ("gemma2", {"attn.cap", "attn.post_norm", "mlp.post_norm"}, {"attn.bias"}),
    ],
)
def test_every_family_has_its_own_list_of_operations(
    qtbot: QtBot, tmp_path: Path, name: str, has: set[str], lacks: set[str]
) -> None:
    panel, bench = shown(qtbot, tmp_path, family(name))
    assert has <= set(ids(panel)) and not lacks & set(ids(panel))
    assert all(op_id in panel._words for op_id in ids(panel))
    for index in range(len(ids(panel))):
        panel.cards.cardChosen.emit(index)
        for what in ("token", "parts", "positions"):
            if panel.detail.what._segments[what].isEnabled():
                QTest.mouseClick(panel.detail.what._segments[what], Qt.MouseButton.LeftButton)
                settled(qtbot, panel, bench)
                assert panel.detail.heat.tiles, (ids(panel)[index], what)
    for cell in (0, bench.model.info.n_layers + 1):
        panel.bar.placeChosen.emit(cell)
        settled(qtbot, panel, bench)
        assert all(op_id in panel._words for op_id in ids(panel))


def test_keys_walk_in_along_and_out(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel.bar.setFocus()
    QTest.keyClick(panel.bar, Key.Key_Home)
    settled(qtbot, panel, bench)
    assert ids(panel)[0] == "embed.row"
    QTest.keyClick(panel.bar, Key.Key_Right)
    settled(qtbot, panel, bench)
    assert bench.selection.layer == 0 and ids(panel)[0] == "resid_pre"
    panel.into()
    assert panel.cards.hasFocus()
    for _ in range(2):
        QTest.keyClick(panel.cards, Key.Key_Right)
    assert panel.detail.shown is not None and panel.detail.shown.op.id == "attn.q"
    QTest.keyClick(panel.cards, Key.Key_Return)
    assert panel.large and not panel.cards.isVisible() and panel.detail.heat.hasFocus()
    panel.out()
    assert panel.cards.isVisible() and panel.cards.hasFocus()
    panel.out()
    assert panel.bar.hasFocus()


def test_hover_names_the_dimension_and_its_exact_value(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path)
    panel._choose(ids(panel).index("mlp.post"))
    heat, values = panel.detail.heat, panel.arrays[panel.cards.chosen]
    folded = panel.detail.folded
    assert folded is not None
    row, col = folded.cell(37)
    QTest.mouseMove(panel.windowHandle(), heat.mapTo(panel, heat.cell_rect((row, col)).center().toPoint()))
    qtbot.waitUntil(lambda: figure(float(values[0, 37]), 6) in panel.detail.readout.text())
    assert "neuron 37" in panel.detail.readout.text()


def test_the_cursor_keeps_its_dimension_from_head_to_head(qtbot: QtBot, tmp_path: Path) -> None:
    """Down in the map of all heads' queries chooses the next head, and began again at dimension 0."""
    panel, bench = shown(qtbot, tmp_path)
    settled(qtbot, panel, bench)
    panel._choose(ids(panel).index("attn.q"))
    settled(qtbot, panel, bench)
    heat, head = panel.detail.heat, bench.selection.head
    assert heat.selected == (head, 0)
    heat.setFocus()
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Down if head == 0 else Qt.Key.Key_Up):
        QTest.keyClick(heat, key)
        settled(qtbot, panel, bench)
    assert bench.selection.head != head and heat.selected == (bench.selection.head, 3)


def test_walking_in_where_one_is_keeps_the_cursor(qtbot: QtBot, tmp_path: Path) -> None:
    """It and the readout went when Enter was pressed once more."""
    panel, bench = shown(qtbot, tmp_path)
    settled(qtbot, panel, bench)
    panel.open_card(0)
    settled(qtbot, panel, bench)
    heat = panel.detail.heat
    QTest.keyClick(heat, Qt.Key.Key_Right)
    cursor, said = heat.selected, panel.detail.readout.text()
    assert cursor is not None and said
    panel.into()
    settled(qtbot, panel, bench)
    assert heat.hasFocus() and (heat.selected, panel.detail.readout.text()) == (cursor, said)


def test_keys_of_the_weights_are_linked_tokens(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel._choose(ids(panel).index("attn.pattern"))
    heat = panel.detail.heat
    QTest.mouseMove(panel.windowHandle(), heat.mapTo(panel, heat.cell_rect((0, 5)).center().toPoint()))
    qtbot.waitUntil(lambda: bench.selection.hover_token == 5)
    QTest.mouseClick(heat, Qt.MouseButton.LeftButton, pos=heat.cell_rect((0, 3)).center().toPoint())
    assert bench.selection.key == 3
    values = panel.arrays[panel.cards.chosen][0]
    model = panel.detail.list.model()
    assert model.rowCount() == 9  # the mask hides the six later ones
    assert int(model.index(0, 0).data()) == int(np.nanargmax(values))


def test_terms_sum_and_the_table_twin_holds_them(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel._choose(ids(panel).index("attn.z"))
    QTest.mouseClick(panel.detail.what._segments["parts"], Qt.MouseButton.LeftButton)
    settled(qtbot, panel, bench)
    found = panel.detail.matrix()
    assert found is not None
    np.testing.assert_allclose(found[2].sum(0), panel.arrays[panel.cards.chosen][0], atol=1e-5)
    assert "sum − result" in panel.detail.stats.text()
    QTest.mouseClick(panel.detail.table_button, Qt.MouseButton.LeftButton)
    model = panel.detail.table.model()
    qtbot.waitUntil(lambda: model.index(2, 4).data() == figure(float(found[2][2, 4])))
    clipboard, table = QGuiApplication.clipboard(), panel.detail.table
    table.set_current(2, 4)
    rows, cols = table.span()
    for what, n_lines, n_cells in (
        ("cell", 1, 1), ("row", 2, 1 + found[2].shape[1]), ("matrix", 1 + rows[1] - rows[0], 1 + cols[1] - cols[0]),
    ):  # fmt: skip
        clipboard.clear()
        table.copyWanted.emit(what)
        lines = [line.split("\t") for line in clipboard.text().split("\n")]
        assert (len(lines), len(lines[-1])) == (n_lines, n_cells)
        if what == "row":
            assert np.float32(lines[1][5]) == found[2][2, 4]
    clipboard.clear()
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert np.float32(clipboard.text()) == found[2][2, 4]
    panel.detail.table_button.setChecked(False)
    panel.detail.heat.copyWanted.emit("matrix")
    lines = [line.split("\t") for line in clipboard.text().split("\n")]
    assert len(lines) == 1 + len(found[2])
    assert np.float32(lines[3][5]) == found[2][2, 4]


def test_a_hidden_panel_asks_nothing_and_fast_changes_once_a_frame(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    before = len(bench.engine.asked_of(GetWalk))
    for step in range(60):
        bench.selection.set_head(step % 4)
    settled(qtbot, panel, bench)
    assert len(bench.engine.asked_of(GetWalk)) - before <= 2
    panel.hide()
    before = len(bench.engine.asked)
    for step in range(10):
        bench.selection.set_query(step)
    QTest.qWait(50)
    assert len(bench.engine.asked) == before
    assert not bench.engine.asked_of(GetWalkTensor)


def test_every_operation_explains_itself(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path)
    for index in range(len(ids(panel))):
        panel._choose(index)
        assert panel.detail.shown is not None
        words = panel.detail.shown.words
        assert words.title and words.what and words.look
    panel._choose(0)
    info = panel.cards._info_rect(panel.cards.card_rect(0)).center().toPoint()
    QTest.mouseClick(panel.cards.viewport(), Qt.MouseButton.LeftButton, pos=info)
    popup = panel.findChild(InfoPopup)
    assert popup is not None and popup.accessibleName() == "Stream in"
    popup.close()


def test_folding_keeps_every_number() -> None:
    for count in (1, 16, 17, 48, 576, 1000, 4097):
        row = np.arange(count, dtype=np.float32)
        folded = fold(row)
        assert [folded.values[folded.cell(i)] for i in (0, count // 2, count - 1)] == [0, count // 2, count - 1]
        assert np.count_nonzero(~np.isnan(folded.values)) == count
    grid = np.random.default_rng(0).standard_normal((37, 90)).astype(np.float32)
    small = strongest(grid, 10, 76)
    assert small.shape == (10, 76) and np.abs(small).max() == np.abs(grid).max()


def test_tables_hold_every_number(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel._choose(ids(panel).index("attn.proj"))
    QTest.mouseClick(panel.detail.what._segments["parts"], Qt.MouseButton.LeftButton)
    settled(qtbot, panel, bench)
    found: list[Table] = []
    panel.tables(found.extend)
    tables = dict(found)
    assert [line[0] for line in found[0][1][1:]] == ids(panel)
    for op_id, values in zip(ids(panel), panel.arrays, strict=True):
        read = np.array([[np.float32(cell or "nan") for cell in line] for line in tables[op_id]])
        np.testing.assert_array_equal(read, values)
    assert len(tables["attn.proj · parts"]) == 1 + 4  # a line for each head


def test_the_fixed_readout_follows_the_token_through_all_positions(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel._choose(ids(panel).index("mlp.down"))
    detail = panel.detail
    QTest.mouseClick(detail.what._segments["positions"], Qt.MouseButton.LeftButton)
    settled(qtbot, panel, bench)
    at = detail.heat.cell_rect((4, 7)).center().toPoint()
    QTest.mouseMove(panel.windowHandle(), detail.heat.mapTo(panel, at))
    QTest.mouseClick(detail.heat, Qt.MouseButton.LeftButton, pos=at)
    settled(qtbot, panel, bench)
    for position in (5, 6):
        bench.selection.step_query(1)
        settled(qtbot, panel, bench)
        value = panel.arrays[panel.cards.chosen][0, 7]
        assert detail.heat.selected == (position, 7)
        assert detail.readout.text().startswith("position ") and f" {position}   dimension 7" in detail.readout.text()
        read = float(detail.readout.text().split()[-1].replace("−", "-"))
        assert read == pytest.approx(float(value), rel=1e-4, abs=1e-6)
        assert detail.heat.accessibleDescription() == detail.readout.text()


def test_generated_tokens_are_amber_along_every_axis_of_tokens(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    heat = panel.detail.heat
    panel._choose(ids(panel).index("attn.scaled"))
    assert (heat.boundary, heat.col_boundary) == (None, 12) and heat.col_axis.first_decode == 12
    line = heat.grab().toImage()
    x = round(heat.cell_rect((0, 12)).left()) - 1
    amber = panel.ctx.theme.palette.amber
    column = [line.pixelColor(x, y) for y in range(line.height())]
    assert any(abs(c.red() - amber.red()) < 30 and abs(c.blue() - amber.blue()) < 40 for c in column)
    QTest.mouseClick(panel.detail.what._segments["parts"], Qt.MouseButton.LeftButton)
    settled(qtbot, panel, bench)
    assert (heat.boundary, heat.col_boundary) == (12, None) and heat.row_axis.first_decode == 12
    panel._choose(ids(panel).index("mlp.down"))
    assert (heat.boundary, heat.col_boundary) == (None, None) and heat.row_axis.first_decode is None
    QTest.mouseClick(panel.detail.what._segments["positions"], Qt.MouseButton.LeftButton)
    settled(qtbot, panel, bench)
    assert heat.boundary == 12 and heat.row_axis.first_decode == 12


def test_ranks_begin_with_one_and_the_end_has_its_own_words(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel.bar.placeChosen.emit(bench.model.info.n_layers + 1)
    settled(qtbot, panel, bench)
    assert "next block" not in panel._words["resid_post"].text
    horizontal = Qt.Orientation.Horizontal
    for op, name in (("head.logits", "logit"), ("head.softmax", "probability")):
        panel._choose(ids(panel).index(op))
        model = panel.detail.list.model()
        assert [model.index(row, 0).data() for row in range(3)] == ["1", "2", "3"]
        assert (model.headerData(0, horizontal), model.headerData(3, horizontal)) == ("rank", name)


def test_the_kind_of_an_operation_chooses_its_map_and_the_scale_in_force_its_levels(
    qtbot: QtBot, tmp_path: Path
) -> None:
    panel, bench = shown(qtbot, tmp_path)
    assert panel.walk is not None
    signed = {op.id: card.signed for op, card in zip(panel.walk.ops, panel.cards._cards, strict=True)}
    assert [op for op, kind in signed.items() if not kind] == ["attn.pattern"]
    first = panel.cards._cards[0].picture
    bench.selection.set_scale("linear")
    settled(qtbot, panel, bench)
    linear = panel.cards._cards[0].picture
    assert np.abs(first.astype(int) - 128).sum() > np.abs(linear.astype(int) - 128).sum()  # small values are seen
    assert panel.detail.heat.bar is not None and panel.detail.heat.bar.scale.startswith("linear")


def test_colours_of_all_positions_end_before_a_few_values_far_beyond_the_others(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel.detail.what.set_key("positions")
    panel.detail._on_what()
    settled(qtbot, panel, bench)
    bar = panel.detail.heat.bar
    assert bar is not None and not bar.beyond and "dark" not in bar.scale
    reply = WalkTensorReply(shape=(2, 2), rows=(0, 2), cols=(0, 2), pooled=False, low=-3.0, high=3.0, data_low=-2.0,
                            data_high=900.0, total=0.0, run_id=1, length=2)  # fmt: skip
    asked = panel.detail._asked
    assert asked is not None
    values = np.array([[1, 900], [-2, 0]], np.float32)
    pixels = Levels(low=-3.0, high=3.0, signed=True).pixels(values)
    panel.detail._on_tensor(reply, {"pixels": pixels, "values": values}, asked)
    bar, table = panel.detail.heat.bar, panel.detail.heat.table
    assert bar is not None and bar.beyond and bar.scale.endswith("beyond it: dark")
    assert (bar.values[0], bar.values[2]) == (-3.0, 3.0)
    light = [QColor.fromRgb(int(table[pixel])).lightness() for pixel in (254, pixels[0, 1])]
    assert light[1] < light[0] / 2  # the cell that is beyond
    assert panel.detail.heat.value_of((0, 1)) == 900.0


def test_masked_cells_of_cards_take_the_new_theme_s_colour(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    before = panel.cards._tables[True][0]
    panel.ctx.theme.set_choice("light")
    settled(qtbot, panel, bench)
    assert panel.cards._tables[True][0] == panel.ctx.theme.palette.masked.rgb() != before
