"""The next token's candidates: rank, token, id, logit, raw and final probability, with a ghost and a solid bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QTableView, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip
from app.widgets.table_style import NO_PARENT, CellDelegate, Index, Role, SheetModel, dress_table, fit_columns

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.values import Candidate

RANK, TOKEN, ID, BAR, LOGIT, RAW, FINAL = range(7)
_HEADERS = ("", "token", "id", "", "logit", "raw", "final")
_OPTIONAL = (LOGIT, ID, RAW)
"""Columns that give way, in this order, where the token has not enough room: their numbers are in the row's tip."""
TOKEN_LEAST = 104
"""Px at 100 % text: a dozen letters."""


class CandidateModel(SheetModel):
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

    def n_rows(self) -> int:
        return len(self._rows)

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(_HEADERS)  # asked for every cell: not by translating all titles

    def titles(self) -> tuple[str, ...]:
        return tuple(tr(header) if header else "" for header in _HEADERS)

    def side(self, column: int) -> Qt.AlignmentFlag:
        return Qt.AlignmentFlag.AlignLeft if column == TOKEN else Qt.AlignmentFlag.AlignRight

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = self._rows[index.row()], index.column()
        out = row.p <= 0
        picked = row.id == self._pick
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self.side(column)
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
        self._place: object = None
        self._model = CandidateModel(self)
        self.setModel(self._model)
        self.setItemDelegate(CellDelegate(theme, self))
        dress_table(self, theme)
        self.setAccessibleName(tr("Candidates for the next token"))
        self.doubleClicked.connect(lambda index: self._activate(index.row()))
        self.selectionModel().currentRowChanged.connect(self._on_current)
        theme.changed.connect(self._fit_columns)
        self._fit_columns()

    def set_candidates(
        self, rows: Sequence[Candidate], would_pick: Candidate | None = None, *, place: object = None
    ) -> None:
        """Candidates as they come, by raw rank; the one the draw falls on is amber. A row stays chosen only while it is
        the same token at the same `place`."""
        at = self.currentIndex().row()
        before = self._model.candidate(at).id if at >= 0 else None
        if before is not None and (place != self._place or at >= len(rows) or rows[at].id != before):
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        self._place = place
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
        elif event.key() in {Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Space}:
            event.ignore()  # run control's
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
        """Figures get what they need, the token at least a dozen letters, the bar some of what is left."""
        metrics = QFontMetrics(self._theme.font("table"))
        ranks = [self._model.candidate(row).rank for row in range(self._model.rowCount())]
        digits = {RANK: f"{max(ranks, default=9) + 1:,}", ID: "000000", LOGIT: "-00.00", RAW: "0.0000", FINAL: "0.0000"}
        widths = {column: metrics.horizontalAdvance(text) + 10 for column, text in digits.items()}
        widths[BAR] = self._theme.px(28)
        least = self._theme.px(TOKEN_LEAST)
        hidden = fit_columns(self, widths, flexible=TOKEN, least=least, giving_way=_OPTIONAL)
        if len(hidden) == len(_OPTIONAL) and self.columnWidth(TOKEN) < least:
            widths[BAR] = self._theme.px(20)
            fit_columns(self, widths, flexible=TOKEN, least=least, giving_way=_OPTIONAL)
        spare = self.columnWidth(TOKEN) - least
        if spare > 0:
            widths[BAR] += min(round(spare * 0.6), self._theme.px(82))
            fit_columns(self, widths, flexible=TOKEN, least=least, giving_way=[c for c in _OPTIONAL if c in hidden])


def probability(p: float) -> str:
    """Four significant places where they fit in six characters: 0.4321, 0.0012, 3e-07, 0."""
    if p == 0:
        return "0"
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.0e}"
