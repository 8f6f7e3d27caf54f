"""The steps of the run as a table: token, probability, entropy, time; steps ahead of the current one are dimmed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem, QTableView, QWidget

from app.i18n import tr
from app.widgets.candidate_table import probability
from app.widgets.table_style import (
    NO_PARENT,
    CellDelegate,
    Index,
    Look,
    SheetModel,
    dress_table,
    fit_columns,
    whole_rows,
)

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent

    from app.theme import Theme

STEP, TOKEN, P, ENTROPY, MS = range(5)
HEADER, LOW_HEADER, ROW = 22, 15, 19
PADDING = 3
TOKEN_LEAST = 50
"""Px at 100 % text, six letters, the token has before the entropy, which the curve shows too, gives way."""
TOKEN_MOST = 160
"""Px at 100 % text from which on the token keeps no figure away from it."""
_HEADERS = ("step", "token", "p", "entropy", "ms")
_RUN_KEYS = frozenset({Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Space, Qt.Key.Key_Home, Qt.Key.Key_End})


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """One step; `step` 0 is the prefill block. `ahead`: after the current node."""

    node: int
    step: int
    piece: str
    p: float | None
    entropy: float | None
    ms: float
    forced: bool = False
    ahead: bool = False


class StepModel(SheetModel):
    """Rows in order, prefill first."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: tuple[StepRow, ...] = ()

    def set_rows(self, rows: Sequence[StepRow]) -> None:
        """Appends where the new rows begin with the old ones, so that a growing table keeps its place."""
        old, new = self.rows, tuple(rows)
        if len(new) > len(old) and new[: len(old)] == old:
            self.beginInsertRows(NO_PARENT, len(old), len(new) - 1)
            self.rows = new
            self.endInsertRows()
        elif new != old:
            self.beginResetModel()
            self.rows = new
            self.endResetModel()

    def n_rows(self) -> int:
        return len(self.rows)

    def titles(self) -> tuple[str, ...]:
        return tuple(tr(header) for header in _HEADERS)

    def side(self, column: int) -> Qt.AlignmentFlag:
        return Qt.AlignmentFlag.AlignLeft if column == TOKEN else Qt.AlignmentFlag.AlignRight

    def look(self, row: int, column: int) -> Look:
        step = self.rows[row]
        if step.ahead or column == STEP:
            voice = "secondary"
        elif column == TOKEN:
            voice = "amber" if step.step else "green"
        else:
            voice = "text"
        return Look(_text(step, column), voice, mono=column == TOKEN and step.step > 0)

    def tip(self, row: int, column: int) -> str:
        return self.spoken(row, column)

    def spoken(self, row: int, _column: int) -> str:
        step = self.rows[row]
        chosen = " " + tr("(*: chosen by hand)") if step.forced else ""
        return f"{tr('step')} {step.step}: {step.piece}{chosen}"


def _text(row: StepRow, column: int) -> str:
    if column == STEP:
        return f"{row.step:,}" if row.step else ""
    if column == TOKEN:
        return f"{row.piece} *" if row.forced else row.piece
    if column == P:
        return "" if row.p is None else probability(row.p, 3)  # as Sampling says it
    if column == ENTROPY:
        return "" if row.entropy is None else f"{row.entropy:.2f}"
    if row.ms <= 0:
        return "–"  # a prefill in visible chunks is measured when it has ended
    return f"{row.ms:,.0f}" if row.ms >= 9.5 else f"{row.ms:.1f}"


