"""The lens is a heat map like the others: zoom, pan, keys, menu, exact values, and a table of every cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetricsF, QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app import i18n
from app.export.panel_files import Table
from app.panels.lens import LATE_MS, LensPanel
from app.theme import Theme
from app.widgets.candidate_table import probability
from app.widgets.lens_overlay import awaited_words, fitted
from app.widgets.ticks import figure
from model.protocol.lens_requests import GetLens
from tests.app.test_lens_panel import click, settled, shown
from tests.model.tiny import made

Key, LEFT, CONTROL = Qt.Key, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier


def turn(panel: LensPanel, at: QPointF, notches: int) -> None:
    view = panel.grid.viewport()
    event = QWheelEvent(
        at, QPointF(view.mapToGlobal(at.toPoint())), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view, event)


def copied() -> str:
    return QGuiApplication.clipboard().text()


def test_the_wheel_zooms_at_the_mouse_and_a_double_click_shows_the_whole(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=30), n=80)
    grid = panel.grid
    size = grid.cell_size()
    grid.reveal((25, 70))
    at = grid.cell_rect(25, 70).center()
    turn(panel, at, 3)
    assert grid.cell_size()[0] > size[0] * 1.6 and grid.cell_size()[1] > size[1] * 1.6
    assert grid.hovered == (25, 70) and grid.cell_rect(25, 70).contains(at) and grid.with_words
    turn(panel, at, 60)
    assert max(grid.counts()) <= 4 and grid.cell_rect(25, 70).contains(at)
    turn(panel, at, -80)
    assert grid.is_whole() and not grid.with_words and panel.look.key() == "words"
    settled(qtbot, panel, bench)
    assert (grid.ids >= 0).all()
    turn(panel, grid.cell_rect(25, 70).center(), 60)
    assert not grid.is_whole()
    QTest.mouseDClick(grid.viewport(), LEFT, pos=grid.viewport().rect().center())
    assert grid.is_whole() and panel.look.key() == "overview"
    QTest.mouseClick(panel.look._segments["words"], LEFT)
    qtbot.waitUntil(lambda: grid.cell_size() == size)  # once its scroll bars are back


def test_a_drag_pans_and_chooses_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path, made(n_layers=30), n=80)
    grid, view, chosen = panel.grid, panel.grid.viewport(), panel.grid.chosen
    grid.horizontalScrollBar().setValue(20)
    grid.verticalScrollBar().setValue(5)
    width, height = grid.cell_size()
    start = grid.cell_rect(grid.in_sight()[0][1] - 2, 24).center().toPoint()
    QTest.mousePress(view, LEFT, pos=start)
    for part in (1, 2):
        QTest.mouseMove(view, start - QPoint(round(width * 3 * part / 2), -round(height * 2 * part / 2)))
    QTest.mouseRelease(view, LEFT, pos=start - QPoint(round(width * 3), -round(height * 2)))
    assert (grid.horizontalScrollBar().value(), grid.verticalScrollBar().value()) == (23, 3)
    assert grid.chosen == chosen
    click(panel, grid.in_sight()[0][0], 26)
    assert grid.chosen == (grid.in_sight()[0][0], 26)


def test_keys_zoom_and_lead_to_the_corners(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=30), n=40)
    grid = panel.grid
    grid.setFocus()
    size = grid.cell_size()
    QTest.keyClick(grid, Key.Key_Z)
    assert grid.cell_size() > size
    QTest.keyClick(grid, Key.Key_Z, Qt.KeyboardModifier.ShiftModifier)
    assert grid.cell_size() == size
    QTest.keyClick(grid, Key.Key_Home, CONTROL)
    assert grid.chosen == (30, 0)
    QTest.keyClick(grid, Key.Key_End, CONTROL)
    assert grid.chosen == (0, 42) and bench.selection.query == 42
    settled(qtbot, panel, bench)
    p = grid.p[0, 42]
    assert str(p) in grid.accessibleDescription() and f" {figure(float(p), 6)} " in panel.readout.text()
    QTest.keyClick(grid, Key.Key_0)
    assert grid.is_whole()


def test_the_menu_copies_exact_values_and_opens_the_table(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, n=60)
    grid = panel.grid
    click(panel, 2, grid.in_sight()[1][0] + 1)
    settled(qtbot, panel, bench)
    cell = grid.chosen
    assert cell is not None
    QTest.keyClick(grid, Key.Key_C, CONTROL)
    word, p, entropy = copied().split("\t")
    assert (np.float32(p), np.float32(entropy)) == (grid.p[cell], grid.entropy[cell])
    assert word.lstrip("'") == grid.word(*cell)
    QTest.mouseClick(grid.viewport(), Qt.MouseButton.RightButton, pos=grid.cell_rect(*cell).center().toPoint())
    at = grid.viewport().rect().center()
    grid.contextMenuEvent(QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, grid.viewport().mapToGlobal(at)))
    menu = grid.findChildren(QMenu)[-1]
    actions = {action.text(): action for action in menu.actions()}
    assert list(actions) == [
        "Copy value", "Copy row", "Copy matrix in view", "", "Show as table", "Show whole matrix",
    ]  # fmt: skip
    actions["Copy matrix in view"].trigger()
    (low, high), (left, right) = grid.in_sight()
    lines = [line.split("\t") for line in copied().splitlines()]
    assert len(lines) == 1 + (high - low) * (right - left)
    assert all(np.float32(line[6]) == grid.p[int(line[0]), int(line[2])] for line in lines[1:])
    assert (grid.ids[2] < 0).any()
    actions["Copy row"].trigger()
    qtbot.waitUntil(lambda: len(copied().splitlines()) == 64)
    lines = [line.split("\t") for line in copied().splitlines()[1:]]
    assert {line[0] for line in lines} == {"2"} and [int(line[2]) for line in lines] == list(range(63))
    assert all(np.float32(line[7]) == grid.entropy[2, int(line[2])] for line in lines)
    actions["Show as table"].trigger()
    assert panel.table_button.isChecked() and panel.table.isVisible()


def test_the_table_has_every_cell_and_the_export_its_numbers(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20), n=60)
    QTest.mouseClick(panel.table_button, LEFT)
    table, grid = panel.table, panel.grid
    assert (table.blocks.rowCount(), table.blocks.columnCount()) == (21, 63)
    qtbot.waitUntil(lambda: panel.settled and not bench.engine.waiting)
    assert table.in_sight()[1][1] < 40  # and what is not in sight is not asked for
    assert all(m.positions[1] < 40 for m in bench.engine.asked_of(GetLens) if isinstance(m, GetLens))
    table.set_current(0, 62)
    table.scrollTo(table.blocks.index(20, 62))

    def known() -> bool:
        (low, high), (left, right) = table.in_sight()
        return right == 63 and low == 0 and bool((grid.ids[low:high, left:right] >= 0).all())

    qtbot.waitUntil(known)
    found: list[Table] = []
    panel.tables(found.extend)
    qtbot.waitUntil(lambda: bool(found))
    cells = {(int(line[0]), int(line[2])): line for line in found[0][1][1:]}
    left, right = table.in_sight()[1]
    assert cells.keys() == {(depth, position) for depth in range(21) for position in range(left, right)}
    for (depth, position), line in cells.items():
        text = table.blocks.look(20 - depth, position).text
        assert text == f"{grid.word(depth, position)}  {probability(float(line[6]))}"
        assert np.float32(line[6]) == grid.p[depth, position]
        assert {f"p {line[6]}", f"entropy {line[7]}"} <= set(table.blocks.tip(20 - depth, position).split("\n"))
        try:
            i18n.set_language("zh_CN")
            assert "· 编号 " in table.blocks.tip(20 - depth, position)
        finally:
            i18n.set_language("en")
    assert table.blocks.headerData(20, Qt.Orientation.Vertical) == "embedding"


def test_the_table_s_cell_is_the_grid_s(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    QTest.mouseClick(panel.table_button, LEFT)
    table, grid = panel.table, panel.grid
    assert (table.currentIndex().row(), table.currentIndex().column()) == grid.selected
    QTest.keyClick(table, Key.Key_Down)
    QTest.keyClick(table, Key.Key_Right)
    assert grid.chosen == (2, 9) and (bench.selection.query, bench.selection.layer) == (9, 1)
    bench.selection.set_query(4)
    qtbot.waitUntil(lambda: table.currentIndex().column() == 4)
    settled(qtbot, panel, bench)
    QTest.keyClick(table, Key.Key_C, CONTROL)
    assert copied().split("\t")[1] == str(grid.p[2, 4])
    bench.step()
    qtbot.waitUntil(lambda: table.blocks.columnCount() == 16)


def test_layers_under_way_are_said_to_be(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, made(n_layers=20), n=60)
    grid = panel.grid
    grid.set_overview(overview=True)
    settled(qtbot, panel, bench)
    assert not grid.awaited and awaited_words(grid, *grid.in_sight()) is None
    bench.engine.held = True
    grid.ids[2:6] = -1
    panel.mark("view")
    qtbot.waitUntil(lambda: grid.awaited, timeout=20 * LATE_MS)
    found = awaited_words(grid, (0, 21), grid.in_sight()[1])
    assert found is not None and found[0].startswith("computing layers, 4 to come")
    assert found[1].contains(grid.cell_rect(3, 0).center()) and not found[1].contains(grid.cell_rect(7, 0).center())
    bench.engine.held = False
    bench.engine.release()
    qtbot.waitUntil(lambda: not grid.awaited)


def test_a_run_that_cannot_be_served_exports_what_is_known(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, _ = shown(qtbot, tmp_path, made(n_layers=40))
    known = int((panel.grid.ids[:, slice(*panel.grid.in_sight()[1])] >= 0).sum())

    def refuse(*_args: object, on_error: object, **_more: object) -> None:
        assert callable(on_error)
        on_error(None)

    monkeypatch.setattr(panel, "ask", refuse)
    found: list[Table] = []
    panel.tables(found.extend)
    assert 0 < len(found[0][1]) - 1 == known


def test_the_code_of_a_token_that_draws_nothing_stands_whole_in_a_cell(qapp: QApplication) -> None:
    """⟨U+00A0⟩ was cut to ⟨U+00…, which names no character."""
    del qapp
    metrics = QFontMetricsF(Theme("dark").font("mono_small"))
    room = metrics.horizontalAdvance("⟨00A0⟩") + 1
    assert room < metrics.horizontalAdvance("⟨U+00A0⟩")
    assert fitted("⟨U+00A0⟩", metrics, room) == "⟨00A0⟩"
    assert fitted("⟨U+00A0⟩", metrics, 2 * room) == "⟨U+00A0⟩"
    assert fitted("·behaviour", metrics, room).endswith("…")
    assert fitted("⟨E2⟩", metrics, room) == "⟨E2⟩"
