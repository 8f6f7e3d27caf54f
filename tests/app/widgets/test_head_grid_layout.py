"""Where the heads of a model go."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.head_grid import HeadGrid
from app.widgets.head_grid_layout import by_layer


def test_layers_stand_in_stacks_where_that_makes_heads_larger() -> None:
    narrow, wide = (by_layer((30, 9), 3, width=width, height=500, left=20, header=30, gap=2) for width in (220, 560))
    assert (narrow.stacks, wide.stacks) == (1, 2)
    assert wide.side > narrow.side
    assert wide.height <= 500
    places = [wide.rect(layer, head) for layer in range(30) for head in range(9)]
    assert not any(a.intersects(b) for at, a in enumerate(places) for b in places[at + 1 :])
    assert wide.layers_between(wide.header, wide.header + wide.pitch) == [0, 15]


def test_all_layers_are_seen_at_once_where_that_leaves_a_thumbnail_to_look_at() -> None:
    for height, gap, least in ((384, 2, 9), (410, 5, 9), (800, 2, 12)):
        layout = by_layer((30, 9), 3, width=225, height=height, left=20, header=40, gap=gap)
        assert layout.side >= least
        assert layout.height <= height
        assert layout.rows_in(height) == 30
    low = by_layer((30, 9), 3, width=225, height=250, left=20, header=40, gap=2)
    assert low.side > 12  # not all of them: then as large as ever, and the rest by scrolling


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
