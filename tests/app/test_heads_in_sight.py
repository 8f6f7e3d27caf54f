"""All heads of the default model are in sight at once in the window as it begins, and stand where they stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QPaintEvent
from pytestqt.qtbot import QtBot

from app.panels.attention import AttentionPanel
from app.theme import Theme
from app.widgets.head_grid import HeadGrid
from tests.app.attention_bench import Bench, model_info, settled, shown
from tests.app.shell import close_window, open_window

DEFAULT = (30, 9, 3)
"""Layers, heads and KV heads of the default model."""


def panel_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot, language: str) -> tuple[int, int]:
    """Of the attention panel in a window of 1400 × 900 px, laid out as at the first start."""
    application = open_window(tmp_path / "config", monkeypatch, qtbot, language=language)
    application.window.resize(1400, 900)
    [panel] = application.window.findChildren(AttentionPanel)
    qtbot.waitUntil(lambda: application.window.width() == 1400 and panel.isVisible())
    qtbot.wait(200)
    size = panel.width(), panel.height()
    close_window(application)
    return size


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_head_of_every_layer_is_in_sight_at_1400_by_900(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    size = panel_size(tmp_path, monkeypatch, qtbot, language)
    assert size[0] > 700 and size[1] > 480
    bench = Bench(tmp_path, Theme("dark"), model_info(*DEFAULT))
    panel = shown(qtbot, bench, size)
    panel.setStyleSheet(bench.ctx.theme.style_sheet())  # a box is as high as this says
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    grid, side = panel.side.grid, panel.side
    assert side.metric_box.height() == panel.controls.layer.height() - 2, "height is dear there"
    for measure in ("", "entropy", "distance", "previous", ""):
        side.metric_box.set_key(measure)
        side.metric_box.keyChosen.emit(measure)
        qtbot.waitUntil(lambda: (grid.measure is not None) == bool(measure))  # noqa: B023 - at once
        settled(qtbot, panel, bench)
        room = grid.viewport().rect()
        rects = [grid.head_rect(layer, head) for layer in range(DEFAULT[0]) for head in range(DEFAULT[1])]
        assert all(room.contains(rect.toAlignedRect()) for rect in rects)
        assert all(min(rect.width(), rect.height()) >= 11 for rect in rects)
        assert not any(a.intersects(b) for at, a in enumerate(rects) for b in rects[at + 1 : at + 20])
        assert grid.verticalScrollBar().maximum() == grid.horizontalScrollBar().maximum() == 0
        assert not grid.missing() and grid._layout().layers_between(*grid._span()) == list(range(30))


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> list[QSize]:
    """The sizes in which heads were painted."""
    sizes: list[QSize] = []
    paint = HeadGrid.paintEvent

    def painting(grid: HeadGrid, event: QPaintEvent) -> None:
        sizes.append(grid.size())
        paint(grid, event)

    monkeypatch.setattr(HeadGrid, "paintEvent", painting)
    return sizes


@pytest.mark.parametrize("size", [(472, 556), (751, 504), (760, 540), (1037, 625), (1360, 800)])
def test_heads_have_their_size_in_their_first_picture(
    qtbot: QtBot, tmp_path: Path, painted: list[QSize], size: tuple[int, int]
) -> None:
    """They grew or shrank a turn after they came into sight."""
    bench = Bench(tmp_path, Theme("dark"), model_info(*DEFAULT))
    panel = shown(qtbot, bench, size)
    painted.clear()
    bench.run(19, 7)
    panel._after_resize()  # one that was under way: laid out before the run is drawn
    first = panel.side.grid.size()

    def settle() -> None:
        settled(qtbot, panel, bench)
        qtbot.wait(60)

    settle()
    assert size[0] < 620 or (painted and first == panel.side.grid.size())
    assert all(each == panel.side.grid.size() for each in painted)
    changes: tuple[Callable[[], object], ...] = (
        panel.toggle_grid, panel.toggle_grid, panel.controls.toggle_pin, panel.toggle_grid, panel.toggle_grid,
        panel.controls.toggle_pin, lambda: panel.side.show_page("row"), lambda: panel.side.show_page("heads"),
    )  # fmt: skip
    for change in changes:
        change()
        at_once = panel.side.grid.size() if panel.side.grid.isVisible() else None
        painted.clear()
        settle()
        assert all(each == panel.side.grid.size() for each in painted)
        assert at_once is None or not panel.side.grid.isVisible() or at_once == panel.side.grid.size()
