"""The attention panel with a real session and selection, driven by mouse and keys; the engine computes in process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QGuiApplication, QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.panels.attention import AttentionPanel
from app.panels.attention_copy import number
from app.theme import Theme
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_image import colour_table
from app.widgets.heatmap_layout import Options
from app.widgets.heatmap_menu import open_menu
from app.widgets.heatmap_paint import axis_labels
from app.widgets.heatmap_table import cell_text
from app.widgets.ticks import figure
from app.widgets.value_combo import ARROW, PADDING
from model.colormaps import ONE_SIGNED, lut
from model.protocol.attention_requests import GetCell, GetColumn, GetGrid, GetMatrix, GetRow, HeadView
from tests.app.attention_bench import Bench, model_info, settled, shown

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


@pytest.fixture
def bench(qtbot: QtBot, tmp_path: Path) -> Bench:
    del qtbot
    return Bench(tmp_path, Theme("dark"))


def move(panel: AttentionPanel, heat: HeatMap, at: QPoint) -> None:
    QTest.mouseMove(panel.windowHandle(), heat.mapTo(panel, at))
    QApplication.processEvents()


def centre(heat: HeatMap, row: int, col: int) -> QPoint:
    return heat.cell_rect((row, col)).center().toPoint()


def test_hover_shows_the_engines_exact_number(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    bench.selection.set_layer_head(3, 4)
    settled(qtbot, panel, bench)
    heat, values = panel.main.heat, bench.engine.matrix(HeadView(layer=3, head=4))
    for row, col in ((8, 1), (18, 17), (3, 3)):
        move(panel, heat, centre(heat, row, col))
        assert (bench.selection.hover_cell, bench.selection.hover_token) == ((row, col), col)
        assert heat.value_of((row, col)) == float(values[row, col])
        assert figure(float(values[row, col]), 6) in heat.readout_text()


def test_a_pooled_matrix_asks_for_the_cell_and_shows_the_exact_value(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(1200)
    settled(qtbot, panel, bench)
    heat, values = panel.main.heat, bench.engine.matrix(bench.selection.view)
    assert heat.tiles[-1].values is None
    at = heat.geometry_now().area.center().toPoint() + QPoint(-40, 30)
    move(panel, heat, at)
    cell = bench.selection.hover_cell
    assert cell is not None
    qtbot.waitUntil(lambda: heat.value_of(cell) is not None)
    assert GetCell(view=bench.selection.view, query=cell[0], key=cell[1]) in bench.engine.asked
    assert heat.value_of(cell) == float(values[cell])


def test_zooming_asks_for_true_cells(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(1200)
    settled(qtbot, panel, bench)
    heat = panel.main.heat
    before = [m for m in bench.engine.asked if isinstance(m, GetMatrix)]
    at = QPointF(heat.geometry_now().area.center())
    for _ in range(9):
        event = QWheelEvent(
            at, heat.mapToGlobal(at), QPoint(), QPoint(0, 120), Qt.MouseButton.NoButton, NONE,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(heat, event)
    settled(qtbot, panel, bench)
    after = [m for m in bench.engine.asked if isinstance(m, GetMatrix)][len(before) :]
    assert 1 <= len(after) <= 3  # nine notches within a frame or two are not nine requests
    rows, cols = after[-1].rows, after[-1].cols
    assert rows[1] - rows[0] <= after[-1].height
    tile = heat.tiles[-1]
    assert tile.rows == rows
    assert tile.values is not None
    whole = bench.engine.matrix(bench.selection.view)
    np.testing.assert_array_equal(tile.values, whole[slice(*rows), slice(*cols)])


def test_click_chooses_query_and_key_and_rows_and_columns_follow(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    heat = panel.main.heat
    panel.side.show_page("row")
    QTest.mouseClick(heat, LEFT, NONE, centre(heat, 8, 1))
    assert (bench.selection.query, bench.selection.key) == (8, 1)
    settled(qtbot, panel, bench)
    assert GetRow(view=bench.selection.view, query=8) in bench.engine.asked
    values = bench.engine.matrix(bench.selection.view)[8]
    model = panel.side.row.model()
    assert model.rowCount() == 9  # the mask hides ten later tokens
    first = int(model.index(0, 0).data().replace(",", ""))
    assert first == int(np.nanargmax(values))
    panel.side.show_page("column")
    settled(qtbot, panel, bench)
    assert GetColumn(view=bench.selection.view, key=1) in bench.engine.asked
    assert panel.side.column.model().rowCount() == 18


def test_the_grid_fills_and_a_click_chooses_a_head(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    grid = panel.side.grid
    qtbot.waitUntil(lambda: not grid.missing())
    at = grid.head_rect(2, 5).center().toPoint()
    QTest.mouseClick(grid.viewport(), LEFT, NONE, at)
    assert (bench.selection.layer, bench.selection.head) == (2, 5)
    settled(qtbot, panel, bench)
    assert panel.main.heat.value_of((8, 1)) == float(bench.engine.matrix(HeadView(layer=2, head=5))[8, 1])
    QTest.keyClick(grid, Qt.Key.Key_Up)
    assert (bench.selection.layer, bench.selection.head) == (1, 5)
    asked = [m for m in bench.engine.asked if isinstance(m, GetGrid)]
    settled(qtbot, panel, bench)
    assert [
        m for m in bench.engine.asked if isinstance(m, GetGrid)
    ] == asked  # choosing a head draws no thumbnail again


@pytest.mark.parametrize("shape", [(1, 1, 1), (30, 9, 3), (32, 32, 8), (80, 64, 8)])
def test_any_number_of_heads_stays_reachable(qtbot: QtBot, tmp_path: Path, shape: tuple[int, int, int]) -> None:
    bench = Bench(tmp_path, Theme("light"), model_info(*shape))
    panel = shown(qtbot, bench)
    bench.run(5)
    settled(qtbot, panel, bench)
    grid = panel.side.grid
    grid.setFocus()
    for _ in range(shape[0]):
        QTest.keyClick(grid, Qt.Key.Key_Down)
    QTest.keyClick(grid, Qt.Key.Key_End)
    assert (bench.selection.layer, bench.selection.head) == (shape[0] - 1, shape[1] - 1)
    rect = grid.head_rect(shape[0] - 1, shape[1] - 1)
    assert grid.viewport().rect().toRectF().contains(rect)
    assert grid.thing_at(rect.center()) == (shape[0] - 1, shape[1] - 1)


def test_stages_scales_and_heads_change_what_is_asked(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    QTest.mouseClick(panel.controls.stage._segments["scores"], LEFT)
    bench.selection.set_scale("log")
    bench.selection.set_head("mean")
    bench.selection.set_layer("all")
    settled(qtbot, panel, bench)
    message = next(m for m in reversed(bench.engine.asked) if isinstance(m, GetMatrix))
    assert message.view == HeadView(layer="all", head="mean", stage="scores")
    assert message.scale == "log"
    assert panel.controls.stage.key() == "scores"
    assert panel.main.heat.tiles[-1].signed


def test_a_map_without_tokens_over_it_counts_its_columns(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    heat = panel.main.heat
    heat.set_options(Options(tokens_over=False))
    rows, cols = axis_labels(heat)
    assert [label.piece for label in cols] == [str(label.index) for label in cols]
    assert [label.piece for label in rows] == [heat.row_axis.piece(label.index) for label in rows]
    heat.set_selected((8, 1))
    assert heat.col_axis.piece(1) in heat.readout_text()  # the readout names both tokens all the same


def test_the_table_twin_holds_the_same_numbers(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(200)
    settled(qtbot, panel, bench)
    bench.selection.set_cell(150, 20)
    panel.toggle_table()
    values = bench.engine.matrix(bench.selection.view)
    table = panel.main._table
    assert table is not None
    model = table.model()
    qtbot.waitUntil(lambda: model.index(150, 20).data() != "…")
    assert model.index(150, 20).data() == cell_text(float(values[150, 20]))
    assert (table.currentIndex().row(), table.currentIndex().column()) == (150, 20)
    assert model.rowCount() == model.columnCount() == 200
    bench.selection.set_layer_head(1, 1)
    other = bench.engine.matrix(HeadView(layer=1, head=1))
    qtbot.waitUntil(lambda: model.index(150, 20).data() == cell_text(float(other[150, 20])))
    # It copies what it shows, whatever the map behind it is at.
    clipboard = QGuiApplication.clipboard()
    panel.main.heat.set_hovered((3, 1))
    settled(qtbot, panel, bench)
    QTest.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: clipboard.text() == number(float(np.float32(other[150, 20]))))
    table.copyWanted.emit("row")
    qtbot.waitUntil(lambda: len(clipboard.text().split("\n")) == 2)
    assert len(clipboard.text().split("\n")[1].split("\t")) == 201
    rows, cols = table.span()
    assert rows[0] <= 150 < rows[1]
    assert cols[0] <= 20 < cols[1]
    assert rows[1] - rows[0] < 100
    table.copyWanted.emit("matrix")
    qtbot.waitUntil(lambda: len(clipboard.text().split("\n")) == 1 + rows[1] - rows[0])
    line = clipboard.text().split("\n")[1 + 150 - rows[0]].split("\t")
    assert np.float32(line[1 + 20 - cols[0]]) == np.float32(other[150, 20])


@pytest.mark.parametrize("width", [620, 700, 760, 833])
def test_the_table_twin_cuts_no_column(qtbot: QtBot, bench: Bench, width: int) -> None:
    panel = shown(qtbot, bench, (width, 540))
    bench.run(30)
    settled(qtbot, panel, bench)
    panel.toggle_table()
    table = panel.main._table
    assert table is not None
    for col in (0, 2, 5, 11, 29, 12, 3, 0):
        table.set_current(col, col)
        QApplication.processEvents()
        left, room = table.columnViewportPosition, table.viewport().width()
        columns = [c for c in range(30) if 2 - table.columnWidth(c) < left(c) < room - 2]  # 2 px hold no figure
        assert col in columns
        assert left(columns[0]) in range(3)
        assert left(columns[-1]) + table.columnWidth(columns[-1]) <= room + 2


def test_copy_gives_the_exact_float(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    bench.selection.set_cell(8, 1)
    settled(qtbot, panel, bench)
    clipboard = QGuiApplication.clipboard()
    values = bench.engine.matrix(bench.selection.view)
    clipboard.clear()
    QTest.keyClick(panel.main.heat, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: bool(clipboard.text()))
    assert np.float32(clipboard.text()) == np.float32(values[8, 1])
    for what, lines in (("row", 2), ("matrix", 20)):
        clipboard.clear()
        panel.main.heat.copyWanted.emit(what)
        qtbot.waitUntil(lambda: bool(clipboard.text()))
        table = [line.split("\t") for line in clipboard.text().split("\n")]
        assert len(table) == lines
        assert len(table[1]) == 20
    assert np.float32(table[9][2]) == np.float32(values[8, 1])
    assert not table[9][15]


def test_a_hidden_panel_asks_nothing(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    panel.hide()
    before = len(bench.engine.asked)
    for layer in range(5):
        bench.selection.set_layer(layer)
    QTest.qWait(60)
    assert len(bench.engine.asked) == before
    panel.show()
    settled(qtbot, panel, bench)
    assert len([m for m in bench.engine.asked[before:] if isinstance(m, GetMatrix)]) == 1


def test_fast_changes_ask_once_a_frame(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    before = len([m for m in bench.engine.asked if isinstance(m, GetMatrix)])
    for step in range(60):
        bench.selection.set_layer(step % 6)
    bench.selection.set_layer(5)
    settled(qtbot, panel, bench)
    assert len([m for m in bench.engine.asked if isinstance(m, GetMatrix)]) - before <= 2


def test_an_answer_of_another_head_is_not_read_as_this_ones(qtbot: QtBot, bench: Bench) -> None:
    """The picture and the number under the mouse are of one head at every moment."""
    panel = shown(qtbot, bench)
    bench.run(1200)
    bench.selection.set_layer_head(0, 0)
    settled(qtbot, panel, bench)
    heat = panel.main.heat
    bench.engine.held = True
    move(panel, heat, heat.geometry_now().area.center().toPoint() + QPoint(-50, 40))
    cell = bench.selection.hover_cell
    assert cell is not None
    bench.selection.set_layer_head(4, 4)
    QTest.qWait(50)
    bench.engine.held = False
    bench.engine.release()
    settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: heat.value_of(cell) is not None)
    assert heat.value_of(cell) == float(bench.engine.matrix(HeadView(layer=4, head=4))[cell])


def test_every_control_has_a_name(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    controls, side = panel.controls, panel.side
    named = [
        controls.layer, controls.head, controls.stage, controls.scale, controls.more, panel.main.heat, side.grid,
        side.tabs, side.row, side.column, side.entropy,
    ]  # fmt: skip
    assert all(widget.accessibleName() for widget in named)


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", [(300, 240), (430, 330), (745, 530), (1380, 860)])
def test_controls_fit_at_any_size(qtbot: QtBot, tmp_path: Path, size: tuple[int, int], theme: str) -> None:
    bench = Bench(tmp_path, Theme("dark" if theme == "dark" else "light"))
    panel = shown(qtbot, bench, size)
    bench.run(19, 7)
    qtbot.waitUntil(panel.controls.isEnabled)
    controls = panel.controls

    def fits() -> bool:
        shown = [w for w in (controls.layer, controls.head, controls.stage, controls.scale) if w.isVisible()]
        buttons = [w for w in (controls.pin, controls.export, controls.more) if w.isVisible()]
        inside = all(w.geometry().right() <= controls.width() for w in (*shown, *buttons))
        return len(shown) >= 2 and inside and all(w.width() >= w.sizeHint().width() for w in shown)

    qtbot.waitUntil(fits, timeout=2000)


@pytest.mark.parametrize(("scale", "width"), [(1.5, 300), (2.0, 300), (2.0, 325)])
def test_layer_and_head_keep_their_numbers_in_large_text(
    qtbot: QtBot, tmp_path: Path, scale: float, width: int
) -> None:
    bench = Bench(tmp_path, Theme("dark", text_scale=scale))
    panel = shown(qtbot, bench, (width, 530))
    bench.run(19, 7)
    bench.selection.set_layer_head(4, 3)
    settled(qtbot, panel, bench)
    controls = panel.controls
    qtbot.waitUntil(lambda: controls.layer.key() == 4)
    for box, words in ((controls.layer, {"Layer 4", "L 4", "4"}), (controls.head, {"Head 3", "H 3", "3"})):
        assert box.shown_text() in words
        room = box.width() - PADDING - ARROW + 1
        assert QFontMetricsF(bench.ctx.theme.font("ui")).horizontalAdvance(box.shown_text()) <= room
    panel.resize(900, 530)
    qtbot.waitUntil(lambda: (controls.layer.shown_text(), controls.head.shown_text()) == ("Layer 4", "Head 3"))


def test_where_it_is_narrow_every_view_has_a_way_to_it_in_sight(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (478, 560))
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    assert panel.pages.isVisible()
    assert panel.pages.geometry().right() <= panel.width()
    places = {"heads": panel.side.grid, "row": panel.side.row, "column": panel.side.column,
              "entropy": panel.side.entropy, "matrix": panel.main.heat}  # fmt: skip
    panel.pages.setFocus()
    for page, widget in places.items():
        panel.pages.set_key(page)
        panel.pages.keyChanged.emit(page)
        settled(qtbot, panel, bench)
        assert [w.isVisible() for w in places.values()] == [w is widget for w in places.values()]
        assert not panel.side.tabs.isVisible()
    panel.toggle_grid()
    assert panel.pages.key() == "heads"
    panel.resize(760, 520)
    qtbot.waitUntil(lambda: panel.main.heat.isVisible() and panel.side.grid.isVisible())
    assert panel.side.tabs.isVisible()
    assert not panel.pages.isVisible()


def test_the_lines_go_where_the_square_matrix_leaves_room(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (760, 800))
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    side = panel.side
    sizes = (((760, 800), True), ((760, 520), False), ((760, 800), True), ((1300, 700), True), ((900, 640), False))
    for size, split in sizes:
        panel.resize(*size)
        qtbot.waitUntil(lambda split=split: side.split == split)  # type: ignore[misc]
        side.show_page("row")
        assert side.lines.isVisible()
        assert side.grid.isVisible() == split
        if split:
            matrix, lines = panel.main.heat, side.lines
            beside = lines.mapTo(panel, QPoint()).x() >= matrix.mapTo(panel, matrix.rect().topRight()).x()
            assert beside == (size == (1300, 700))
            words = (side.row_words, side.row_entropy, side.row_unscaled)
            assert len({word.y() for word in words}) == (3 if beside and not panel._stacked else 1)
            assert min(lines.width(), lines.height()) > 100
        settled(qtbot, panel, bench)
        assert side.row.model().rowCount() > 0
        if not split:
            side.show_page("heads")
            assert side.grid.isVisible()


@pytest.mark.parametrize("size", [(1382, 754), (1902, 934), (1262, 680)])
def test_where_the_panel_has_the_window_the_heads_take_the_free_width(
    qtbot: QtBot, bench: Bench, size: tuple[int, int]
) -> None:
    panel = shown(qtbot, bench, size)
    bench.run(19, 7)
    panel.side.grid.set_shape(30, 9, 3)
    settled(qtbot, panel, bench)
    panel.side.grid.set_shape(30, 9, 3)
    narrow = panel.side.grid.room_for(panel._split_side(), panel.height() - 90)[0]
    panel._show_side()
    qtbot.waitUntil(lambda: panel._stacked)
    grid, lines = panel.side.grid, panel.side.lines
    qtbot.waitUntil(lambda: grid.width() > 400)
    assert grid.head_rect(0, 0).width() > 1.15 * narrow
    assert grid.head_rect(29, 8).bottom() <= grid.viewport().height()  # all of them in sight
    assert lines.isVisible()
    assert lines.height() >= 150
    assert lines.mapTo(panel, QPoint()).y() >= grid.mapTo(panel, grid.rect().bottomLeft()).y()
    panel.toggle_grid()
    settled(qtbot, panel, bench)
    assert not grid.isVisible()
    assert lines.isVisible()
    panel.toggle_grid()
    panel.resize(760, 520)
    qtbot.waitUntil(lambda: not panel.side.split)


def test_a_part_is_drawn_with_the_levels_of_the_whole(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(300)
    settled(qtbot, panel, bench)
    heat = panel.main.heat
    whole = heat.tiles[-1]
    bar = heat.bar
    heat.zoom(8, QPointF(heat.geometry_now().area.center()))
    settled(qtbot, panel, bench)
    qtbot.waitUntil(lambda: heat.tiles[-1] is not whole)
    assert heat.tiles[0] is whole
    assert heat.bar is not None
    assert bar is not None
    assert heat.bar.values == bar.values


def test_a_measure_of_heads_is_among_the_tables(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench, (1000, 700))
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    values = np.linspace(0, 1, 36, dtype=np.float32).reshape(6, 6)
    found: list[tuple[str, list[list[str]]]] = []
    for measure in (None, values):
        panel.side.grid.set_metric(measure, "entropy")
        found.clear()
        panel.tables(found.extend)
        qtbot.waitUntil(lambda: bool(found))
        assert len([name for name, _ in found if "entropy" in name]) == (measure is not None)
    lines = dict(found)["heads by entropy"]
    assert lines[0] == ["layer", "head", "entropy"]
    assert [np.float32(line[2]) for line in lines[1:]] == values.ravel().tolist()
    assert lines[-1][:2] == ["5", "5"]


def test_the_palette_has_the_colour_maps(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    commands = {command.title: command for command in panel.commands()}
    for name in ONE_SIGNED:
        commands[f"Colour map: {name}"].run()
        settled(qtbot, panel, bench)
        wanted = colour_table(lut(name), QColor(panel.main.heat.theme.palette.masked))
        np.testing.assert_array_equal(panel.main.heat.table, wanted)


def test_the_menu_of_cells_names_the_key_that_copies_a_value(qtbot: QtBot, bench: Bench) -> None:
    panel = shown(qtbot, bench)
    bench.run(19, 7)
    settled(qtbot, panel, bench)
    heat = panel.main.heat
    menu = open_menu(heat, QPoint(), heat.copyWanted.emit, at_cell=True)
    copy = next(action for action in menu.actions() if action.text() == "Copy value")
    assert copy.shortcut() in QKeySequence.keyBindings(QKeySequence.StandardKey.Copy)
    heard: list[str] = []
    heat.copyWanted.connect(heard.append)
    menu.close()
    heat.setFocus()
    QTest.keyClick(heat, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert heard == ["cell"]
