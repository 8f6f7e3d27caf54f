"""The lens's chosen cell is in sight unless a person scrolled it away, and its figures are said either way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panels.lens import LATE_MS, LensPanel
from app.widgets.lens_grid import LensGrid
from app.widgets.lens_overlay import PADDING, awaited_words, axis_labels
from app.widgets.ticks import figure
from model.protocol.lens_requests import GetLens
from tests.app.model_bench import ModelBench
from tests.app.test_lens_panel import settled, shown
from tests.model.tiny import made, random_ids


def in_sight(grid: LensGrid) -> bool:
    """Whether the chosen cell is, and a frame is drawn at it."""
    assert grid.chosen is not None
    return all(at in range(*span) for at, span in zip(grid.chosen, grid.in_sight(), strict=True))


def figures_said(panel: LensPanel) -> bool:
    cell = panel.grid.hovered or panel.grid.chosen
    assert cell is not None
    return panel.grid.ids[cell] >= 0 and f" {figure(float(panel.grid.p[cell]), 6)} " in panel.readout.text()


@pytest.mark.parametrize("overview", [True, False])
def test_it_is_after_another_prompt_and_in_any_size(qtbot: QtBot, tmp_path: Path, overview: bool) -> None:
    """Read while another tab was in front, a long text was shown at its end: without the chosen token, and "→ …"."""
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20))
    panel.grid.set_overview(overview=overview)
    settled(qtbot, panel, bench)
    panel.hide()
    bench.run(random_ids(240, seed=3))
    panel.show()
    qtbot.waitUntil(lambda: panel.grid.n_positions == 240)
    settled(qtbot, panel, bench)
    assert panel.grid.chosen == (20, 8) and in_sight(panel.grid) and figures_said(panel)
    bench.selection.set_query(200)
    for size in ((700, 560), (420, 700), (1300, 260), (1100, 300)):
        panel.resize(*size)
        settled(qtbot, panel, bench)
        assert in_sight(panel.grid) and figures_said(panel), size
    panel.ctx.theme.set_text_scale(1.5)
    settled(qtbot, panel, bench)
    assert in_sight(panel.grid)
    panel.grid.set_overview(overview=not overview)
    settled(qtbot, panel, bench)
    assert in_sight(panel.grid) and figures_said(panel)


def another(qtbot: QtBot, panel: LensPanel, bench: ModelBench) -> LensPanel:
    """The panel that takes its place in another language."""
    again = LensPanel(bench.ctx)
    qtbot.addWidget(again)
    again.carry(panel)
    again.resize(panel.size())
    again.show()
    qtbot.waitExposed(again)
    settled(qtbot, again, bench)
    qtbot.waitUntil(lambda: again.settled)
    return again


def test_it_is_in_another_language(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20), n=60)
    bench.selection.set_query(40)
    settled(qtbot, panel, bench)
    again = another(qtbot, panel, bench)
    assert again.grid.chosen == (20, 40) and in_sight(again.grid) and figures_said(again)
    again.grid.scroll_back(2, 0)  # of a grid of other columns, so that it would be just outside
    assert in_sight(again.grid)


def test_it_is_not_brought_back_to_who_scrolled_away_but_its_figures_are_said(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20), n=60)
    bench.selection.set_query(40)
    settled(qtbot, panel, bench)
    panel.grid.horizontalScrollBar().setValue(0)
    for size in ((900, 300), (1100, 330)):
        panel.resize(*size)
        settled(qtbot, panel, bench)
        assert panel.grid.in_sight()[1][0] == 0 and not in_sight(panel.grid) and figures_said(panel)
    again = another(qtbot, panel, bench)
    again.grid.scroll_back(2, 0)
    settled(qtbot, again, bench)
    assert again.grid.in_sight()[1][0] == 2 and not in_sight(again.grid)
    qtbot.waitUntil(lambda: figures_said(again))
    bench.selection.set_query(39)
    settled(qtbot, again, bench)
    assert in_sight(again.grid)


def test_the_figures_of_a_layer_out_of_sight_are_said(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=30))
    missing = [depth for depth in range(30, -1, -1) if panel.grid.ids[depth, 8] < 0]
    assert 3 in missing and panel.grid.in_sight()[0][0] > 5
    panel.token.depthPointed.emit(3)
    qtbot.waitUntil(lambda: figures_said(panel))
    assert panel.grid.hovered == (3, 8)
    assert (panel.grid.ids[:, 8] >= 0).all()  # the others above and below came too
    missing.remove(3)
    assert bench.engine.asked_of(GetLens)[-1] == GetLens(positions=(8, 9), depths=(3, *missing))
    count = len(bench.engine.asked_of(GetLens))
    panel.token.depthPointed.emit(5)
    assert figures_said(panel)
    panel.token.depthPointed.emit(-1)
    panel.token.depthChosen.emit(5)
    assert panel.grid.chosen == (5, 8) and in_sight(panel.grid)
    assert len(bench.engine.asked_of(GetLens)) == count


def test_steps_are_followed_as_long_as_it_stays_in_sight(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, n=30, size=(760, 460))
    grid = panel.grid
    bench.selection.set_query(31)
    settled(qtbot, panel, bench)
    grid.horizontalScrollBar().setValue(grid.horizontalScrollBar().maximum())
    across = grid.counts()[0]
    assert across < 12 and in_sight(grid)
    for _ in range(across + 3):
        before = grid.n_positions
        bench.step()
        qtbot.waitUntil(lambda before=before: grid.n_positions == before + 1)  # type: ignore[misc]
        settled(qtbot, panel, bench)
        left = grid.in_sight()[1][0]
        assert left == min(31, grid.n_positions - across) and in_sight(grid)
    grid.horizontalScrollBar().setValue(grid.horizontalScrollBar().maximum())
    assert not in_sight(grid)
    last = grid.n_positions
    bench.step()
    qtbot.waitUntil(lambda: grid.in_sight()[1][1] == grid.n_positions == last + 1)  # who scrolled to the end follows it


def test_no_frame_is_drawn_of_a_cell_out_of_sight(qtbot: QtBot, tmp_path: Path) -> None:
    """A sliver of it stood beside the last column."""
    panel, _ = shown(qtbot, tmp_path, n=60)
    grid, (depth, _) = panel.grid, panel.grid.chosen or (0, 0)
    right = grid.in_sight()[1][1]
    pictures = []
    for position in (right - 1, right, right + 1):
        grid.set_chosen((depth, position))
        pictures.append(grid.viewport().grab().toImage())
    assert pictures[1] == pictures[2] != pictures[0]


@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_the_edge_cuts_no_token_of_the_axis(qtbot: QtBot, tmp_path: Path, scale: float) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20), n=237)
    grid = panel.grid
    panel.ctx.theme.set_text_scale(scale)
    grid.set_overview(overview=True)
    settled(qtbot, panel, bench)
    grid.axis = ["⟨E8⟩", "··surprisingly", "·a"] * 80
    for value in range(grid.horizontalScrollBar().maximum() + 1):
        grid.horizontalScrollBar().setValue(value)
        grid.chosen, chosen = None, grid.chosen  # whose label stands out of line
        labels = axis_labels(grid, grid.in_sight()[1])
        grid.chosen = chosen
        step = labels[1][0] - labels[0][0]
        assert [position for position, _, _ in labels] == [labels[0][0] + i * step for i in range(len(labels))]
        assert labels[0][0] - grid.in_sight()[1][0] < step  # all there is room for
        assert grid.in_sight()[1][1] - labels[-1][0] <= 2 * step
        for position, room, text in labels:
            metrics = QFontMetricsF(grid.theme.font("mono_small", bold=position == 8))
            assert room.left() >= grid.side_room and room.right() <= grid.viewport().width()
            whole = text == grid.axis[position] and metrics.horizontalAdvance(text) <= room.width() + 0.5
            assert whole or room.width() >= step * grid.cell_size()[0] - 2 * PADDING - 0.01, (value, text)
    assert step > 1  # or nothing would be cut


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_chosen_column_is_named_where_not_all_are(qtbot: QtBot, tmp_path: Path, scale: float) -> None:
    """In the overview of a long text the label over it was its neighbour's."""
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20), n=237)
    grid = panel.grid
    panel.ctx.theme.set_text_scale(scale)
    grid.set_overview(overview=True)
    settled(qtbot, panel, bench)
    grid.axis = ["·a", "··surprisingly", "·the"] * 79
    dropped = 0
    for position in range(*grid.in_sight()[1]):
        grid.set_chosen((20, position))
        labels = axis_labels(grid, grid.in_sight()[1])
        assert [found for found, _, _ in labels] == sorted({found for found, _, _ in labels})
        room, text = next((room, text) for found, room, text in labels if found == position)
        assert text[:3] == grid.axis[position][:3] and room.left() >= grid.side_room
        assert room.right() <= grid.viewport().width() and abs(room.left() - grid.cell_rect(0, position).left()) < 120
        metrics = QFontMetricsF(grid.theme.font("mono_small", bold=True))
        for other, place, words in labels:
            drawn = min(place.width(), QFontMetricsF(grid.theme.font("mono_small")).horizontalAdvance(words))
            ends = place.left() + drawn <= room.left() or place.left() >= room.left() + metrics.horizontalAdvance(text)
            assert other == position or ends
        grid.chosen = None
        plain = {found for found, _, _ in axis_labels(grid, grid.in_sight()[1])}
        grid.set_chosen((20, position))
        dropped += len(plain - {found for found, _, _ in labels})
    assert dropped  # or there was no neighbour in its way


