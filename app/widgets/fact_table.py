"""A small table of facts: words, figures and bars in the theme's voices; rows can be chosen and copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFontMetricsF, QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QMenu, QTableView, QWidget

from app.i18n import tr
from app.widgets.table_style import LEAST_HEADER, LEAST_ROW, NO_PARENT, CellDelegate, Look, SheetModel, dress_table

if TYPE_CHECKING:
    from app.theme import Theme

PADDING, APART = 12.0, 14
"""Px between a column's text and the next one's; at 100 % text how many more there are between figures where there is
room."""
INSET = 12
"""Px before the figures that stand under their row's name."""
LEAST_BAR, SHORTEST_BAR, LEAST_WORDS = 36, 14, 40
"""Px at 100 % text of a column of bars: as wide as it should be, and so narrow that it still compares; of words."""
_CHOOSE = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter})


@dataclass(frozen=True, kw_only=True)
class Column:
    """`left`: words, else figures at the right. `bar`: cells are bars. `grows`: takes the room that is left."""

    title: str = ""
    left: bool = False
    bar: bool = False
    grows: bool = False


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What a cell says. `voice`: a colour token. `bar`: share 0 … 1 of the column, in the voice's colour."""

    text: str = ""
    voice: str = "text"
    strong: bool = False
    bar: float | None = None
    tip: str = ""


Row = tuple[Cell, ...]