class _StepDelegate(CellDelegate):
    """Lights the whole row of the step that is pointed at here or elsewhere."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        table = self.parent()
        assert isinstance(table, StepTable)
        if index.row() == table.hovered:
            option.state |= QStyle.StateFlag.State_MouseOver
        super().paint(painter, option, index)


class StepTable(QTableView):
    """`stepChosen` carries a node id, by click or by the Up and Down keys; run control has the other arrows.
    `stepHovered`: the step of the row the mouse is over, 0 for the prefill, -1 for none."""

    stepChosen = Signal(int)
    stepHovered = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = StepModel(self)
        self.setModel(self._model)
        self.setItemDelegate(_StepDelegate(theme, self, padding=PADDING))
        self._header = HEADER
        self.hovered: int | None = None
        dress_table(self, theme, fills=False)
        self.setVerticalScrollMode(QTableView.ScrollMode.ScrollPerItem)  # a row is never half seen under the header
        self.setAccessibleName(tr("Steps"))
        self.clicked.connect(lambda index: self._choose(index.row()))
        self.entered.connect(lambda index: self.stepHovered.emit(self._model.rows[index.row()].step))
        theme.changed.connect(self._fit)
        self._fit()

    def set_rows(self, rows: Sequence[StepRow], current: int) -> None:
        """Shows the steps; `current` is the node of the chosen one. Emits nothing."""
        self._model.set_rows(rows)
        self._fit()
        self.clearSpans()
        if rows and rows[0].step == 0:  # the prefill block has no p and no entropy: its words take their room
            self.setSpan(0, TOKEN, 1, ENTROPY - TOKEN + 1)
        at = next((i for i, row in enumerate(rows) if row.node == current), -1)
        if at >= 0 and at != self.currentIndex().row():
            self.executeDelayedItemsLayout()  # else the scroll bar ends where the rows ended before these came
            self.selectRow(at)
            self.scrollTo(self._model.index(at, STEP))

    def set_low(self, *, low: bool) -> None:
        """Whether the titles have no more room than they need."""
        header = LOW_HEADER if low else HEADER
        if header != self._header:
            self._header = header
            self._fit()

    def set_hovered(self, step: int | None) -> None:
        """The step whose token is pointed at, here or elsewhere; its row is lit. Emits nothing."""
        row = next((i for i, row in enumerate(self._model.rows) if row.step == step), None)
        if row != self.hovered:
            self.hovered = row
            self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _RUN_KEYS:
            event.ignore()
            return
        before = self.currentIndex().row()
        super().keyPressEvent(event)
        if self.currentIndex().row() != before:
            self._choose(self.currentIndex().row())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if not self.indexAt(event.position().toPoint()).isValid():
            self.stepHovered.emit(-1)

    def leaveEvent(self, event: QEvent) -> None:
        self.stepHovered.emit(-1)
        super().leaveEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        at, before = self.currentIndex(), event.oldSize().height()
        # Where a person has scrolled away from it, it stays out of sight.
        kept = at.isValid() and (before <= 0 or -1 < self.rowViewportPosition(at.row()) < before)
        super().resizeEvent(event)
        self._fit()
        if kept:
            self.scrollTo(at)

    def _choose(self, row: int) -> None:
        if 0 <= row < len(self._model.rows):
            self.stepChosen.emit(self._model.rows[row].node)

    def _fit(self) -> None:
        self.setMinimumHeight(self._theme.px(self._header + 2 * ROW))
        whole_rows(self, header=self._theme.px(self._header), row=self._theme.px(ROW))
        metrics, hint = QFontMetrics(self._theme.font("table")), QFontMetrics(self._theme.font("hint"))
        rows = self._model.rows
        slowest = max((_text(row, MS) for row in rows), key=len, default="")
        least = min((row.p for row in rows if row.p), default=1.0)
        samples = {
            STEP: ("000", f"{max((row.step for row in rows), default=0):,}"),
            P: ("0.000", probability(least, 3)),
            ENTROPY: ("0.00", f"{max((row.entropy or 0.0 for row in rows), default=0.0):.2f}"),
            MS: ("000", slowest),
        }
        widths = {
            column: max(
                max(map(metrics.horizontalAdvance, texts)) + 2 * PADDING + 1,
                hint.horizontalAdvance(tr(_HEADERS[column])) + 9,
            )
            for column, texts in samples.items()
        }
        fit_columns(
            self,
            widths,
            flexible=TOKEN,
            least=self._theme.px(TOKEN_LEAST),
            giving_way=(ENTROPY,),
            most=self._theme.px(TOKEN_MOST),
        )
