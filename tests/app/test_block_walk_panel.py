"""The block walk with the engine's own numbers, driven by mouse and keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.export.panel_files import Table
from app.panels.block_walk import BlockWalkPanel
from app.theme import Theme
from app.widgets.folding import fold, strongest
from app.widgets.info_button import InfoPopup
from app.widgets.ticks import figure
from model.loading import LoadedModel
from model.protocol.walk_requests import GetWalk, GetWalkTensor
from tests.app.model_bench import ModelBench
from tests.model.family_cases import CASES
from tests.model.reference import decoder_for, reference
from tests.model.tiny import loaded, made, random_ids

Key = Qt.Key


def family(name: str) -> LoadedModel:
    case = CASES[name]
    judge = reference(case.reference, gain=case.gain, attention=case.attention, **case.fields)
    return loaded(decoder_for(judge.config, judge.tensors))


def shown(
    qtbot: QtBot, folder: Path, model: LoadedModel | None = None, size: tuple[int, int] = (1100, 360)
) -> tuple[BlockWalkPanel, ModelBench]:
    bench = ModelBench(folder, Theme("dark"), model or made())
    panel = BlockWalkPanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(*size)
    panel.show()
    qtbot.waitExposed(panel)
    bench.run(random_ids(12), 3)
    bench.selection.set_layer_head(1, 2)
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    return panel, bench


def settled(qtbot: QtBot, panel: BlockWalkPanel, bench: ModelBench) -> None:
    qtbot.waitUntil(lambda: not bench.engine.waiting and not panel._pending and panel.walk is not None, timeout=4000)


def ids(panel: BlockWalkPanel) -> list[str]:
    assert panel.walk is not None
    return [op.id for op in panel.walk.ops]


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
    QGuiApplication.clipboard().clear()
    panel.detail.heat.copyWanted.emit("matrix")
    lines = QGuiApplication.clipboard().text().split("\n")
    assert len(lines) == 1 + len(found[2])
    assert np.float32(lines[3].split("\t")[5]) == found[2][2, 4]


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
