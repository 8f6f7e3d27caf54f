"""The next token's candidates: rank, token, id, logit, raw and final probability, with a ghost and a solid bar."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLineEdit, QTableView, QWidget

from app.i18n import tr
from app.widgets.swatch_header import SwatchHeader
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
from app.widgets.tick_menu import TickMenu

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.values import Candidate

RANK, TOKEN, ID, BAR, LOGIT, RAW, FINAL = range(7)
_HEADERS = ("", "", "id", "", "logit", "raw", "final")
_OPTIONAL = (LOGIT, RAW, ID)
_GOING = ((), (LOGIT,), (LOGIT, RAW), _OPTIONAL, (RANK, *_OPTIONAL))
"""Columns that give way, ever more of them, where the shortest bar and token need the room: their numbers are in the
row's tip."""
BAR_LEAST, BAR_TIGHT, BAR_STUB, BAR_BRIEF = 52, 40, 32, 20
TOKEN_LEAST, TOKEN_TIGHT, TOKEN_BRIEF = 92, 78, 58
"""Px at 100 % text: a dozen letters, ten, and seven."""
TOKEN_MOST = 200
"""What it has where there is room for more: that is the bar's."""
CHOSEN = {"id": ID, "logit": LOGIT, "raw": RAW}
"""Columns that a person can keep in sight, by the names they are remembered under."""
PADDING = 3
HEADER, ROW = 26, 20


_SIZES = (
    (4, BAR_LEAST, TOKEN_LEAST), (3, BAR_LEAST, TOKEN_LEAST), (3, BAR_TIGHT, TOKEN_LEAST), (3, BAR_STUB, TOKEN_LEAST),
    (3, BAR_STUB, TOKEN_TIGHT), (3, BAR_BRIEF, TOKEN_TIGHT), (3, BAR_BRIEF, TOKEN_BRIEF),
)  # fmt: skip
_FORMS = tuple(
    (decimals, gone, bar, token, led)
    for gone in _GOING
    for led in ((True, False) if len(gone) < 2 else (True,))
    for decimals, bar, token in (_SIZES if led else ((3, 0, TOKEN_TIGHT),))
)
"""Decimals, columns that give way, the bar's px, the token's, whether figures have their 0 before the point: the first
form with room for the token is taken. Every column before a long bar and a whole token; the raw figure too, before that
0, when bars lie under the figures: of a token that is looked for it is often the only one that is not 0."""


class CandidateModel(SheetModel):
    """Rows are candidates in the order given."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[Candidate, ...] = ()
        self._pick: int | None = None
        self._largest = 1.0
        self.decimals = 4
        self.logit_decimals = 1
        self.led = True
        self.even = False
        """Whether figures without their 0 are all as long: one token has all that is left, and the raw figures, which
        say more than the final ones then, stay."""

    def set_candidates(self, rows: Sequence[Candidate], pick: int | None, among: Sequence[Candidate] = ()) -> None:
        """`pick`: the id the step's draw falls on. Bars are as long as among all of `among`."""
        if len(rows) != len(self._rows):
            self.beginResetModel()
            self._take(rows, pick, among)
            self.endResetModel()
            return
        before = self._columns()
        self._take(rows, pick, among)
        # A slider moves: selection and scroll position stay, and columns that say the same are not painted again.
        for column, (was, looks) in enumerate(zip(before, self._columns(), strict=True)):
            if was != looks:
                self.dataChanged.emit(self.index(0, column), self.index(len(rows) - 1, column))

    def _take(self, rows: Sequence[Candidate], pick: int | None, among: Sequence[Candidate]) -> None:
        self._rows, self._pick = tuple(rows), pick
        self._largest = max((max(row.p_raw, row.p) for row in (*rows, *among)), default=1.0) or 1.0

    def _columns(self) -> list[list[Look]]:
        return [[self.look(row, column) for row in range(len(self._rows))] for column in range(len(_HEADERS))]

    def candidate(self, row: int) -> Candidate:
        return self._rows[row]

    @property
    def pick_row(self) -> int | None:
        """The row of the token the draw falls on, if it has one."""
        return None if self._pick is None else self.row_of(self._pick)

    def row_of(self, token_id: int) -> int | None:
        return next((i for i, row in enumerate(self._rows) if row.id == token_id), None)

    def n_rows(self) -> int:
        return len(self._rows)

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(_HEADERS)  # asked for every cell: not by translating all titles

    def titles(self) -> tuple[str, ...]:
        return tuple(tr(name) if name else "" for name in _HEADERS)

    def side(self, column: int) -> Qt.AlignmentFlag:
        return Qt.AlignmentFlag.AlignLeft if column == TOKEN else Qt.AlignmentFlag.AlignRight

    def look(self, row: int, column: int) -> Look:
        candidate = self._rows[row]
        picked = candidate.id == self._pick
        if column == TOKEN:
            return Look(candidate.piece, "amber" if picked else "text", mono=True, strong=picked)
        if column == BAR:
            raw, final = candidate.p_raw / self._largest, candidate.p / self._largest
            return Look(bars=((raw, "ghost"), (final, "amber" if picked else "accent")))
        if column == FINAL:
            voice = "secondary" if candidate.p <= 0 else "amber" if picked else "text"
            under = None if self.led else (candidate.p / self._largest, "amber" if picked else "accent")
            return Look(self.figure(candidate.p), voice, under=under)
        if column == RAW:
            under = None if self.led else (candidate.p_raw / self._largest, "ghost")
            return Look(self.figure(candidate.p_raw), under=under)
        if column == RANK:
            return Look(f"{candidate.rank + 1:,}", "secondary")
        if column == LOGIT:
            return Look(f"{candidate.logit:.{self.logit_decimals}f}", "secondary")
        return Look(f"{candidate.id}", "secondary")

    def figure(self, p: float) -> str:
        """A probability as it is written now."""
        return probability(p, self.decimals, led=self.led, even=self.even)

    def tip(self, row: int, column: int) -> str:
        return self.spoken(row, column)

    def spoken(self, row: int, _column: int) -> str:
        candidate = self._rows[row]
        return tr(
            "{token}, rank {rank}, id {id}, logit {logit}, raw {raw}, final {final}",
            token=candidate.piece, rank=f"{candidate.rank + 1:,}", id=f"{candidate.id:,}",
            logit=f"{candidate.logit:.3f}", raw=f"{candidate.p_raw:.3g}", final=f"{candidate.p:.3g}",
        )  # fmt: skip


