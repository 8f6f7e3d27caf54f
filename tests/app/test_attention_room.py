"""Pinned heads where there is little room: the panel asks for what they need and is scrolled, and no place is idle."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.theme import Theme
from tests.app.attention_bench import Bench, settled
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
