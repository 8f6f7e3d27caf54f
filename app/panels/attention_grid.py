"""Where the matrices of the attention panel stand: in the rows and columns that make them largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.widgets.heatmap_layout import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.panels.attention_map import MapView

GAP = 10
FULL = Options()
DRESSES = tuple(
    Options(line_beside=False, readout=readout, bar=bar, tokens_over=over, steep=steep)
    for readout, bar in ((True, True), (False, True), (False, False))
    for over, steep in ((True, False), (True, True), (False, False))
)
"""Of one of several: what is drawn besides the cells, from all to least. Where the readout is left out, the title has
the value, and the colour bar where that is as well, if it has the room; where the tokens over the columns are, the rows
still have them, and the columns their numbers: before that they stand upright. No width lies idle for the words of a
line."""
CUT = 0.95
"""What a matrix whose tokens are cut is worth of one whose tokens stand whole, by their sides."""
GAIN = 1.1
"""Times a matrix must be larger for something to be left out: what is drawn does not come and go for a few pixels."""


class MapGrid(QWidget):
    """Matrices of one size, in reading order. One alone has the room."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._views: tuple[MapView, ...] = ()

    def set_views(self, views: Sequence[MapView]) -> None:
        """Shows these; the caller removes others."""
        self._views = tuple(views)
        for view in self._views:
            view.setParent(self)
            view.show()
        self.fit()

    def fit(self) -> None:
        """Places the matrices again, as after their shape has changed."""
        if not self._views:
            return
        columns, options, _ = self._best(self.size())
        rows = -(-len(self._views) // columns)
        size = _room(self.size(), rows, columns)
        brief = any(view.title_width(options, brief=False) > size.width() for view in self._views)
        for index, view in enumerate(self._views):
            row, column = divmod(index, columns)
            view.dress(options, brief=brief)
            view.setGeometry(
                QRect(column * (size.width() + GAP), row * (size.height() + GAP), size.width(), size.height())
            )

    def side_in(self, room: QSize) -> float:
        """Px of each matrix's side if all of this had that room."""
        return self._best(room)[2] if self._views else 0.0

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 140)

    def sizeHint(self) -> QSize:
        return QSize(420, 360)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    # inside

    def _best(self, room: QSize) -> tuple[int, Options, float]:
        """The number of columns, and what is drawn, with the largest matrices whose tokens can be read; their side in
        px."""
        count = len(self._views)
        if count == 1:
            return 1, FULL, self._views[0].side_in(room, FULL)[0]
        best, found = 0.0, (1, FULL, 0.0)
        for options in DRESSES:
            worths = {columns: self._worth(room, columns, options) for columns in range(count, 0, -1)}
            columns = max(worths, key=lambda n: worths[n][0])  # of equal ones the first: side by side
            if worths[columns][0] > best * GAIN:
                best, found = worths[columns][0], (columns, options, worths[columns][1])
        return found

    def _worth(self, room: QSize, columns: int, options: Options) -> tuple[float, float]:
        """What so many columns are worth, and px of a matrix's side in them."""
        side, whole = self._views[0].side_in(_room(room, -(-len(self._views) // columns), columns), options)
        return side * (1.0 if whole else CUT), side


def _room(room: QSize, rows: int, columns: int) -> QSize:
    """Of one view, its title included."""
    width = (room.width() - GAP * (columns - 1)) // columns
    height = (room.height() - GAP * (rows - 1)) // rows
    return QSize(max(width, 1), max(height, 1))
