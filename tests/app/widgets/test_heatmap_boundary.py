"""The words of the line where decode begins: on the cells where there is room, else beside the colour bar."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

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


def test_a_low_map_has_its_words_beside_the_colour_bar(qtbot: QtBot, qapp: QApplication) -> None:
    del qapp
    low, high = words_place(made(qtbot, (400, 150))), words_place(made(qtbot, (400, 320)))
    assert low is not None
    assert not low[1]
    assert high is not None
    assert high[1]


@pytest.mark.parametrize("kept", [18, 17, 5, 0])
def test_a_row_that_is_kept_has_its_label_and_none_touch(qtbot: QtBot, qapp: QApplication, kept: int) -> None:
    del qapp
    heat = made(qtbot, (400, 150))
    heat.row_axis.always = kept
    labels = sorted(axis_labels(heat)[0], key=lambda label: label.index)
    assert kept in [label.index for label in labels]
    spacing = heat.row_axis.spacing(19)
    assert all(b.centre - a.centre >= spacing for a, b in pairwise(labels))
