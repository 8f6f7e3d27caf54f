"""Which cells of a heat map are in sight: zoom and pan as arithmetic, without a widget."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_CELLS = 2.0
"""Zooming in ends when so few cells fill an axis."""


@dataclass(frozen=True, kw_only=True)
class View:
    """A rectangle of a matrix in cells: its upper left corner and its extent, as fractions of cells allow."""

    row: float = 0.0
    col: float = 0.0
    rows: float = 1.0
    cols: float = 1.0

    @classmethod
    def whole(cls, n_rows: int, n_cols: int) -> View:
        return cls(rows=float(max(n_rows, 1)), cols=float(max(n_cols, 1)))

    def zoomed(self, factor: float, *, at: tuple[float, float], shape: tuple[int, int], least: float) -> View:
        """`factor` times larger (over 1: closer) about the cell position `at` = (row, column), which stays where it
        is on the screen. Not closer than `least` cells on the longer axis, not farther than the whole of `shape`."""
        longest = max(self.rows, self.cols)
        factor = min(factor, max(longest / least, 1.0)) if factor > 1 else factor
        rows, cols = min(self.rows / factor, shape[0]), min(self.cols / factor, shape[1])
        row = at[0] - (at[0] - self.row) * rows / self.rows
        col = at[1] - (at[1] - self.col) * cols / self.cols
        return View(row=row, col=col, rows=rows, cols=cols).inside(shape)

    def panned(self, rows: float, cols: float, shape: tuple[int, int]) -> View:
        """Moved by so many cells, inside `shape`."""
        return View(row=self.row + rows, col=self.col + cols, rows=self.rows, cols=self.cols).inside(shape)

    def inside(self, shape: tuple[int, int]) -> View:
        """The nearest view that shows nothing outside `shape`."""
        rows, cols = min(self.rows, float(max(shape[0], 1))), min(self.cols, float(max(shape[1], 1)))
        row = min(max(self.row, 0.0), max(shape[0], 1) - rows)
        col = min(max(self.col, 0.0), max(shape[1], 1) - cols)
        return View(row=row, col=col, rows=rows, cols=cols)

    def showing(self, row: int, col: int, shape: tuple[int, int]) -> View:
        """Moved as little as it takes to have a whole cell in sight."""
        top = min(max(self.row, row + 1 - self.rows), float(row))
        left = min(max(self.col, col + 1 - self.cols), float(col))
        return View(row=top, col=left, rows=self.rows, cols=self.cols).inside(shape)

    def is_whole(self, shape: tuple[int, int]) -> bool:
        return self.rows >= shape[0] - 1e-9 and self.cols >= shape[1] - 1e-9

    def row_span(self, n_rows: int) -> tuple[int, int]:
        """Half-open range of the rows in sight."""
        return max(0, math.floor(self.row + 1e-9)), min(n_rows, math.ceil(self.row + self.rows - 1e-9))

    def col_span(self, n_cols: int) -> tuple[int, int]:
        """Half-open range of the columns in sight."""
        return max(0, math.floor(self.col + 1e-9)), min(n_cols, math.ceil(self.col + self.cols - 1e-9))


def fit_pitch(n_rows: int, n_cols: int, *, width: float, height: float, ratio: float, most: float) -> float:
    """Side of a square cell, px, with which n_rows × n_cols fit: whole device pixels from 3 on (`ratio`: device pixels
    a px), so that cells are of one size, at most `most`."""
    pitch = min(width / max(n_cols, 1), height / max(n_rows, 1), most)
    device = pitch * ratio
    return math.floor(device) / ratio if device >= 3 else max(pitch, 1e-6)
