"""The KV panel's tables where there is little room for large text."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.widgets.card_grid import LEAST_WIDTH
from app.widgets.fact_table import LEAST_BAR, FactTable
from app.widgets.growth_words import legend
from app.widgets.table_style import CellDelegate
from tests.app.test_kv_panel import TALL, Key, settled, shown

NARROW = (321, 471)
"""Px of the panel at 200 % text in a window of 1000 × 700."""


@pytest.mark.parametrize("key", ["phases", "step", "left"])
def test_in_large_text_and_a_narrow_place_every_name_is_whole_and_every_figure_is_reached(
    qtbot: QtBot, tmp_path: Path, key: str
) -> None:
    """At 200 % text in a window of 1000 px names were "com…" and the last column out of reach."""
    panel, bench, _run = shown(qtbot, tmp_path, size=NARROW)
    table = {"phases": panel.phases, "step": panel.step, "left": panel.left}[key]
    panel.grid.show_card("heads" if key == "left" else key)
    bench.ctx.theme.set_text_scale(2.0)
    panel.resize(*NARROW)
    qtbot.wait(50)
    settled(qtbot, panel, bench)
    rows, model, view = table.rows, table.model(), table.viewport().rect()
    columns = model.columnCount()
    assert model.rowCount() == columns * len(rows)
    assert table.horizontalScrollBar().maximum() == 0
    face = QFontMetricsF(bench.ctx.theme.font("table"))
    titles = {"phases": ("prefill", "decode"), "step": ("with", "without"), "left": ("",)}[key]
    for at, row in enumerate(rows):
        first = columns * at
        table.scrollTo(model.index(first + columns - 1, 0))
        table.scrollTo(model.index(first, 0))
        name = table.visualRect(model.index(first, 0))
        assert model.index(first, 0).data() == row[0].text and table.columnSpan(first, 0) == columns
        assert view.contains(name) and face.horizontalAdvance(row[0].text) <= name.width()
        for column, title in enumerate(titles, 1):
            index = model.index(first + column, columns - 1)
            assert index.data() == row[column].text
            place = table.visualRect(index)
            assert view.left() <= place.left() and place.right() <= view.right()
            assert place.width() >= face.horizontalAdvance(row[column].text)
            if not title:
                continue
            before = model.index(first + column, 1)
            assert before.data().startswith(title) and before.data() in panel_titles(table, column)
            words = face.horizontalAdvance(before.data()) + face.horizontalAdvance(index.data())
            assert words + 2 * CellDelegate.PADDING <= place.right() - table.visualRect(before).left()
    lines = table.as_lines(header=False)
    assert lines == [[cell.text for cell in row] for row in rows]
    table.setCurrentIndex(model.index(columns + 1, 1))
    QTest.keyClick(table, Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "\t".join(lines[1])
    bench.ctx.theme.set_text_scale(1.0)
    panel.resize(*TALL)
    qtbot.wait(50)
    assert model.rowCount() == len(rows) and table.columnSpan(0, 0) == 1
    bench.ctx.theme.set_text_scale(1.0)


@pytest.mark.parametrize("key", ["phases", "step", "layers"])
def test_at_every_width_down_to_the_least_figures_are_in_sight_with_what_they_are(
    qtbot: QtBot, tmp_path: Path, key: str
) -> None:
    """Some px short of what they took, the figures stood to the right of what is seen and were not drawn."""
    panel, bench, _run = shown(qtbot, tmp_path, size=NARROW)
    table: FactTable = getattr(panel, key)
    panel.grid.show_card(key)
    bench.ctx.theme.set_text_scale(2.0)
    model, face, found = table._model, QFontMetricsF(bench.ctx.theme.font("table")), set[int]()
    for width in range(LEAST_WIDTH + 24, NARROW[0] + 1, 3):
        panel.resize(width, NARROW[1])
        for _ in range(3):
            QApplication.processEvents()
        found.add(model.lines)
        assert table.width() == width - 24 and table.horizontalScrollBar().maximum() == 0
        columns, seen = model.columnCount(), table.viewport().width()
        for row, cells in enumerate(table.rows):
            for at in model.figures:
                places = [
                    (line, i) for line in range(model.lines * row, model.lines * (row + 1)) for i in range(columns)
                    if model.cell(line, i) == (row, at) and model.look(line, i).text == cells[at].text
                ]  # fmt: skip
                assert len(places) == 1
                place = table.visualRect(model.index(*places[0]))
                assert place.left() >= 0 and place.right() < seen + 1
                assert face.horizontalAdvance(cells[at].text) + 2 * CellDelegate.PADDING <= place.width() + 1
                if model.stacked:
                    line = places[0][0] - (1 if model.apart else 0)
                    title = table.itemDelegate()
                    assert isinstance(title, CellDelegate)
                    words, _ = title.shown(model.index(line, 1), table.columnWidth(1))
                    assert words in panel_titles(table, at)
    assert len(found) > 1
    assert table.as_lines(header=False) == [[cell.text for i, cell in enumerate(row) if not model.columns[i].bar]
                                            for row in table.rows]  # fmt: skip
    bench.ctx.theme.set_text_scale(1.0)


def panel_titles(table: FactTable, column: int) -> set[str]:
    """What stands for a column's title before a figure."""
    found = table._model.columns[column]
    return {found.title, found.brief}


