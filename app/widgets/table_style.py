"""What our tables share: a flat model, compact rows, columns that give way, and a delegate that paints text and bars in
the theme's voices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from app.plain import tip as plain_tip
from app.widgets.sign_colours import bar_colour

if TYPE_CHECKING:
    from app.theme import Theme

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
ROW, LEAST_ROW, HEADER, LEAST_HEADER = 21, 19, 22, 15
"""Px at 100 % text."""
MOST_LOOKS = 3
"""Times in a row that heights are set: a bar that comes with one and goes with the other would never end."""


UNDER = 2.0
"""Px of height of a bar under a figure."""
GHOST, SOLID = 13.0, 6.0
"""Px of height at 100 % text of the bar behind and of the one over it."""


class Look(NamedTuple):
    """All that a cell is painted from, at once: asked for role by role, a cell costs five calls.

    `voice`: a colour token. `bars`: (share, colour token or sign) each, drawn one over the other in place of the text;
    they begin at `zero`, a share of the cell, and negative ones go to its left. `under`: one of these, drawn as a line
    under the text. `along`: one that has the width of the row, under all its texts.
    """

    text: str = ""
    voice: str = "text"
    mono: bool = False
    strong: bool = False
    bars: tuple[tuple[float, str], ...] | None = None
    under: tuple[float, str] | None = None
    along: tuple[float, str] | None = None
    zero: float = 0.0


class LookModel(QAbstractTableModel):
    """A flat table whose cells say how they look; Qt's roles are read from that. Columns of words stand at the left,
    figures at the right."""

    @abstractmethod
    def look(self, row: int, column: int) -> Look:
        """How a cell looks."""

    @abstractmethod
    def side(self, column: int) -> Qt.AlignmentFlag:
        """Left or right."""

    def tip(self, _row: int, _column: int) -> str:
        """What is said under the mouse; plain text, empty for nothing."""
        return ""

    def spoken(self, _row: int, _column: int) -> str:
        """What a screen reader says; empty for the cell's text."""
        return ""

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row, column = index.row(), index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return self.look(row, column).text
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self.side(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(self.tip(row, column)) or None
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self.spoken(row, column) or None
        return None


class SheetModel(LookModel):
    """A table under one line of titles."""

    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def titles(self) -> Sequence[str]:
        """What stands over each column, in the language in force."""

    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else self.n_rows()

    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.titles())

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.titles()):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.titles()[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self.side(section) | Qt.AlignmentFlag.AlignVCenter
        return None


class CellDelegate(QStyledItemDelegate):
    """Paints a cell from its roles; text is plain, elided, never markup."""

    PADDING = 5

    def __init__(self, theme: Theme, parent: QTableView, *, padding: int = PADDING, flowing: int | None = None) -> None:
        """`padding`: px at either side of a cell's text. `flowing`: a column whose text at the left goes on into what
        the figure of the next one leaves blank."""
        super().__init__(parent)
        self._theme, self._padding, self._flowing = theme, padding, flowing
        self._table = parent
        self._faces: dict[tuple[bool, bool], _Face] = {}
        theme.changed.connect(self._restyle)

    def _restyle(self) -> None:
        self._faces.clear()

    def _face(self, mono: bool, strong: bool) -> _Face:
        face = self._faces.get((mono, strong))
        if face is None:
            face = self._faces[mono, strong] = _Face(self._theme.font("mono" if mono else "table", bold=strong))
        return face

    def sizeHint(self, _option: QStyleOptionViewItem, index: Index) -> QSize:
        look = self._look(index)
        width = QFontMetricsF(self._theme.font("mono" if look.mono else "table")).horizontalAdvance(look.text)
        return QSize(round(width) + 2 * self._padding + 1, self._theme.px(21))

    def _look(self, index: Index) -> Look:
        model = index.model()
        assert isinstance(model, LookModel)
        return model.look(index.row(), index.column())

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        colours, rect, column = self._theme.palette, QRectF(option.rect), index.column()
        state = option.state
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, colours.accent_tint)
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, colours.raised)
        model = index.model()
        assert isinstance(model, LookModel)
        look = model.look(index.row(), column)
        if look.bars is not None:
            self._paint_bars(painter, rect.adjusted(2, 0, -2, 0), look.bars, look.zero)
            return
        if column and column - 1 == self._flowing and not self._table.isColumnHidden(column - 1):
            before = index.model().index(index.row(), column - 1)
            self._draw(painter, rect.adjusted(-self._table.columnWidth(column - 1), 0, -rect.width(), 0), before, rect)
        if look.text:
            self._draw(painter, rect, index, rect)
        if look.under is not None and look.under[0] > 0:
            share, token = look.under
            width = max(1.5, (rect.width() - self._padding) * min(share, 1.0))
            line = QRectF(rect.left() + self._padding, rect.bottom() - UNDER, width, UNDER)
            painter.fillRect(line, bar_colour(self._theme.palette, token))
        if look.along is not None and look.along[0] > 0:
            share, token = look.along
            line = self.along_place(rect, share).intersected(rect)  # each cell draws what lies on it
            painter.fillRect(line, bar_colour(self._theme.palette, token))

    def along_place(self, cell: QRectF, share: float) -> QRectF:
        """Where the bar along the row of a cell is drawn."""
        whole = self._table.viewport().width() - 2 * self._padding
        height = max(UNDER, (cell.height() - self._face(mono=False, strong=False).height) / 2 - 1)
        return QRectF(self._padding, cell.bottom() - height, max(1.5, whole * min(share, 1.0)), height)

    def shown(self, index: Index, width: float) -> tuple[str, float]:
        """The text of a cell `width` px wide, cut where it has no room, and its px."""
        look, following = self._look(index), index.column() + 1
        face, room = self._face(look.mono, look.strong), width - 2 * self._padding
        long = face.width(look.text)
        if long > room + 1 and index.column() == self._flowing and not self._table.isColumnHidden(following):
            beside = self._look(index.model().index(index.row(), following))
            taken = self._face(beside.mono, beside.strong).width(beside.text) + 3 * self._padding
            room += max(0.0, self._table.columnWidth(following) - taken)
        if long <= room + 1:
            return look.text, long
        text = face.metrics.elidedText(look.text, Qt.TextElideMode.ElideRight, room + 1)
        return text, face.width(text)

    def _draw(self, painter: QPainter, rect: QRectF, index: Index, within: QRectF) -> None:
        """A cell's text, or as much of it as lies in `within`: each cell draws what lies on it."""
        look, model = self._look(index), index.model()
        assert isinstance(model, LookModel)
        face, (text, width) = self._face(look.mono, look.strong), self.shown(index, rect.width())
        flows = index.column() == self._flowing and rect.left() + self._padding + width > rect.right()
        if within != rect and not flows:
            return
        painter.setFont(face.font)
        painter.setPen(getattr(self._theme.palette, look.voice))
        at_left = model.side(index.column()) == Qt.AlignmentFlag.AlignLeft
        if not at_left and rect.right() > self._table.viewport().width() + 1:
            return  # the end of a figure that is out of sight: what is left of it would be another figure
        x = rect.left() + self._padding if at_left else rect.right() - self._padding - width
        if flows:
            painter.save()
            painter.setClipRect(within, Qt.ClipOperation.IntersectClip)
        painter.drawText(QPointF(x, rect.top() + (rect.height() - face.height) / 2 + face.ascent), text)
        if flows:
            painter.restore()

    def _paint_bars(self, painter: QPainter, inside: QRectF, bars: tuple[tuple[float, str], ...], zero: float) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        for layer, (share, token) in enumerate(bars):
            # The one behind is thicker, so that a ghost shows under a longer solid bar too, a short one at once.
            high = (GHOST if layer == 0 else SOLID) if len(bars) > 1 else 9.0
            height = min(high * self._theme.text_scale, inside.height() - (4 if len(bars) > 1 else 6))
            if share:
                # A bar that stands for something is never thinner than a pixel and a half.
                width = max(1.5, inside.width() * min(abs(share), 1.0))
                left = inside.left() + inside.width() * zero - (width if share < 0 else 0.0)
                # Its ends are square: rounded, a short one is a dot and says less than its length.
                bar = QRectF(left, inside.center().y() - height / 2, width, height)
                painter.fillRect(bar, bar_colour(self._theme.palette, token))
        if zero:
            at = round(inside.left() + inside.width() * zero)
            painter.fillRect(QRectF(at - 0.5, inside.top(), 1, inside.height()), self._theme.palette.secondary)
        painter.restore()


