"""The feed-forward panel on tiny models of every kind, driven by mouse and keys; the engine's own handlers answer."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QSizePolicy, QSpacerItem
from pytestqt.qtbot import QtBot

from app.frame.docks import PanelScroll
from app.panels.feed_forward import LEAD, TOP, FeedForwardPanel
from app.theme import Theme
from app.widgets.heatmap_boundary import words_place
from app.widgets.heatmap_paint import axis_labels, bold_labels
from app.widgets.heatmap_view import View
from app.widgets.line_bars import rects
from app.widgets.line_legend import PALE, pale
from app.widgets.readout import parts_width
from app.widgets.ticks import figure
from model.config import MoeSpec
from model.loading import LoadedModel
from model.protocol.feed_forward_requests import GetNeurons, GetNorms, GetRouter
from model.views.feed_forward import neurons_reply, norms_reply, router_reply
from tests.app.model_bench import FAMILIES, ModelBench, bench_with
from tests.app.saving import save
from tests.app.test_theme import contrast
from tests.model.tiny import llama, made, model_of, random_ids

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
EXPERTS = MoeSpec(n_experts=5, top_k=2, d_expert=12, layers=(1,))


def shown(
    qtbot: QtBot, folder: Path, model: LoadedModel, size: tuple[int, int] = (1360, 200), n: int = 14
) -> tuple[ModelBench, FeedForwardPanel]:
    bench, panel = bench_with(qtbot, folder, model, FeedForwardPanel, size, n)
    settled(qtbot, bench, panel)
    return bench, panel


def settled(qtbot: QtBot, bench: ModelBench, panel: FeedForwardPanel) -> None:
    qtbot.waitUntil(lambda: not bench.engine.waiting and panel.settled and bool(panel.neurons), timeout=8000)


def neurons(
    bench: ModelBench, layer: int = 1, position: int = 9, rows: tuple[int, int] = (0, 17)
) -> dict[str, np.ndarray]:
    run = bench.engine.context.run
    assert run is not None
    return neurons_reply(run, GetNeurons(layer=layer, position=position, top=TOP, rows=rows))[1]


def test_table_map_and_facts_are_the_engines(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    arrays = neurons(bench)
    model = panel.table.model()
    assert [int(model.index(row, 0).data()) for row in range(model.rowCount())] == arrays["ids"].tolist()
    assert [model.index(0, column).data() for column in (1, 2, 3)] == [
        figure(float(arrays[name][0]), 3) for name in ("pre", "up", "post")
    ]
    assert panel.map.grid is not None
    np.testing.assert_array_equal(panel.map.grid.values, arrays["heat"])
    assert panel.map.heat.shape == (17, TOP)
    # One row and many rows are multiplied in another order: the last digits may differ.
    assert panel.map.heat.value_of((9, 3)) == pytest.approx(float(arrays["post"][3]), rel=1e-5)
    assert panel.map.heat.boundary == 14
    assert panel.reply is not None
    text = panel.facts.text()
    assert f"{100 * panel.reply.near_zero:.1f} % of 48" in text
    assert f"{100 * panel.reply.near_zero_rows:.1f} %" in text
    assert "48 = 1.5 × 32" in text
    product = arrays["act"] * arrays["up"]
    np.testing.assert_allclose(product, arrays["post"], atol=1e-5)
    assert f"SiLU({figure(float(arrays['pre'][0]), 3)})" in text


def test_norms_by_layer_choose_a_layer(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    run = bench.engine.context.run
    assert run is not None
    arrays = norms_reply(run, GetNorms(position=9))[1]
    by_name = {line.name: line for line in panel.norms.lines}
    np.testing.assert_array_equal(by_name["stream"].y, arrays["resid"])
    np.testing.assert_array_equal(by_name["attention"].y, arrays["attention"])
    np.testing.assert_array_equal(by_name["feed-forward"].y, arrays["feed_forward"])
    frame = panel.norms.frame()
    QTest.mouseClick(panel.norms, LEFT, NONE, QPoint(round(frame.px(2.0)), round(frame.plot.center().y())))
    assert bench.selection.layer == 2
    settled(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.reply is not None and panel.reply.layer == 2)
    panel.norms.setFocus()
    QTest.keyClick(panel.norms, Qt.Key.Key_Left)
    assert (bench.selection.layer,) == (1,)


def test_a_neuron_is_chosen_everywhere(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    arrays = neurons(bench)
    heat = panel.map.heat
    QTest.mouseClick(heat, LEFT, NONE, heat.cell_rect((4, 5)).center().toPoint())
    assert panel.chosen == 5
    assert panel.table.currentIndex().row() == 5
    assert f"neuron: {arrays['ids'][5]}" in panel.facts.text()
    assert panel.function._marks[0].x == float(arrays["pre"][5])
    assert bench.selection.query == 9  # the token stays
    panel.table.setFocus()
    QTest.keyClick(panel.table, Qt.Key.Key_Down)
    assert panel.chosen == 6
    assert heat.selected == (9, 6)


def test_hover_is_linked_both_ways_and_reads_out_the_exact_value(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    arrays, heat = neurons(bench), panel.map.heat
    QTest.mouseMove(
        panel.window().windowHandle(), heat.mapTo(panel.window(), heat.cell_rect((6, 2)).center().toPoint())
    )
    QApplication.processEvents()
    assert bench.selection.hover_token == 6
    assert figure(float(arrays["heat"][6, 2]), 6) in panel.readout.text()
    assert "(6)" in panel.readout.text()
    heat.set_hovered(None)
    bench.selection.set_hover(token=3)
    qtbot.waitUntil(lambda: heat.linked == 3)
    assert heat.linked_cells(3) == (3, None)


def test_a_window_of_a_long_text_counts_from_its_start(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1], n=120)
    bench.selection.set_query(100)
    settled(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.reply is not None and panel.reply.position == 100)
    assert panel.map.grid is not None
    assert panel.map.grid.start == 37
    assert panel.map.heat.shape == (64, TOP)
    np.testing.assert_array_equal(panel.map.grid.values, neurons(bench, position=100, rows=(37, 101))["heat"])
    assert "(100)" not in panel.readout.text()  # the box beside it says which token that is
    heat = panel.map.heat
    heat.set_hovered((3, 0))
    assert "(40)" in panel.readout.text()
    heat.set_hovered(None)
    heat.rowClicked.emit(3)
    assert bench.selection.query == 40
    settled(qtbot, bench, panel)
    panel.window_box.keyChosen.emit(panel.window_box._choices[1].key)
    panel.window_box.set_key(256)
    panel.mark("window")
    qtbot.waitUntil(lambda: panel.map.heat.shape[0] == 123)


def test_the_table_twin_and_copy(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    arrays = neurons(bench)
    QTest.mouseClick(panel.twin._segments["table"], LEFT)
    assert panel.map.as_table
    model = panel.map.table.model()
    qtbot.waitUntil(lambda: model.index(9, 2).data() != "…")
    assert model.index(9, 2).data() == figure(float(arrays["heat"][9, 2]))
    assert model.headerData(2, Qt.Orientation.Horizontal) == f"neuron {arrays['ids'][2]}"
    clipboard = QGuiApplication.clipboard()
    panel.map.table.set_current(9, 2)
    QTest.keyClick(panel.map.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert np.float32(clipboard.text()) == arrays["heat"][9, 2]
    panel.map.table.copyWanted.emit("matrix")
    (top, bottom), (left, right) = panel.map.table.span()
    lines_of = clipboard.text().split("\n")
    assert (len(lines_of), len(lines_of[0].split("\t"))) == (1 + bottom - top, 1 + right - left)
    QTest.mouseClick(panel.twin._segments["map"], LEFT)
    panel.map.heat.set_selected((9, 2))
    for what, lines in (("cell", 1), ("row", 2), ("matrix", 18)):
        clipboard.clear()
        panel.map.heat.copyWanted.emit(what)
        assert len(clipboard.text().split("\n")) == lines
    assert np.float32(clipboard.text().split("\n")[10].split("\t")[3]) == arrays["heat"][9, 2]


def test_scales_follow_the_selection(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    assert panel.map.heat.bar is not None
    before = panel.map.heat.tiles[-1].pixels.copy()
    asked = len(bench.engine.asked)
    bench.selection.set_scale("linear")
    qtbot.waitUntil(lambda: not panel._pending)
    assert panel.map.heat.bar.scale == "linear"
    assert not np.array_equal(before, panel.map.heat.tiles[-1].pixels)
    assert len(bench.engine.asked) == asked


def test_a_plain_layer_has_no_gate(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, made(gated_mlp=False, activation="relu"))
    names = [panel.table.model().headerData(i, Qt.Orientation.Horizontal) for i in range(4)]
    assert names == ["neuron", "before", "after", ""]
    assert "ReLU" in panel.facts.text()
    assert "gated" not in panel.facts.text()
    assert not panel.pages.isVisible()


def test_experts(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, made(moe=EXPERTS))
    run = bench.engine.context.run
    assert run is not None
    reply, arrays = router_reply(run, GetRouter(layer=1, rows=(0, 17)))
    assert panel.pages.isVisible()
    assert panel.shows_experts
    assert panel.map.grid is not None
    np.testing.assert_array_equal(panel.map.grid.values, arrays["probs"])
    np.testing.assert_array_equal(panel.map.grid.marked, arrays["chosen"])
    text = panel.facts.text()
    assert "2 of 5 for each token" in text
    assert f"{reply.parameters:,}" in text
    assert f"{reply.active_parameters:,}" in text
    model = panel.table.model()
    order = np.argsort(-arrays["probs"][9])
    assert [int(model.index(row, 0).data()) for row in range(5)] == order.tolist()
    weights = [model.index(row, 3).data() for row in range(5)]
    assert weights.count("–") == 3
    QTest.mouseClick(panel.pages._segments["neurons"], LEFT)
    assert panel.map.grid.signed
    assert np.isnan(panel.map.grid.values).any()
    hidden = tuple(int(i) for i in np.argwhere(np.isnan(panel.map.grid.values))[0])
    panel.map.heat.set_hovered((hidden[0], hidden[1]))
    assert "not sent to that expert" in panel.readout.text()
    bench.selection.set_layer(0)  # a layer without experts
    settled(qtbot, bench, panel)
    qtbot.waitUntil(lambda: not panel.pages.isVisible())
    assert "48 = 1.5 × 32" in panel.facts.text()


def test_chosen_experts_are_marked_in_low_rows_too_and_the_caption_says_how(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, made(moe=EXPERTS), (1360, 420))
    bench.run(random_ids(60), 4)
    bench.selection.set_layer(1)
    settled(qtbot, bench, panel)
    page, heat = panel.map, panel.map.heat
    grid = heat.grid
    assert grid is not None and grid.marked is not None and len(grid.values) == 64
    said = {"ring": "ring: chosen", "tick": "black and white: chosen", "": "chosen: zoom in"}
    found = set()
    for height in (1400, 760, 420, 330, 262):
        panel.resize(1360, height)
        settled(qtbot, bench, panel)
        mark, cell = heat.mark(), heat.cell_rect((0, 0))
        found.add(mark)
        assert page.captions()[0].endswith(said[mark]) and page.caption.text() in page.captions()
        if mark != "tick":
            continue
        picture, ratio = heat.grab().toImage(), heat.devicePixelRatioF()
        for row in (0, 31, 63):
            for col in range(len(grid.names)):
                at = heat.cell_rect((row, col)).center()
                left, right = (picture.pixelColor(round((at.x() + by) * ratio), int(at.y() * ratio)) for by in (-2, 2))
                apart = right.lightness() - left.lightness()
                assert (apart > 120) == (col in grid.marked[row])
        assert cell.height() >= 1
    assert "tick" in found
    heat.set_view(View(row=0, col=0, rows=4, cols=len(grid.names)))
    settled(qtbot, bench, panel)
    assert heat.mark() == "ring"


def test_many_experts_stay_usable(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, made(moe=MoeSpec(n_experts=128, top_k=8, d_expert=6, layers=(0, 1, 2))))
    assert panel.map.heat.shape == (17, 128)
    assert panel.table.model().rowCount() == 128
    panel.map.heat.setFocus()
    QTest.keyClick(panel.map.heat, Qt.Key.Key_End)
    assert panel.map.heat.selected == (9, 127)
    assert panel.table.model().index(panel.table.currentIndex().row(), 0).data() == "127"


def test_hidden_it_asks_nothing_and_fast_changes_ask_once(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    panel.hide()
    before = len(bench.engine.asked)
    for query in range(8):
        bench.selection.set_query(query)
    QTest.qWait(60)
    assert len(bench.engine.asked) == before
    panel.show()
    settled(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.reply is not None and panel.reply.position == 7)
    assert len(bench.engine.asked) == before + 2  # neurons and norms
    assert bench.engine.asked_of(GetNeurons)[-1] == GetNeurons(layer=1, position=7, top=TOP, rows=(0, 17))


def test_growing_text_asks_for_what_is_new_alone(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    norms = len(bench.engine.asked_of(GetNorms))
    bench.step()
    settled(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.map.heat.shape[0] == 18)
    assert len(bench.engine.asked_of(GetNorms)) == norms  # the chosen token's own norms are as they were


@pytest.mark.parametrize("size", [(320, 700), (760, 300), (1000, 150), (1360, 200), (1380, 780)])
def test_every_part_is_there_at_any_size(qtbot: QtBot, tmp_path: Path, size: tuple[int, int]) -> None:
    _, panel = shown(qtbot, tmp_path, llama()[1], size)
    for widget in (panel.facts, panel.table, panel.map, panel.function, panel.norms):
        assert widget.isVisible()
        assert widget.width() >= 100
        assert widget.geometry().right() <= panel._place.width()


def test_in_a_low_window_it_needs_no_more_height_than_the_dock_has(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, llama()[1], (1256, 176))
    assert panel.minimumSizeHint().height() <= 170
    lines = panel.facts._placed()[1]
    assert len(lines) == len(panel.facts.facts) and all(height == 1 for _, height in lines), "a product on one line"
    assert not panel.table.isColumnHidden(4)


def test_a_low_map_names_its_columns_and_its_line(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    heat = panel.map.heat
    panel.map.setFixedSize(310, 120)
    qtbot.waitUntil(lambda: heat.width() == 310 and heat.col_axis.flat)
    panel.map.select((9, 3))
    names = [str(i) for i in neurons(bench)["ids"].tolist()]
    labels = axis_labels(heat)[1]
    assert len(labels) >= 3
    assert [label.piece for label in labels] == [names[label.index] for label in labels]
    apart = [b.centre - a.centre for a, b in itertools.pairwise(labels)]
    assert min(apart) >= heat.col_axis.spacing(len(names))
    assert names[3] in [label.piece for label in bold_labels(heat)[1]], "the chosen neuron's"
    assert words_place(heat) is not None, "and the words of the line"
    panel.map.setFixedSize(310, 260)
    qtbot.waitUntil(lambda: not heat.col_axis.flat)


@pytest.mark.parametrize("experts", [False, True])
def test_the_map_says_what_rows_columns_and_colours_are(qtbot: QtBot, tmp_path: Path, experts: bool) -> None:
    _, panel = shown(qtbot, tmp_path, made(moe=EXPERTS) if experts else llama()[1], (1360, 760))
    page, heat, grid = panel.map, panel.map.heat, panel.map.grid
    assert grid is not None
    qtbot.waitUntil(lambda: page.caption.text() == page.captions()[0])
    for word in ("tokens", grid.kind, "colour", grid.value):
        assert word in page.caption.text()
    if not experts:
        assert "product = SiLU(gate) × up" in page.caption.text() and panel._token(9) in page.caption.text()
    assert page.caption.toolTip().count("\n") == 1 and "Rows: tokens" in page.caption.toolTip()
    heat.set_axis_tokens(["·a_long_token"] * len(grid.values), ["1234567"] * len(grid.names))
    (over, column), (beside, row) = heat.corner()
    assert (column, row) == (f"{grid.kind} →", "token ↓")
    area = heat.geometry_now().area
    assert over.bottom() <= beside.top() + 1 and beside.bottom() < area.top() and beside.right() < area.left()
    picture = heat.grab().toImage()
    ground = picture.pixelColor(0, 0)
    for place in (over, beside):
        rect = place.toAlignedRect()
        assert any(picture.pixelColor(x, y) != ground for x in range(rect.right() - 20, rect.right())
                   for y in range(rect.top(), rect.bottom()))  # fmt: skip
    for width in (400, 300, 200, 130):
        page.setFixedWidth(width)
        qtbot.waitUntil(lambda width=width: page.width() == width)  # type: ignore[misc]
        fits = QFontMetricsF(page.caption.font()).horizontalAdvance(page.caption.text()) <= width
        assert page.caption.text() in page.captions() and (fits or page.caption.text() == page.captions()[-1])
    assert page.caption.isVisible()
    page.setFixedHeight(page.minimumSizeHint().height())
    qtbot.waitUntil(lambda: not page.caption.isVisible())  # the cells need the room


def test_the_neurons_of_the_histogram_are_counted_on_an_axis(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    pre = np.asarray(neurons(bench)["all_pre"])
    bars, frame = panel.function.lines[2], panel.function.frame()
    assert bars.right and bars.y.sum() == len(pre)
    for rect, count in zip(rects(bars, frame), bars.y.tolist(), strict=True):
        assert rect.top() == pytest.approx(float(frame.py(np.array([count]), right=True)[0]), abs=0.5)
    assert frame.right_ticks[0] == 0 and len(frame.right_ticks) >= 2
    assert panel.function._right_name == "neurons" and panel.function._x_name == "gate"


def test_every_part_has_a_name(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, made(moe=EXPERTS))
    for widget in (panel.facts, panel.table, panel.map.heat, panel.map.table, panel.function, panel.norms,
                   panel.readout, panel.pages, panel.twin, panel.window_box, panel.where.query_box.box):  # fmt: skip
        assert widget.accessibleName()


@pytest.mark.parametrize("experts", [False, True])
def test_what_is_shown_can_be_exported(qtbot: QtBot, tmp_path: Path, experts: bool) -> None:
    bench, panel = shown(qtbot, tmp_path, made(moe=EXPERTS) if experts else llama()[1])
    save(qtbot, panel, tmp_path / "x.json")
    tables = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    arrays = neurons(bench)
    assert np.float32(tables["Strongest neurons"][1][-1]) == arrays["post"][0]
    name = "Tokens by experts" if experts else "Tokens by strongest neurons"
    assert len(tables[name]) == 18
    assert len(tables["Norms by layer"]) == 5
    if not experts:
        assert np.float32(tables[name][10][4]) == arrays["heat"][9, 2]


def test_the_layout_follows_the_room_back_and_forth(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    dock = bench.kept[0]
    assert isinstance(dock, PanelScroll)
    for height, tall in ((760, True), (200, False), (760, True), (200, False)):
        dock.resize(1360, height)
        qtbot.waitUntil(lambda tall=tall: panel._arranged.startswith("tall" if tall else "low"))  # type: ignore[misc]
        qtbot.waitUntil(lambda height=height: panel.height() <= height)  # type: ignore[misc] # nothing is scrolled


def test_the_layout_follows_the_room_where_the_panel_stays_as_high(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    dock = bench.kept[0]
    assert isinstance(dock, PanelScroll)
    panel.body.addItem(QSpacerItem(0, 1200, QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed))
    for height, tall in ((760, True), (200, False), (760, True), (200, False)):
        dock.resize(1360, height)
        qtbot.waitUntil(lambda tall=tall: panel._arranged.startswith("tall" if tall else "low"))  # type: ignore[misc]
        qtbot.wait(50)  # then it is as high as it needs, which is more than is seen of it in either size
        assert panel.height() > 1200


@pytest.mark.parametrize("leaves", [True, False])
def test_no_test_hands_on_how_its_application_looks(qapp: QApplication, leaves: bool) -> None:
    if leaves:
        qapp.setFont(Theme("dark", text_scale=2.0).font("ui"))
        qapp.setStyleSheet("QLabel { font-size: 26px; }")
    else:
        assert qapp.font().pixelSize() != 26
        assert qapp.styleSheet() == ""


@pytest.mark.parametrize(("family", "fields"), FAMILIES)
def test_every_family_shows_its_layer(qtbot: QtBot, tmp_path: Path, family: str, fields: dict[str, Any]) -> None:
    bench, panel = shown(qtbot, tmp_path, model_of(family, **fields)[1])
    assert panel.reply is not None
    assert panel.reply.gated == (family == "Mixtral")
    assert panel.shows_experts == (family == "Mixtral")
    assert panel.map.heat.shape[0] == 17
    assert len(panel.norms.lines) == 3
    assert np.isfinite(panel.map.heat.value_of((9, 0)) or 0.0)
    for layer in range(panel.where.layer_box.count()):
        bench.selection.set_layer(layer)
        settled(qtbot, bench, panel)
        qtbot.waitUntil(lambda layer=layer: panel.reply.layer == layer)  # type: ignore[misc]


@pytest.mark.parametrize("name", ["dark", "light"])
def test_all_that_the_function_s_plot_draws_is_keyed_and_seen(
    qtbot: QtBot, tmp_path: Path, name: Literal["dark", "light"]
) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    panel.ctx.theme.set_choice(name)
    settled(qtbot, bench, panel)
    assert [(line.name, line.style) for line in panel.function.lines] == [
        ("SiLU(gate)", "line"), (panel._token(9), "dots"), ("48 neurons", "bars"),
    ]  # fmt: skip
    assert panel._token(9).endswith(" (9)")
    ground, colour = panel.ctx.theme.palette.panel, pale(panel.ctx.theme, panel.function.lines[2])
    seen = (
        round(PALE * c + (1 - PALE) * g)
        for c, g in ((colour.red(), ground.red()), (colour.green(), ground.green()), (colour.blue(), ground.blue()))
    )
    assert contrast(QColor(*seen), ground) >= 1.8


def test_norms_take_no_colour_that_means_something_else(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = shown(qtbot, tmp_path, llama()[1])
    assert not {"green", "amber", "red"} & {line.colour for line in panel.norms.lines}
    assert len({(line.colour, line.dashed) for line in panel.norms.lines}) == 3


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("width", [430, 700, 1360])
def test_the_readout_says_what_its_figures_are(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, width: int, scale: float
) -> None:
    bench, panel = shown(qtbot, tmp_path, llama()[1])
    panel.ctx.theme.set_text_scale(scale)
    dock = bench.kept[0]
    assert isinstance(dock, PanelScroll)
    dock.resize(width, 500)
    settled(qtbot, bench, panel)
    qtbot.waitUntil(lambda: panel.where.width() <= width)
    cell = panel.map.heat.selected
    assert cell is not None and panel.map.grid is not None
    said = panel.readout.shown()
    words = "".join(text for text, _ in said)
    assert "neuron " in words and "product " in words
    assert any(figure(float(panel.map.grid.values[cell]), digits) in words for digits in (4, 6))
    assert parts_width(panel.ctx.theme, said) + panel.readout.lead() <= panel.readout.width()
    if panel.readout.x() == 0:  # on a line of its own it begins where the line does
        assert panel.readout.lead() == 0
    elif scale == 1.0:
        assert panel.readout.lead() == LEAD
    panel.ctx.theme.set_text_scale(1.0)
    qapp.setStyleSheet("")