def test_in_a_little_more_width_figures_stand_beside_one_another_under_their_names(
    qtbot: QtBot, tmp_path: Path
) -> None:
    panel, bench, _run = shown(qtbot, tmp_path, size=NARROW)
    panel.grid.show_card("phases")
    bench.ctx.theme.set_text_scale(2.0)
    model, found = panel.phases.model(), list[int]()
    for width in (321, 400, 480, 640, 760, 640, 480, 400, 321):
        panel.resize(width, 471)
        qtbot.wait(30)
        found.append(model.rowCount() // len(panel.phases.rows))
        assert panel.phases.horizontalScrollBar().maximum() == 0
        shown_titles = [model.headerData(i, Qt.Orientation.Horizontal) for i in (1, 2)]
        assert shown_titles == (["", ""] if found[-1] == 3 else ["prefill, 12 tok", "decode, 1 tok"])
        assert [panel.phases.isColumnHidden(i) for i in range(3)] == [False] * 3
    assert found == sorted(found[:5], reverse=True) + found[3::-1] and set(found) == {1, 2, 3}
    bench.ctx.theme.set_text_scale(1.0)


def test_a_narrow_place_has_the_formula_all_lines_names_and_long_bars(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, _run = shown(qtbot, tmp_path, size=NARROW)
    theme = bench.ctx.theme
    panel.grid.show_card("growth")
    theme.set_text_scale(2.0)
    panel.resize(*NARROW)
    qtbot.wait(50)
    settled(qtbot, panel, bench)
    caption, hint = panel.grid.cards["growth"].caption, QFontMetricsF(theme.font("hint"))
    said = caption.shown()
    assert caption.isVisible() and said.replace("\n", " ") == caption.text() and "…" not in said
    assert caption.height() >= caption.fontMetrics().lineSpacing() * len(said.split("\n"))
    entries = legend(theme.palette, hint, panel.plot.plot_rect().left(), panel.plot.width())
    assert [entry.words for entry in entries] == ["used", "allocated", "formula"]
    for entry, after in itertools.pairwise(entries):
        assert entry.words_left + hint.horizontalAdvance(entry.words) < after.left
    assert entries[-1].words_left + hint.horizontalAdvance("formula") <= panel.plot.width()
    panel.grid.show_card("heads")
    qtbot.wait(30)
    heads = panel.heads
    assert panel.grid.cards["heads"].caption.shown() == "bytes of a token"
    assert heads.columnWidth(1) >= theme.px(LEAST_BAR) if heads._model.along is None else heads.isColumnHidden(1)
    theme.set_text_scale(1.0)
    panel.resize(*TALL)
    qtbot.wait(50)
    assert not heads.isColumnHidden(1) and heads._model.along is None


def test_contents_in_a_narrow_place_have_their_scale_and_their_positions(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench, _run = shown(qtbot, tmp_path, size=NARROW)
    panel.grid.show_card("contents")
    bench.ctx.theme.set_text_scale(2.0)
    panel.resize(*NARROW)
    qtbot.wait(50)
    settled(qtbot, panel, bench)
    contents = panel.contents
    heat = contents.heat
    assert heat.options.axes and heat.options.bar and heat.bar is not None
    assert heat.geometry_now().bar.height() > 0
    assert contents.layer.y() == contents.kv_head.y() and contents.kv_head.shown_text() == "KV 1"
    for box in (contents.layer, contents.kv_head, contents.kind):
        assert box.width() >= box.sizeHint().width() and box.geometry().right() < contents.width()
    bench.ctx.theme.set_text_scale(1.5)  # two lines with the heads that read it, and without
    panel.resize(352, 512)
    qtbot.waitUntil(lambda: not contents.kv_head._brief)
    qtbot.waitUntil(lambda: contents.kind.y() > contents.layer.y() == contents.kv_head.y())
    bench.ctx.theme.set_text_scale(1.0)
    panel.resize(*TALL)
    qtbot.waitUntil(lambda: contents.kv_head.width() >= contents.kv_head.sizeHint().width())
    assert not contents.kv_head._brief
