"""Where the heads of a model go."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontMetricsF
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.head_grid import HeadGrid, name_of
from app.widgets.head_grid_layout import by_layer, named_layers
from app.widgets.head_grid_marks import shares, tint, tints


def test_layers_stand_in_stacks_where_that_makes_heads_larger() -> None:
    narrow, wide = (by_layer((30, 9), 3, width=width, height=500, left=20, header=30, gap=2) for width in (220, 560))
    assert (narrow.stacks, wide.stacks) == (1, 2)
    assert wide.side > narrow.side
    assert wide.height <= 500
    places = [wide.rect(layer, head) for layer in range(30) for head in range(9)]
    assert not any(a.intersects(b) for at, a in enumerate(places) for b in places[at + 1 :])
    assert wide.layers_between(wide.header, wide.header + wide.pitch) == [0, 15]


def test_all_layers_are_seen_at_once_where_that_leaves_a_thumbnail_to_look_at() -> None:
    for height in (521, 800):
        layout = by_layer((30, 9), 3, width=225, height=height, left=20, header=40, gap=2, line=14)
        assert layout.side >= 14
        assert layout.height <= height
        assert layout.rows_in(height) == 30
    for height in (250, 384, 500):
        low = by_layer((30, 9), 3, width=225, height=height, left=20, header=40, gap=2, line=14)
        assert low.side >= 14  # not all of them: then as large as ever, and the rest by scrolling


def test_layers_stand_closer_before_any_of_them_is_out_of_sight() -> None:
    """Down to 11 px, each with its number; where they do not fit then, thumbnails are as large as ever."""
    for height in range(150, 700):
        layout = by_layer((30, 9), 3, width=225, height=height, left=20, header=28, gap=2, line=12)
        fit = height >= 28 + 30 * 12
        assert layout.side >= (11 if fit else 14)
        assert layout.pitch > layout.side and layout.pitch >= 12
        assert named_layers(layout, range(30), 13, least=12) == list(range(30))
        if fit:
            assert layout.rect(29, 8).bottom() < height and layout.rows_in(height) == 30
        large = by_layer((30, 9), 3, width=225, height=height, left=20, header=28, gap=2, line=14)
        assert large.pitch >= 14, "numbers in large text would touch"


def test_layers_stand_in_stacks_of_small_ones_before_any_of_them_is_out_of_sight() -> None:
    """Thirteen of thirty showed, and half of the width was empty."""
    for height in (220, 250, 280):
        layout = by_layer((30, 9), 3, width=430, height=height, left=20, header=28, gap=2, line=12)
        assert layout.stacks == 2 and layout.side >= 11 and layout.pitch >= 12
        assert layout.rows_in(height) == layout.rows and layout.height <= height
        places = [layout.rect(layer, head) for layer in range(30) for head in range(9)]
        assert max(place.right() for place in places) <= 430
        assert not any(one.intersects(other) for one, other in itertools.combinations(places, 2))
    for height in (60, 100, 150):
        low = by_layer((30, 9), 3, width=430, height=height, left=20, header=28, gap=2, line=12)
        assert low.side >= 14, "as large as ever where small ones do not fit either"
        assert low.stacks == 2 and low.rect(29, 8).right() <= 430, "and no width lies idle beside them"


def test_the_key_of_marks_stands_beside_heads_that_it_would_put_out_of_sight(qtbot: QtBot) -> None:
    theme = Theme("dark")
    grid = HeadGrid(theme)
    qtbot.addWidget(grid)
    grid.resize(232, 390)
    grid.set_shape(30, 9, 3)
    grid.show()
    qtbot.waitExposed(grid)
    before = grid.head_rect(29, 8)
    for values, unit in ((9.0, "positions"), (1.85, "nats"), (0.981, "")):
        grid.set_metric(np.full((30, 9), values, dtype=np.float32), "a measure", unit=unit)
        assert grid.head_rect(29, 8) == before and grid.verticalScrollBar().maximum() == 0
        shot = grid.viewport().grab().toImage()
        inked = [
            x for x in range(round(before.right()) + 4, shot.width())
            if len({shot.pixelColor(x, y).name() for y in range(shot.height())}) > 1
        ]  # fmt: skip
        assert inked and max(inked) < shot.width() - 1, "drawn, and whole"
        assert any(len({shot.pixelColor(x, y).name() for y in range(shot.height())}) > 30 for x in inked), "a ramp"
    grid.resize(232, 420)
    assert grid._layout().key > 0, "over them where there is room"
    grid.resize(190, 390)
    assert grid._layout().key > 0, "and where there is none beside them"


@pytest.mark.parametrize("size", [(225, 384), (225, 420), (226, 500), (226, 560), (440, 320), (620, 690)])
@pytest.mark.parametrize("line", [14, 17, 21])
def test_thumbnails_are_square_and_every_layer_has_its_number(size: tuple[int, int], line: int) -> None:
    layout = by_layer((30, 9), 3, width=size[0], height=size[1], left=20, header=40, gap=2, line=line)
    rects = [layout.rect(layer, head) for layer in range(30) for head in range(9)]
    assert {(rect.width(), rect.height()) for rect in rects} == {(layout.side, layout.side)}
    assert layout.side >= 14
    assert named_layers(layout, range(30), 13, least=line) == list(range(30))
    assert max(rect.right() for rect in rects) <= size[0]


@pytest.mark.parametrize("height", [60, 100, 133, 200, 251, 384])
@pytest.mark.parametrize("ranked", [False, True])
def test_no_thumbnail_is_cut_at_any_height_and_place(qtbot: QtBot, height: int, ranked: bool) -> None:
    grid = HeadGrid(Theme("dark"))
    qtbot.addWidget(grid)
    grid.resize(226, height)
    grid.set_shape(30, 9, 3)
    if ranked:
        grid.set_metric(np.arange(270, dtype=np.float32).reshape(30, 9), "entropy", sort=True)
    grid.show()
    qtbot.waitExposed(grid)
    bar, room = grid.verticalScrollBar(), grid.viewport().height()
    for value in (0, 1, bar.maximum() // 3, bar.maximum() - 1, bar.maximum()):
        bar.setValue(value)
        found = {grid.thing_at(QPointF(x, y)) for x in range(0, 226, 4) for y in range(room)} - {None}
        assert found
        rects = [grid.head_rect(*head) for head in found if head is not None]
        assert min(rect.top() for rect in rects) >= 0
        assert max(rect.bottom() for rect in rects) <= room or len({rect.top() for rect in rects}) == 1
    grid.set_selected(29, 8)
    assert grid.head_rect(29, 8).bottom() <= room or height == 60


def test_thumbnails_take_the_width_there_is() -> None:
    layout = by_layer((30, 9), 3, width=224, height=387, left=22, header=28, gap=2)
    assert layout.side == 16
    assert 224 - layout.width < 12  # a pixel a head is not to be had
    wide = by_layer((30, 9), 3, width=620, height=690, left=22, header=28, gap=2, line=14)
    assert wide.stacks == 2
    assert wide.side >= 25


@pytest.mark.parametrize("size", [(446, 420), (560, 500), (300, 700), (900, 300), (1300, 560)])
def test_layers_stand_in_as_many_stacks_as_make_thumbnails_largest_and_take_the_height(size: tuple[int, int]) -> None:
    width, height = size
    layout = by_layer((30, 9), 3, width=width, height=height, left=20, header=40, gap=2, line=14)
    sides = []
    for stacks in range(1, 31):
        across = ((width - (stacks - 1) * 14) / stacks - 20 - 2 * 5 - 3) / 9 - 2
        sides.append(min(across, (height - 42) / -(-30 // stacks) - 2, 40))
    assert layout.side >= max(sides) - 2
    if layout.rows * (layout.side * 1.5 + 2) > height - 40:
        assert height - layout.height < layout.rows + 1, "no band lies idle under them"
    assert max(layout.rect(layer, 8).right() for layer in range(30)) <= width


def test_heads_that_have_room_at_a_new_size_are_not_scrolled(qtbot: QtBot) -> None:
    """Bars of the size before took some of the room, and so they stayed."""
    grid = HeadGrid(Theme("dark"))
    qtbot.addWidget(grid)
    grid.resize(226, 300)
    grid.set_shape(30, 9, 3)
    grid.show()
    qtbot.waitExposed(grid)
    assert grid.verticalScrollBar().maximum() > 0
    grid.resize(448, 438)
    qtbot.waitUntil(lambda: grid.viewport().size() == grid.size())
    assert grid.verticalScrollBar().maximum() == grid.horizontalScrollBar().maximum() == 0
    assert grid.height() - grid.head_rect(14, 0).bottom() < grid.head_rect(0, 0).height()


@pytest.mark.parametrize("pitch", [9.0, 11.0, 12.0, 16.0])
@pytest.mark.parametrize("chosen", [-1, 0, 1, 13, 15, 28, 29])
def test_numbers_of_layers_never_touch_and_have_the_chosen_one(pitch: float, chosen: int) -> None:
    layout = by_layer((30, 9), 3, width=224, height=28 + 1 + 30 * pitch, left=22, header=28, gap=2)
    named = named_layers(layout, range(30), chosen, least=14)
    assert named == sorted(named)
    assert all((b - a) * layout.pitch >= 14 for a, b in itertools.pairwise(named))
    assert chosen in named or chosen < 0
    assert len(named) >= 5


def test_a_measure_tints_what_no_query_may_read_and_nothing_else() -> None:
    metric = np.array([[0.0, 0.5], [np.nan, -1.0]], dtype=np.float32)
    np.testing.assert_array_equal(shares(metric), np.array([[0, 0.5], [0, 1]], dtype=np.float32))
    black, white = QColor(0, 0, 0), QColor(255, 255, 255)
    found = tints(black, white, shares(metric))
    assert [hex(int(colour)) for colour in found.ravel()] == ["0xff000000", "0xff808080", "0xff000000", "0xffffffff"]
    pixels = np.tril(np.full((2, 6, 6), 9, dtype=np.uint8))
    colours = pixels.astype(np.uint32)
    tint(colours, pixels, found[1])
    assert (colours[pixels > 0] == 9).all()
    assert (colours[1][pixels[1] == 0] == 0xFFFFFFFF).all()
    whole = np.full((1, 6, 6), 9, dtype=np.uint8)  # before the mask: a corner stands for it
    colours = whole.astype(np.uint32)
    tint(colours, whole, found[1, 1:])
    assert colours[0, 0, 5] == 0xFFFFFFFF
    assert 0 < (colours != 9).sum() < 12


def test_thumbnails_that_grow_are_asked_for_again_where_they_were_pooled(qtbot: QtBot) -> None:
    """Layers that came while the grid was small stayed coarse beside the others when it grew."""
    grid = HeadGrid(Theme("dark"))
    qtbot.addWidget(grid)
    grid.resize(226, 420)
    grid.set_shape(3, 9, 3)
    grid.show()
    qtbot.waitExposed(grid)
    small = grid.thumbnail_pixels()
    grid.set_layer(0, np.zeros((9, 9, 9), dtype=np.uint8), enough=small)
    grid.set_layer(1, np.zeros((9, 9, 9), dtype=np.uint8))  # all of its cells
    assert grid.missing() == (2,)
    grid.resize(420, 420)
    assert grid.thumbnail_pixels() > small and grid.missing() == (0, 2)
    grid.set_layer(0, np.zeros((9, 19, 19), dtype=np.uint8), enough=grid.thumbnail_pixels())
    assert grid.missing() == (2,)


def test_a_measure_is_seen_with_its_key_and_said_exactly(qtbot: QtBot) -> None:
    theme = Theme("dark")
    grid = HeadGrid(theme)
    qtbot.addWidget(grid)
    grid.resize(226, 420)
    grid.set_shape(30, 9, 3)
    grid.show()
    qtbot.waitExposed(grid)
    for layer in range(30):
        grid.set_layer(layer, np.tril(np.full((9, 19, 19), 200, dtype=np.uint8)))
    side = grid.head_rect(0, 0).height()
    metric = np.zeros((30, 9), dtype=np.float32)
    metric[2, 3] = 0.4083
    grid.set_metric(metric, "induction score")
    assert grid.head_rect(0, 0).height() >= side - 1
    shot = grid.viewport().grab().toImage()
    # Not in the colour of the frame of what is chosen.
    assert shot.pixelColor((grid.head_rect(2, 3).topRight() + QPointF(-2, 1)).toPoint()) == theme.palette.secondary
    assert shot.pixelColor((grid.head_rect(2, 4).topRight() + QPointF(-2, 1)).toPoint()) == theme.palette.masked
    key = {shot.pixelColor(x, 8).name() for x in range(shot.width())}
    assert len(key) > 30  # a ramp
    assert "0.408" in grid.describe(2, 3)
    grid.set_metric(None)
    assert grid.head_rect(0, 0).height() == side


@pytest.mark.parametrize("width", [190, 226, 300, 520])
def test_sorted_heads_are_named_fill_the_width_and_show_the_chosen_one(qtbot: QtBot, width: int) -> None:
    theme = Theme("dark")
    grid = HeadGrid(theme)
    qtbot.addWidget(grid)
    grid.resize(width, 420)
    grid.set_shape(30, 9, 3)
    grid.show()
    qtbot.waitExposed(grid)
    grid.set_selected(13, 8)
    metric = np.random.default_rng(1).random((30, 9)).astype(np.float32) * 9
    grid.set_metric(metric, "mean distance", unit="positions", sort=True)
    layout, room = grid._layout(), grid.width() - 2 - grid.verticalScrollBar().sizeHint().width()
    assert layout.columns * layout.step == pytest.approx(room, abs=1), "no strip lies idle at the right"
    assert grid.horizontalScrollBar().maximum() == 0
    names = QFontMetricsF(theme.font("hint"))
    assert all(names.horizontalAdvance(name_of(layer, 8)) < layout.step for layer in (0, 13, 29))
    assert grid._is_in_sight(13, 8), "the one that is looked at"
    rank = int((metric > metric[13, 8]).sum())
    assert layout.rank(13, 8) == rank and grid.rank_words() == f"L13 H8: {rank + 1} of 270"
    assert grid.describe(13, 8).endswith(" positions")
    grid.set_metric(metric, "mean distance", unit="positions")
    assert grid.rank_words() == ""
