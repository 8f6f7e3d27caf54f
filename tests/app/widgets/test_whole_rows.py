"""Tables of low docks: no row is half seen, wherever the wheel or the keys leave them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication, QTableView, QWidget
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.bar_table import BarTable
from app.widgets.data_table import Column as Figures
from app.widgets.data_table import DataTable
from app.widgets.fact_sheet import FactSheet
from app.widgets.fact_table import Cell, Column, FactTable
from app.widgets.table_style import LEAST_ROW, rows_in

Make = Callable[[Theme, int], QTableView]


def _facts(title: str) -> Make:
    def make(theme: Theme, count: int) -> QTableView:
        table = FactTable(theme, "facts", [Column(title=title, left=True, grows=True), Column()])
        table.set_rows([(Cell(text=f"fact {row}"), Cell(text=str(row))) for row in range(count)])
        return table

    return make


def _figures(theme: Theme, count: int) -> QTableView:
    table = DataTable(theme, "figures")
    table.set_columns([Figures(name="n", texts=[str(row) for row in range(count)])])
    return table


def _bars(theme: Theme, count: int) -> QTableView:
    table = BarTable(theme, "bars")
    table.set_values([f"token {row}" for row in range(count)], np.linspace(0, 1, count, dtype=np.float32))
    return table


def _inside(qtbot: QtBot, widget: QWidget) -> QWidget:
    """Shows it in a window: one of its own is given sizes of before by the window system, whenever that has time."""
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(700, 700)
    widget.setParent(window)
    window.show()
    widget.show()
    return window


@pytest.mark.parametrize("make", [_facts("name"), _facts(""), _figures, _bars], ids=["titles", "plain", "data", "bars"])
@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_a_table_shows_whole_rows_at_any_height(qtbot: QtBot, make: Make, scale: float) -> None:
    theme = Theme("dark", text_scale=scale)
    table = make(theme, 40)
    window = _inside(qtbot, table)
    bar = table.verticalScrollBar()
    for height in range(round(90 * scale), round(340 * scale), 7):
        table.resize(300, height)
        QApplication.processEvents()  # a header of another height is put in its place with the next events
        row = table.rowHeight(0)
        assert row >= theme.px(LEAST_ROW)
        assert table.viewport().height() % row == 0
        for value in (0, bar.singleStep() * 3, bar.maximum()):
            bar.setValue(value)
            assert bar.value() % row == 0  # the first row in sight begins at the top
    assert window.isVisible()


def test_rows_stay_whole_when_their_height_changes_and_when_the_bar_was_dragged(qtbot: QtBot) -> None:
    theme = Theme("dark")
    table = _figures(theme, 40)
    assert isinstance(table, DataTable)
    window, bar = _inside(qtbot, table), table.verticalScrollBar()
    for height in range(120, 330, 13):
        table.resize(300, height)
        QApplication.processEvents()
        assert bar.value() % table.rowHeight(0) == 0  # rows have another height now
        for row in (20, 33, 39, 4, 11):
            table.set_current(row)
            QApplication.processEvents()
            assert bar.value() % table.rowHeight(0) == 0
            cell = table.visualRect(table.model().index(row, 0))
            assert table.viewport().rect().contains(cell.center())
    table.resize(300, 250)
    QApplication.processEvents()
    bar.setValue(107)  # by dragging
    bar.sliderReleased.emit()
    assert bar.value() % table.rowHeight(0) == 0
    assert window.isVisible()


@pytest.mark.parametrize(("count", "room", "row"), [(7, 147, 21), (7, 141, 20), (7, 133, 19), (8, 157, 19)])
def test_rows_get_a_little_lower_before_one_is_out_of_sight(count: int, room: int, row: int) -> None:
    assert rows_in(room, count, row=21, least=19) == row


def test_rows_that_come_later_are_whole_too(qtbot: QtBot) -> None:
    table = _facts("name")(Theme("dark"), 3)
    assert isinstance(table, FactTable)
    window = _inside(qtbot, table)
    table.resize(300, 157)
    assert table.rowHeight(0) == 21
    table.set_rows([(Cell(text=f"fact {row}"), Cell(text=str(row))) for row in range(7)])
    assert table.rowHeight(0) == 19
    assert table.viewport().height() >= 7 * 19 and window.isVisible()


def test_a_table_without_titles_has_no_room_for_them_whatever_comes_while_it_is_narrowed(qtbot: QtBot) -> None:
    """After a theme that came before the columns had followed a new width, a blank line stood over the rows and the
    last of them was out of sight, for good."""
    theme = Theme("dark")
    table = FactTable(theme, "facts", [Column(left=True), Column(bar=True, grows=True), Column()])
    table.set_rows([(Cell(text=f"fact {row}"), Cell(bar=0.5), Cell(text="138,240 B")) for row in range(3)])
    window = _inside(qtbot, table)
    table.resize(260, 65)
    QApplication.processEvents()
    for width in (257, 240, 260, 221):
        table.resize(width, 65)
        theme.changed.emit()
        QApplication.processEvents()
        assert table.viewport().geometry().getRect() == (0, 0, width, 65)
        assert table.verticalScrollBar().maximum() == 0
    assert window.isVisible()


def test_a_sheet_of_sentences_ends_with_a_whole_line(qtbot: QtBot) -> None:
    theme = Theme("dark")
    sheet = FactSheet(theme, "sheet")
    sheet.set_facts([(f"fact {n}", "so many words that they take more than a line of it " * 2) for n in range(8)])
    window = _inside(qtbot, sheet)
    line = QFontMetrics(theme.font("table")).lineSpacing()
    for height in range(80, 200, 9):
        sheet.resize(280, height)
        QApplication.processEvents()
        end = sheet.viewport().height()
        inside = [right for _, right in sheet._labels if right.y() < end]
        assert (end - inside[-1].y()) % line == 0
        assert height - end <= line + 8
    sheet.resize(280, sheet.needed_height() + 60)
    QApplication.processEvents()
    assert sheet.viewport().height() == sheet.height() and window.isVisible()


def test_a_line_of_another_face_is_whole_too(qtbot: QtBot) -> None:
    """Chinese lines are higher than the font's own: the last one in sight was cut through its characters."""
    theme = Theme("dark")
    sheet = FactSheet(theme, "sheet")
    sheet.set_facts([("位置", "每头全部 64 维分成 32 对转动，没有为更长的上下文做缩放。" * 3) for _ in range(5)])
    window = _inside(qtbot, sheet)
    left, right = sheet._labels[0]
    for height in range(80, 200, 9):
        sheet.resize(280, height)
        QApplication.processEvents()
        line = right.height() / round(right.height() / left.sizeHint().height())
        assert line > QFontMetrics(theme.font("table")).lineSpacing()
        shown = max(words.y() for _, words in sheet._labels if words.y() < sheet.viewport().height())
        assert (sheet.viewport().height() - shown) % line == 0
    assert window.isVisible()
