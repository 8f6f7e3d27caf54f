"""Pinned heads where there is little room: the panel asks for what they need and is scrolled, and no place is idle."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.heatmap_boundary import words_place
from app.widgets.heatmap_paint import axis_labels, readout_lines
from app.widgets.readout import parts_width
from app.widgets.ticks import figure
from model.protocol.attention_requests import Stage
from tests.app.attention_bench import Bench, model_info, settled, shown
from tests.app.test_attention_pins import with_pins


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("pins", [1, 2, 3, 4])
def test_pinned_maps_can_be_read_in_the_least_height(qtbot: QtBot, tmp_path: Path, pins: int, scale: float) -> None:
    bench = Bench(tmp_path, Theme("dark", text_scale=scale))
    panel = with_pins(qtbot, bench, (600, 700), pins)
    panel.resize(600, panel.minimumSizeHint().height())
    settled(qtbot, panel, bench)
    assert panel.height() == panel.minimumSizeHint().height()
    for view in panel.maps():
        area = view.heat.geometry_now().area
        assert min(area.width(), area.height()) >= round(48 * scale), (area, view.geometry())
        assert view.heat.mapTo(view, view.heat.rect().topLeft()).y() >= view._title.geometry().bottom()


@pytest.mark.parametrize(("pins", "least"), [(1, 170), (4, 95)])
def test_no_place_is_idle_beside_few_and_many_pins_in_a_small_window(
    qtbot: QtBot, tmp_path: Path, pins: int, least: int
) -> None:
    """Beside two matrices under one another two fifths of the panel were empty, and a sixth of it beside five."""
    bench = Bench(tmp_path, Theme("dark"))
    panel = with_pins(qtbot, bench, (472, 556), pins)
    bench.selection.set_cell(18, 1)
    settled(qtbot, panel, bench)
    side, maps = panel.side, panel._maps
    qtbot.waitUntil(lambda: side.lines.isVisible() and side.lines.parentWidget() is maps and panel.settled)
    place = side.lines.geometry()
    assert maps.rect().contains(place) and place.bottom() < maps.key.y()
    assert side.line_tabs.geometry().right() < place.width()
    for view in panel.maps():
        heat = view.heat.geometry_now()
        assert min(heat.area.width(), heat.area.height()) >= least
        assert not view.geometry().intersects(place)
        for label in view.findChildren(QLabel):
            if label.isVisible() and "." in label.text():
                assert label.width() >= label.sizeHint().width(), "its value is whole"
    assert side.row.isVisible() and side.row.viewport().height() >= 3 * side.row.rowHeight(0), "three keys at least"
    used = sum(view.width() * view.height() for view in panel.maps()) + place.width() * place.height()
    assert used > 0.93 * maps.width() * maps.key.y()


def test_words_over_a_row_are_all_there_again_where_it_has_the_room(qtbot: QtBot, tmp_path: Path) -> None:
    bench = Bench(tmp_path, Theme("dark"))
    panel = with_pins(qtbot, bench, (472, 556), 4)
    qtbot.waitUntil(lambda: panel.side.row_words.isVisible() and not panel.side.row_unscaled.isVisible())
    panel._choose_page("row")
    settled(qtbot, panel, bench)
    assert panel.side.row_entropy.isVisible() and panel.side.row_unscaled.isVisible()


@pytest.mark.parametrize("stage", ["weights", "raw"])
@pytest.mark.parametrize(
    ("size", "scale", "least"), [((321, 471), 2.0, 150), ((321, 351), 2.0, 70), ((240, 400), 1.5, 70)]
)
def test_a_narrow_matrix_keeps_the_tokens_of_its_cell_and_its_size(
    qtbot: QtBot, tmp_path: Path, size: tuple[int, int], scale: float, least: int, stage: Stage
) -> None:
    """The line had room for the value alone, and the words of the line above the decode rows for 95 px of matrix."""
    bench = Bench(tmp_path, Theme("light", text_scale=scale))
    panel = shown(qtbot, bench, size)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    panel.resize(*size)
    bench.selection.set_stage(stage)
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    heat, value = panel.main.heat, float(bench.engine.matrix(bench.selection.view)[8, 1])
    geometry, found = heat.geometry_now(), words_place(heat)
    tokens, said = ["".join(text for text, _ in line) for line in readout_lines(heat)]
    assert tokens.startswith("·it (8) → ·ani") and tokens.endswith("(1)")
    assert figure(value, 6) in said
    room = geometry.readout if geometry.value.isNull() else geometry.value
    assert parts_width(heat.theme, readout_lines(heat)[0]) <= geometry.readout.width()
    assert parts_width(heat.theme, readout_lines(heat)[1]) <= room.width()
    places = [geometry.area, geometry.readout, geometry.bar, geometry.value]
    places.append(found[0] if found is not None and not found[1] else QRectF())
    there = [place for place in places if not place.isNull()]
    assert not any(one.intersects(other) for one, other in itertools.combinations(there, 2))
    assert all(heat.rect().toRectF().contains(place) for place in there)
    if stage == "weights":
        assert geometry.area.width() >= least


@pytest.mark.parametrize(("size", "scale"), [((976, 480), 2.0), ((600, 340), 1.0)])
def test_a_low_panel_has_the_heads_beside_the_matrix(
    qtbot: QtBot, tmp_path: Path, size: tuple[int, int], scale: float
) -> None:
    """They took turns, and two thirds of the width lay idle beside a square matrix."""
    bench = Bench(tmp_path, Theme("dark", text_scale=scale), model_info(30, 9, 3))
    panel = shown(qtbot, bench, size)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    panel.resize(*size)
    settled(qtbot, panel, bench)
    heat, grid = panel.main.heat, panel.side.grid
    assert not panel.pages.isVisible() and grid.isVisible() and heat.isVisible()
    assert heat.geometry_now().area.width() >= 170
    assert panel.side.width() >= panel.side.heads_least()
    panel.resize(size[0] // 2, size[1])
    qtbot.waitUntil(lambda: panel.pages.isVisible() and not grid.isVisible())


@pytest.mark.parametrize(("size", "scale"), [((655, 405), 1.0), ((976, 480), 2.0), ((321, 471), 2.0)])
def test_one_token_alone_says_why_there_is_no_more_to_see(
    qtbot: QtBot, tmp_path: Path, size: tuple[int, int], scale: float
) -> None:
    bench = Bench(tmp_path, Theme("dark", text_scale=scale))
    panel = shown(qtbot, bench, size)
    bench.run(1)
    settled(qtbot, panel, bench)
    panel.resize(*size)
    settled(qtbot, panel, bench)
    said, heat = panel.main.alone, panel.main.heat
    drawn = heat.geometry_now()
    qtbot.waitUntil(said.isVisible)
    assert said.text().startswith("One token alone can only read itself")
    assert heat.rect().contains(said.geometry()) and said.height() >= said.heightForWidth(said.width())
    assert not any(part.toAlignedRect().intersects(said.geometry()) for part in (drawn.area, drawn.bar, drawn.readout))
    bench.run(2, 1)
    settled(qtbot, panel, bench)
    assert not said.isVisible()


def test_entropies_say_what_they_are_drawn_over(qtbot: QtBot, tmp_path: Path) -> None:
    bench = Bench(tmp_path, Theme("dark"))
    panel = shown(qtbot, bench, (751, 504))
    bench.run(42, 30)
    settled(qtbot, panel, bench)
    panel.side.show_page("entropy")
    settled(qtbot, panel, bench)
    words = panel.side.entropy_words
    qtbot.waitUntil(lambda: bool(words.text()))
    assert words.text().endswith("by position") and words.text() == "".join(t for t, _ in words.shown())


def test_rows_whose_tokens_are_cut_lose_their_numbers_first(qtbot: QtBot, tmp_path: Path) -> None:
    """Three letters of them stood beside a number, as many as the readout says anyway."""
    bench = Bench(tmp_path, Theme("dark"))
    panel = shown(qtbot, bench, (751, 504))
    bench.run(42, 30)
    settled(qtbot, panel, bench)
    for layer in range(2):
        bench.selection.set_layer_head(layer, 1)
        panel.controls.toggle_pin()
    bench.selection.set_layer_head(5, 5)
    settled(qtbot, panel, bench)
    for view in panel.maps():
        heat = view.heat
        named, _ = axis_labels(heat)
        assert len(named) >= 8 and not any(label.number for label in named)
        assert heat.geometry_now().row_room >= heat.row_axis.metrics.horizontalAdvance("·convey")
        assert heat.geometry_now().area.width() >= 160
