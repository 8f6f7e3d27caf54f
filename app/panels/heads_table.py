"""The table twin of the grid of heads: every measure of every head, exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.panels.attention_copy import number, table_text
from app.panels.attention_words import METRICS
from app.widgets.heatmap_table import MatrixTable

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_table import Span

Floats = NDArray[np.float32]


def measure_titles() -> tuple[str, ...]:
    """The measures as titles of narrow columns, in their order."""
    return tr("entropy"), tr("first"), tr("previous"), tr("self"), tr("induction"), tr("distance")


class _Narrow(MatrixTable):
    COLUMN, NAMED = 52, 60


class HeadsTable(QWidget):
    """A head a row, a measure a column. `headClicked(layer, head)` by the user's hand; `backWanted`: the thumbnails
    again; `copied`: something is on the clipboard."""

    headClicked = Signal(int, int)
    backWanted = Signal()
    copied = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._values: Floats = np.zeros((0, len(METRICS)), dtype=np.float32)
        self._heads: tuple[tuple[int, int], ...] = ()
        self._names = measure_titles()
        self.table = _Narrow(theme, tr("Measures of the heads"))
        self.table.blocks.blockWanted.connect(self._give)
        self.table.cellClicked.connect(lambda row, _col: self.headClicked.emit(*self._heads[row]))
        self.table.copyWanted.connect(self._copy)
        back = QPushButton(tr("Back to the heads"))
        back.setProperty("compact", True)
        back.clicked.connect(self.backWanted)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.table, 1)
        column.addWidget(back, 0, Qt.AlignmentFlag.AlignLeft)
        self.setFocusProxy(self.table)

    def set_measures(self, arrays: Mapping[str, Floats], *, by: str = "") -> None:
        """(layers, heads) of each measure, by layer; `by`: by the largest magnitude of that one, as the grid sorts."""
        layers, heads = arrays[METRICS[0]].shape
        values = np.stack([np.asarray(arrays[name], np.float32).reshape(-1) for name in METRICS], axis=1)
        order = np.arange(layers * heads)
        if by in METRICS:
            sizes = np.abs(np.nan_to_num(values[:, METRICS.index(by)], nan=0.0))
            order = np.argsort(-sizes, kind="stable")
        known = tuple((int(at) // heads, int(at) % heads) for at in order)
        if known == self._heads and np.array_equal(values[order], self._values, equal_nan=True):
            return
        chosen = self.table.cell
        head = self._heads[chosen[0]] if chosen else None
        self._values, self._heads = values[order], known
        names = [f"L{layer} H{head}" for layer, head in known]
        self.table.blocks.set_matrix(self._values.shape, names, self._names, numbered=(False, False))
        if chosen is not None and head is not None:
            self.set_selected(*head, column=chosen[1])

    def set_selected(self, layer: int | None, head: int | None, *, column: int | None = None) -> None:
        """The chosen head's row is the current one; emits nothing."""
        if layer is not None and head is not None and (layer, head) in self._heads:
            row, now = self._heads.index((layer, head)), self.table.cell
            if now is None or now[0] != row:
                self.table.set_current(row, column if column is not None else now[1] if now else 0)

    # inside

    def _give(self, rows: Span, cols: Span) -> None:
        self.table.blocks.set_block(rows, cols, self._values[slice(*rows), slice(*cols)])

    def _copy(self, what: str) -> None:
        """A cell, its head's measures or those of all heads, all digits, tab-separated."""
        cell = self.table.cell
        if what != "matrix" and cell is None:
            return
        if what == "cell":
            text = number(float(self._values[cell]))
        else:
            rows = slice(None) if cell is None or what == "matrix" else slice(cell[0], cell[0] + 1)
            names = [f"L{layer} H{head}" for layer, head in self._heads[rows]]
            text = table_text(names, list(self._names), self._values[rows])
        QGuiApplication.clipboard().setText(text)
        self.copied.emit()
