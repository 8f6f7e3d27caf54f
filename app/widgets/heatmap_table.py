"""The table twin of a heat map: the same cells as figures, fetched in blocks as they come into sight."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QItemSelectionModel, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QPushButton, QTableView, QVBoxLayout, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip
from app.widgets.heatmap_boundary import dashes
from app.widgets.heatmap_menu import open_menu
from app.widgets.matrix_header import NameHeader
from app.widgets.table_style import CellDelegate, Index, Look, LookModel, dress_table
from app.widgets.ticks import figure

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap import HeatMap

BLOCK = 64
MOST_BLOCKS = 256
MOST_LETTERS = 16
"""Of a name."""
NO_PARENT = QModelIndex()
Span = tuple[int, int]


class BlockModel(LookModel):
    """Cells of an n_rows × n_cols matrix. `blockWanted(rows, cols)` once for each block that is looked at and not
    here; `set_block` answers."""

    blockWanted = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._shape = (0, 0)
        self._rows: Sequence[str] = ()
        self._cols: Sequence[str] = ()
        self._origin, self._numbered = 0, (True, True)
        self._blocks: dict[tuple[int, int], NDArray[np.float32] | None] = {}
        self.matrix = 0
        """Number of the matrix: what is asked of one is no answer for the next."""

    def set_matrix(
        self,
        shape: tuple[int, int],
        rows: Sequence[str],
        cols: Sequence[str],
        *,
        origin: int = 0,
        numbered: tuple[bool, bool] = (True, True),
    ) -> None:
        """Another matrix: nothing of it is here yet. `rows`, `cols`: names of both. `origin`: number of row 0;
        `numbered`: whether the names of rows and of columns stand after their numbers."""
        self.beginResetModel()
        self.matrix += 1
        self._origin, self._numbered = origin, numbered
        self._shape, self._rows, self._cols = shape, rows, cols
        self._blocks.clear()
        self.endResetModel()

    def set_block(self, rows: Span, cols: Span, values: NDArray[np.float32], *, matrix: int | None = None) -> None:
        """Exact values of a block as it was asked for, NaN where masked. `matrix`: its number when it was asked
        for; None: just now."""
        if matrix is not None and matrix != self.matrix:
            return
        self._blocks[rows[0] // BLOCK, cols[0] // BLOCK] = values
        self.dataChanged.emit(self.index(rows[0], cols[0]), self.index(rows[1] - 1, cols[1] - 1))

    def value(self, row: int, col: int) -> float | None:
        """A cell's value, None while its block is under way."""
        key = (row // BLOCK, col // BLOCK)
        if key not in self._blocks:
            if len(self._blocks) >= MOST_BLOCKS:
                self._blocks.pop(next(iter(self._blocks)))
            self._blocks[key] = None
            self.blockWanted.emit(_span(key[0], self._shape[0]), _span(key[1], self._shape[1]))
        block = self._blocks[key]
        return None if block is None else float(block[row % BLOCK, col % BLOCK])

    def values(self, rows: Span, cols: Span) -> NDArray[np.float32] | None:
        """Exact values of those cells; None, and what is missing asked for, while not all of them are here."""
        cells = [[self.value(row, col) for col in range(*cols)] for row in range(*rows)]
        if any(value is None for line in cells for value in line):
            return None
        return np.array(cells, dtype=np.float32)

    def name(self, section: int, *, across: bool) -> str:
        """A row's name or, across, a column's: whole, its number before it where it has one."""
        pieces = self._cols if across else self._rows
        piece = pieces[section] if section < len(pieces) else ""
        return f"{section + (0 if across else self._origin):,} {piece}".rstrip() if self._numbered[across] else piece

    @property
    def numbered_columns(self) -> bool:
        return self._numbered[1]

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else self._shape[0]

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else self._shape[1]

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            across = orientation == Qt.Orientation.Horizontal
            pieces = self._cols if across else self._rows
            piece = pieces[section] if section < len(pieces) else ""
            if role == Qt.ItemDataRole.DisplayRole and len(piece) >= MOST_LETTERS:
                piece = f"{piece[: MOST_LETTERS - 2]}…"
            if self._numbered[across]:
                piece = f"{section + (0 if across else self._origin):,} {piece}".rstrip()
            return plain_tip(piece) if role == Qt.ItemDataRole.ToolTipRole else piece
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def side(self, _column: int) -> Qt.AlignmentFlag:
        return Qt.AlignmentFlag.AlignRight

    def look(self, row: int, column: int) -> Look:
        value = self.value(row, column)
        if value is None:
            return Look("…", "secondary")
        return Look(cell_text(value), "secondary" if math.isnan(value) else "text")


def cell_text(value: float) -> str:
    """A figure of a cell; with an exponent it has a digit less, and is no wider than the others."""
    text = figure(value)
    return figure(value, 3) if "e" in text else text


class MatrixTable(QTableView):
    """`cellClicked(row, column)` when the current cell moves by the user's hand; `copyWanted` by keys or menu, with
    "cell", "row" or "matrix", as a heat map's."""

    cellClicked = Signal(int, int)
    copyWanted = Signal(str)
    HEAD, COLUMN, NAMED = 120, 74, 86
    """Px at 100 % text of the row header at most, of a column at least, and of one at least whose name is no token's
    and as long."""

    def __init__(
        self, theme: Theme, label: str, parent: QWidget | None = None, *, blocks: BlockModel | None = None
    ) -> None:
        self._fitting = True  # Qt calls updateGeometries while it makes the view
        super().__init__(parent)
        self._theme = theme
        self._names: tuple[float, float] | None = None
        self._across = 0
        self.blocks = blocks or BlockModel()
        self.blocks.setParent(self)
        self.setModel(self.blocks)
        self.setItemDelegate(CellDelegate(theme, self))
        self._heads = (
            NameHeader(theme, Qt.Orientation.Vertical, self),
            NameHeader(theme, Qt.Orientation.Horizontal, self),
        )
        self.setVerticalHeader(self._heads[0])
        self.setHorizontalHeader(self._heads[1])
        dress_table(self, theme)
        self.setAccessibleName(tr("{label} as a table", label=label))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectItems)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        # A column half under the row header would show 0.9830 as 9830.
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        self.verticalHeader().show()
        # The bar is of the columns alone, so it begins where they do.
        self._beside = QWidget()
        self.addScrollBarWidget(self._beside, Qt.AlignmentFlag.AlignLeft)
        self.blocks.modelReset.connect(self._forget_names)
        self.selectionModel().currentChanged.connect(self._on_current)
        theme.changed.connect(self._fit)
        self._fit()
        self._fitting = False

    def set_decode(self, row: int | None, col: int | None = None) -> None:
        """The first generated row and column, None where there is none: these are amber, with a line before them."""
        for head, first in zip(self._heads, (row, col), strict=True):
            head.first_decode = first
            head.viewport().update()
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        painter.setPen(dashes(self._theme.palette.amber))
        down, across = (head.decode_at() for head in self._heads)
        if down is not None:
            painter.drawLine(0, down - 1, min(self.viewport().width(), self.horizontalHeader().length()), down - 1)
        if across is not None:
            painter.drawLine(across, 0, across, min(self.viewport().height(), self.verticalHeader().length()))

    def set_current(self, row: int, col: int) -> None:
        """Shows a cell as the current one; emits nothing."""
        blocked = self.blockSignals(True)
        index = self.blocks.index(row, col)
        self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        self.blockSignals(blocked)
        self.scrollTo(index)

    @property
    def cell(self) -> tuple[int, int] | None:
        """The current one."""
        index = self.currentIndex()
        return (index.row(), index.column()) if index.isValid() else None

    def span(self) -> tuple[Span, Span]:
        """Rows and columns that can be seen, half-open."""
        size, (rows, cols) = self.viewport().size(), (self.blocks.rowCount(), self.blocks.columnCount())
        bottom, right = self.rowAt(size.height() - 1), self.columnAt(size.width() - 1)
        return (
            (max(self.rowAt(0), 0), rows if bottom < 0 else bottom + 1),
            (max(self.columnAt(0), 0), cols if right < 0 else right + 1),
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copyWanted.emit("cell")
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        open_menu(self, event.globalPos(), self.copyWanted.emit, at_cell=self.cell is not None)

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        for head in self._heads:
            head.viewport().update()
        if current.isValid() and not self.signalsBlocked():
            self.cellClicked.emit(current.row(), current.column())

    def _fit(self) -> None:
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self._names = None
        self._fit_columns()

    def _forget_names(self) -> None:
        self._names = None
        self.updateGeometries()

    def _fit_columns(self) -> None:
        """As many whole columns as there is room for, the rest to the row header: none is cut at either end."""
        if not self.isVisible():
            return
        if self._names is None:
            self._names = self._heads[0].longest(), self._heads[1].longest()
        px = self._theme.px
        head, column = round(min(self._names[0], px(self.HEAD))), px(self.COLUMN)
        if not self.blocks.numbered_columns:
            column = max(column, round(min(self._names[1], px(self.NAMED))))
        across = self.horizontalScrollBar()
        whole = self.viewport().width() + self.viewportMargins().left()
        head = max(min(head, whole - column), px(24))
        room = whole - head
        count = max(1, room // column)
        fewer, self._across = count < self._across, count
        width = max(column, room // count)
        self.horizontalHeader().setDefaultSectionSize(width)
        self.verticalHeader().setFixedWidth(head + max(0, room - count * width))
        self._beside.setFixedWidth(self.verticalHeader().width())
        super().updateGeometries()
        at_end = across.value() == across.maximum()  # Qt keeps the offset in px, of columns as wide as they were
        if at_end and across.maximum():
            self.horizontalHeader().setOffsetToLastSection()
        else:
            self.horizontalHeader().setOffsetToSectionPosition(across.value())
        if fewer and self.currentIndex().isValid():
            self.scrollTo(self.currentIndex())

    def updateGeometries(self) -> None:
        """Qt's word for every change of the room: size, headers, scroll bars that come and go."""
        super().updateGeometries()
        if not self._fitting:
            self._fitting = True
            self._fit_columns()
            self._fitting = False


def pointed(heat: HeatMap, table: MatrixTable | None) -> tuple[tuple[int, int] | None, tuple[Span, Span]]:
    """The cell that is pointed at or chosen, and the rows and columns in sight: the table's where that is seen."""
    if table is not None and table.isVisible():
        return table.cell, table.span()
    return heat.hovered or heat.selected, heat.wanted()[:2]


def _span(block: int, count: int) -> Span:
    return block * BLOCK, min((block + 1) * BLOCK, count)


def page_of(table: MatrixTable, back: Callable[[], None]) -> QWidget:
    """The table in a map's place, with the way back to it."""
    page = QWidget()
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(table, 1)
    button = QPushButton(tr("Back to the map"))
    button.setProperty("compact", True)
    button.clicked.connect(back)
    column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
    return page
