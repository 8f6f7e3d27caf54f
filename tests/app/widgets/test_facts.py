"""Tables and sheets of facts, tables of figures: what gives way where there is little room."""

from __future__ import annotations

import random

import numpy as np
import pytest
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QGuiApplication, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.data_table import Column as FigureColumn
from app.widgets.data_table import DataTable
from app.widgets.fact_sheet import BREAK, FactSheet
from app.widgets.fact_table import APART, Cell, Column, FactTable
from app.widgets.table_style import CellDelegate

COLUMNS = (Column(title="part", left=True), Column(bar=True, grows=True), Column(title="count"), Column(title="share"))
ROWS = [
    (Cell(text="feed-forward"), Cell(bar=1.0), Cell(text="79,626,240"), Cell(text="59.2 %")),
    (Cell(text="norms"), Cell(bar=0.1), Cell(text="35,136"), Cell(text="0.026 %")),
]
WORDS = "RoPE: all 64 dimensions of a head turned in 32 pairs, base θ = 100,000, pair i is dimensions i and i + 32. "


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("light")


@pytest.mark.parametrize("width", [500, 300, 270, 250, 230, 200])
def test_bars_give_way_before_words_and_figures_never(qtbot: QtBot, theme: Theme, width: int) -> None:
    table = FactTable(theme, "parts", COLUMNS)
    qtbot.addWidget(table)
    table.set_rows(ROWS)
    table.resize(width, 120)
    table.show()
    qtbot.waitExposed(table)
    header, model = table.horizontalHeader(), table._model
    assert sum(header.sectionSize(i) for i in range(4) if not table.isColumnHidden(i)) == table.viewport().width()
    for figure in (2, 3):
        assert not table.isColumnHidden(figure)
        assert header.sectionSize(figure) >= table._needed(figure)
    if 0 in model.cut:
        assert table.isColumnHidden(1), "a name is cut while there is a bar"
    assert (table.needed_width() <= table.viewport().width()) == (not model.cut and not table.isColumnHidden(1))
    table.resize(500, 120)
    assert not table.isColumnHidden(1)
    assert not model.cut


def test_a_folded_table_names_its_rows_leaves_out_bars_and_keeps_the_chosen_row(qtbot: QtBot, theme: Theme) -> None:
    columns = (
        Column(title="layer"), Column(bar=True, grows=True), Column(title="used"), Column(title="allocated"),
        Column(title="window"), Column(title="served"),
    )  # fmt: skip
    table = FactTable(theme, "by layer", columns, folds=True, along=True)
    qtbot.addWidget(table)
    rows = [(Cell(text=f"{i}"), Cell(bar=0.5), *(Cell(text=f"{i}9.2 KB") for _ in range(4))) for i in range(3)]
    table.set_rows(rows)
    table.resize(600, 400)
    table.show()
    qtbot.waitExposed(table)
    table.set_current(1)
    model, found = table._model, list[int]()
    for width in (600, 320, 230, 150, 100, 230, 600):
        table.resize(width, 400)
        qtbot.wait(20)
        found.append(model.lines)
        assert table.horizontalScrollBar().maximum() == 0
        assert table._row(table.currentIndex().row()) == 1
        first = model.lines  # of the second row
        assert model.index(first, 0).data() == ("1" if model.lines == 1 else "layer 1")
        said = [model.look(line, i) for line in range(model.n_rows()) for i in range(6) if not table.isColumnHidden(i)]
        assert sum(look.text.endswith("KB") for look in said) == 12
        assert any(look.bars for look in said) == (model.lines == 1)
        if model.apart:
            assert [model.look(first + 1, i).text for i in range(3)] == ["", "used", ""]
            assert [model.look(first + 2, i).text for i in range(3)] == ["", "", "19.2 KB"]
    assert found == [1, 1, 5, 5, 9, 5, 1] and model.along is None