class _Face:
    """A font with the widths of texts it was asked for: a table's are mostly those it had a moment before."""

    MOST = 4096

    def __init__(self, font: QFont) -> None:
        self.font, self.metrics = font, QFontMetricsF(font)
        self.ascent, self.height = self.metrics.ascent(), self.metrics.height()
        self._widths: dict[str, float] = {}

    def width(self, text: str) -> float:
        """Px `text` takes."""
        found = self._widths.get(text)
        if found is None:
            if len(self._widths) >= self.MOST:
                self._widths.clear()
            found = self._widths[text] = self.metrics.horizontalAdvance(text)
        return found


def fit_columns(
    table: QTableView, widths: Mapping[int, int], *, flexible: int, least: int, giving_way: Sequence[int] = (),
    most: int | None = None,
) -> set[int]:  # fmt: skip
    """Gives every column its px and `flexible` the rest, up to `most`; until that is `least`, columns of `giving_way`
    are hidden, the first of them first. The columns that are hidden."""
    room, hidden = table.viewport().width(), set[int]()

    def rest() -> int:
        return room - sum(width for column, width in widths.items() if column not in hidden)

    for column in giving_way:
        if rest() < least:
            hidden.add(column)
    header = table.horizontalHeader()
    header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    for column, width in {**widths, flexible: max(24, rest() if most is None else min(rest(), most))}.items():
        table.setColumnHidden(column, column in hidden)
        if column not in hidden:
            header.resizeSection(column, width)
    return hidden


