"""The lens's cells as figures: the table twin of its grid, and the lines that are copied and exported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent

from app.i18n import tr
from app.panels.attention_copy import clean, number
from app.panels.lens_token import depth_text
from app.widgets.candidate_table import probability
from app.widgets.heatmap_table import BlockModel, MatrixTable
from app.widgets.table_style import Look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.state.run_book import PathToken
    from app.theme import Theme
    from app.widgets.lens_grid import Cell, LensGrid, Span


class LensCells(BlockModel):
    """What the grid knows, the last depth on top as in the grid."""

    def __init__(self, grid: LensGrid, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._grid = grid

    def cell(self, row: int, column: int) -> Cell:
        """Depth and position."""
        return self._grid.n_depths - 1 - row, column

    def look(self, row: int, column: int) -> Look:
        grid, cell = self._grid, self.cell(row, column)
        if not _known(grid, cell):
            return Look("…", "secondary")
        return Look(f"{grid.word(*cell)}  {probability(float(grid.p[cell]))}", strong=grid.comes_true(*cell))

    def tip(self, row: int, column: int) -> str:
        grid, cell = self._grid, self.cell(row, column)
        if not _known(grid, cell):
            return ""
        said = [f"{depth_text(cell[0], grid.n_depths)} · {column:,} {grid.axis[column]}",
                f"{grid.word(*cell)} · {tr('id')} {int(grid.ids[cell])}", f"p {number(float(grid.p[cell]))}",
                f"{tr('entropy')} {number(float(grid.entropy[cell]))}"]  # fmt: skip
        return "\n".join([*said, tr("came next")] if grid.comes_true(*cell) else said)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation == Qt.Orientation.Vertical and role == Qt.ItemDataRole.DisplayRole:
            return self._grid.depth_name(self._grid.n_depths - 1 - section)
        return super().headerData(section, orientation, role)


class LensTable(MatrixTable):
    """Layers × positions, token and probability in each cell, all its digits in the tip. `viewChanged` when other cells
    are in sight; `copyWanted` as the grid's."""

    viewChanged = Signal()
    HEAD, COLUMN = 128, 112

    def __init__(self, theme: Theme, label: str, grid: LensGrid) -> None:
        super().__init__(theme, label, blocks=LensCells(grid))
        self._grid = grid
        for bar in (self.horizontalScrollBar(), self.verticalScrollBar()):
            bar.valueChanged.connect(self.viewChanged)

    def show_run(self) -> None:
        """The grid's run, with the grid's chosen cell."""
        self.blocks.set_matrix((self._grid.n_depths, self._grid.n_positions), [], self._grid.axis)
        self.show_chosen()

    def show_chosen(self) -> None:
        """The grid's chosen cell as the current one."""
        cell = self._grid.selected
        if cell is not None and cell[0] >= 0 and cell[1] < self._grid.n_positions:
            self.set_current(*cell)

    def in_sight(self) -> tuple[Span, Span]:
        """Depths and positions that can be seen, half-open."""
        size, (rows, cols) = self.viewport().size(), (self._grid.n_depths, self._grid.n_positions)
        top, left = max(self.rowAt(0), 0), max(self.columnAt(0), 0)
        bottom, right = self.rowAt(size.height() - 1), self.columnAt(size.width() - 1)
        last_row, last_col = rows - 1 if bottom < 0 else bottom, cols - 1 if right < 0 else right
        return (rows - 1 - last_row, rows - top), (left, last_col + 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.viewChanged.emit()


def cell_lines(grid: LensGrid, tokens: Sequence[PathToken], depths: Span, positions: Span) -> list[list[str]]:
    """Lines of the cells that are known, exact, under their titles."""
    lines = [["depth", "after", "position", "token", "top id", "top token", "p", "entropy (nats)"]]
    for depth in range(*depths):
        after = depth_text(depth, grid.n_depths)
        cells = [cell for cell in ((depth, position) for position in range(*positions)) if _known(grid, cell)]
        lines += [
            [str(depth), after, str(cell[1]), clean(tokens[cell[1]].piece), str(int(grid.ids[cell])),
             clean(grid.word(*cell)), number(float(grid.p[cell])), number(float(grid.entropy[cell]))]
            for cell in cells
        ]  # fmt: skip
    return lines


def cell_text(grid: LensGrid, cell: Cell) -> str:
    """A cell's token, probability and entropy, exact, tab-separated; empty while they are not known."""
    if not _known(grid, cell):
        return ""
    return "\t".join([clean(grid.word(*cell)), number(float(grid.p[cell])), number(float(grid.entropy[cell]))])


def _known(grid: LensGrid, cell: Cell) -> bool:
    return bool(grid.ids[cell] >= 0)