def test_bars_without_room_beside_their_figures_are_drawn_along_their_rows(qtbot: QtBot, theme: Theme) -> None:
    table = FactTable(theme, "heads", (Column(left=True), Column(bar=True, grows=True), Column()), along=True)
    qtbot.addWidget(table)
    shares = {"MHA, 9 KV": 1.0, "GQA, 3 KV": 1 / 3, "MQA, 1 KV": 1 / 9}
    table.set_rows([(Cell(text=name), Cell(bar=share, voice="accent"), Cell(text="138,240 B"))
                    for name, share in shares.items()])  # fmt: skip
    table.resize(170, 66)
    table.show()
    qtbot.waitExposed(table)
    assert table.isColumnHidden(1) and table.as_lines() == [[name, "138,240 B"] for name in shares]
    view = table.viewport()
    for at, share in enumerate(shares.values()):
        for column in (0, 2):  # each cell draws its part, also where it alone is drawn anew
            view.update(table.visualRect(table.model().index(at, column)))
            QApplication.processEvents()
        picture, y = view.grab().toImage(), table.visualRect(table.model().index(at, 0)).bottom() - 1
        long = sum(picture.pixelColor(x, y) == theme.palette.accent for x in range(picture.width()))
        assert long == pytest.approx(share * (view.width() - 2 * CellDelegate.PADDING), abs=1.5)
    table.resize(400, 66)
    assert not table.isColumnHidden(1) and table._model.along is None


