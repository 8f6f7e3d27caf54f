"""The heads' measures as a table, with the engine's own numbers, driven by menu, mouse and keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QPushButton
from pytestqt.qtbot import QtBot

from app.panels.attention import AttentionPanel
from app.panels.attention_words import METRICS
from model.views.head_grid import metrics_reply
from tests.app.model_bench import ModelBench, bench_with
from tests.model.tiny import made


def shown(qtbot: QtBot, folder: Path) -> tuple[AttentionPanel, ModelBench]:
    bench, panel = bench_with(qtbot, folder, made(), AttentionPanel, (1000, 500), 19)
    qtbot.waitUntil(lambda: panel.side.grid.isVisible() and panel.settled)
    return panel, bench


def measures(bench: ModelBench) -> np.ndarray:
    """(layers · heads, measures) by layer, from the run itself."""
    run = bench.engine.context.run
    assert run is not None
    found = metrics_reply(run)[1]
    return np.stack([np.asarray(found[name]).reshape(-1) for name in METRICS], axis=1)


def test_a_right_click_shows_every_measure_of_every_head(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    side, grid = panel.side, panel.side.grid
    at = QPoint(30, 30)
    QApplication.sendEvent(
        grid.viewport(), QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, grid.viewport().mapToGlobal(at))
    )
    menu = next(child for child in grid.findChildren(QMenu) if child.isVisible())
    next(action for action in menu.actions() if action.text() == "Show as table").trigger()
    menu.close()
    table = side.heads_table.table
    qtbot.waitUntil(lambda: table.isVisible() and table.blocks.rowCount() == 12 and panel.settled)
    wanted = measures(bench)
    found = table.blocks.values((0, 12), (0, 6))
    np.testing.assert_array_equal(found, wanted)
    assert [table.blocks.name(row, across=False) for row in (0, 7)] == ["L0 H0", "L1 H3"]
    assert table.blocks.name(2, across=True) == "previous"
    assert table.cell is not None
    assert table.cell[0] == 7, "the chosen head"
    bench.selection.set_layer_head(2, 1)
    qtbot.waitUntil(lambda: table.cell is not None and table.cell[0] == 9)
    table.setFocus()
    QTest.keyClick(table, Qt.Key.Key_Down)
    assert (bench.selection.layer, bench.selection.head) == (2, 2)
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert np.float32(QGuiApplication.clipboard().text()) == wanted[10, table.cell[1]]
    table.copyWanted.emit("matrix")
    lines = QGuiApplication.clipboard().text().split("\n")
    assert len(lines) == 13
    assert [np.float32(text or "nan") for text in lines[11].split("\t")[1:]] == list(wanted[10])
    back = next(b for b in side.heads_table.findChildren(QPushButton) if b.text() == "Back to the heads")
    back.click()
    qtbot.waitUntil(lambda: grid.isVisible() and panel.settled and not grid.missing())


def test_the_table_is_sorted_as_the_thumbnails_and_follows_the_run(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    side = panel.side
    side.metric_box.set_key("distance")
    side.metric_box.keyChosen.emit("distance")
    side.sort.setChecked(True)
    panel.toggle_heads_table()
    table = side.heads_table.table
    qtbot.waitUntil(lambda: table.isVisible() and table.blocks.rowCount() == 12 and panel.settled)
    order = np.argsort(-measures(bench)[:, 5], kind="stable")
    np.testing.assert_array_equal(table.blocks.values((0, 12), (0, 6)), measures(bench)[order])
    bench.step()
    qtbot.waitUntil(lambda: panel.settled and not bench.engine.waiting)
    qtbot.wait(40)
    qtbot.waitUntil(lambda: panel.settled and not bench.engine.waiting)
    order = np.argsort(-measures(bench)[:, 5], kind="stable")
    np.testing.assert_array_equal(table.blocks.values((0, 12), (0, 6)), measures(bench)[order])


def test_the_command_brings_hidden_heads_into_sight_and_g_hides_their_table(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path)
    panel.toggle_grid()
    assert not panel.side.heads_seen
    panel.toggle_heads_table()
    assert panel.side.heads_table.isVisible()
    panel.toggle_grid()
    assert not panel.side.heads_seen
    panel.toggle_grid()
    assert panel.side.heads_table.isVisible()
    panel.toggle_heads_table()
    assert panel.side.grid.isVisible()
