"""The words of the line where decode begins: on the cells where there is room, else beside the colour bar."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Literal

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.panels.kv_contents import OPTIONS, RowsMap
from app.theme import Theme
from app.widgets.colour_bar import BarText
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_boundary import boundary_words, row_line, words_place
from app.widgets.heatmap_image import Tile
from app.widgets.heatmap_layout import Options
from app.widgets.heatmap_paint import axis_labels


def made(qtbot: QtBot, size: tuple[int, int], tokens: Literal["both", "rows"] = "rows") -> HeatMap:
    heat = HeatMap(Theme("light"), "Map", options=Options(square=False, tokens=tokens))
    qtbot.addWidget(heat)
    heat.resize(*size)
    heat.set_bar(BarText(values=(-15.4, 0.0, 15.4), scale="√ scale"))
    heat.set_shape(19, 64)
    heat.set_axis_tokens([f"·token{i}" for i in range(19)], [], first_decode=12)
    heat.set_boundary(12)
    pixels = np.full((19, 64), 128, dtype=np.uint8)
    heat.set_tile(Tile(pixels=pixels, rows=(0, 19), cols=(0, 64), values=None, signed=True))
    return heat


@pytest.mark.parametrize("height", range(110, 420, 24))
@pytest.mark.parametrize("width", [240, 370, 460, 800])
def test_the_words_lie_where_they_cover_nothing_or_have_room(
    qtbot: QtBot, qapp: QApplication, width: int, height: int
) -> None:
    del qapp
    heat = made(qtbot, (width, height))
    found, geometry = words_place(heat), heat.geometry_now()
    y = row_line(heat)
    assert y is not None
    assert not heat.grab().isNull()
    if found is None:
        return
    place, inside = found
    assert place.width() >= QFontMetricsF(heat.theme.font("hint")).horizontalAdvance(boundary_words())
    assert heat.rect().contains(place.toAlignedRect())
    if inside:
        assert geometry.area.contains(place)
        assert not place.top() <= y <= place.bottom()
    else:
        assert not place.intersects(geometry.area)
        assert not place.intersects(geometry.bar)
        assert not place.intersects(geometry.readout)


@pytest.mark.parametrize("boundary", [None, 12])
@pytest.mark.parametrize("height", [104, 180, 420])
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_readout_the_names_of_both_lines_and_the_bar_never_touch(
    qtbot: QtBot, qapp: QApplication, boundary: int | None, height: int, scale: float
) -> None:
    """The words of one line may stand left of the bar, and those of the other follow them only there."""
    del qapp
    theme = Theme("light")
    theme.set_text_scale(scale)
    heat = RowsMap(theme, "Map", options=replace(OPTIONS, further="newest"))
    qtbot.addWidget(heat)
    heat.set_bar(BarText(values=(-13.5, 0.0, 13.5), scale="√ scale", beyond=True))
    heat.set_axis_tokens([f"·token{i}" for i in range(19)], [], first_decode=boundary)
    heat.set_shape(19, 64)
    heat.set_boundary(boundary)
    heat.set_newest(18)
    heat.set_selected((1, 0))
    left, right, nowhere = 0, 0, 0
    for width in range(160, 1480, 11):
        heat.resize(width, height)
        heat.resizeEvent(QResizeEvent(heat.size(), heat.size()))
        geometry, words, newest = heat.geometry_now(), words_place(heat), heat.newest_words()
        places = [geometry.area, geometry.readout, geometry.bar, words[0] if words else QRectF(), newest or QRectF()]
        there = [place for place in places if not place.isNull()]
        for one, other in combinations(there, 2):
            assert not one.intersects(other), (width, one, other)
        assert all(heat.rect().toRectF().adjusted(-1, -1, 1, 1).contains(place) for place in there), (width, there)
        named = {line.words for line in heat.unnamed()}
        assert ("newest" in named) == (newest is None)
        left += newest is not None and newest.right() < geometry.bar.left()
        right += newest is not None and newest.left() > geometry.bar.right()
        nowhere += newest is None
    assert left > 0 or not heat.options.bar
    assert right > 0 or height < 420
    assert nowhere > 0


@pytest.mark.parametrize("height", [150, 320])
def test_a_map_without_masked_cells_has_its_words_beside_the_colour_bar(
    qtbot: QtBot, qapp: QApplication, height: int
) -> None:
    del qapp
    heat = made(qtbot, (400, height))
    found = words_place(heat)
    assert found is not None
    assert not found[1]
    heat.set_options(Options(square=False, tokens="rows", bar=False))
    assert words_place(heat) is None


def causal(qtbot: QtBot, size: tuple[int, int], count: int, boundary: int) -> HeatMap:
    heat = HeatMap(Theme("light"), "Map", options=Options())
    qtbot.addWidget(heat)
    heat.resize(*size)
    heat.set_bar(BarText(values=(0.0, 0.5, 1.0), scale="√ scale"))
    heat.set_lut(np.full((256, 4), 90, dtype=np.uint8))
    heat.set_shape(count, count)
    heat.set_axis_tokens([f"·token{i}" for i in range(count)], [f"·token{i}" for i in range(count)])
    heat.set_boundary(boundary)
    pixels = np.tril(np.full((count, count), 200, dtype=np.uint8))
    heat.set_tile(Tile(pixels=pixels, rows=(0, count), cols=(0, count), values=None))
    return heat


@pytest.mark.parametrize("count", [7, 12, 19, 60, 379])
@pytest.mark.parametrize("size", [(300, 260), (380, 380), (420, 520), (640, 420)])
@pytest.mark.parametrize("share", [0.15, 0.5, 0.7, 0.99])
def test_the_words_hide_no_cell_that_has_a_value(
    qtbot: QtBot, qapp: QApplication, size: tuple[int, int], count: int, share: float
) -> None:
    del qapp
    heat = causal(qtbot, size, count, min(max(1, round(share * count)), count - 1))
    found, area = words_place(heat), heat.geometry_now().area
    if found is None:
        return
    place, inside = found
    assert heat.rect().contains(place.toAlignedRect())
    if inside and heat.geometry_now().bar.top() != heat.geometry_now().readout.top():
        row, col = heat.cell_at(place.bottomLeft()) or (0, 0)
        assert col > row
    elif not inside:
        assert not place.intersects(area)


@pytest.mark.parametrize("size", [(483, 450), (412, 383), (587, 571), (448, 466)])
def test_where_no_cell_is_masked_the_words_stand_beside_the_map_or_its_colour_bar(
    qtbot: QtBot, qapp: QApplication, size: tuple[int, int]
) -> None:
    del qapp
    heat = causal(qtbot, size, 19, 12)
    heat.clear()
    heat.set_causal(causal=False)
    heat.set_tile(Tile(pixels=np.full((19, 19), 128, dtype=np.uint8), rows=(0, 19), cols=(0, 19), values=None))
    found, geometry, y = words_place(heat), heat.geometry_now(), row_line(heat)
    assert found is not None and y is not None and not found[1]
    for part in (geometry.area, geometry.bar, geometry.readout):
        assert not found[0].intersects(part)
    over_and_under = found[0].top() < y < found[0].bottom()
    assert over_and_under or found[0].center().y() == geometry.bar.center().y()
    assert heat.rect().contains(found[0].toAlignedRect())
    heat.set_boundary(None)
    assert heat.geometry_now().area.width() >= geometry.area.width()


@pytest.mark.parametrize("size", [(483, 450), (448, 466), (587, 571)])
@pytest.mark.parametrize(("count", "boundary"), [(19, 12), (42, 12)])
def test_words_that_fit_on_masked_cells_take_nothing_from_the_matrix(
    qtbot: QtBot, qapp: QApplication, size: tuple[int, int], count: int, boundary: int
) -> None:
    """Room was kept beside it, and it was a size smaller for that."""
    del qapp
    heat = causal(qtbot, size, count, boundary)
    found, area = words_place(heat), heat.geometry_now().area
    assert found is not None and found[1]
    heat.set_boundary(None)
    assert heat.geometry_now().area == area
    heat.set_boundary(boundary)
    heat.set_options(Options(line_named=False))
    assert words_place(heat) is None, "another says it"


@pytest.mark.parametrize("size", [(380, 400), (400, 440), (448, 400)])
def test_rows_have_no_room_for_numbers_that_only_columns_need(
    qtbot: QtBot, qapp: QApplication, size: tuple[int, int]
) -> None:
    """Where slanted tokens are thinned, which rows are not, the room of a number lay idle at the left."""
    del qapp
    heat = causal(qtbot, size, 19, 12)
    rows, cols = axis_labels(heat)
    assert not any(label.number for label in rows) and any(label.number for label in cols)
    assert heat.geometry_now().area.left() < heat.row_axis.longest(96, 19, ruler=False) + 12


def test_a_wide_map_without_masked_cells_has_the_words_between_its_readout_and_its_bar(
    qtbot: QtBot, qapp: QApplication
) -> None:
    del qapp
    heat = made(qtbot, (758, 180), tokens="both")
    found, geometry = words_place(heat), heat.geometry_now()
    assert found is not None and not found[1]
    assert geometry.readout.right() < found[0].left() and found[0].right() < geometry.bar.left()
    assert geometry.readout.top() == geometry.bar.top()


def test_a_line_over_thin_rows_hides_none_of_them(qtbot: QtBot, qapp: QApplication) -> None:
    del qapp
    heat = causal(qtbot, (420, 460), 379, 376)
    area, y, shot = heat.geometry_now().area, row_line(heat), heat.grab().toImage()
    assert y is not None
    cells = [shot.pixelColor(round(area.left()) + 40, row) for row in range(round(y), round(area.bottom()))]
    assert cells
    assert len({cell.name() for cell in cells}) == 1
    dashes = {shot.pixelColor(x, round(y) - 1).name() for x in range(round(area.left()) + 20, round(area.left()) + 60)}
    assert heat.theme.palette.amber.name() in dashes


@pytest.mark.parametrize("kept", [18, 17, 5, 0])
def test_a_row_that_is_kept_has_its_label_and_none_touch(qtbot: QtBot, qapp: QApplication, kept: int) -> None:
    del qapp
    heat = made(qtbot, (400, 150))
    heat.row_axis.always = kept
    labels = sorted(axis_labels(heat)[0], key=lambda label: label.index)
    assert kept in [label.index for label in labels]
    spacing = heat.row_axis.spacing(19)
    assert all(b.centre - a.centre >= spacing for a, b in pairwise(labels))


@pytest.mark.parametrize(("width", "told"), [(240, False), (320, True), (340, True), (900, True)])
def test_tokens_beside_the_rows_are_whole_where_the_cells_keep_200_px(
    qtbot: QtBot, qapp: QApplication, width: int, told: bool
) -> None:
    """Two special tokens that begin alike are cut to the same."""
    del qapp
    heat = HeatMap(Theme("light"), "Map", options=Options(square=False, tokens="rows", readout=False))
    qtbot.addWidget(heat)
    heat.set_shape(40, 48)
    heat.set_axis_tokens(["‹|im_start|›", "‹|im_end|›"] * 20, [])
    for height in (110, 700):
        heat.resize(width, height)
        heat.resizeEvent(QResizeEvent(heat.size(), heat.size()))
        geometry, longest = heat.geometry_now(), heat.row_axis.metrics.horizontalAdvance("‹|im_start|›")
        assert (geometry.row_room >= longest) == told
        assert geometry.area.width() >= (200 if told else 0.6 * width)
        assert geometry.area.right() <= width


@pytest.mark.parametrize(("count", "token"), [(26, "·original"), (42, "·necessary")])
def test_words_that_would_cost_the_map_much_stand_in_the_corner_of_its_tokens(
    qtbot: QtBot, qapp: QApplication, count: int, token: str
) -> None:
    """It was an eighth smaller with them than at the stages whose mask leaves them room, and jumped."""
    del qapp
    heat = causal(qtbot, (483, 450), count, 12)
    heat.set_axis_tokens([token] * count, [token] * count)
    before = heat.geometry_now().area
    heat.clear()
    heat.set_causal(causal=False)
    heat.set_tile(Tile(pixels=np.full((count, count), 9, np.uint8), rows=(0, count), cols=(0, count), values=None))
    found, geometry = words_place(heat), heat.geometry_now()
    assert geometry.area == before
    assert found is not None and not found[1]
    assert heat.rect().contains(found[0].toAlignedRect())
    assert found[0].right() < geometry.area.left() and found[0].bottom() < geometry.area.top()
    rows, cols = axis_labels(heat)
    for axis, labels, edge, room in (
        (heat.row_axis, rows, geometry.area.left(), geometry.row_room),
        (heat.col_axis, cols, geometry.area.top(), geometry.col_room),
    ):
        for label in labels:
            for bold in (False, True):
                assert not axis.outline(label, edge, room, bold=bold).intersects(QPolygonF(found[0])), label
