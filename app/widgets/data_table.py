"""A table of a few columns of figures, some with bars; rows link to whatever they stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QModelIndex, QObject, QRect, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from app.widgets.table_style import CellDelegate, Look, SheetModel, dress_table

if TYPE_CHECKING:
    from app.theme import Theme

LEAST_BAR, MOST_BAR = 20, 140
"""Px of bars, at most at 100 % text."""
LEAST_PADDING = 11
"""Px at both sides of a column's widest text: those of the cells, and one for what is rounded."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """`gives_way`: hidden where not all columns have room, as bars are. `texts`: one a row; or `bars`: shares -1 … 1,
    positive in the first of `colours`, negative in the second and at the other side of a line. `left`: text is aligned
    left, in the font of tokens where `mono`."""

    name: str
    texts: Sequence[str] = ()
    bars: NDArray[np.float32] | None = None
    colours: tuple[str, str] = ("accent", "amber")
    left: bool = False
    mono: bool = False
    voice: str = "text"
    gives_way: bool = False

    @cached_property
    def below(self) -> float:
        """How far bars go below zero."""
        return 0.0 if self.bars is None else max(0.0, -float(np.nanmin(self.bars, initial=0.0)))

    @cached_property
    def above(self) -> float:
        """How far they go above it; 1 where all are positive, as they are then shares of the column."""
        found = 0.0 if self.bars is None else float(np.nanmax(self.bars, initial=0.0))
        return found if self.below else 1.0


class DataModel(SheetModel):
    """Columns of equal length. `strong` rows are bold."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns: tuple[Column, ...] = ()
        self.count = 0
        self.strong: frozenset[int] = frozenset()

    def set_columns(self, columns: Sequence[Column], strong: frozenset[int]) -> None:
        self.beginResetModel()
        self.columns, self.strong = tuple(columns), strong
        self.count = max((len(column.texts) for column in columns), default=0)
        self.endResetModel()

    def n_rows(self) -> int:
        return self.count

    def titles(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def side(self, column: int) -> Qt.AlignmentFlag:
        return Qt.AlignmentFlag.AlignLeft if self.columns[column].left else Qt.AlignmentFlag.AlignRight

    def look(self, row: int, column: int) -> Look:
        shown = self.columns[column]
        if shown.bars is not None:
            share, span = float(shown.bars[row]), shown.below + shown.above
            return Look(bars=((share / span, shown.colours[share < 0]),), zero=shown.below / span)
        text = shown.texts[row] if row < len(shown.texts) else ""
        return Look(text, shown.voice, shown.mono, row in self.strong)

    def spoken(self, row: int, _column: int) -> str:
        return ", ".join(f"{c.name} {c.texts[row]}" for c in self.columns if c.bars is None and row < len(c.texts))


class DataTable(QTableView):
    """`rowHovered` (-1: none); `rowChosen` by click or by the keys that move. Ctrl+C copies the table."""

    rowHovered = Signal(int)
    rowChosen = Signal(int)

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = DataModel(self)
        self._quiet = False
        self.setModel(self._model)
        self.setItemDelegate(CellDelegate(theme, self))
        dress_table(self, theme)
        self.setAccessibleName(label)
        self.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerItem)
        self.selectionModel().currentRowChanged.connect(self._on_current)
        self.entered.connect(lambda index: self.rowHovered.emit(index.row()))
        theme.changed.connect(self._fit)

    def set_columns(self, columns: Sequence[Column], *, strong: frozenset[int] = frozenset()) -> None:
        """Replaces everything; emits nothing."""
        self._quiet = True
        self._model.set_columns(columns, strong)
        self._quiet = False
        self._fit()

    def set_current(self, row: int | None) -> None:
        """Shows a row as the chosen one; emits nothing."""
        if row == self.currentIndex().row() or (row is not None and not 0 <= row < self._model.count):
            return
        self._quiet = True
        if row is None:
            self.setCurrentIndex(QModelIndex())
            self.clearSelection()
        else:
            self.selectRow(row)
            self.scrollTo(self._model.index(row, 0))
        self._quiet = False

    def as_text(self) -> str:
        """Tab-separated, with the names first."""
        columns = [column for column in self._model.columns if column.bars is None]
        lines = ["\t".join(column.name for column in columns)]
        lines += ["\t".join(column.texts[row] for column in columns) for row in range(self._model.count)]
        return "\n".join(lines)

    def leaveEvent(self, event: QEvent) -> None:
        self.rowHovered.emit(-1)
        super().leaveEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if not self.indexAt(event.position().toPoint()).isValid():
            self.rowHovered.emit(-1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.as_text())
        elif event.key() in {Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Space} or event.text().strip():
            event.ignore()  # run control's, and letters are the window's
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The chosen row is marked to the table's end, which its columns need not reach."""
        row, end = self.currentIndex().row(), self.horizontalHeader().length() - self.horizontalScrollBar().value()
        if row >= 0 and self.selectionModel().isRowSelected(row) and end < self.viewport().width():
            painter, rows = QPainter(self.viewport()), self.verticalHeader()
            rest = QRect(end, rows.sectionViewportPosition(row), self.viewport().width() - end, rows.sectionSize(row))
            painter.fillRect(rest, self._theme.palette.accent_tint)
            painter.end()
        super().paintEvent(event)

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self._quiet:
            self.rowChosen.emit(current.row())

    def _fit(self) -> None:
        """Text columns as wide as they need; bars share what is left."""
        columns, header = self._model.columns, self.horizontalHeader()
        if not columns:
            return
        hint, fonts = QFontMetricsF(self._theme.font("hint")), {}
        for mono in (False, True):
            fonts[mono] = QFontMetricsF(self._theme.font("mono" if mono else "table", bold=bool(self._model.strong)))
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        widths = []
        for column in columns:
            most = max(map(len, column.texts), default=0) if column.bars is None else 0
            texts = {text for text in column.texts if len(text) >= most - 1} if most else set()
            widest = max((fonts[column.mono].horizontalAdvance(text) for text in texts), default=0.0)
            widths.append(math.ceil(max(widest, hint.horizontalAdvance(column.name)) + LEAST_PADDING))
        room = self.viewport().width()
        bars = [i for i, column in enumerate(columns) if column.bars is not None]
        for i in bars:
            widths[i] = LEAST_BAR
        for i, column in enumerate(columns):
            # A bar cut at the edge is as long as any other: without room there is none.
            gone = (column.gives_way or i in bars) and sum(widths) > room
            self.setColumnHidden(i, gone)
            widths[i] = 0 if gone else widths[i]
        bars = [i for i in bars if widths[i]]
        for i in bars:
            widths[i] += max(0, min((room - sum(widths)) // len(bars), self._theme.px(MOST_BAR) - widths[i]))
        spare = room - sum(widths)
        # A figure cut at its end is another figure: where not all fit, the table scrolls sideways.
        way = Qt.ScrollBarPolicy.ScrollBarAsNeeded if spare < 0 else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if way != self.horizontalScrollBarPolicy():
            self.setHorizontalScrollBarPolicy(way)
        if spare > 0:
            # What is left over goes between the columns evenly, so that they are read together.
            widths = [w and w + min(spare // len(widths), self._theme.px(24)) for w in widths]
        for section, width in enumerate(widths):
            if width:
                header.resizeSection(section, width)
