"""Tokens with a value each, largest first: what a query reads, or who reads a key."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QTableView, QWidget

from app.i18n import tr
from app.widgets.sign_colours import SIGNS
from app.widgets.table_style import CellDelegate, Look, SheetModel, dress_table, fit_columns
from app.widgets.ticks import figure

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent

    from app.theme import Theme

POSITION, TOKEN, BAR, VALUE = range(4)
LEAST_BAR, READ = 24, 8
"""Px of the shortest bar; letters of a token that are read before there is a bar."""
PADDING = 3
WITH_POINT = 100.0
"""Values from there on are shown by their figures alone."""
MEASURED = 16
"""Of the pieces so many, the longest, are measured for the width of their column."""


class BarModel(SheetModel):
    """Positions sorted by value, NaN (hidden by the mask) left out."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pieces: Sequence[str] = ()
        self._values: NDArray[np.float32] = np.empty(0, dtype=np.float32)
        self._order: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._largest = 1.0
        self.signed = False
        self._first_decode: int | None = None
        self.value_name = ""
        self.ranked = False
        self.long_pieces: list[str] = []

    def set_values(self, pieces: Sequence[str], values: NDArray[np.float32], first_decode: int | None) -> None:
        self.beginResetModel()
        self._pieces, self._values, self._first_decode = pieces, values, first_decode
        # Of all pieces, not of those that are seen: the columns stay where they are from one query to the next.
        self.long_pieces = heapq.nlargest(MEASURED, set(pieces), key=lambda piece: len(piece.encode()))
        seen = np.flatnonzero(~np.isnan(values))
        self._order = seen[np.argsort(-values[seen], kind="stable")]
        self._largest = float(np.abs(values[seen]).max(initial=0.0)) or 1.0
        self.endResetModel()

    def position(self, row: int) -> int:
        return int(self._order[row])

    def longest_number(self) -> str:
        """A position or rank as wide as any, in zeros."""
        return re.sub(r"\d", "0", f"{max(len(self._values), 10):,}")

    def n_rows(self) -> int:
        return len(self._order)

    def titles(self) -> tuple[str, ...]:
        return (tr("rank") if self.ranked else tr("pos"), tr("token"), "", self.value_name)

    def side(self, column: int) -> Qt.AlignmentFlag:
        return Qt.AlignmentFlag.AlignLeft if column == TOKEN else Qt.AlignmentFlag.AlignRight

    def look(self, row: int, column: int) -> Look:
        position = self.position(row)
        if column == TOKEN:
            generated = self._first_decode is not None and position >= self._first_decode
            return Look(self._piece(position), "amber" if generated else "text", mono=True)
        if column == POSITION:
            return Look(f"{row + 1 if self.ranked else position:,}", "secondary")
        value = float(self._values[position])
        if column == BAR:
            return Look(bars=((abs(value) / self._largest, SIGNS[value < 0] if self.signed else "accent"),))
        return Look(aligned(value, self._largest))

    def widest_value(self) -> str:
        """A value as wide as any, in zeros."""
        return "0.00e-00" if self._largest >= WITH_POINT else "-0.0000" if self.signed else "0.0000"

    def tip(self, row: int, column: int) -> str:
        return self.spoken(row, column)

    def spoken(self, row: int, _column: int) -> str:
        position = self.position(row)
        piece, value = self._piece(position), figure(float(self._values[position]))
        if self.ranked:
            return tr("{token}, rank {rank}, {value}", token=piece, rank=row + 1, value=value)
        return tr("{token}, position {position}, {value}", token=piece, position=position, value=value)

    def _piece(self, position: int) -> str:
        return self._pieces[position] if position < len(self._pieces) else ""


def aligned(value: float, largest: float) -> str:
    """A value so that the decimal points of a column stand one under the other, where the largest one has a point; one
    that would be no more than zeros by its power of ten."""
    if largest >= WITH_POINT:
        return figure(value, 3)
    decimals = 4 if largest <= 1 else 3 if largest < 10 else 2
    return f"{value:.0e}" if 0 < abs(value) < 0.5 * 10.0**-decimals else f"{value:.{decimals}f}"


class BarTable(QTableView):
    """`positionHovered` (-1: none), `positionClicked` by click, Enter or Space."""

    positionHovered = Signal(int)
    positionClicked = Signal(int)

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = BarModel(self)
        self.setModel(self._model)
        self.setItemDelegate(CellDelegate(theme, self, padding=PADDING))
        dress_table(self, theme)
        self.setAccessibleName(label)
        self.clicked.connect(lambda index: self.positionClicked.emit(self._model.position(index.row())))
        self.entered.connect(lambda index: self.positionHovered.emit(self._model.position(index.row())))
        theme.changed.connect(self._fit_columns)

    def set_values(
        self,
        pieces: Sequence[str],
        values: NDArray[np.float32],
        *,
        name: str = "",
        first_decode: int | None = None,
        ranked: bool = False,
        signed: bool = False,
    ) -> None:
        """`values`: one a position, NaN where masked; `name`: what they are. `ranked`: tokens of no position, counted
        from 1, largest first. `signed`: bars have the colours of their sign, as they have where a value is negative."""
        self._model.value_name, self._model.ranked = name, ranked
        self._model.signed = signed or bool(np.nanmin(values, initial=0.0) < 0)
        self._model.set_values(pieces, values, first_decode)
        self._fit_columns()
        self.scrollToTop()

    def leaveEvent(self, event: QEvent) -> None:
        self.positionHovered.emit(-1)
        super().leaveEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if not self.indexAt(event.position().toPoint()).isValid():
            self.positionHovered.emit(-1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        chosen = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}
        if chosen and self.currentIndex().isValid():
            self.positionClicked.emit(self._model.position(self.currentIndex().row()))
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_columns(self) -> None:
        metrics = QFontMetricsF(self._theme.font("table"))
        titles = QFontMetricsF(self._theme.font("hint"))
        heading, _, _, name = self._model.titles()
        number = max(metrics.horizontalAdvance(self._model.longest_number()), titles.horizontalAdvance(heading))
        position = round(number + 2 * PADDING + 2)
        shown = max(metrics.horizontalAdvance(self._model.widest_value()), titles.horizontalAdvance(name))
        value = math.ceil(shown + 2 * PADDING + 2)
        rest = max(40, self.viewport().width() - position - value)
        mono = QFontMetricsF(self._theme.font("mono"))
        widest = max((mono.horizontalAdvance(piece) for piece in self._model.long_pieces), default=0.0)
        token = math.ceil(widest) + 2 * PADDING + 2
        # A bar begins right behind its token. Where it is tight the bars give way first: a token cut short is not read,
        # a short bar is.
        if token > rest - LEAST_BAR and rest - LEAST_BAR < mono.horizontalAdvance("0" * READ):
            # Of a few letters a bar leaves less than is read, and the figures say what it would.
            fit_columns(self, {POSITION: position, BAR: rest, VALUE: value}, flexible=TOKEN, least=rest,
                        giving_way=[BAR])  # fmt: skip
            return
        token = min(token, rest - LEAST_BAR)
        fit_columns(self, {POSITION: position, TOKEN: token, VALUE: value}, flexible=BAR, least=rest - token)