class CandidateTable(QTableView):
    """`candidateActivated`: double click or Enter on a row (branch there); `candidateSelected`: the row is current;
    `keptChanged`: the names (a tuple of `CHOSEN`'s) of the columns that were chosen to stay in sight."""

    candidateActivated = Signal(int)
    candidateSelected = Signal(int)
    keptChanged = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._place: object = None
        self._moved: int | None = None
        self._kept: frozenset[int] = frozenset()
        self._model = CandidateModel(self)
        self.setModel(self._model)
        self.setItemDelegate(CellDelegate(theme, self, padding=PADDING, flowing=TOKEN))
        self.setHorizontalHeader(SwatchHeader(theme, {RAW: "ghost", FINAL: "accent"}, self))
        dress_table(self, theme, fills=False)
        self.setVerticalScrollMode(QTableView.ScrollMode.ScrollPerItem)
        self.setAccessibleName(tr("Candidates for the next token"))
        self.search = QLineEdit(self.horizontalHeader())
        self.search.setPlaceholderText(tr("Find token or id"))
        self.search.setAccessibleName(tr("Find any token or id"))
        self.search.setToolTip(tr("Find any token or id"))
        self.search.setClearButtonEnabled(True)
        self.doubleClicked.connect(lambda index: self._activate(index.row()))
        self.selectionModel().currentRowChanged.connect(self._on_current)
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_candidates(
        self, rows: Sequence[Candidate], would_pick: Candidate | None = None, *, place: object = None,
        among: Sequence[Candidate] = (),
    ) -> None:  # fmt: skip
        """Candidates as they come, by raw rank, or what was found beside those, which are `among` then; the one the
        draw falls on is amber, and the last in sight where its rank would put it below. A row stays chosen only while
        it is the same token at the same `place`."""
        at = self.currentIndex().row()
        before = self._model.candidate(at).id if at >= 0 else None
        if before is not None and (place != self._place or at >= len(rows) or rows[at].id != before):
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        self._place = place
        self._model.set_candidates(rows, would_pick.id if would_pick else None, among)
        self._fit_columns()

    def keep_columns(self, names: Iterable[object]) -> None:
        """Columns that give way to no other; emits nothing. Names that there are not are left out."""
        self._kept = frozenset(CHOSEN[name] for name in names if isinstance(name, str) and name in CHOSEN)
        self._fit_columns()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.columns_menu().popup(event.globalPos())

    def columns_menu(self) -> TickMenu:
        """Which columns stay in sight where not all have room."""
        menu = TickMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for name, column in CHOSEN.items():
            action = menu.addAction(tr("Keep {column} in sight", column=tr(name)))
            action.setCheckable(True)
            action.setChecked(column in self._kept)
            action.toggled.connect(lambda on, column=column: self._keep(column, on=on))
        return menu

    def _keep(self, column: int, *, on: bool) -> None:
        self._kept = self._kept | {column} if on else self._kept - {column}
        self._fit_columns()
        self.keptChanged.emit(tuple(name for name, kept in CHOSEN.items() if kept in self._kept))

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

    def _restyle(self) -> None:
        """Rows a little lower than elsewhere, under a header that holds the box that finds."""
        theme = self._theme
        self.setMinimumHeight(theme.px(HEADER + 4 * ROW))
        size = theme.font("hint").pixelSize()
        self.search.setStyleSheet(f"min-height: 0; padding: 0 4px; font-size: {size}px;")
        self._fit_columns()

    def _fit_columns(self) -> None:
        """Figures get what they need, the token at least seven letters, the bar some of what is left. Figures of
        three decimals, short bars and cut tokens before a column goes."""
        theme = self._theme
        metrics = QFontMetrics(theme.font("table"))
        rows = [self._model.candidate(row) for row in range(self._model.rowCount())]
        ranks, ids = (max((getattr(row, name) for row in rows), default=0) for name in ("rank", "id"))
        logits = logit_decimals(max((abs(row.logit) for row in rows), default=0.0))
        room, sure = self.viewport().width(), any(row.p == 1 for row in rows)

        def needed(decimals: int, bar: int, *, led: bool) -> dict[int, int]:
            digits = {RANK: f"{ranks + 1:,}", ID: max("00000", str(ids), key=len)}
            widths = {column: metrics.horizontalAdvance(text) + 2 * PADDING for column, text in digits.items()}
            # The first of each is what it is at least, so that columns stay where they are while a slider moves.
            none, even = ("0." if led else ".") + "0" * decimals, sure and not led
            shown = {
                LOGIT: {"00.0", *(f"{row.logit:.{logits}f}" for row in rows)},
                RAW: {none, *(probability(row.p_raw, decimals, led=led, even=even) for row in rows)},
                FINAL: {none, *(probability(row.p, decimals, led=led, even=even) for row in rows)},
            }
            for column, texts in shown.items():
                widths[column] = max(metrics.horizontalAdvance(text) for text in texts) + 2 * PADDING
            return widths | ({BAR: bar} if bar else {})

        for decimals, unkept, bar, token, led in _FORMS:
            least, giving_way = theme.px(token), tuple(column for column in unkept if column not in self._kept)
            widths = needed(decimals, theme.px(bar), led=led)
            kept = sum(width for column, width in widths.items() if column not in giving_way)
            if room - kept >= least:
                break
        model = self._model
        form = decimals, logits, led, sure and not led
        if form != (model.decimals, model.logit_decimals, model.led, model.even):
            model.decimals, model.logit_decimals, model.led, model.even = form
            self.viewport().update()
        hidden = fit_columns(self, widths, flexible=TOKEN, least=least, giving_way=giving_way)
        self.setColumnHidden(BAR, BAR not in widths)
        spare = self.columnWidth(TOKEN) - max(least, theme.px(TOKEN_TIGHT))
        if spare > 0 and led:
            wide = self.columnWidth(TOKEN) - theme.px(TOKEN_MOST)  # what no token needs: its figures stay near it
            widths[BAR] += max(min(round(spare * 0.6), theme.px(82)), wide)
            fit_columns(self, widths, flexible=TOKEN, least=least, giving_way=[c for c in giving_way if c in hidden])
        whole_rows(self, header=theme.px(HEADER), row=theme.px(ROW))
        self._show_pick()
        height = theme.px(HEADER) - 3
        top = (self.horizontalHeader().height() - height) // 2
        width = min(self.columnWidth(TOKEN) + theme.px(8), theme.px(180))  # the next title stands at its column's right
        words = QFontMetrics(theme.font("hint")).horizontalAdvance(tr("Find token or id"))
        self.search.setPlaceholderText(tr("Find token or id") if words + theme.px(16) <= width else tr("Find"))
        self.search.setGeometry(self.columnViewportPosition(TOKEN), top, width, height)

    def _show_pick(self) -> None:
        """Moves the row the draw falls on up to the last that is seen of the unscrolled table; rows keep their numbers
        in the model."""
        header, pick, count = self.verticalHeader(), self._model.pick_row, self._model.rowCount()
        room = self.height() - self.horizontalHeader().height()
        last = max(1, min(room // max(header.defaultSectionSize(), 1), count)) - 1
        if self._moved is not None and self._moved < count:
            header.moveSection(header.visualIndex(self._moved), self._moved)
        self._moved = pick if pick is not None and pick > last else None
        if self._moved is not None:
            header.moveSection(header.visualIndex(self._moved), last)


def logit_decimals(most: float) -> int:
    """Of a column whose largest size is `most`: three digits, the whole ones at least."""
    return 2 if most < 9.995 else 1 if most < 99.95 else 0


def probability(p: float, decimals: int = 4, *, led: bool = True, even: bool = False) -> str:
    """As many decimals where they say something, else a power of ten: 0.4321, 0.0012, 3e-07, 0. Without `led` there is
    no 0 before a point: .4321; `even`: and all are as long, .0000 of what is less, 1.000; a 0 alone is exactly that."""
    if p == 0:
        return "0"
    text = f"{p:.{decimals}f}" if p >= 10.0**-decimals or even else f"{p:.0e}"
    if led:
        return text
    return text[:-1] if even and text.startswith("1") else text.removeprefix("0")
