"""Pinned heads where there is little room: the panel asks for what they need, and is scrolled."""

from __future__ import annotations

from pathlib import Path

import pytest
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
