"""A small table of facts: words, figures and bars in the theme's voices; rows can be chosen and copied."""

from __future__ import annotations

import math
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
NAME_OVER_FIGURES = 2
"""Lines of a row whose name has one and its figures another."""
LABEL, FIGURE = 1, 2
"""Columns of a figure that has a line of its own: of its title, and of itself."""
LEAST_BAR, SHORTEST_BAR, LEAST_WORDS = 36, 14, 40
"""Px at 100 % text of a column of bars: as wide as it should be, and so narrow that it still compares; of words."""
_CHOOSE = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter})


@dataclass(frozen=True, kw_only=True)
class Column:
    """`left`: words, else figures at the right. `bar`: cells are bars. `grows`: takes the room that is left. `brief`:
    the title before a figure that leaves no room for all of it."""

    title: str = ""
    brief: str = ""
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
        self.lines = 1
        """Of a row: 1, 2 where its name stands over its figures; one for the name and one a figure where each figure
        has a line of its own with the column's title before it; one more a figure where the title stands over it."""
        self.brief: frozenset[tuple[int, int]] = frozenset()
        """Rows and columns of the figures that leave no room for the whole title."""
        self.along: int | None = None
        """The column of bars that are drawn along their rows, under the text."""

    @property
    def stacked(self) -> bool:
        """Whether each figure has a line of its own."""
        return self.lines > NAME_OVER_FIGURES

    @property
    def apart(self) -> bool:
        """Whether each figure has its title on the line over it."""
        return self.stacked and self.lines > 1 + len(self.figures)

    @property
    def figures(self) -> list[int]:
        """The columns that a folded row has under its name."""
        return [i for i, column in enumerate(self.columns) if i and not column.bar]

    def fold(self, lines: int) -> bool:
        """Makes a row so many lines; says whether that is new."""
        if lines == self.lines:
            return False
        self.beginResetModel()
        self.lines = lines
        self.endResetModel()
        return True

    def place(self, line: int) -> tuple[int, int | None]:
        """The row of a line of the table, and which line of the row it is (None: all of it)."""
        return (line // self.lines, line % self.lines) if self.lines > 1 else (line, None)

    def cell(self, line: int, column: int) -> tuple[int, int]:
        """The row and the column whose cell stands there, or stood there but for its title; column -1: none does."""
        row, part = self.place(line)
        if part is None:
            return row, column
        if part == 0 or column == 0:
            return row, 0 if part == column else -1
        if not self.stacked:
            return row, column
        if self.apart:
            at, place = (part - 1) // 2, LABEL if part % 2 else FIGURE
            return row, self.figures[at] if column == place else -1
        return row, self.figures[part - 1] if column in {LABEL, FIGURE} else -1

    def name_of(self, row: int) -> str:
        """A row's name as it stands over its figures: with its column's title, which has no other place there."""
        return f"{self.columns[0].title} {self.rows[row][0].text}".strip()

    def title_of(self, row: int, column: int) -> str:
        """A column's title as it stands before a figure."""
        found = self.columns[column]
        return (found.brief or found.title) if (row, column) in self.brief else found.title

    def set_rows(self, rows: Sequence[Row], columns: Sequence[Column]) -> bool:
        """Replaces the rows; says whether anything changed."""
        new, shape = tuple(rows), (len(self.rows), self.columns)
        if new == self.rows and tuple(columns) == self.columns:
            return False
        if (len(new), tuple(columns)) == shape:
            before, self.rows = self.rows, new
            for row, (was, cells) in enumerate(zip(before, new, strict=True)):
                if was != cells:
                    first, last = self.lines * row, self.lines * (row + 1) - 1
                    self.dataChanged.emit(self.index(first, 0), self.index(last, len(self.columns) - 1))
        else:
            self.beginResetModel()
            self.rows, self.columns = new, tuple(columns)
            self.endResetModel()
        return True

    def n_rows(self) -> int:
        return len(self.rows) * self.lines

    def titles(self) -> tuple[str, ...]:
        """None where they stand before the figures."""
        if self.stacked:
            return ("",) * len(self.columns)
        titles = ("" if column.left and self.headed else column.title for column in self.columns)
        return tuple(title if index or self.lines == 1 else "" for index, title in enumerate(titles))

    def side(self, column: int) -> Qt.AlignmentFlag:
        left = self.columns[column].left
        if self.lines > 1 and (self.stacked or not column):
            left = column in {0, LABEL}
        return Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight

    def look(self, row: int, column: int) -> Look:
        row, at = self.cell(row, column)
        if at < 0:
            return Look()
        cell = self.rows[row][at]
        if self.stacked and column == LABEL:
            return Look(self.title_of(row, at), "secondary")
        bars = ((cell.bar, cell.voice),) if self.columns[at].bar and cell.bar is not None else None
        along = None if self.along is None else self.rows[row][self.along]
        text, voice = cell.text, cell.voice
        if self.lines > 1 and not at:
            text, voice = self.name_of(row), "text" if self.stacked else voice
        return Look(
            text, voice, strong=cell.strong, bars=bars,
            along=None if along is None or along.bar is None else (along.bar, along.voice),
        )  # fmt: skip

    def tip(self, row: int, column: int) -> str:
        row, at = self.cell(row, column)
        cell = self.rows[row][max(at, 0)]
        if self.stacked and (row, at) in self.brief:
            return "\n".join(filter(None, (self.columns[at].title, cell.tip)))
        return "\n".join(filter(None, (cell.text, cell.tip))) if at in self.cut else cell.tip

    def spoken(self, row: int, column: int) -> str:
        folded = self.lines > 1
        row, at = self.cell(row, column)
        name = f"{self.rows[row][0].text} " if folded and at > 0 else ""
        return f"{name}{self.columns[max(at, 0)].title} {self.rows[row][max(at, 0)].text}".strip()


class FactTable(QTableView):
    """`rowChosen` by click or Enter, `rowHovered` (-1: none). Ctrl+C copies the row, the menu the table. `folds`: where
    there is not the width for names and figures, these stand under their names, under one another where there is not
    the width for them either, and under their titles where there is none for the two. `along`: bars that would be short
    are drawn along their rows, under the text."""

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
        along: bool = False,
    ) -> None:
        super().__init__(parent)
        self._theme, self._folds, self._along = theme, folds, along
        self._model = FactModel(columns, self)
        self.setModel(self._model)
        self.setItemDelegate(CellDelegate(theme, self, flowing=LABEL if folds else None))
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
            self._dress.set_titled(titled=any(self._model.titles()))
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
            line = row * self._model.lines
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
            self._fold(self._lines_for(needed))
        widths = list(needed)
        if self._model.lines > 1:
            self._fit_folded(needed)
            return
        bars = [i for i, column in enumerate(columns) if column.bar]
        words = sorted((i for i, column in enumerate(columns) if column.left), key=lambda i: not columns[i].grows)
        spare = self.viewport().width() - sum(widths)
        for i in bars:
            widths[i] = max(widths[i] + min(spare, 0), px(SHORTEST_BAR))
            spare = self.viewport().width() - sum(widths)
        along = self._along and bool(bars) and widths[bars[0]] < px(LEAST_BAR)
        self._set_along(bars[0] if along else None)
        for i in bars if spare < 0 or along else ():
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

    def _set_along(self, column: int | None) -> None:
        if column != self._model.along:
            self._model.along = column
            self.viewport().update()

    def _lines_for(self, needed: list[int]) -> int:
        """How many lines a row has in the present width."""
        columns, figures = self._model.columns, self._model.figures
        flat = sum(width for width, column in zip(needed, columns, strict=True) if not (self._along and column.bar))
        if flat <= self._width_in(1):
            return 1
        if INSET + sum(needed[i] for i in figures) <= self._width_in(NAME_OVER_FIGURES):
            return NAME_OVER_FIGURES
        lines = 1 + len(figures)
        labels, widest, _brief = self._stacked_widths(0)
        beside = INSET + labels + widest <= self._width_in(lines) or len(figures) == 1
        return lines if beside else lines + len(figures)

    def _width_in(self, lines: int) -> int:
        """Px of width where rows are so many lines: the bar that comes with more of them does not decide for them."""
        least = lines * len(self._model.rows) * self._theme.px(LEAST_ROW)
        titles = self._theme.px(LEAST_HEADER) if any(column.title for column in self._model.columns) else 0
        bar = self.verticalScrollBar().sizeHint().width() if titles + least > self.height() else 0
        return self.width() - bar

    def _fold(self, lines: int) -> None:
        model, chosen = self._model, self._row(self.currentIndex().row())
        if model.fold(lines):
            self.clearSpans()
            self._set_along(None)
            self.set_current(chosen)
            self._dress.set_titled(titled=any(model.titles()))
        if lines > 1:
            for line in range(0, model.n_rows(), lines):
                if self.columnSpan(line, 0) != len(model.columns):
                    self.setSpan(line, 0, 1, len(model.columns))

    def _fit_folded(self, needed: list[int]) -> None:
        """Figures under their names have the width in equal parts, and what they need at least; those under one another
        have what they need, their titles the rest."""
        header, rest, room = self.horizontalHeader(), range(1, len(needed)), self.viewport().width()
        model = self._model
        model.cut = frozenset()
        widths = [INSET, *(0 if model.columns[i].bar else needed[i] for i in rest)]
        if model.stacked:
            labels, figures, model.brief = self._stacked_widths(room - INSET)
            before = max(room - INSET - figures, INSET if model.apart else labels)  # titles apart go on over figures
            widths[LABEL:] = [before, figures, *(0 for _ in rest[FIGURE:])]
        else:
            model.brief = frozenset()
            spare = max(room - sum(widths), 0) // max(len(model.figures), 1)
            for i in model.figures:
                widths[i] += spare
        for i, width in enumerate(widths):
            self.setColumnHidden(i, not width)
            if width:
                header.resizeSection(i, width)

    def _stacked_widths(self, room: int) -> tuple[int, int, frozenset[tuple[int, int]]]:
        """Px that titles before figures take at least, and figures; the figures that leave no `room` for more than a
        brief title."""
        model = self._model
        plain, strong = (QFontMetricsF(self._theme.font("table", bold=bold)) for bold in (False, True))
        brief, labels, figures = set[tuple[int, int]](), 0.0, 0.0
        for row, cells in enumerate(model.rows):
            for at in model.figures:
                cell, column = cells[at], model.columns[at]
                figure = (strong if cell.strong else plain).horizontalAdvance(cell.text) + PADDING
                beside = 0.0 if model.apart else figure
                if column.brief and plain.horizontalAdvance(column.title) + PADDING + beside > room:
                    brief.add((row, at))
                figures = max(figures, figure)
                labels = max(labels, plain.horizontalAdvance(column.brief or column.title) + PADDING)
        return math.ceil(labels), math.ceil(figures), frozenset(brief)

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
