"""Pinned heads beside the chosen one: how they stand, what they share, how one pins."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QToolButton
from pytestqt.qtbot import QtBot

from app.panels.attention import AttentionPanel
from app.panels.attention_map import MapView
from app.panels.attention_words import view_text
from app.theme import Theme
from app.widgets.colour_bar import ColourBar
from app.widgets.elided_label import ElidedLabel
from app.widgets.heatmap_axes import STEEP
from app.widgets.heatmap_boundary import words_place
from app.widgets.heatmap_layout import Options
from app.widgets.heatmap_paint import axis_labels, bold_labels
from app.widgets.readout import parts_width
from app.widgets.ticks import figure
from model.protocol.attention_requests import GetGrid
from tests.app.attention_bench import Bench, settled, shown

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Bench:
    del qtbot
    return Bench(tmp_path, Theme("dark"))


def test_pins_stand_side_by_side_and_share_the_hover(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (1100, 760))
    bench.run(19, 7)
    for layer in range(4):
        bench.selection.set_layer_head(layer, 1)
        panel.controls.toggle_pin()
    bench.selection.set_layer_head(5, 5)
    qtbot.waitUntil(lambda: len(panel.pinned) == 4 and all(view.heat.tiles for view in panel.maps()))
    bench.selection.set_hover(cell=(8, 1))
    qtbot.waitUntil(lambda: all(view.heat.hovered == (8, 1) for view in panel.maps()))
    for view, pinned in zip(panel.pinned, bench.selection.pins, strict=True):
        assert view.heat.value_of((8, 1)) == float(bench.engine.matrix(pinned)[8, 1])
        assert view.isVisible()
    panel.pinned[0].unpinned.emit(panel.pinned[0].pinned)
    qtbot.waitUntil(lambda: len(panel.pinned) == 3)


def with_pins(qtbot: QtBot, bench: Bench, size: tuple[int, int], pins: int) -> AttentionPanel:
    """The panel over a run, head 1 of the first layers pinned and another one chosen."""
    panel = shown(qtbot, bench, size)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    for layer in range(pins):
        bench.selection.set_layer_head(layer, 1)
        panel.controls.toggle_pin()
    bench.selection.set_layer_head(5, 5)
    settled(qtbot, panel, bench)
    return panel


@pytest.mark.parametrize(("size", "pins", "least"), [((751, 504), 1, 150), ((751, 504), 2, 150), ((471, 510), 2, 130)])
def test_pinned_maps_are_as_large_as_the_room_allows(
    qtbot: QtBot, bench: Bench, size: tuple[int, int], pins: int, least: int
) -> None:
    panel = with_pins(qtbot, bench, size, pins)
    areas = [view.heat.geometry_now().area for view in panel.maps()]
    assert len({(area.width(), area.height()) for area in areas}) == 1
    assert areas[0].width() >= least  # 110 px and 75 with all axes, a bar and a readout under each
    places = [view.geometry() for view in panel.maps()]
    if pins == 1:  # side by side, where there is room for all words under them
        assert places[0].top() == places[1].top()
        assert all(view.heat.options.readout for view in panel.maps()) and panel._maps.key.isVisible()
    assert not any(a.intersects(b) for a, b in itertools.combinations(places, 2))
    room = panel.main.parentWidget()
    assert room is not None
    assert all(room.rect().contains(place) for place in places)
    # A map without a readout has its value in the title; where its columns are just counted its rows have the tokens.
    bench.selection.set_hover(cell=(8, 1))
    settled(qtbot, panel, bench)
    for view in panel.maps():
        assert view.heat.options.readout or figure(float(bench.engine.matrix(view.view)[8, 1]), 6) in {
            label.text() for label in view.findChildren(QLabel) if label.isVisible()
        }
    for _ in range(pins):
        panel.pinned[0].unpinned.emit(panel.pinned[0].pinned)
        settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: panel.main.heat.options == Options())
    assert panel.main.heat.geometry_now().area.width() > 2 * least or size[0] < 600


def test_pin_stands_with_all_controls_where_they_fit(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (1000, 527))
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    controls = panel.controls
    parts = (controls.layer, controls.head, controls.stage, controls.scale, controls.pin, controls.more,
             controls.export)  # fmt: skip
    margins = panel.width() - controls.width()
    panel.resize(sum(part.width() for part in parts) + 6 * 6 + margins, 527)
    settled(qtbot, panel, bench)
    assert all(part.isVisible() for part in parts)
    assert all(left.geometry().right() < right.x() for left, right in itertools.pairwise(parts))
    # The longest choices are drawn short in the closed box, and read out whole.
    bench.selection.set_layer_head("all", "mean")
    settled(qtbot, panel, bench)
    assert controls.head.currentText() == "Mean of heads"
    assert controls.head.sizeHint().width() < panel.fontMetrics().horizontalAdvance("Mean of heads") + 40


def test_pin_keeps_its_place_and_says_whether_this_head_is_pinned(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (1000, 527))
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    controls = panel.controls
    parts = (controls.layer, controls.head, controls.stage, controls.scale, controls.pin, controls.more,
             controls.export)  # fmt: skip
    margins = panel.width() - controls.width()
    panel.resize(sum(part.width() for part in parts) + 6 * 6 + margins, 527)  # not a pixel to spare
    settled(qtbot, panel, bench)
    place = controls.pin.geometry()
    for pinned in (True, False, True):
        QTest.mouseClick(controls.pin, LEFT)
        settled(qtbot, panel, bench)
        assert controls.pin.isChecked() == pinned == (bench.selection.view in bench.selection.pins)
        assert controls.pin.isVisible()
        assert controls.pin.geometry() == place
    bench.selection.set_layer_head(5, 3)  # another head, which is not pinned
    settled(qtbot, panel, bench)
    assert not controls.pin.isChecked()
    panel.controls.toggle_pin()  # as P does
    settled(qtbot, panel, bench)
    assert controls.pin.isChecked()
    assert controls.pin.toolTip() == "Unpin"
    assert len(panel.pinned) == 2


def test_heads_make_room_for_pinned_matrices_as_tabs(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (751, 530))
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    assert panel.side.grid.isVisible()
    panel.controls.toggle_pin()
    settled(qtbot, panel, bench)
    assert panel.pages.isVisible()
    assert not panel.side.grid.isVisible()
    assert all(view.heat.geometry_now().area.width() > 240 for view in panel.maps())
    titles = [label.text() for view in panel.maps() for label in view.findChildren(QLabel) if "Head" in label.text()]
    assert [title.startswith("pinned") for title in titles] == [False, True]
    panel.toggle_grid()
    settled(qtbot, panel, bench)
    assert panel.side.grid.isVisible()
    panel.controls.toggle_pin()
    settled(qtbot, panel, bench)
    assert panel.side.grid.isVisible()
    assert panel.main.isVisible()
    assert not panel.pages.isVisible()


@pytest.mark.parametrize("size", [(460, 500), (751, 530), (1000, 527)])
@pytest.mark.parametrize("pins", [1, 3])
def test_every_matrix_has_its_scale(qtbot: QtBot, bench: Bench, size: tuple[int, int], pins: int) -> None:
    panel = shown(qtbot, bench, size)
    bench.run(19, 7)
    for layer in range(pins):
        bench.selection.set_layer_head(layer, 1)
        panel.controls.toggle_pin()
    settled(qtbot, panel, bench)
    for view in panel.maps():
        bars = [bar for bar in view.findChildren(ColourBar) if bar.isVisible()]
        assert panel._maps.key.barred or view.heat.options.bar or len(bars) == 1
        assert all(bar.width() >= bar.sizeHint().width() for bar in bars)


def test_matrices_of_one_scale_have_one_key_that_names_cell_and_line(qtbot: QtBot, bench: Bench) -> None:
    panel = with_pins(qtbot, bench, (751, 504), 3)
    key, views = panel._maps.key, panel.maps()
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    assert key.isVisible()
    assert not any(view.heat.options.bar for view in views)
    assert all(view.geometry().bottom() < key.y() for view in views)
    assert all(view.heat.geometry_now().area.width() >= 133 for view in views), "with tokens over the columns"
    piece = panel.main.heat.row_axis.piece
    for words in (piece(8), piece(1), "prefill ↑ decode ↓", "√ scale"):
        assert words in key.text()
    for view in views:
        if not view.heat.options.readout:
            said = [label.text() for label in view.findChildren(QLabel) if label.isVisible()]
            assert "weight" in said, "a value is named"
    bench.selection.set_stage("scores")  # of the chosen one; the pinned ones stay weights
    settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: not key.barred)
    assert "√ scale" not in key.text()
    assert "prefill ↑ decode ↓" in key.text()
    assert all(
        view.heat.options.bar or [bar for bar in view.findChildren(ColourBar) if bar.isVisible()] for view in views
    )
    assert not panel.grab().isNull()


def test_the_fifth_pin_says_which_one_goes(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (1100, 760))
    bench.run(19, 7)
    said: list[str] = []
    bench.ctx.notify.message.connect(said.append)
    for layer in range(5):
        bench.selection.set_layer_head(layer, 1)
        panel.controls.toggle_pin()
        assert len(said) == (layer == 4)
    assert "Layer 0 · Head 1" in said[0]
    assert len(bench.selection.pins) == 4


@pytest.mark.parametrize("size", [(751, 530), (460, 500)])
def test_a_click_on_a_label_opens_its_line_where_the_side_is_hidden(
    qtbot: QtBot, bench: Bench, size: tuple[int, int]
) -> None:
    panel = shown(qtbot, bench, size)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    if panel.side.isVisible():
        panel.toggle_grid()
    settled(qtbot, panel, bench)
    assert not panel.side.isVisible()
    panel.main.heat.rowClicked.emit(8)
    settled(qtbot, panel, bench)
    assert panel.side.row.isVisible()
    assert bench.selection.query == 8
    panel.main.heat.colClicked.emit(1)
    settled(qtbot, panel, bench)
    assert panel.side.column.isVisible()


@pytest.mark.parametrize(("size", "pins"), [((751, 504), 2), ((751, 504), 3), ((1100, 700), 3)])
def test_pinned_matrices_use_the_height_and_their_tokens_stand_whole(
    qtbot: QtBot, bench: Bench, size: tuple[int, int], pins: int
) -> None:
    panel = with_pins(qtbot, bench, size, pins)
    views = panel.maps()
    room = views[0].parentWidget()
    assert room is not None
    assert max(view.geometry().bottom() for view in views) >= 0.9 * room.height()
    for view in views:
        heat, geometry = view.heat, view.heat.geometry_now()
        longest = heat.row_axis.longest(96.0, 19, ruler=False)
        # Cut only where no width lies idle beside the matrix but what the last number over it reaches out.
        assert geometry.row_room >= longest or heat.width() - geometry.area.right() < 12
    shown_titles = [label.text() for view in views for label in view.findChildren(QLabel) if "weights" in label.text()]
    assert len({"Head" in title for title in shown_titles}) == 1  # in brief, all or none


def test_two_matrices_side_by_side_have_tokens_over_them_upright_where_slanted_ones_cost_cells(
    qtbot: QtBot, bench: Bench
) -> None:
    panel = shown(qtbot, bench, (751, 504))
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    panel.controls.toggle_pin()
    settled(qtbot, panel, bench)
    views = panel.maps()
    assert len(views) == 2
    for view in views:
        heat = view.heat
        assert not heat.col_axis.bare and heat.col_axis.slant == STEEP
        words = {label.piece for label in axis_labels(heat)[1]}
        assert words == {heat.col_axis.piece(i) for i in range(heat.shape[1])}, "every column's token"
        geometry = heat.geometry_now()
        over = heat.col_axis.size_over(heat.col_axis.longest(geometry.col_room, 19, ruler=False))[0]
        assert over <= geometry.area.top() + 1, "and none is cut at the top"


@pytest.mark.parametrize(("size", "pins", "named", "least"), [
    ((751, 504), 1, True, 260), ((751, 504), 2, False, 150), ((751, 504), 3, False, 150), ((751, 504), 4, False, 130),
    ((471, 556), 1, False, 170), ((471, 510), 2, False, 130), ((471, 556), 4, False, 95), ((1037, 625), 2, True, 245),
    ((1037, 625), 4, False, 190), ((1360, 800), 2, True, 300), ((1360, 800), 4, False, 260),
])  # fmt: skip
def test_columns_have_their_tokens_where_these_take_little_from_the_cells(
    qtbot: QtBot, bench: Bench, size: tuple[int, int], pins: int, named: bool, least: int
) -> None:
    panel = with_pins(qtbot, bench, size, pins)
    for view in panel.maps():
        heat, geometry = view.heat, view.heat.geometry_now()
        assert geometry.area.width() >= least
        labels = axis_labels(heat)[1]
        words = [label.piece for label in labels]
        if not named:
            assert words == [str(label.index) for label in labels]
            continue
        assert words == [heat.col_axis.piece(label.index) for label in labels] and len(words) >= 9
        assert heat.col_axis.slant != STEEP or not any(label.number for label in labels), "the rows have these"
        axis = heat.col_axis
        over = axis.size_over(axis.longest(geometry.col_room, 19, ruler=any(label.ruler for label in labels)))[0]
        assert over <= geometry.area.top() + 1, "none is cut at the top"
        assert all(axis.metrics.horizontalAdvance(word) <= geometry.col_room for word in words), "nor elided"


@pytest.mark.parametrize("size", [(471, 556), (751, 504), (1037, 625)])
@pytest.mark.parametrize("pins", [1, 2, 3, 4])
def test_rows_of_pinned_matrices_have_whole_tokens_and_each_says_its_value(
    qtbot: QtBot, bench: Bench, size: tuple[int, int], pins: int
) -> None:
    """They were cut to three letters, and the value with them, beside a band that lay idle."""
    panel = with_pins(qtbot, bench, size, pins)
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    for view in panel.maps():
        heat, geometry = view.heat, view.heat.geometry_now()
        assert geometry.row_room >= heat.row_axis.longest(96.0, 19, ruler=False)
        if heat.options.readout:
            assert parts_width(heat.theme, heat.readout(brief=5)) <= geometry.readout.width()
        else:
            qtbot.waitUntil(partial(is_whole, value_of(bench, view)))
            assert f"{heat.row_axis.piece(8)} (8)" in panel._maps.key.text(), "the tokens once at the foot"
        assert words_place(heat) is None, "the key says it once"
    assert "prefill ↑ decode ↓" in panel._maps.key.text()


def is_whole(label: QLabel) -> bool:
    return label.width() >= label.sizeHint().width()


def value_of(bench: Bench, view: MapView) -> QLabel:
    """The value of the cell (8, 1) in a title."""
    text = figure(float(bench.engine.matrix(view.view)[8, 1]), 6)
    [value] = [label for label in view.findChildren(QLabel) if label.isVisible() and label.text() == text]
    return value


def test_values_in_titles_end_as_far_from_the_next_title_whether_one_can_be_unpinned_or_not(
    qtbot: QtBot, bench: Bench
) -> None:
    panel = with_pins(qtbot, bench, (751, 504), 4)
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    values = [(view, value_of(bench, view)) for view in panel.maps()]

    def ends() -> set[int]:
        return {view.width() - value.mapTo(view, value.rect().topRight()).x() for view, value in values}

    qtbot.waitUntil(lambda: len(ends()) == 1)
    assert ends().pop() > 16
    assert not [button for button in panel.main.findChildren(QToolButton) if button.isVisible()]


def test_four_pins_take_the_width_of_lines_and_heads_where_they_are_larger_for_it(qtbot: QtBot, bench: Bench) -> None:
    """Lines took more than half of a wide panel, and five matrices were smaller than in a small window."""
    panel = with_pins(qtbot, bench, (1037, 625), 4)
    assert panel.pages.isVisible() and not panel.side.isVisible()
    places = [view.geometry() for view in panel.maps()]
    assert len({place.top() for place in places}) == 2
    small = with_pins(qtbot, bench, (751, 504), 4)
    assert panel.main.heat.geometry_now().area.width() > 1.3 * small.main.heat.geometry_now().area.width()


def test_the_menu_says_whether_all_heads_are_in_sight(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (760, 540))
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    [command] = [command for command in panel.commands() if command.id == "attention.grid"]
    assert command.checked is not None
    for _ in range(3):
        assert command.checked() == panel.side.grid.isVisible()
        panel.toggle_grid()
        settled(qtbot, panel, bench)
    panel.side.show_page("row")
    assert not command.checked()


@pytest.mark.parametrize("size", [(751, 504), (900, 640), (760, 520)])
def test_hiding_the_heads_makes_the_matrix_no_smaller(qtbot: QtBot, bench: Bench, size: tuple[int, int]) -> None:
    panel = shown(qtbot, bench, size)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    assert panel.side.grid.isVisible()
    before = panel.main.heat.geometry_now().area.width()
    panel.toggle_grid()
    settled(qtbot, panel, bench)
    assert not panel.side.grid.isVisible()
    assert panel.main.heat.geometry_now().area.width() >= before
    heat = panel.main.heat
    idle = heat.height() - heat.geometry_now().readout.bottom()
    assert idle < heat.shape[0] + 4, "a pixel more for every row would need more height than there is"


def test_empty_squares_say_why_until_the_first_heads_come(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (760, 540))
    bench.engine.held = True
    bench.run(19, 7)
    # Until it has its place too: the first turn of a run asks, and the second lays out by the shape the first found.
    qtbot.waitUntil(lambda: any(isinstance(m, GetGrid) for m in bench.engine.asked) and not panel._pending)
    grid, note = panel.side.grid, panel.side.waiting
    assert grid.blank and note.isVisible() and note.text()
    assert grid.viewport().rect().contains(note.geometry())
    place = grid.geometry()
    bench.engine.held = False
    bench.engine.release()
    settled(qtbot, panel, bench)
    assert not grid.blank
    assert not note.isVisible()
    assert grid.geometry() == place, "nothing moves when it goes"


def test_a_title_is_said_in_brief_before_its_heads_number_is_cut(qtbot: QtBot, bench: Bench) -> None:
    panel = with_pins(qtbot, bench, (1360, 800), 4)
    [title] = [label for label in panel.pinned[0].findChildren(ElidedLabel) if "Head" in label.text()]
    said = []
    for width in range(title.sizeHint().width() + 10, 20, -1):
        title.resize(width, title.height())
        if title.shown() not in said:
            said.append(title.shown())
    brief = "L0 H1 · weights"
    assert said[:3] == [f"pinned · {view_text(panel.pinned[0].view)}", brief, "L0 H1"]
    assert all(cut.endswith("…") for cut in said[3:])


def test_titles_have_their_room_with_the_resize(qtbot: QtBot, bench: Bench) -> None:
    """They were cut until all that the resize had set off was done."""
    panel = with_pins(qtbot, bench, (751, 504), 4)
    dressed = set()
    for height in range(300, 700, 40):
        panel._maps.resize(QSize(720, height))  # no event is worked through after it
        dressed.add(panel.main.heat.options.readout)
        for view in panel.maps():
            [label] = view.findChildren(ElidedLabel)
            title = label.parentWidget()
            layout = title.layout() if title is not None else None
            assert title is not None and layout is not None
            width = label.width()
            layout.activate()
            assert (title.width(), label.width()) == (view.width(), width)
    assert len(dressed) == 2, "the value goes into the title and out of it"


@pytest.mark.parametrize(
    ("size", "pins"), [((751, 504), 2), ((751, 504), 4), ((1037, 625), 2), ((1037, 625), 4), ((472, 556), 2)]
)
def test_the_place_that_matrices_leave_over_has_the_row(
    qtbot: QtBot, bench: Bench, size: tuple[int, int], pins: int
) -> None:
    """A quarter of the panel was empty beside three matrices, and a sixth beside five."""
    panel = with_pins(qtbot, bench, size, pins)
    lines, maps = panel.side.lines, panel._maps
    qtbot.waitUntil(lambda: lines.isVisible() and lines.parentWidget() is maps)
    place = lines.geometry()
    assert place.width() >= 180 and place.height() >= 120 and maps.rect().contains(place)
    assert place.bottom() < maps.key.y()
    for view in panel.maps():
        drawn = view.heat.geometry_now()
        for part in (drawn.area, drawn.readout):
            assert part.isNull() or not part.toAlignedRect().translated(view.mapTo(maps, view.heat.pos())).intersects(
                place
            )
    qtbot.waitUntil(lambda: panel.side.row.isVisible() and panel.settled)
    panel.main.heat.colClicked.emit(1)
    settled(qtbot, panel, bench)
    assert panel.side.column.isVisible() and lines.parentWidget() is maps
    if panel.pages.isVisible():  # the same as a page, and back
        panel._choose_page("entropy")
        settled(qtbot, panel, bench)
        assert panel.side.entropy.isVisible() and not maps.isVisible() and panel.pages.key() == "entropy"
        panel._choose_page("matrix")
        settled(qtbot, panel, bench)
        assert lines.isVisible() and lines.parentWidget() is maps and panel.pages.key() == "matrix"
    while panel.pinned:
        panel.pinned[0].unpinned.emit(panel.pinned[0].pinned)
        settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: not maps.isAncestorOf(lines))
    panel.side.show_page("row")
    assert panel.side.page == "row"


def test_titles_follow_the_size_of_text(qtbot: QtBot, bench: Bench) -> None:
    panel = with_pins(qtbot, bench, (751, 504), 1)
    [label] = panel.pinned[0].findChildren(ElidedLabel)
    assert label.font().pixelSize() == 11
    bench.ctx.theme.set_text_scale(2)
    assert label.font().pixelSize() == 22


@pytest.mark.parametrize("key", [0, 1, 8, 18])
def test_over_columns_that_are_counted_the_chosen_one_has_its_token(qtbot: QtBot, bench: Bench, key: int) -> None:
    panel = with_pins(qtbot, bench, (751, 504), 3)
    bench.selection.set_cell(18, key)
    settled(qtbot, panel, bench)
    for view in panel.maps():
        heat = view.heat
        assert heat.col_axis.bare
        [label] = bold_labels(heat)[1]
        assert label.piece == heat.col_axis.piece(key) and label.index == key
        area = heat.geometry_now().area
        box = heat.col_axis.outline(label, area.top(), 0.0, bold=True).boundingRect()
        assert box.left() >= 0 and box.right() <= heat.width() and box.left() <= label.centre <= box.right()
