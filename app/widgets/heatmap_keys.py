"""Where a key moves the chosen cell of a matrix, row 0 at the top; the same for everything that has cells."""

from __future__ import annotations

from PySide6.QtCore import Qt

Cell = tuple[int, int]
Key = Qt.Key


def cell_after(key: Qt.Key, cell: Cell, shape: Cell, *, control: bool, page: int) -> Cell | None:
    """The cell that arrows, Home, End, Page keys (`page` rows) and with `control` the corners' keys lead to from
    `cell`, inside `shape`; None: another key."""
    (row, col), (rows, cols) = cell, shape
    moves = {
        Key.Key_Up: (row - 1, col), Key.Key_Down: (row + 1, col), Key.Key_Left: (row, col - 1),
        Key.Key_Right: (row, col + 1), Key.Key_PageUp: (row - page, col), Key.Key_PageDown: (row + page, col),
        Key.Key_Home: (0, 0) if control else (row, 0),
        Key.Key_End: (rows - 1, cols - 1) if control else (row, cols - 1),
    }  # fmt: skip
    if key not in moves or (control and key not in {Key.Key_Home, Key.Key_End}):
        return None
    return min(max(moves[key][0], 0), rows - 1), min(max(moves[key][1], 0), cols - 1)