def test_figures_stand_apart_where_there_is_room(qtbot: QtBot, theme: Theme) -> None:
    table = FactTable(theme, "rates", [Column(left=True), Column(title="prefill"), Column(title="decode")])
    qtbot.addWidget(table)
    table.set_rows([(Cell(text="computes a second"), Cell(text="9.43 GFLOP/s"), Cell(text="4.02 GFLOP/s"))])
    table.show()
    qtbot.waitExposed(table)
    header, needed = table.horizontalHeader(), [table._needed(i) for i in range(3)]
    for width in (sum(needed), sum(needed) + 10, 600):
        table.resize(width + table.width() - table.viewport().width(), 120)
        sizes = [header.sectionSize(i) for i in range(3)]
        assert sum(sizes) == table.viewport().width()
        assert sizes[1] == needed[1]
        assert sizes[2] == needed[2] + min(APART, (table.viewport().width() - sum(needed)) // 2)
    table.set_head(20, shared=True)
    assert header.sectionSize(1) + header.sectionSize(2) == table.figures_width()


def test_the_first_words_take_what_is_left_where_no_column_grows(qtbot: QtBot, theme: Theme) -> None:
    table = FactTable(theme, "terms", [Column(title="part", left=True), Column(title="adds")])
    qtbot.addWidget(table)
    table.set_rows([(Cell(text="embedding"), Cell(text="0.1065"))])
    table.resize(600, 120)
    table.show()
    header = table.horizontalHeader()
    assert header.sectionSize(0) + header.sectionSize(1) == table.viewport().width()


def test_a_sheets_lines_end_before_its_bar_whatever_size_came_before(qtbot: QtBot, theme: Theme) -> None:
    sheet, chance = FactSheet(theme, "words"), random.Random(1)
    qtbot.addWidget(sheet)
    sheet.resize(400, 300)
    sheet.show()
    qtbot.waitExposed(sheet)
    sheet.set_facts([(f"Feed-forward {i}", WORDS * 2) for i in range(5)])
    for _ in range(250):
        size = chance.randint(200, 500), chance.randint(60, 600)
        if hidden := chance.random() < 0.3:
            sheet.hide()
        sheet.resize(*size)
        if hidden:
            sheet.show()
        if chance.random() < 0.7:
            QApplication.processEvents()
        QApplication.processEvents()
        room = sheet.viewport().width()
        assert sheet._page.width() <= room, size
        line, seen = QFontMetrics(theme.font("table")).lineSpacing(), sheet.viewport().height()
        tops = [words.y() + line * at for _, words in sheet._labels for at in range(words.height() // line)]
        if sheet.needed_height() > sheet.height() and not sheet.verticalScrollBar().value():
            assert not any(top < seen < top + line - 1 for top in tops), size
        for _, words in sheet._labels:
            assert words.geometry().right() < room, size
            assert words.height() >= words.heightForWidth(words.width()), size


@pytest.mark.parametrize("width", [300, 230, 180, 150, 110])
def test_bars_are_in_proportion_or_there_are_none(qtbot: QtBot, theme: Theme, width: int) -> None:
    table = DataTable(theme, "Strongest neurons")
    qtbot.addWidget(table)
    names = ("neuron", "gate", "product")
    bars = FigureColumn(name="", bars=np.array([1.0, 0.5], np.float32))
    table.set_columns([*(FigureColumn(name=name, texts=["-0.906", "-1.39"]) for name in names), bars])
    table.resize(width, 90)
    table.show()
    qtbot.waitExposed(table)
    texts = sum(map(table.columnWidth, range(3)))
    assert table.isColumnHidden(3) == (table.viewport().width() < texts + 20), "as long as there is room for 20 px"
    if not table.isColumnHidden(3):
        right = table.columnViewportPosition(3) + table.columnWidth(3)
        assert right <= table.viewport().width(), "a bar cut at the edge is as long as any other"


def test_the_chosen_row_is_marked_to_the_table_s_end(qtbot: QtBot, theme: Theme) -> None:
    table = DataTable(theme, "Strongest neurons")
    qtbot.addWidget(table)
    table.set_columns(
        [FigureColumn(name="n", texts=["1", "2"]), FigureColumn(name="", bars=np.array([1.0, 0.5], np.float32))]
    )
    table.resize(600, 90)
    table.show()
    qtbot.waitExposed(table)
    table.set_current(1)
    seen, row = table.viewport().grab().toImage(), table.visualRect(table.model().index(1, 0)).center().y()
    assert table.horizontalHeader().length() < table.viewport().width() - 10
    assert seen.pixelColor(table.viewport().width() - 2, row).name() == theme.palette.accent_tint.name()


@pytest.mark.parametrize("width", [420, 300])
def test_a_path_is_broken_between_its_names(qtbot: QtBot, theme: Theme, width: int) -> None:
    sheet = FactSheet(theme, "source")
    qtbot.addWidget(sheet)
    sheet.resize(width, 300)
    sheet.show()
    qtbot.waitExposed(sheet)
    sheet.set_facts([("File", "/home/someone/models/SmolLM2-135M-Instruct/weights.gguf"), ("SHA-256", "b179" * 24)])
    (_, path), (_, digest) = sheet._labels
    assert path.text().split(BREAK) == ["/", "home/", "someone/", "models/", "SmolLM2-135M-Instruct/", "weights.gguf"]
    assert len(digest.text().split(BREAK)) == 96, "what has no names is broken anywhere"
    sheet.resize(140, 300)  # too narrow for the longest name
    qtbot.waitUntil(lambda: "SmolLM2" not in path.text())


@pytest.mark.parametrize("width", [420, 290, 240])
def test_a_hash_and_a_path_are_whole_whatever_width_and_copied_without_breaks(
    qtbot: QtBot, theme: Theme, width: int
) -> None:
    digest, path = "b179c9523d0e6a0f98a330c7" * 3, "/home/someone/.cache/models/SmolLM2-135M-Instruct/weights.Q4_1.gguf"
    sheet = FactSheet(theme, "source")
    qtbot.addWidget(sheet)
    sheet.resize(width, 300)
    sheet.show()
    qtbot.waitExposed(sheet)
    sheet.set_facts([("File", path), ("SHA-256", digest), ("Device", "cpu")])
    QApplication.processEvents()
    metrics = QFontMetrics(theme.font("table"))
    for (_, text), (_, right) in zip(sheet.facts, sheet._labels, strict=True):
        assert right.text().replace(BREAK, "") == text, "nothing is left out"
        lines = -(-metrics.horizontalAdvance(text) // right.width())
        assert right.height() >= lines * metrics.height()
        assert right.geometry().right() < sheet.viewport().width()
    _, right = sheet._labels[1]
    right.setSelection(0, len(right.text()))
    right.setFocus()
    QTest.keySequence(right, QKeySequence.StandardKey.Copy)
    assert QGuiApplication.clipboard().text() == digest
    at = right.rect().center()
    QApplication.sendEvent(right, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, right.mapToGlobal(at)))
    menu = sheet.findChild(QMenu)
    assert menu is not None and [action.text() for action in menu.actions()] == ["Copy SHA-256", "Copy all"]
    menu.actions()[1].trigger()
    assert path in QGuiApplication.clipboard().text()
    menu.actions()[0].trigger()
    assert QGuiApplication.clipboard().text() == digest
    menu.close()
