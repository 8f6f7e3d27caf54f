"""The next token's candidates: rank, token, id, logit, raw and final probability, with a ghost and a solid bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractTableModel, QItemSelectionModel, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip
from app.widgets.table_style import CellDelegate, Index, Role, dress_table

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.values import Candidate

RANK, TOKEN, ID, BAR, LOGIT, RAW, FINAL = range(7)
NO_PARENT = QModelIndex()
_HEADERS = ("", "token", "id", "", "logit", "raw", "final")
_OPTIONAL = (LOGIT, ID)
"""Columns that give way, in this order, where the table is narrow."""


class CandidateModel(QAbstractTableModel):
    """Rows are candidates in the order given."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[Candidate, ...] = ()
        self._pick: int | None = None
        self._largest = 1.0

    def set_candidates(self, rows: Sequence[Candidate], pick: int | None) -> None:
        """`pick`: the id the step's draw falls on."""
        same_count = len(rows) == len(self._rows)
        if not same_count:
            self.beginResetModel()
        self._rows, self._pick = tuple(rows), pick
        self._largest = max((max(row.p_raw, row.p) for row in rows), default=1.0) or 1.0
        if not same_count:
            self.endResetModel()
        elif rows:  # none where the logits are NaN
            # A slider moves: keep selection and scroll position, only the figures are new.
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, FINAL))

    def candidate(self, row: int) -> Candidate:
        return self._rows[row]

    def row_of(self, token_id: int) -> int | None:
        return next((i for i, row in enumerate(self._rows) if row.id == token_id), None)

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(_HEADERS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return tr(_HEADERS[section]) if _HEADERS[section] else ""
        if role == Qt.ItemDataRole.TextAlignmentRole:
            left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            return left if section == TOKEN else Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self._rows[index.row()], index.column()
        out = row.p <= 0
        picked = row.id == self._pick
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignLeft if column == TOKEN else Qt.AlignmentFlag.AlignRight
        if role == Role.BARS and column == BAR:
            return ((row.p_raw / self._largest, "ghost"), (row.p / self._largest, "amber" if picked else "accent"))
        if role == Role.MONO:
            return column == TOKEN
        if role == Role.STRONG:
            return picked and column == TOKEN
        if role == Role.VOICE:
            if column in {RANK, ID, LOGIT} or (out and column == FINAL):
                return "secondary"
            return "amber" if picked and column in {TOKEN, FINAL} else "text"
        if role in {Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole}:
            text = tr(
                "{token}, rank {rank}, id {id}, logit {logit}, raw {raw}, final {final}",
                token=row.piece, rank=f"{row.rank + 1:,}", id=f"{row.id:,}", logit=f"{row.logit:.3f}",
                raw=f"{row.p_raw:.3g}", final=f"{row.p:.3g}",
            )  # fmt: skip
            return plain_tip(text) if role == Qt.ItemDataRole.ToolTipRole else text
        return None

    @staticmethod
    def _text(row: Candidate, column: int) -> str:
        texts = {RANK: f"{row.rank + 1:,}", TOKEN: row.piece, ID: f"{row.id}", LOGIT: f"{row.logit:.2f}"}
        return texts.get(column) or {RAW: probability(row.p_raw), FINAL: probability(row.p)}.get(column, "")


class CandidateTable(QTableView):
    """`candidateActivated`: double click or Enter on a row (branch there); `candidateSelected`: the row is current."""

    candidateActivated = Signal(int)
    candidateSelected = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = CandidateModel(self)
        self.setModel(self._model)
        self.setItemDelegate(CellDelegate(theme, self))
        dress_table(self, theme)
        self.setAccessibleName(tr("Candidates for the next token"))
        self.doubleClicked.connect(lambda index: self._activate(index.row()))
        self.selectionModel().currentRowChanged.connect(self._on_current)
        theme.changed.connect(self._fit_columns)
        self._fit_columns()

    def set_candidates(self, rows: Sequence[Candidate], would_pick: Candidate | None = None) -> None:
        """Candidates as they come, by raw rank; the one the draw falls on is amber."""
        self._model.set_candidates(rows, would_pick.id if would_pick else None)
        self._fit_columns()

    def candidate(self, row: int) -> Candidate:
        """The candidate shown in a row."""
        return self._model.candidate(row)

    def select_id(self, token_id: int) -> None:
        """Makes a token's row the current one and shows it; emits nothing."""
        row = self._model.row_of(token_id)
        if row is not None:
            blocked = self.blockSignals(True)
            index = self._model.index(row, TOKEN)
            self.selectionModel().setCurrentIndex(
                index, QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
            )
            self.blockSignals(blocked)
            self.scrollTo(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and self.currentIndex().isValid():
            self._activate(self.currentIndex().row())
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    def _activate(self, row: int) -> None:
        self.candidateActivated.emit(self._model.candidate(row).id)

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self.signalsBlocked():
            self.candidateSelected.emit(self._model.candidate(current.row()).id)

    def _fit_columns(self) -> None:
        """Figures get what they need, the bar at least 36 px, the token the rest up to what it needs."""
        header, metrics = self.horizontalHeader(), self.fontMetrics()
        table = self._theme.font("table")
        metrics = type(metrics)(table)
        digits = {RANK: "00", ID: "000000", LOGIT: "-00.00", RAW: "0.0000", FINAL: "0.0000"}
        if self._model.rowCount():
            digits[RANK] = f"{max(self._model.candidate(r).rank for r in range(self._model.rowCount())) + 1:,}"
        widths = {column: metrics.horizontalAdvance(text) + 10 for column, text in digits.items()}
        room = self.viewport().width()
        token_least, bar_least = self._theme.px(84), self._theme.px(36)
        hidden: set[int] = set()
        for column in _OPTIONAL:
            shown = sum(width for key, width in widths.items() if key not in hidden)
            if shown + token_least + bar_least > room:
                hidden.add(column)
        for column in _OPTIONAL:
            self.setColumnHidden(column, column in hidden)
        rest = room - sum(width for key, width in widths.items() if key not in hidden)
        widths[BAR] = max(bar_least, min(round(rest * 0.4), self._theme.px(110)))
        widths[TOKEN] = max(24, rest - widths[BAR])
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        for column, width in widths.items():
            header.resizeSection(column, width)


def probability(p: float) -> str:
    """Four significant places where they fit in six characters: 0.4321, 0.0012, 3e-07, 0."""
    if p == 0:
        return "0"
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.0e}"