def test_layers_that_are_known_in_part_are_said_to_be_under_way(qtbot: QtBot, tmp_path: Path) -> None:
    """A text that was scrolled has columns of the layers that are here: the rest was a black rectangle."""
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20), n=60)
    grid = panel.grid
    grid.set_overview(overview=True)
    settled(qtbot, panel, bench)
    bench.engine.held = True
    grid.ids[2:6, 30:] = -1
    panel.mark("view")
    qtbot.waitUntil(lambda: grid.awaited, timeout=20 * LATE_MS)
    found = awaited_words(grid, *grid.in_sight())
    assert found is not None and found[0].startswith("computing layers, 4 to come")
    right = grid.in_sight()[1][1]
    assert all(found[1].contains(grid.cell_rect(*cell).center()) for cell in ((2, 30), (5, right - 1)))
    assert not any(found[1].contains(grid.cell_rect(*cell).center()) for cell in ((3, 29), (6, 40), (1, 40)))
    QTest.qWait(20)
    said = grid.viewport().grab().toImage()
    grid.set_awaited(awaited=False)
    silent = grid.viewport().grab().toImage()
    across, down = range(said.width()), range(0, said.height(), 2)
    changed = [x for x in across if any(said.pixel(x, y) != silent.pixel(x, y) for y in down)]
    middle = np.mean(changed) / said.devicePixelRatio()
    assert abs(middle - found[1].center().x()) < 12  # over what is to come, not over what is here
    bench.engine.held = False
    bench.engine.release()
