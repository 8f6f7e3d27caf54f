"""The KV panel with the engine's own numbers, driven by mouse and keys."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.panels.kv import KvPanel, plan
from app.panels.kv_contents import what_captions
from app.panels.kv_facts import phase_rows
from app.theme import Theme
from app.widgets.growth_words import SWATCH, legend
from app.widgets.heatmap_boundary import boundary_words, words_place
from app.widgets.heatmap_paint import shown_readout
from app.widgets.readout import parts_width
from app.widgets.table_style import LEAST_ROW
from app.widgets.units import amount
from model.loading import LoadedModel
from model.protocol.kv_requests import GetKv, GetKvContents, MeasureRecompute
from model.run import Run
from model.views.kv import kv_contents, kv_reply
from tests.app.model_bench import ModelBench
from tests.app.saving import save
from tests.model.family_cases import CASES
from tests.model.reference import decoder_for, reference
from tests.model.tiny import loaded, made, random_ids

Key, LEFT, NONE = Qt.Key, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
WIDE, TALL = (1360, 200), (1360, 780)


def family(name: str) -> LoadedModel:
    case = CASES[name]
    judge = reference(case.reference, gain=case.gain, attention=case.attention, **case.fields)
    return loaded(decoder_for(judge.config, judge.tensors))


def shown(
    qtbot: QtBot,
    folder: Path,
    model: LoadedModel | None = None,
    size: tuple[int, int] = TALL,
    n: int = 12,
    steps: int = 3,
) -> tuple[KvPanel, ModelBench, Run]:
    bench = ModelBench(folder, Theme("dark"), model or made())
    panel = KvPanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(*size)
    panel.show()
    qtbot.waitExposed(panel)
    run = bench.run(random_ids(n), steps)
    bench.selection.set_layer_head(1, 2)
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    return panel, bench, run


def settled(qtbot: QtBot, panel: KvPanel, bench: ModelBench) -> None:
    def done() -> bool:
        return not bench.engine.waiting and panel.settled and bool(panel.contents.heat.tiles)

    qtbot.waitUntil(done, timeout=4000)


def column(lines: list[list[str]], index: int) -> list[str]:
    return [line[index] for line in lines]


def test_every_number_is_the_engines(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _bench, run = shown(qtbot, tmp_path)
    reply, arrays = kv_reply(run)
    growth = panel.plot.growth
    assert growth is not None
    assert (growth.used, growth.length) == (reply.used, 15)
    assert growth.used_at(14) == reply.used
    assert [growth.used_at(i) for i in (0, 11)] == [
        12 * reply.bytes_per_token
    ] * 2  # the prefill fills its rows at once
    assert growth.allocated_at(14) == reply.allocated
    assert dict(growth.layouts) == {"MHA": reply.bytes_per_token_mha, "MQA": reply.bytes_per_token_mqa}
    assert f"{reply.formula:,} B" in panel.grid.cards["growth"].caption.text()
    heads = panel.heads.as_lines()
    assert column(heads, 0) == ["MHA, 4 KV", "GQA, 2 KV", "MQA, 1 KV"]
    assert column(heads, 1) == [f"{reply.bytes_per_token * f // 2:,} B" for f in (4, 2, 1)]
    left = panel.left.as_lines()
    assert left[0][1] == f"{reply.tokens_left_context:,} tokens"
    assert left[1][1] == f"{reply.tokens_left_memory:,} tokens"
    assert len(panel.layers.rows) == 3
    assert sum(arrays["used"]) == reply.used
    phases = panel.phases.as_lines()
    assert phases[0][1:] == ["prefill, 12 tok", "decode, 1 tok"]
    rate = reply.prefill.flops / reply.prefill.ms * 1e3
    assert phases[3][1].split()[1].endswith("FLOP/s")
    assert float(phases[3][1].split()[0]) == pytest.approx(
        rate / {"MFLOP/s": 1e6, "GFLOP/s": 1e9, "KFLOP/s": 1e3}[phases[3][1].split()[1]], rel=0.01  # three digits
    )  # fmt: skip


def test_contents_are_the_caches_and_follow_the_selection(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, run = shown(qtbot, tmp_path)
    heat = panel.contents.heat
    assert panel.contents.place() == (1, 1)  # query head 2 reads KV head 1
    np.testing.assert_array_equal(heat.tiles[-1].values, kv_contents(run, 1, 1, "k", (0, 15)))
    assert heat.newest == 14
    QTest.mouseClick(panel.contents.kind._segments["v"], LEFT)
    settled(qtbot, panel, bench)
    np.testing.assert_array_equal(heat.tiles[-1].values, kv_contents(run, 1, 1, "v", (0, 15)))
    QTest.mouseClick(panel.contents.kind._segments["k_unrotated"], LEFT)
    settled(qtbot, panel, bench)
    np.testing.assert_array_equal(heat.tiles[-1].values, kv_contents(run, 1, 1, "k_unrotated", (0, 15)))
    panel.contents.kv_head.keyChosen.emit(0)
    panel.contents.layer.keyChosen.emit(2)
    assert (bench.selection.layer, bench.selection.head) == (2, 0)
    bench.selection.set_layer_head(0, 1)
    settled(qtbot, panel, bench)
    assert panel.contents.place() == (0, 0)
    bench.selection.set_layer_head(2, 3)
    bench.selection.set_layer_head("all", "max")
    settled(qtbot, panel, bench)
    assert panel.contents.place() == (2, 1)
    assert panel.layers.currentIndex().row() == 2


def test_hover_and_selection_are_linked_both_ways(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, _run = shown(qtbot, tmp_path)
    heat, selection = panel.contents.heat, bench.selection
    at = heat.cell_rect((6, 3)).center().toPoint()
    QTest.mouseMove(panel.windowHandle(), heat.mapTo(panel, at))
    QApplication.processEvents()
    assert selection.hover_token == 6
    qtbot.waitUntil(lambda: panel.plot.hovered == 6)
    QTest.mouseClick(heat, LEFT, NONE, at)
    assert selection.key == 6
    selection.set_hover(token=9)
    qtbot.waitUntil(lambda: heat.linked == 9 and panel.plot.hovered == 9)
    spot = QPoint(round(panel.plot.x_of(3)), round(panel.plot.plot_rect().center().y()))
    QTest.mouseClick(panel.plot, LEFT, NONE, spot)
    assert selection.key == 3
    panel.plot.setFocus()
    QTest.keyClick(panel.plot, Key.Key_Right)
    assert selection.key == 4
    qtbot.waitUntil(lambda: heat.selected == (4, 3))
    heat.setFocus()
    QTest.keyClick(heat, Key.Key_Down)
    assert selection.key == 5
    row = panel.layers.visualRect(panel.layers.model().index(2, 0)).center()
    QTest.mouseClick(panel.layers.viewport(), LEFT, NONE, row)
    assert selection.layer == 2


def test_what_was_chosen_is_there_in_a_panel_made_anew(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, _run = shown(qtbot, tmp_path, size=WIDE)
    switch = next(s for s in panel.grid.switches if "layers" in s._segments)
    QTest.mouseClick(switch._segments["layers"], LEFT)
    QTest.mouseClick(panel.contents.kind._segments["k_unrotated"], LEFT)
    settled(qtbot, panel, bench)
    assert "K before" in panel.contents.heat.readout_text()
    again = KvPanel(bench.ctx)
    qtbot.addWidget(again)
    again.resize(*WIDE)
    again.show()
    qtbot.waitExposed(again)
    assert again.layers.isVisible()
    assert not again.phases.isVisible()
    assert again.contents.what == "k_unrotated"
    qtbot.waitUntil(lambda: again.contents.kind.key() == "k_unrotated")


def test_the_rows_of_a_step_have_names_of_their_own(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _bench, _run = shown(qtbot, tmp_path)
    names = column(panel.step.as_lines(header=False), 0)
    assert len(set(names)) == len(names) == 6


def test_the_table_twin_and_copy_hold_the_same_numbers(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, run = shown(qtbot, tmp_path)
    values = kv_contents(run, 1, 1, "k", (0, 15))
    bench.selection.set_key(4)
    settled(qtbot, panel, bench)
    panel.contents.heat.setFocus()
    QTest.keyClick(panel.contents.heat, Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    settled(qtbot, panel, bench)
    assert np.float32(QGuiApplication.clipboard().text()) == values[4, 0]
    panel.contents.copy("matrix")
    settled(qtbot, panel, bench)
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    np.testing.assert_array_equal(np.array([line[1:] for line in lines[1:]], np.float32), values)
    panel.toggle_table()
    table = panel.contents._table
    assert table is not None
    qtbot.waitUntil(lambda: not bench.engine.waiting and table.blocks.value(14, 7) is not None)
    assert table.blocks.value(14, 7) == float(values[14, 7])
    assert table.blocks.headerData(7, Qt.Orientation.Horizontal) == "dim 7"
    table.set_current(14, 7)
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    settled(qtbot, panel, bench)
    assert np.float32(QGuiApplication.clipboard().text()) == values[14, 7]
    panel.toggle_table()
    assert not panel.contents.as_table


def test_what_a_cache_saves_is_measured_on_request_only(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, _run = shown(qtbot, tmp_path)
    assert not bench.engine.asked_of(MeasureRecompute)
    assert panel.step.as_lines()[5][2] == "not measured"
    QTest.mouseClick(panel.measure, LEFT)
    assert panel.measure.text() == "Cancel"
    settled(qtbot, panel, bench)
    assert panel.measure.text() == "Measure"
    lines = panel.step.as_lines()
    assert all(text.endswith((" ms", " s")) for text in lines[5][1:])
    assert lines[6][2].endswith(" ×")
    bench.step()
    settled(qtbot, panel, bench)
    assert panel.step.as_lines()[5][2] == "not measured"  # what was measured is of the text before


def test_a_step_asks_once_and_a_hidden_panel_asks_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, run = shown(qtbot, tmp_path)
    before = len(bench.engine.asked_of(GetKv))
    for _ in range(5):
        bench.step()
    settled(qtbot, panel, bench)
    assert len(bench.engine.asked_of(GetKv)) == before + 1
    assert panel.plot.growth is not None and panel.plot.growth.length == 20
    np.testing.assert_array_equal(panel.contents.heat.tiles[-1].values, kv_contents(run, 1, 1, "k", (0, 20)))
    panel.hide()
    asked = len(bench.engine.asked)
    bench.step()
    bench.selection.set_layer(0)
    QTest.qWait(60)
    assert len(bench.engine.asked) == asked


def test_a_long_context_is_pooled_and_its_cells_are_fetched(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, run = shown(qtbot, tmp_path, made(n_ctx=4096), n=3000, steps=1)
    heat = panel.contents.heat
    assert heat.tiles[-1].values is None
    assert heat.tiles[-1].pixels.shape[0] <= heat.height() * heat.devicePixelRatioF()
    bench.selection.set_key(2500)
    settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: heat.value_of((2500, 0)) is not None)
    assert heat.value_of((2500, 0)) == float(kv_contents(run, 1, 1, "k", (2500, 2501))[0, 0])
    low, high = heat.bar.values[0], heat.bar.values[2]  # type: ignore[union-attr]
    heat.set_view(heat.view.zoomed(60, at=(2500, 4), shape=heat.shape, least=4))
    settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: heat.tiles[-1].values is not None)
    message = bench.engine.asked_of(GetKvContents)[-1]
    assert isinstance(message, GetKvContents) and message.top == pytest.approx(high)
    assert (heat.bar.values[0], heat.bar.values[2]) == (low, high)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["gpt2", "bloom, heads not a power of two", "mixtral"])
def test_models_without_rope_or_with_experts(qtbot: QtBot, tmp_path: Path, name: str) -> None:
    model = family(name)
    panel, _bench, run = shown(qtbot, tmp_path, model)
    rope = model.decoder.config.positions == "rope"
    assert panel.contents.kind._segments["k_unrotated"].isEnabled() == rope
    layer, kv_head = panel.contents.place()
    np.testing.assert_array_equal(panel.contents.heat.tiles[-1].values, kv_contents(run, layer, kv_head, "k", (0, 15)))
    assert panel.heads.as_lines()[0][0].startswith("MHA")
    assert len(panel.layers.rows) == model.info.n_layers


def test_sliding_windows_are_told(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _bench, run = shown(
        qtbot, tmp_path, made(layer_kinds=("sliding", "full", "sliding"), sliding_window=7), n=20
    )
    lines = panel.layers.as_lines()
    assert column(lines, 3) == ["window", "7", "all", "7"]
    assert panel.left.as_lines()[-1][0] == "sliding windows need"
    assert kv_reply(run)[0].served < kv_reply(run)[0].used


def test_picture_and_tables_become_files(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _bench, run = shown(qtbot, tmp_path)

    def saved(name: str) -> Path:
        return save(qtbot, panel, tmp_path / name)

    image = QImage(str(saved("kv.png")))
    assert image.width() == 2 * panel.width()
    assert len({image.pixel(x, image.height() // 3) for x in range(0, image.width(), 7)}) > 8
    tables = json.loads(saved("kv.json").read_text(encoding="utf-8"))
    assert len(tables["bytes by position"]) == 16
    lines = tables["K of layer 1, KV head 1"]
    cells = np.array([line[2:] for line in lines[1:]], np.float32)
    np.testing.assert_array_equal(cells, kv_contents(run, 1, 1, "k", (0, 15)))
    with saved("kv.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    first = rows.index(["# bytes by position"]) + 1
    assert ["15", str(kv_reply(run)[0].used)] == rows[first + 15][:2]


@pytest.mark.parametrize("height", [573, 440, 200])
def test_in_two_columns_the_curve_stands_over_tables_whose_words_are_whole(
    qtbot: QtBot, tmp_path: Path, height: int
) -> None:
    panel, _bench, _run = shown(qtbot, tmp_path, size=(600, height + 24))
    for key, table in (("phases", panel.phases), ("step", panel.step), ("layers", panel.layers)):
        panel.grid.show_card(key)
        assert not table._model.cut
        assert panel.contents.isVisible()
        assert panel.plot.isVisible() == (height > 420)
        assert panel.heads.isVisible() == (height > 560)


@pytest.mark.parametrize("size", [(1360, 780), (1360, 180), (960, 130), (700, 180), (420, 300)])
def test_every_part_is_reachable_at_any_size(qtbot: QtBot, tmp_path: Path, size: tuple[int, int]) -> None:
    panel, _bench, _run = shown(qtbot, tmp_path, size=size)
    cards = [key for slot in plan(*size).slots for key in slot.cards]
    assert sorted(cards) == sorted(panel.grid.cards)
    for key, card in panel.grid.cards.items():
        panel.grid.show_card(key)
        assert card.isVisible()
        assert card.rect().width() > 100
    for slot in panel.grid.plan.slots if panel.grid.plan else ():
        assert sum(panel.grid.cards[key].isVisible() for key in slot.cards) == 1


@pytest.mark.parametrize("size", [WIDE, TALL])
def test_the_newest_rows_mark_covers_no_value_and_the_map_says_what_it_shows(
    qtbot: QtBot, tmp_path: Path, size: tuple[int, int]
) -> None:
    panel, bench, run = shown(qtbot, tmp_path, size=size)
    heat = panel.contents.heat
    area, row = heat.geometry_now().area, heat.cell_rect((run.length - 1, 0))
    marks = heat.newest_marks()
    assert len(marks) == 1
    assert not marks[0].intersects(area) and heat.rect().toRectF().contains(marks[0])
    assert (marks[0].left(), marks[0].right()) == (area.left(), area.right())
    assert marks[0].top() == pytest.approx(row.bottom(), abs=2)
    named, bar = heat.newest_words(), heat.geometry_now().bar
    if size == TALL:
        assert named is not None
    if named is not None:
        assert not named.intersects(bar)
        assert heat.rect().toRectF().contains(named)
        boundary = words_place(heat)
        assert boundary is None or not (boundary[1] or boundary[0].intersects(named))
    layer, kv_head = panel.contents.place()
    caption = panel.contents.caption
    captions = what_captions("k", layer, kv_head, rotary=True)
    assert captions[0] == f"keys of layer {layer}, KV head {kv_head} · positions × dimensions, after rotation"
    assert caption.text().replace("\n", " · ").split(" · ")[0] in {text.split(" · ")[0] for text in captions}
    assert caption.toolTip() == captions[0]
    said = {line.words for line in panel.contents.key.lines}
    assert (words_place(heat) is None) == (boundary_words() in said)
    assert (heat.newest_words() is None) == ("newest" in said)
    for line in caption.text().split("\n"):
        assert QFontMetricsF(caption.font()).horizontalAdvance(line) <= caption.width() + 1
    panel.contents.heat.set_selected((3, 2))
    text = heat.readout_text()
    assert "dimension 2 " in text and "(2)" not in text
    panel.contents.kind.keyChanged.emit("v")
    qtbot.waitUntil(lambda: caption.text().startswith("values of layer"))
    settled(qtbot, panel, bench)


def test_where_text_is_large_the_value_is_whole_and_what_the_controls_say_gives_way(
    qtbot: QtBot, tmp_path: Path
) -> None:
    panel, bench, _run = shown(qtbot, tmp_path, size=(320, 470))
    contents, heat = panel.contents, panel.contents.heat
    panel.grid.show_card("contents")
    bench.ctx.theme.set_text_scale(2.0)
    seen = set()
    for width in (320, 300, 260, 400):
        panel.resize(width, 470)
        qtbot.wait(50)
        settled(qtbot, panel, bench)
        parts = shown_readout(heat)
        assert parts_width(bench.ctx.theme, parts) <= heat.geometry_now().readout.width()
        value = heat.readout()[-1]
        assert parts[-1] == value and value[0] not in ("", "…")
        seen.add(len("".join(text for text, _ in parts)))
        caption, key = contents.caption, contents.key
        if caption.isVisible():
            assert caption.fontMetrics().horizontalAdvance(caption.text()) <= caption.width()
        assert [line.words for line in key.lines] == [boundary_words(), "newest"][: len(key.lines)]
        assert key.isVisible() == bool(key.lines)
        if key.lines:
            assert key.width() >= key.sizeHint().width()
            assert key.geometry().right() < contents.width()
            assert key.toolTip() == ("" if len(key.lines) == 2 else f"{boundary_words()}, newest")
        assert key.isVisible() or caption.isVisible()
    assert len(seen) > 1
    assert len(contents.key.lines) > 0


def test_the_bytes_of_a_position_stand_at_its_tick_and_are_written(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, _run = shown(qtbot, tmp_path, size=WIDE)
    plot = panel.plot
    plot.resize(360, 200)
    growth, rect = plot.growth, plot.plot_rect()
    assert growth is not None
    assert plot.x_of(0) == rect.left()
    assert plot.x_of(growth.length - 1) == rect.right()
    for position in range(growth.length):
        assert plot.position_at(QPointF(plot.x_of(position), rect.center().y())) == position
    bench.selection.set_key(2)
    qtbot.waitUntil(lambda: plot.cursor_at == 2)
    token = bench.session.path_tokens()[2].piece
    assert plot.readout().startswith(f"{token} (2) · used {amount(growth.used_at(2), 'B')} · allocated ")
    whole = QFontMetricsF(panel.ctx.theme.font("hint")).horizontalAdvance(plot.readout())
    assert len(plot.readout(whole - 1)) < len(plot.readout(whole))
    assert "formula" in plot.readout(whole * 0.8)  # what it is called gives way before it
    assert plot.readout(1.0) == ""
    entries = legend(panel.ctx.theme.palette, QFontMetricsF(panel.ctx.theme.font("hint")), 0.0, 400.0)
    assert {round(entry.words_left - entry.left - SWATCH) for entry in entries} == {6}


def test_under_a_switch_the_formula_stays_where_there_is_height(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _bench, _run = shown(qtbot, tmp_path, size=(480, 520))
    assert panel.plot.isVisible()
    caption = panel.grid.cards["growth"].caption
    assert caption.isVisible()
    assert caption.text().startswith("2·L·K·D·N·bytes = ")
    panel.resize(480, 170)
    qtbot.waitUntil(lambda: not caption.isVisible())


def test_layouts_of_heads_stay_in_sight_when_the_text_grows(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _bench, _run = shown(qtbot, tmp_path)
    panel.ctx.theme.set_text_scale(1.25)
    heads = panel.heads
    qtbot.waitUntil(lambda: heads.rowAt(heads.viewport().height() - 1) in {-1, len(heads.rows) - 1})
    assert not heads.verticalScrollBar().isVisible()
    panel.ctx.theme.set_text_scale(1.0)


@pytest.mark.parametrize(
    "size",
    [(926, 530), (1026, 540), (1176, 700), (1376, 800), (1360, 180), (1330, 180), (1264, 180), (990, 250), (926, 180)],
)
def test_no_name_and_no_figure_is_cut(qtbot: QtBot, tmp_path: Path, size: tuple[int, int]) -> None:
    panel, _bench, _run = shown(qtbot, tmp_path, size=size)
    for key, tables in {"heads": (panel.heads, panel.left), "step": (panel.step,), "phases": (panel.phases,)}.items():
        panel.grid.show_card(key)
        for table in tables:
            if key != "heads":  # its rows are few
                table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
            assert table.needed_width() <= table.viewport().width(), (key, table.accessibleName())


def test_the_tables_of_a_low_panel_have_every_row_in_sight(qtbot: QtBot, tmp_path: Path) -> None:
    """In a window of 1280 × 800 in Chinese; the intensity was hidden."""
    panel, _bench, _run = shown(qtbot, tmp_path, size=(1262, 175))
    for key, table in {"phases": panel.phases, "step": panel.step}.items():
        panel.grid.show_card(key)
        qtbot.wait(20)
        assert table.isVisible() and len(table.rows) == 6
        assert table.verticalScrollBar().maximum() == 0 and table.rowHeight(5) >= LEAST_ROW


def test_a_prefill_under_way_has_no_time_and_no_rates_yet(qtbot: QtBot, tmp_path: Path) -> None:
    """Between its chunks it said 0 ms, and thousands of EFLOP a second."""
    reply, _ = kv_reply(shown(qtbot, tmp_path)[2])
    measured, under_way = (phase_rows(replace(reply, prefill=replace(reply.prefill, ms=ms))) for ms in (5.0, 0.0))
    said = {rows[0].text: (rows[1].text, late[1].text) for rows, late in zip(measured, under_way, strict=True)}
    assert [name for name, (_, late) in said.items() if late == "–"] == ["time", "computes a second", "reads a second"]
    assert all(early != "–" for early, _ in said.values())
