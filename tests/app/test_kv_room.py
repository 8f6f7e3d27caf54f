"""The KV panel's tables where there is little room for large text."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from tests.app.test_kv_panel import TALL, Key, settled, shown


@pytest.mark.parametrize("key", ["phases", "step", "left"])
def test_in_large_text_and_a_narrow_place_every_name_is_whole_and_every_figure_is_reached(
    qtbot: QtBot, tmp_path: Path, key: str
) -> None:
    """At 200 % text in a window of 1000 px names were "com…" and the last column out of reach."""
    panel, bench, _run = shown(qtbot, tmp_path, size=(321, 471))
    table = {"phases": panel.phases, "step": panel.step, "left": panel.left}[key]
    panel.grid.show_card("heads" if key == "left" else key)
    bench.ctx.theme.set_text_scale(2.0)
    panel.resize(321, 471)
    qtbot.wait(50)
    settled(qtbot, panel, bench)
    rows, model, bar = table.rows, table.model(), table.horizontalScrollBar()
    assert model.rowCount() == 2 * len(rows)
    columns = model.columnCount()
    face = QFontMetricsF(bench.ctx.theme.font("table"))
    for at, row in enumerate(rows):
        table.verticalScrollBar().setValue(2 * at * table.rowHeight(0))
        bar.setValue(0)
        name = table.visualRect(model.index(2 * at, 0))
        assert model.index(2 * at, 0).data() == row[0].text and table.columnSpan(2 * at, 0) == columns
        assert name.left() >= 0 and face.horizontalAdvance(row[0].text) <= table.viewport().width()
        for column in range(1, columns):
            index = model.index(2 * at + 1, column)
            assert index.data() == row[column].text
            table.scrollTo(index)
            place = table.visualRect(index)
            assert table.viewport().rect().contains(place) or place.width() > table.viewport().width()
            assert place.width() >= face.horizontalAdvance(row[column].text)
            assert place.width() >= QFontMetricsF(bench.ctx.theme.font("hint")).horizontalAdvance(
                model.headerData(column, Qt.Orientation.Horizontal) or ""
            )
    assert bar.maximum() > 0 or table.horizontalHeader().length() <= table.viewport().width()
    lines = table.as_lines(header=False)
    assert lines == [[cell.text for cell in row] for row in rows]
    index = model.index(3, 1)
    table.setCurrentIndex(index)
    QTest.keyClick(table, Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "\t".join(lines[1])
    bench.ctx.theme.set_text_scale(1.0)
    panel.resize(*TALL)
    qtbot.wait(50)
    assert model.rowCount() == len(rows) and table.columnSpan(0, 0) == 1
    bench.ctx.theme.set_text_scale(1.0)
