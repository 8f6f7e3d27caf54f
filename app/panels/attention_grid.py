"""Where the matrices of the attention panel stand: in the rows and columns that make them largest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.panels.attention_map import TITLE
from app.widgets.heatmap_layout import Options
from app.widgets.shared_key import SharedKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.panels.attention_map import MapView
    from app.theme import Theme

GAP, ROW_GAP, KEY_GAP, MANY = 10, 6, 4, 3
FULL = Options()
DRESSES = tuple(
    Options(
        readout=readout, bar=bar, tokens_over=over, steep=steep, numbers_over=not steep, numbers_beside=numbered,
        ruler_share=FULL.ruler_share if numbered else 1.0, folds=False,
    )
    for readout, bar in ((True, True), (False, True), (False, False))
    for numbered in (True, False)
    for over, steep in ((True, False), (True, True), (False, False))
)  # fmt: skip
"""Of one of several: what is drawn besides the cells, from all to least. Where the readout is left out, the title has
the value, and the colour bar where that is as well, if it has the room; where the tokens over the columns are, the rows
still have them, and the columns their numbers: before that they stand upright. Before the rows' tokens are cut they
lose their numbers, and have all the room they need."""
SHARED = tuple(replace(options, bar=False) for options in DRESSES if options.bar)
"""The same where one key has the colour bar of all."""
CUT, CUT_OVER, COUNTED, OFTEN = 0.85, 0.85, 0.95, 2
"""What a matrix is worth, by its side: of one whose tokens stand whole, one whose rows' tokens are cut; one whose
columns' are; and one whose columns are just counted, or fewer of them named than every so-manieth. The largest matrix
first, then whole tokens."""
NAMELESS, NAMED = 0.9, 200
"""The same of one whose own readout has no room for the tokens, and px of width at 100 % text from which on it has."""
GAIN, SHARED_GAIN = 1.1, 1.05
"""Times a matrix must be larger for something to be left out: what is drawn does not come and go for a few pixels.
Less is lost where the key names the cell."""
LEFT, OVER = 16, 16
"""Px at 100 % text that names or numbers take at least beside the cells and over them."""
LEAST = 64
"""Px at 100 % text that several matrices have with what stands over them; where there is less the panel is scrolled."""
ALONE = 100
"""Px at 100 % text that one alone has at least: its readout, bar and tokens lie over one another in less."""
COUNTING, GAIN_ALONE = Options(tokens_over=False), 1.2
"""Of one alone that would have less than that: what is drawn where it is so many times larger for it."""
KEPT = 512
"""Answers that are remembered for one state of the matrices."""
Best = tuple[int, Options, float, float]


class MapGrid(QWidget):
    """Matrices of one size, in reading order. One alone has the room; several of one scale have one key under them.
    `freed`: another place than before is left over."""

    freed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._views: tuple[MapView, ...] = ()
        self._known: tuple[object, dict[tuple[int, int], Best]] = (None, {})
        self._least = QSize()
        self.free = QRect()
        """Where several matrices leave room for something else: in their last row, or under a single one."""
        self.key = SharedKey(theme, self)
        self.key.hide()

    def set_views(self, views: Sequence[MapView]) -> None:
        """Shows these; the caller removes others."""
        for view in set(views).difference(self._views):
            view.barChanged.connect(self._on_bar)
        self._views = tuple(views)
        for view in self._views:
            view.setParent(self)
            view.show()
        self.fit()

    def fit(self) -> None:
        """Places the matrices again, as after their shape has changed."""
        if not self._views:
            return
        columns, options, *_ = self._best(self.size())
        rows, shared = -(-len(self._views) // columns), self.shares_key
        size = _room(self._left_by_key(self.size()), rows, columns)
        if columns == 1 < rows:
            size.setWidth(self._narrowest(size, options))
        brief, nameless = (
            any(view.title_width(options, brief=brief, shared=shared) > size.width() for view in self._views)
            for brief in (False, True)
        )
        self.key.setVisible(self._has_key)
        if self._has_key:
            high = self.key.sizeHint().height()
            self.key.set_heat(self._views[0].heat, names_cell=not self._tells(options, size), barred=shared)
            self.key.setGeometry(0, self.height() - high, self.width(), high)
        for index, view in enumerate(self._views):
            row, column = divmod(index, columns)
            dressed = replace(options, line_named=not self._has_key)
            view.dress(dressed, brief=brief, nameless=nameless, shared=shared)
            x, y = column * (size.width() + GAP), row * (size.height() + ROW_GAP)
            view.setGeometry(QRect(x, y, size.width(), size.height()))
            view.settle()
        if (least := self.minimumSizeHint()) != self._least:
            self._least = least
            self.updateGeometry()
        free = self._left_over(columns, size)
        if free != self.free:
            self.free = free
            self.freed.emit()

    def side_in(self, room: QSize) -> float:
        """Px of each matrix's side if all of this had that room."""
        return self._best(room)[2] if self._views else 0.0

    def worth_in(self, room: QSize) -> float:
        """The same, less where rows or columns would not have their tokens."""
        return self._best(room)[3] if self._views else 0.0

    def minimumSizeHint(self) -> QSize:
        count, shared = len(self._views), self.shares_key
        if count < 2:
            return QSize(160, max(140, self._theme.px(ALONE)))
        title = max(view.title_width(SHARED[-1], brief=True, nameless=True, shared=shared) for view in self._views)
        beside = [n for n in range(1, count + 1) if _room(self.size(), 1, n).width() >= title]
        rows = -(-count // max(beside, default=1))
        key = self.key.sizeHint().height() + KEY_GAP if self._has_key else 0
        return QSize(160, max(140, rows * (self._theme.px(TITLE + OVER + LEAST) + ROW_GAP) - ROW_GAP + key))

    def sizeHint(self) -> QSize:
        return QSize(420, 360)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    @property
    def shares_key(self) -> bool:
        """Whether there are several matrices and all that have cells have the same colours for the same values."""
        bars = {view.heat.bar for view in self._views if view.heat.tiles}
        return len(self._views) > 1 and len(bars) < 2

    # inside

    @property
    def _has_key(self) -> bool:
        """Many matrices are too small for the words of the line and the cell, whatever their scales."""
        return self.shares_key or len(self._views) >= MANY

    def _left_over(self, columns: int, size: QSize) -> QRect:
        """The larger of both such places."""
        last = len(self._views) % columns
        if last:
            x = last * (size.width() + GAP)
            return QRect(x, self._views[-1].y(), columns * (size.width() + GAP) - GAP - x, size.height())
        if columns == 1 < len(self._views):
            x = size.width() + GAP
            return QRect(x, 0, self.width() - x, self._left_by_key(self.size()).height())
        if len(self._views) < 2 or columns < len(self._views):
            return QRect()
        used = max(view.bottom() for view in self._views) + ROW_GAP
        return QRect(0, used, self.width(), max(size.height() - used, 0))

    def _narrowest(self, size: QSize, options: Options) -> int:
        """Px of width in which one of several, under one another, is as large and whole as in that size."""
        named, shared = replace(options, line_named=not self._has_key), self.shares_key

        def fit(width: int) -> tuple[float, float]:
            room = QSize(width, size.height())
            return self._worth_of(room, named, shared=shared)

        few, enough = 1, size.width()
        best = fit(enough)
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (few, middle) if fit(middle) == best else (middle, enough)
        return enough

    def _on_bar(self) -> None:
        if self.shares_key != self.key.barred:
            self.fit()
        else:
            self.key.update()

    def _left_by_key(self, room: QSize) -> QSize:
        return room - QSize(0, self.key.sizeHint().height() + KEY_GAP) if self._has_key else room

    def _best(self, room: QSize) -> Best:
        """The number of columns, and what is drawn, with the largest matrices whose tokens can be read; their side in
        px, and what they are worth."""
        state = (self.shares_key, self._has_key, tuple(view.form for view in self._views))
        if self._known[0] != state:
            self._known = (state, {})
        known, size = self._known[1], (room.width(), room.height())
        if size not in known:
            if len(known) >= KEPT:
                known.clear()
            known[size] = self._find_best(room)
        return known[size]

    def _find_best(self, room: QSize) -> Best:
        count, shared = len(self._views), self.shares_key
        room = self._left_by_key(room)
        if count == 1:
            side, options = self._views[0].fit_in(room, FULL).side, FULL
            if side < self._theme.px(LEAST):
                counted = self._views[0].fit_in(room, COUNTING).side
                side, options = (counted, COUNTING) if counted >= GAIN_ALONE * side else (side, FULL)
            return 1, options, side, side
        best, found = 0.0, (1, FULL, 0.0, 0.0)
        for options in SHARED if shared else DRESSES:
            named = replace(options, line_named=not self._has_key)
            least = best * (SHARED_GAIN if shared else GAIN)
            for columns in range(count, 0, -1):  # of equal ones the first: side by side
                if min(_cells(_room(room, -(-count // columns), columns), self._theme)) <= least:
                    continue
                worth, side = self._worth(room, columns, named, shared=shared)
                if worth > least:
                    best, found = worth, (columns, options, side, worth)
                    least = worth
        return self._with_longer_tokens(room, found, shared=shared)

    def _with_longer_tokens(self, room: QSize, found: Best, *, shared: bool) -> Best:
        """The same without numbers beside rows whose tokens are cut, where more of these shows then."""
        columns, options, side, worth = found
        size, wordy = _room(room, -(-len(self._views) // columns), columns), replace(options, numbers_beside=False)
        now, then = (
            self._views[0].fit_in(size, replace(dress, line_named=not self._has_key), shared=shared)
            for dress in (options, wordy)
        )
        if now.rows_whole or then.side < now.side or then.row_room <= now.row_room or then.every > now.every:
            return found
        return columns, wordy, side, worth

    def _worth(self, room: QSize, columns: int, options: Options, *, shared: bool) -> tuple[float, float]:
        """What so many columns are worth, and px of a matrix's side in them."""
        return self._worth_of(_room(room, -(-len(self._views) // columns), columns), options, shared=shared)

    def _worth_of(self, size: QSize, options: Options, *, shared: bool) -> tuple[float, float]:
        """What one is worth in a size, and px of its side."""
        fit = self._views[0].fit_in(size, options, shared=shared)
        over = COUNTED if not options.tokens_over or fit.every > OFTEN else 1.0 if fit.cols_whole else CUT_OVER
        said = NAMELESS if options.readout and not self._tells(options, size) else 1.0
        return fit.side * (1.0 if fit.rows_whole else CUT) * over * said, fit.side

    def _tells(self, options: Options, size: QSize) -> bool:
        """Whether each names the tokens of its cell."""
        return options.readout and size.width() >= self._theme.px(NAMED)


def _room(room: QSize, rows: int, columns: int) -> QSize:
    """Of one view, its title included."""
    width = (room.width() - GAP * (columns - 1)) // columns
    height = (room.height() - ROW_GAP * (rows - 1)) // rows
    return QSize(max(width, 1), max(height, 1))


def _cells(size: QSize, theme: Theme) -> tuple[int, int]:
    """Px of width and height that the cells of a view of that size have at most."""
    return size.width() - theme.px(LEFT), size.height() - theme.px(TITLE + OVER)
