"""The table twin of heat maps: names, whole figures, and a bar under the columns alone."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QItemSelectionModel, QRect, Qt
from PySide6.QtGui import QFontMetricsF, QImage, QPainter
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.heatmap_table import MatrixTable, cell_text
from app.widgets.matrix_header import Counted, NameHeader

ACROSS, DOWN = Qt.Orientation.Horizontal, Qt.Orientation.Vertical


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("dark")


def shown(qtbot: QtBot, theme: Theme, width: int, *, named: bool) -> MatrixTable:
    table = MatrixTable(theme, "Cells")
    qtbot.addWidget(table)
    table.resize(width, 160)
    pieces = ["The", "·animal", "·internationalisation", "⏎", "·it"]
    cols = [f"neuron {1000 + i}" for i in range(40)] if named else pieces * 8
    table.blocks.set_matrix((5, 40), pieces, cols, numbered=(True, not named))
    table.show()
    qtbot.waitExposed(table)
    return table


@pytest.mark.parametrize("scale", [1.0, 1.5])
@pytest.mark.parametrize("width", [240, 330, 481, 700])
@pytest.mark.parametrize("named", [False, True])
def test_figures_and_names_of_columns_are_whole(qtbot: QtBot, width: int, *, named: bool, scale: float) -> None:
    theme = Theme("dark", scale)
    table = shown(qtbot, theme, width, named=named)
    metrics = QFontMetricsF(theme.font("table"))
    widest = max(metrics.horizontalAdvance(cell_text(v)) for v in (-0.0012345, -1.2345e-5, -123_456.0, 0.98765))
    assert table.columnWidth(0) >= widest + 10
    if named:
        names = QFontMetricsF(theme.font("mono_small", bold=True))
        assert table.columnWidth(0) >= min(names.horizontalAdvance("neuron 1000") + 10, theme.px(table.NAMED))
    assert table.viewport().width() % table.columnWidth(0) < 2  # none is cut in sight
    if width == 481 and scale == 1.0:
        assert table.viewport().width() // table.columnWidth(0) == 4
    assert table._beside.width() == table.verticalHeader().width()  # the bar begins where the columns do


def test_names_of_cells(qtbot: QtBot, theme: Theme) -> None:
    blocks = shown(qtbot, theme, 400, named=False).blocks
    assert [blocks.headerData(i, DOWN) for i in (1, 2, 3)] == ["1 ·animal", "2 ·international…", "3 ⏎"]
    assert blocks.headerData(2, DOWN, Qt.ItemDataRole.ToolTipRole) == "2 ·internationalisation"
    dims = Counted("dim", 5, 128)
    assert (len(dims), dims[0], dims[4], list(dims[1:3])) == (5, "dim 0", "dim 512", ["dim 128", "dim 256"])
    blocks.set_matrix((5, 576), dims, Counted("dim", 576), numbered=(False, False))
    assert (blocks.headerData(3, DOWN), blocks.headerData(3, ACROSS)) == ("dim 384", "dim 3")


def test_names_of_the_current_cell_are_in_the_bold_face(qtbot: QtBot, theme: Theme) -> None:
    table = shown(qtbot, theme, 400, named=False)
    header = table.verticalHeader()
    assert isinstance(header, NameHeader)

    def drawn(row: int) -> np.ndarray:
        image = QImage(120, 20, QImage.Format.Format_Grayscale8)
        image.fill(0)
        painter = QPainter(image)
        header.paintSection(painter, QRect(0, 0, 120, 20), row)
        font = painter.font()
        painter.end()
        assert font.bold() == (table.currentIndex().row() == row) and font.family() == theme.font("mono_small").family()
        return np.frombuffer(image.constBits(), np.uint8).reshape(20, -1)[:, :120].copy()

    before = drawn(1)
    table.selectionModel().setCurrentIndex(table.blocks.index(1, 0), QItemSelectionModel.SelectionFlag.ClearAndSelect)
    assert int(drawn(1).sum()) > int(before.sum())


def test_generated_tokens_are_amber_and_a_line_stands_before_the_first(qtbot: QtBot, theme: Theme) -> None:
    """In the twin they were grey, and where decode begins was not to be seen."""
    table = shown(qtbot, theme, 480, named=False)
    table.resize(480, 240)
    table.set_decode(3, 2)

    def has_amber(picture: QImage, rect: QRect) -> bool:
        spots = [(x, y) for x in range(rect.left(), rect.right()) for y in range(rect.top(), rect.bottom())]
        colours = (picture.pixelColor(x, y) for x, y in spots)
        return any(colour.red() > colour.blue() + 60 for colour in colours)

    rows, cols, cells = (
        part.viewport().grab().toImage() for part in (table.verticalHeader(), table.horizontalHeader(), table)
    )
    found = []
    for header, picture in ((table.verticalHeader(), rows), (table.horizontalHeader(), cols)):
        for section in range(3 if header is table.horizontalHeader() else 5):
            at, size = header.sectionViewportPosition(section), header.sectionSize(section)
            down = header.orientation() == DOWN
            rect = QRect(0, at, picture.width(), size) if down else QRect(at, 0, size, picture.height())
            found.append(has_amber(picture, rect))
    assert found == [False, False, False, True, True, False, False, True]
    line = table.verticalHeader().sectionViewportPosition(3)
    assert has_amber(cells, QRect(0, line - 2, cells.width(), 3))
    assert not has_amber(cells, QRect(0, line + 3, table.columnWidth(0), 12))
    table.set_decode(None)
    assert not has_amber(table.viewport().grab().toImage(), cells.rect())