def whole_rows(table: QTableView, *, header: int, row: int) -> None:
    """Makes rows of at least `row` px a little higher, and then the header, so that none is cut at either end."""
    room = table.height() - header
    count = max(1, room // row)
    height = max(row, min(room // count, row * 5 // 4))
    table.verticalHeader().setMinimumSectionSize(row)
    table.verticalHeader().setDefaultSectionSize(height)
    head, high = table.horizontalHeader(), header + max(0, room - count * height)
    if head.height() != high or head.minimumHeight() != high:
        head.setFixedHeight(high)
        head.geometriesChanged.emit()  # or the rows keep the room that the height before left them


def dress_table(table: QTableView, theme: Theme, *, fills: bool = True) -> Dress:
    """Rows of 21 px, no grid, whole rows chosen, headers in the hint font. `fills`: where not all fit, they become a
    little lower or higher so that none is cut; without, the table sees to that itself."""
    table.setShowGrid(False)
    table.setFrameShape(QTableView.Shape.NoFrame)
    table.setMouseTracking(True)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    table.setWordWrap(False)
    table.viewport().setAutoFillBackground(False)
    table.setCornerButtonEnabled(False)
    table.setTabKeyNavigation(False)
    table.verticalHeader().hide()
    header = table.horizontalHeader()
    header.setHighlightSections(False)
    header.setSectionsClickable(False)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return Dress(table, theme, fills=fills)


def rows_in(room: int, count: int, *, row: int, least: int) -> int:
    """Px of a row so that `count` rows, or else a whole number of them, take `room` px: `row` where all fit, and never
    under `least`."""
    if count * row <= room:
        return row
    if count * least <= room:
        return room // count
    return max(room // max(1, min(round(room / row), room // least)), least)


class Dress(QObject):
    """Keeps a table's heights and fonts those of the theme, and its rows whole. A child of the table: it goes when the
    table does."""

    def __init__(self, table: QTableView, theme: Theme, *, fills: bool) -> None:
        super().__init__(table)
        self._table, self._theme, self._fills = table, theme, fills
        self._titled, self._head = True, HEADER
        self._fitted: tuple[int, int] | None = None
        self._setting = self._asked = False
        theme.changed.connect(self.restyle)
        self.restyle()
        if fills:
            table.installEventFilter(self)
            table.horizontalScrollBar().rangeChanged.connect(lambda _low, _high: self.fit())
            table.verticalScrollBar().sliderReleased.connect(self._align)
            model = table.model()
            for changed in (model.modelReset, model.rowsInserted, model.rowsRemoved):
                changed.connect(lambda *_: self.fit())

    def set_titled(self, *, titled: bool) -> None:
        """Whether columns have titles: without, the header is no higher than the px that rows leave over."""
        if titled != self._titled:
            self._titled = titled
            self.fit()

    def set_head(self, height: int) -> None:
        """Px at 100 % text of the titles, `HEADER` or what stands on their line."""
        if height != self._head:
            self._head = height
            self.fit()

    def restyle(self) -> None:
        """Row and header heights, and the headers' font, at the theme's size of text."""
        header, rows = self._table.horizontalHeader(), self._table.verticalHeader()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setFont(self._theme.font("hint"))
        header.setMinimumSectionSize(12)
        self._fitted = None
        if self._fills:
            self.fit()
        else:
            self._set(self._theme.px(ROW), self._theme.px(HEADER))

    def fit(self) -> None:
        """Heights at the table's present size. Asked from within itself, as bars come and go while Qt moves the cells,
        it looks again afterwards: Qt moves nothing meanwhile, and the cells would keep the room of another header."""
        self._asked = True
        if self._setting:
            return
        for _ in range(MOST_LOOKS):
            if not self._asked:
                break
            self._asked = False
            self._set(*self._heights())

    def _heights(self) -> tuple[int, int]:
        """Px of a row and of the header."""
        table, px, across = self._table, self._theme.px, self._table.horizontalScrollBar()
        scrolls = table.horizontalScrollBarPolicy() != Qt.ScrollBarPolicy.ScrollBarAlwaysOff and across.maximum() > 0
        base = px(self._head) if self._titled else 0
        give = base - px(LEAST_HEADER) if self._head == HEADER else 0
        room = table.height() - base - (across.sizeHint().height() if scrolls else 0)
        count = table.model().rowCount()
        if 0 < count * px(LEAST_ROW) - room <= give:  # titles give way to a row
            base, room = base + room - count * px(LEAST_ROW), count * px(LEAST_ROW)
        height = rows_in(room, count, row=px(ROW), least=px(LEAST_ROW))
        spare = max(room, height) % height if count * height > room else 0
        return height, base + spare

    def eventFilter(self, _table: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.fit()
        return False

    def _set(self, row: int, header: int) -> None:
        if (row, header) != self._fitted:
            self._fitted, self._setting = (row, header), True
            first = self._first_row()
            self._table.verticalHeader().setMinimumSectionSize(row)
            self._table.verticalHeader().setDefaultSectionSize(row)
            self._table.verticalScrollBar().setSingleStep(row)  # the wheel goes by whole rows
            self._table.horizontalHeader().setFixedHeight(header)
            self._table.updateGeometries()  # else the cells keep the room that the header had
            self._setting = False
            self._align(first)

    def _first_row(self) -> int:
        """The row that begins nearest the top."""
        return round(
            self._table.verticalScrollBar().value() / max(self._table.verticalHeader().defaultSectionSize(), 1)
        )

    def _align(self, first: int | None = None) -> None:
        """A row begins at the top: `first`, else the nearest."""
        if self._fills:
            row = self._table.verticalHeader().defaultSectionSize()
            self._table.verticalScrollBar().setValue((self._first_row() if first is None else first) * row)
