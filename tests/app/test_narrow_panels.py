"""Feed-forward and RoPE in large text: no figure is cut, and the width is used before anything is scrolled for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.frame.docks import PanelScroll
from app.panels.feed_forward import FeedForwardPanel
from app.panels.rope import RopePanel
from app.widgets.heatmap_paint import axis_labels
from tests.app.model_bench import ModelBench, bench_with
from tests.model.tiny import llama


@pytest.fixture(params=[FeedForwardPanel, RopePanel], ids=["feed-forward", "rope"])
def large(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[FeedForwardPanel | RopePanel, ModelBench, PanelScroll]]:
    bench, panel = bench_with(qtbot, tmp_path, llama()[1], request.param, (1380, 760), 14)
    dock = bench.kept[0]
    assert isinstance(dock, PanelScroll)
    qtbot.waitUntil(lambda: not bench.engine.waiting and panel.settled and bool(panel.facts.facts), timeout=8000)
    bench.ctx.theme.set_text_scale(2.0)
    yield panel, bench, dock
    bench.ctx.theme.set_text_scale(1.0)
    qapp.setStyleSheet("")


@pytest.mark.parametrize("width", [311, 640, 976, 1380])
def test_every_figure_is_whole_and_the_width_is_used(
    qtbot: QtBot, large: tuple[FeedForwardPanel | RopePanel, ModelBench, PanelScroll], width: int
) -> None:
    """In 311 px of a window of 1000 px a product was "0.859 × -…"; in 1380 px everything was in one column."""
    panel, bench, dock = large
    dock.resize(width, 471)
    qtbot.wait(80)
    facts, theme = panel.facts, bench.ctx.theme
    pitch, places = facts._placed()
    plain, strong = (QFontMetricsF(theme.font("table", bold=bold)) for bold in (False, True))
    column = facts._column(plain)
    assert len(places) == len(facts.facts) and pitch * sum(lines for _, lines in places) <= facts.height() + 2
    for fact, (_, lines) in zip(facts.facts, places, strict=True):
        value = (strong if fact.voice == "strong" else plain).horizontalAdvance(fact.value)
        assert lines == 1 or value <= (lines - 1) * (facts.width() - 8)
        assert lines > 1 or (value <= facts.width() - column and plain.horizontalAdvance(fact.name) <= column - 6)
    beside = panel.map if isinstance(panel, FeedForwardPanel) else panel.grid
    first = panel.facts if isinstance(panel, FeedForwardPanel) else panel.plane
    assert (beside.x() > first.x() and beside.y() == first.y()) == (width > 900)
    assert dock.horizontalScrollBar().maximum() == 0
    dock.resize(1380, 200)
    theme.set_text_scale(1.0)
    qtbot.waitUntil(lambda: panel._arranged.startswith("low"))
    qtbot.waitUntil(lambda: panel.height() <= dock.viewport().height())  # in a low dock it asks for no more height


def test_a_low_map_says_what_its_columns_are(qtbot: QtBot, tmp_path: Path) -> None:
    """Floating in the size of a dock, which has a title less high, nothing said that 1503 is a neuron."""
    bench, panel = bench_with(qtbot, tmp_path, llama()[1], FeedForwardPanel, (1382, 209), 14)
    qtbot.waitUntil(lambda: not bench.engine.waiting and panel.settled and bool(panel.neurons), timeout=8000)
    heat = panel.map.heat
    panel.map.setFixedSize(347, 119)
    qtbot.waitUntil(lambda: heat.width() == 347 and heat.col_axis.flat)
    [(place, words)] = heat.corner()
    assert words == "neuron →"
    assert place.width() >= QFontMetricsF(bench.ctx.theme.font("hint")).horizontalAdvance(words)
    area, first = heat.geometry_now().area, axis_labels(heat)[1][0]
    half = QFontMetricsF(bench.ctx.theme.font("hint", bold=True)).horizontalAdvance(first.piece) / 2
    assert place.top() >= 0 and place.bottom() <= area.top() and place.right() + half <= area.left()
    panel.map.setFixedSize(347, 260)
    qtbot.waitUntil(lambda: not heat.col_axis.flat)