class FactModel(SheetModel):
    """Rows of cells under columns."""

    def __init__(self, columns: Sequence[Column], parent: QWidget) -> None:
        super().__init__(parent)
        self.columns = tuple(columns)
        self.rows: tuple[Row, ...] = ()
        self.cut: frozenset[int] = frozenset()
        """Columns that are narrower than their widest text."""
        self.headed = False
        """Whether something else stands over the columns of words."""
        self.folded = False
        """Whether each row's name has a line of its own, its figures the next one."""

    def fold(self, *, folded: bool) -> bool:
        """Names over figures, or beside them; says whether that is new."""
        if folded == self.folded:
            return False
        self.beginResetModel()
        self.folded = folded
        self.endResetModel()
        return True

    def place(self, line: int) -> tuple[int, bool | None]:
        """The row of a line of the table, and whether the line is its name (None: all of it)."""
        return (line // 2, line % 2 == 0) if self.folded else (line, None)

    def set_rows(self, rows: Sequence[Row], columns: Sequence[Column]) -> bool:
        """Replaces the rows; says whether anything changed."""
        new, shape = tuple(rows), (len(self.rows), self.columns)
        if new == self.rows and tuple(columns) == self.columns:
            return False
        if (len(new), tuple(columns)) == shape:
            before, self.rows = self.rows, new
            for row, (was, cells) in enumerate(zip(before, new, strict=True)):
                if was != cells:
                    first, last = (2 * row, 2 * row + 1) if self.folded else (row, row)
                    self.dataChanged.emit(self.index(first, 0), self.index(last, len(self.columns) - 1))
        else:
            self.beginResetModel()
            self.rows, self.columns = new, tuple(columns)
            self.endResetModel()
        return True

    def n_rows(self) -> int:
        return len(self.rows) * (2 if self.folded else 1)

    def titles(self) -> tuple[str, ...]:
        return tuple("" if column.left and self.headed else column.title for column in self.columns)

    def side(self, column: int) -> Qt.AlignmentFlag:
        return Qt.AlignmentFlag.AlignLeft if self.columns[column].left else Qt.AlignmentFlag.AlignRight

    def look(self, row: int, column: int) -> Look:
        row, named = self.place(row)
        if named is not None and named != (column == 0):
            return Look()
        cell = self.rows[row][column]
        bars = ((cell.bar, cell.voice),) if self.columns[column].bar and cell.bar is not None else None
        return Look(cell.text, cell.voice, strong=cell.strong, bars=bars)

    def tip(self, row: int, column: int) -> str:
        row, named = self.place(row)
        cell = self.rows[row][0 if named else column]
        return "\n".join(filter(None, (cell.text, cell.tip))) if column in self.cut else cell.tip

    def spoken(self, row: int, column: int) -> str:
        row, named = self.place(row)
        name = f"{self.rows[row][0].text} " if named is False and column else ""
        return f"{name}{self.columns[column].title} {self.rows[row][0 if named else column].text}".strip()


class FactTable(QTableView):
    """`rowChosen` by click or Enter, `rowHovered` (-1: none). Ctrl+C copies the row, the menu the table. `folds`: where
    there is not the width for names and figures, these stand under their names; what there still is no room for is
    scrolled to."""

    rowChosen = Signal(int)
    rowHovered = Signal(int)

    def __init__(
        self,
        theme: Theme,
        label: str,
        columns: Sequence[Column],
        parent: QWidget | None = None,
        *,
        folds: bool = False,
    ) -> None:
        super().__init__(parent)
        self._theme, self._folds = theme, folds
        self._model = FactModel(columns, self)
        self.setModel(self._model)
        self.setItemDelegate(CellDelegate(theme, self))
        self._dress = dress_table(self, theme)
        self.setAccessibleName(label)
        self._dress.set_titled(titled=any(column.title for column in columns))
        if folds:
            self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
            self.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.clicked.connect(lambda index: self.rowChosen.emit(self._row(index.row())))
        self.entered.connect(lambda index: self.rowHovered.emit(self._row(index.row())))
        theme.changed.connect(self._fit)

    def set_rows(self, rows: Sequence[Row], columns: Sequence[Column] | None = None) -> None:
        """Shows rows, under other columns where they are given. Emits nothing."""
        if self._model.set_rows(rows, columns or self._model.columns):
            self._dress.set_titled(titled=any(column.title for column in self._model.columns))
            self._fit()

    @property
    def rows(self) -> tuple[Row, ...]:
        return self._model.rows

    def set_current(self, row: int) -> None:
        """Shows a row as the chosen one (-1: none); emits nothing."""
        if row == self._row(self.currentIndex().row()) or row >= len(self._model.rows):
            return
        if row < 0:
            self.clearSelection()
            self.setCurrentIndex(NO_PARENT)
        else:
            line = 2 * row if self._model.folded else row
            self.selectRow(line)
            self.scrollTo(self._model.index(line, 0))

    def as_lines(self, *, header: bool = True) -> list[list[str]]:
        """The table as text; bars are left out."""
        kept = [i for i, column in enumerate(self._model.columns) if not column.bar]
        lines = [[row[i].text for i in kept] for row in self._model.rows]
        titles = [self._model.columns[i].title for i in kept]
        return [titles, *lines] if header and any(titles) else lines

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self._row(self.currentIndex().row())
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy(row)
        elif event.key() in _CHOOSE and row >= 0:
            self.rowChosen.emit(row)
        elif event.key() == Qt.Key.Key_Space or (event.text().isprintable() and event.text().strip()):
            event.ignore()  # run control's, and letters are shortcuts of the window
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        row = self._row(self.indexAt(event.pos()).row())
        menu.addAction(tr("Copy row"), lambda: self._copy(row)).setEnabled(row >= 0)
        menu.addAction(tr("Copy table"), lambda: self._copy(-1))
        menu.popup(event.globalPos())

    def leaveEvent(self, event: object) -> None:
        self.rowHovered.emit(-1)
        super().leaveEvent(event)  # type: ignore[arg-type]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _row(self, line: int) -> int:
        """The row of a line; -1 for none."""
        return self._model.place(line)[0] if line >= 0 else -1

    def _copy(self, row: int) -> None:
        lines = self.as_lines() if row < 0 else [self.as_lines(header=False)[row]]
        QGuiApplication.clipboard().setText("\n".join("\t".join(line) for line in lines))

    def set_head(self, height: int, *, shared: bool) -> None:
        """Px at 100 % text of the line of titles. `shared`: something else stands there over the words, whose title is
        not shown then."""
        if shared != self._model.headed:
            self._model.headed = shared
            self._model.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(self._model.columns) - 1)
            self._fit()
        self._dress.set_head(height)

    def figures_width(self) -> int:
        """Px at the right that figures and their titles take, with the bar where rows are out of sight."""
        columns, bar = self._model.columns, self.verticalScrollBar()
        figures = sum(self._needed(i) for i, column in enumerate(columns) if not column.left and not column.bar)
        return figures + (bar.sizeHint().width() if bar.maximum() else 0)

    def needed_width(self) -> int:
        """Px in which nothing is cut: bars as narrow as they get."""
        bars = sum(column.bar for column in self._model.columns)
        whole = sum(self._needed(i) for i in range(len(self._model.columns)))
        return whole - bars * (self._theme.px(LEAST_BAR) - self._theme.px(SHORTEST_BAR))

    def _fit(self) -> None:
        """Widths in the present room. Where it is short bars give way first, then words; figures never do."""
        header, px = self.horizontalHeader(), self._theme.px
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        columns = self._model.columns
        needed = [self._needed(i) for i in range(len(columns))]
        if self._folds:
            self._fold(folded=sum(needed) > self._width_beside())
        widths = list(needed)
        if self._model.folded:
            self._fit_folded(needed)
            return
        bars = [i for i, column in enumerate(columns) if column.bar]
        words = sorted((i for i, column in enumerate(columns) if column.left), key=lambda i: not columns[i].grows)
        spare = self.viewport().width() - sum(widths)
        for i in bars:
            widths[i] = max(widths[i] + min(spare, 0), px(SHORTEST_BAR))
            spare = self.viewport().width() - sum(widths)
        for i in bars if spare < 0 else ():
            widths[i] = 0
        for i in words:
            spare = self.viewport().width() - sum(widths)
            widths[i] = max(widths[i] + min(spare, 0), min(widths[i], px(LEAST_WORDS)))
        spare = self.viewport().width() - sum(widths)
        figures = [i for i, column in enumerate(columns) if not column.left and not column.bar]
        for i in figures[1:] if not self._model.headed else ():  # else `figures_width` would be less than they take
            part = max(0, min(px(APART), spare // len(figures)))
            widths[i] += part
            spare -= part
        growing = [i for i, column in enumerate(columns) if column.grows and widths[i]] or words[:1]
        for number, i in enumerate(growing if spare > 0 else ()):
            part = round(spare / (len(growing) - number))
            spare -= part
            widths[i] += part
        self._model.cut = frozenset(i for i, width in enumerate(widths) if width < needed[i] and not columns[i].bar)
        for i, width in enumerate(widths):
            self.setColumnHidden(i, not width)
            if width:
                header.resizeSection(i, width)

    def _width_beside(self) -> int:
        """Px of width with names beside figures: a bar that comes only with more lines does not decide for them."""
        least = len(self._model.rows) * self._theme.px(LEAST_ROW)
        titles = self._theme.px(LEAST_HEADER) if any(self._model.titles()) else 0
        bar = self.verticalScrollBar().sizeHint().width() if titles + least > self.height() else 0
        return self.width() - bar

    def _fold(self, *, folded: bool) -> None:
        if self._model.fold(folded=folded):
            self.clearSpans()
        if folded:
            for line in range(0, self._model.n_rows(), 2):
                if self.columnSpan(line, 0) != len(self._model.columns):
                    self.setSpan(line, 0, 1, len(self._model.columns))

    def _fit_folded(self, needed: list[int]) -> None:
        """Figures under their names have the width in equal parts, and what they need at least."""
        header, rest = self.horizontalHeader(), range(1, len(needed))
        spare = max(self.viewport().width() - INSET - sum(needed[1:]), 0) // max(len(rest), 1)
        self._model.cut = frozenset()
        header.resizeSection(0, INSET)
        for i in rest:
            header.resizeSection(i, needed[i] + spare)

    def _needed(self, index: int) -> int:
        """Px that a column's widest text takes."""
        column = self._model.columns[index]
        if column.bar:
            return self._theme.px(LEAST_BAR)
        plain, strong = (QFontMetricsF(self._theme.font("table", bold=bold)) for bold in (False, True))
        texts = (
            (strong if cell.strong else plain).horizontalAdvance(cell.text)
            for cell in {row[index] for row in self._model.rows}
        )
        title = QFontMetricsF(self._theme.font("hint")).horizontalAdvance(column.title)
        return round(max([title, *texts]) + PADDING)
