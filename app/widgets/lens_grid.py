"""Tokens by depth and position: a word in every cell, coloured by its probability; or colours alone, all in sight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QWidget

from app.i18n import tr
from app.widgets.heatmap import ZOOM_STEP
from app.widgets.heatmap_keys import cell_after
from app.widgets.heatmap_menu import open_menu
from app.widgets.lens_cells import LIGHT, paint_cells
from app.widgets.lens_overlay import paint_overlay
from app.widgets.lens_sizes import CELL_HEIGHT, Sizes
from app.widgets.pointed_sheet import PointedSheet

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours

Key = Qt.Key
Span = tuple[int, int]
Cell = tuple[int, int]
"""Depth and position."""


class LensGrid(PointedSheet[Cell]):
    """Row 0 of the model is at the bottom: reading upwards is going through the layers.

    Cells are seen whole: the scroll bars count them, and they share the room. `cellHovered`, `cellClicked` carry
    (depth, position), -1, -1 for none; `viewChanged` when other cells are in sight.

    As on every heat map the wheel zooms at the mouse, a drag pans, a double click shows the whole; arrows, Home, End,
    Ctrl+Home, Ctrl+End and the Page keys move the chosen cell; Z and Shift+Z zoom, 0 shows the whole; Ctrl+C copies the
    value (`copyWanted`: "cell", "row", "matrix"); a right click has the same menu. Cells have words where these fit.
    """

    cellHovered = Signal(int, int)
    cellClicked = Signal(int, int)
    viewChanged = Signal()
    copyWanted = Signal(str)
    tableWanted = Signal()
    wholeWanted = Signal()

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, label, parent)
        self.theme = theme
        self.n_depths = self.n_positions = 0
        self.ids: NDArray[np.int32] = np.empty((0, 0), np.int32)
        self.p: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.entropy: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.words: dict[int, str] = {}
        self.axis: Sequence[str] = ()
        self._came: Sequence[int] = ()
        self.first_decode: int | None = None
        self.table: Colours = np.zeros(256, np.uint32)
        self.light: NDArray[np.bool_] = np.zeros(256, np.bool_)
        self.overview = False
        self._zoom = 1.0
        self._drag: tuple[QPointF, Cell] | None = None
        self._dragged = False
        self.chosen: tuple[int, int] | None = None
        self.away = False
        """Whether a person has scrolled the chosen cell out of sight; else it stays there."""
        self.linked: int | None = None
        self.awaited = False
        """Whether it is said that cells are under way."""
        self._scene: QPixmap | None = None
        self._side: float | None = None
        self._size: tuple[float, float] | None = None
        self._sized: Sizes | None = None
        self.horizontalScrollBar().valueChanged.connect(self._on_scrolled)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        theme.changed.connect(self.relayout)

    # state → widget

    def set_run(
        self, n_depths: int, axis: Sequence[str], ids: Sequence[int], first_decode: int | None, *, keep: int
    ) -> None:
        """The path's tokens, and how many of the first positions keep what is known of them. Steps are followed at the
        end, as long as the chosen cell stays in sight; another text is seen where the chosen cell is."""
        keep = min(keep, self.n_positions, len(axis)) if n_depths == self.n_depths else 0
        shape = (n_depths, len(axis))
        old = (self.ids, self.p, self.entropy)
        self.ids = np.full(shape, -1, np.int32)
        self.p, self.entropy = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
        if keep:
            for new, before in zip((self.ids, self.p, self.entropy), old, strict=True):
                new[:, :keep] = before[:, :keep]
        at_end = self.horizontalScrollBar().value() == self.horizontalScrollBar().maximum()
        follows = keep and at_end and first_decode is not None and len(axis) > self.n_positions
        if self.n_positions and not keep:
            self.away = False
        self.n_depths, self.n_positions = shape
        self.axis, self._came, self.first_decode = axis, ids, first_decode
        self.relayout()
        if follows:
            end = self.horizontalScrollBar().maximum()
            bound = end if self.away or self.chosen is None else min(self.chosen[1], end)
            self._scroll(bound, self.verticalScrollBar().value())

    def set_part(
        self,
        depth: int,
        first: int,
        ids: NDArray[np.int32],
        p: NDArray[np.float32],
        entropy: NDArray[np.float32],
        pieces: Sequence[str],
    ) -> None:
        """Cells of a depth from position `first` on."""
        stop = min(first + len(ids), self.n_positions)
        if depth < self.n_depths and stop > first:
            count = stop - first
            self.ids[depth, first:stop], self.p[depth, first:stop] = ids[:count], p[:count]
            self.entropy[depth, first:stop] = entropy[:count]
            self.words |= dict(zip(ids.tolist(), pieces, strict=True))
            if self.chosen is not None and self.chosen[0] == depth:
                self._describe()
            self._redraw()

    def set_table(self, table: Colours) -> None:
        """256 colours: 0 unknown, 1 … 255 probabilities 0 … 1."""
        if np.array_equal(table, self.table):
            return
        self.table = table
        channels = np.stack([(table >> shift) & 255 for shift in (16, 8, 0)], -1) / 255.0  # (256, 3)
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        self.light = linear @ np.array([0.2126, 0.7152, 0.0722]) > LIGHT  # (256,)
        self._redraw()

    def set_overview(self, *, overview: bool) -> None:
        """All in sight and no words, or words; at their own size."""
        if overview != self.overview or self._zoom != 1.0:
            self.overview, self._zoom = overview, 1.0
            self.relayout()

    def carry(self, before: LensGrid) -> None:
        """How large the cells of another grid are, and which is chosen."""
        self.overview, self._zoom = before.overview, before._zoom
        self.set_chosen(before.chosen)
        self.away = before.away
        self.relayout()

    def scroll_back(self, across: int, down: int) -> None:
        """To where a grid was that this one has taken the place of, in cells; the chosen cell in sight as it was."""
        self._scroll(across, down)
        if not self.away and self.chosen is not None:
            self.reveal(self.chosen)

    def set_chosen(self, cell: tuple[int, int] | None) -> None:
        if cell != self.chosen:
            self.chosen = cell
            self._describe()
            self.viewport().update()

    def set_linked(self, position: int | None) -> None:
        """The token pointed at elsewhere."""
        if position != self.linked:
            self.linked = position
            self.viewport().update()

    def set_awaited(self, *, awaited: bool) -> None:
        """Says over the layers that are not here yet that they are under way."""
        if awaited != self.awaited:
            self.awaited = awaited
            self.viewport().update()

    # geometry

    @property
    def head_room(self) -> float:
        """Px above the cells for the tokens of the text."""
        return float(self.theme.px(CELL_HEIGHT))

    @property
    def side_room(self) -> float:
        """Px left of the cells for the depths."""
        if self._side is None:
            metrics = QFontMetricsF(self.theme.font("hint", bold=True))
            self._side = max(metrics.horizontalAdvance(self.depth_name(end)) for end in (0, self.n_depths - 1)) + 8
        return self._side

    @property
    def with_words(self) -> bool:
        """Whether cells are large enough for a word, and a stripe."""
        return self._sizes().with_words(self.cell_size())

    def _sizes(self) -> Sizes:
        if self._sized is None:
            room = self.viewport().width() - self.side_room, self.viewport().height() - self.head_room
            self._sized = Sizes.of(self.theme, room, (self.n_positions, self.n_depths))
        return self._sized

    def cell_size(self) -> tuple[float, float]:
        """Width and height of a cell: where not all fit, those in sight share the room."""
        if self._size is None:
            self._size = self._sizes().cell(self._zoom, overview=self.overview)
        return self._size

    def counts(self) -> tuple[int, int]:
        """How many positions and depths are seen at once."""
        return self._sizes().seen(self.cell_size())

    def cell_rect(self, depth: int, position: int) -> QRectF:
        """Where a cell is in the viewport."""
        width, height = self.cell_size()
        left = self.side_room + (position - self.horizontalScrollBar().value()) * width
        top = self.head_room + (self.n_depths - 1 - depth - self.verticalScrollBar().value()) * height
        return QRectF(left, top, width, height)

    def thing_at(self, point: QPointF) -> Cell | None:
        if point.x() < self.side_room or point.y() < self.head_room:
            return None
        (width, height), (depths, positions) = self.cell_size(), self.in_sight()
        position = positions[0] + int((point.x() - self.side_room) // width)
        depth = depths[1] - 1 - int((point.y() - self.head_room) // height)
        return (depth, position) if position < positions[1] and depth >= depths[0] else None

    def in_sight(self) -> tuple[Span, Span]:
        """Depths and positions that can be seen, half-open."""
        across, down = self.counts()
        x, y = min(self.horizontalScrollBar().value(), self.n_positions), self.verticalScrollBar().value()
        top = max(self.n_depths - y, 0)
        return (max(top - down, 0), top), (x, min(x + across, self.n_positions))

    def is_whole(self) -> bool:
        """Whether every cell is in sight."""
        return self.counts() == (self.n_positions, self.n_depths)

    @property
    def selected(self) -> Cell | None:
        """The chosen cell as a matrix has it, from the top: row, column."""
        return None if self.chosen is None else (self.n_depths - 1 - self.chosen[0], self.chosen[1])

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Closer (over 1) or farther, about a point of the viewport (None: the cell pointed at or chosen)."""
        if not self.n_positions:
            return
        cell = (self.thing_at(at) if at is not None else None) or self.hovered or self.chosen
        least, most = self._sizes().zoom_ends(overview=self.overview)
        zoom = min(max(self._zoom * factor, least), most)
        if zoom == self._zoom:
            return
        before = None if cell is None else self.cell_rect(*cell).center()
        self._zoom = zoom
        self.relayout()
        if cell is not None and before is not None:
            self._pan_to(cell, before)

    def reset_view(self) -> None:
        """Shows the whole: `wholeWanted`, as the owner says elsewhere too how large cells are."""
        self.wholeWanted.emit()

    def missing(self, depths: Span | None = None, positions: Span | None = None) -> tuple[int, ...]:
        """The depths, from the top, of which a cell at `positions` is not known; those in sight unless it is said."""
        in_sight = self.in_sight()
        depths, positions = depths or in_sight[0], positions or in_sight[1]
        unknown = (self.ids[slice(*depths), slice(*positions)] < 0).any(1)
        return tuple(depths[0] + int(row) for row in np.flatnonzero(unknown))[::-1]

    def sizeHint(self) -> QSize:
        return QSize(560, self.theme.px(10 * CELL_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(180, self.theme.px(5 * CELL_HEIGHT))

    # events

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.relayout()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self.n_positions:
            return
        painter = QPainter(self.viewport())
        depths, positions = self.in_sight()
        (width, height), (across, down) = self.cell_size(), self.counts()
        area = QRectF(self.side_room, self.head_room, across * width, down * height)
        if self._scene is None:
            self._scene = self._make_scene(area, depths, positions)
        painter.drawPixmap(0, 0, self._scene)
        paint_overlay(painter, self, area, depths, positions)

    def choose(self, thing: Cell) -> None:
        self.set_chosen(thing)
        self.reveal(thing)
        self.cellClicked.emit(*thing)

    def say_hovered(self, thing: Cell | None) -> None:
        self.cellHovered.emit(*(thing or (-1, -1)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._drag, self._dragged = (event.position(), self._scrolled()), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None and event.buttons() & Qt.MouseButton.LeftButton:
            start, (x, y) = self._drag
            moved, (width, height) = event.position() - start, self.cell_size()
            if self._dragged or moved.manhattanLength() >= QApplication.startDragDistance():
                self._dragged = True
                self.horizontalScrollBar().setValue(x - round(moved.x() / width))
                self.verticalScrollBar().setValue(y - round(moved.y() / height))
                return
        super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._drag is not None:
            self._drag = None
            thing = None if self._dragged else self.thing_at(event.position())
            if thing is not None:
                self.choose(thing)
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.thing_at(event.position()) is not None:
            self._drag = None
            self.reset_view()

    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = event.angleDelta().y() / 120
        if notches and self.thing_at(event.position()) is not None:
            self.zoom(ZOOM_STEP**notches, event.position())
            self._point(self.thing_at(event.position()))
            event.accept()
        else:
            super().wheelEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        open_menu(
            self, event.globalPos(), self.copyWanted.emit, at_cell=(self.hovered or self.chosen) is not None,
            table=self.tableWanted.emit, whole=self.reset_view, is_whole=self.is_whole(),
        )  # fmt: skip

    def keyPressEvent(self, event: QKeyEvent) -> None:
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        key, last = Key(event.key()), self.n_depths - 1
        target = None
        if self.n_positions:
            page = max(1, self.counts()[1] - 1 if self.counts()[1] < self.n_depths else self.n_depths // 8)
            shape = (self.n_depths, self.n_positions)
            target = cell_after(key, self.selected or (0, 0), shape, control=control, page=page)
        if target is not None:
            self.hovered = None
            self.choose((last - target[0], target[1]))
        elif key == Key.Key_Z and not control:
            self.zoom(1 / ZOOM_STEP if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else ZOOM_STEP)
        elif key == Key.Key_0 and not control:
            self.reset_view()
        elif control and key == Key.Key_C:
            self.copyWanted.emit("cell")
        else:
            event.ignore()

    # inside

    def depth_name(self, depth: int) -> str:
        """What a depth is called on the axis."""
        if depth == 0:
            return tr("embedding")
        return tr("{layer}, output", layer=depth - 1) if depth == self.n_depths - 1 else str(depth - 1)

    def word(self, depth: int, position: int) -> str:
        return self.words.get(int(self.ids[depth, position]), "")

    def comes_true(self, depth: int, position: int) -> bool:
        """Whether the cell's token is the one that came next."""
        return position + 1 < self.n_positions and int(self.ids[depth, position]) == self._came[position + 1]

    def _make_scene(self, area: QRectF, depths: Span, positions: Span) -> QPixmap:
        """The cells, kept until something changes: a hover copies them."""
        ratio = self.devicePixelRatioF()
        size = self.viewport().size()
        scene = QPixmap(max(1, round(size.width() * ratio)), max(1, round(size.height() * ratio)))
        scene.setDevicePixelRatio(ratio)
        scene.fill(Qt.GlobalColor.transparent)
        painter = QPainter(scene)
        painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
        painter.setClipRect(area)
        paint_cells(painter, self, depths, positions)
        painter.end()
        return scene

    def _redraw(self) -> None:
        """Makes the cells anew."""
        self._scene = None
        self.viewport().update()

    def reveal(self, cell: tuple[int, int]) -> None:
        """Scrolls so far that a cell is in sight."""
        (across, down), row = self.counts(), self.n_depths - 1 - cell[0]
        for bar, at, count in ((self.horizontalScrollBar(), cell[1], across), (self.verticalScrollBar(), row, down)):
            bar.setValue(min(max(bar.value(), at - count + 1), at))
        self.away = False

    def _scroll(self, across: int, down: int) -> None:
        """Not by a person."""
        away = self.away
        self.horizontalScrollBar().setValue(across)
        self.verticalScrollBar().setValue(down)
        self.away = away

    def _scrolled(self) -> Cell:
        return self.horizontalScrollBar().value(), self.verticalScrollBar().value()

    def _pan_to(self, cell: Cell, point: QPointF) -> None:
        """Scrolls so that a cell is at a point of the viewport, or as near as whole cells allow."""
        width, height = self.cell_size()
        self.horizontalScrollBar().setValue(cell[1] - int(max(point.x() - self.side_room, 0.0) // width))
        row = self.n_depths - 1 - cell[0]
        self.verticalScrollBar().setValue(row - int(max(point.y() - self.head_room, 0.0) // height))

    def relayout(self) -> None:
        """Sizes and scroll ranges in the present room; the chosen cell stays in sight."""
        away = self.away
        self._side = self._size = self._sized = None
        (across, down), bars = self.counts(), (self.horizontalScrollBar(), self.verticalScrollBar())
        for bar, cells, count in ((bars[0], self.n_positions, across), (bars[1], self.n_depths, down)):
            bar.setPageStep(max(count, 1))
            bar.setSingleStep(1)
            bar.setRange(0, max(cells - count, 0))
        self.away = away
        if not away and self.chosen is not None:
            self.reveal(self.chosen)
        self._redraw()
        self.viewChanged.emit()

    def _on_scrolled(self) -> None:
        if self.chosen is not None:
            depths, positions = self.in_sight()
            self.away = self.chosen[0] not in range(*depths) or self.chosen[1] not in range(*positions)
        self._redraw()
        self.viewChanged.emit()

    def _describe(self) -> None:
        if self.chosen is not None and self.chosen[0] < self.n_depths and self.chosen[1] < self.n_positions:
            depth, position = self.chosen
            self.setAccessibleDescription(
                tr("{depth}, after {token}: {word}", depth=self.depth_name(depth), token=self.axis[position],
                   word=self.word(depth, position))
                + (f" · p {self.p[depth, position]!s}" if self.ids[depth, position] >= 0 else "")
            )  # fmt: skip
