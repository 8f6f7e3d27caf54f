"""The numbers along a heat map whose rows and columns are only counted."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage, QPainter
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_axes import Axis
from app.widgets.heatmap_layout import Options
from app.widgets.heatmap_paint import axis_labels


def test_the_numbers_over_many_columns_are_whole_where_the_matrix_is_low(qtbot: QtBot) -> None:
    theme = Theme("dark")
    heat = HeatMap(theme, "matrix", options=Options(square=False))
    qtbot.addWidget(heat)
    heat.set_axis_tokens([], [])
    heat.set_shape(32, 1536)
    heat.resize(1100, 110)
    heat.show()
    qtbot.waitExposed(heat)
    area, room = heat.geometry_now().area, heat.geometry_now().col_room
    label = axis_labels(heat)[1][-1]
    assert label.index > 1000
    width = heat.col_axis.outline(label, area.top(), room).boundingRect().width()
    assert width == pytest.approx(heat.col_axis.metrics.horizontalAdvance(label.piece), abs=0.5)
    drawn: list[str] = []

    class Pen(QPainter):
        def drawText(self, _at: QPointF, text: str) -> None:  # type: ignore[override]
            drawn.append(text)

    picture = QImage(10, 10, QImage.Format.Format_ARGB32)
    painter = Pen(picture)
    heat.col_axis.paint(painter, [label], area.top(), room)
    painter.end()
    assert drawn == [label.piece]


def test_a_chosen_number_hides_only_those_it_would_touch(qtbot: QtBot) -> None:
    """Of 19 small cells "5" was left out beside a "1", as if both had two digits."""
    del qtbot
    axis = Axis(Theme("dark"), slanted=True)
    assert axis.apart("1", "5", 19) < axis.spacing(19) == axis.apart("18", "18", 19)
    axis.always, pitch = 1, axis.spacing(19) / 5 + 0.01  # every fifth has room; from 1 to 5 are four
    found = axis.labels(start=0, extent=19, origin=0, length=19 * pitch, count=19)
    assert sorted(label.index for label in found) == [1, 5, 10, 15]
