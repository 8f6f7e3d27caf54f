"""Tokens by depth and position: a word in every cell, coloured by its probability; or colours alone, all in sight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from app.i18n import tr
from app.widgets.pointed_sheet import PointedSheet

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours

CELL_WIDTH, CELL_HEIGHT = 74, 19
TIGHT_WIDTH, TIGHT_HEIGHT = 57, 18
"""Px at 100 % text of a cell where not all have room: seven letters of a token."""
STRIPE = 3.0
LEAST_WIDTH, LEAST_HEIGHT = 7, 3
PADDING = 4.0
SLACK = 0.01
"""Of a px, for what rounding leaves of a room that is shared."""
LIGHT = 0.179
"""Colours of more relative luminance than this (WCAG) stand out better against black than against white."""
Key = Qt.Key
Span = tuple[int, int]
Cell = tuple[int, int]
"""Depth and position."""


class LensGrid(PointedSheet[Cell]):
    """Row 0 of the model is at the bottom: reading upwards is going through the layers.

    Cells are seen whole: the scroll bars count them, and they share the room. `cellHovered`, `cellClicked` carry
    (depth, position), -1, -1 for none; `viewChanged` when other cells are in sight.
    Keys: arrows, Home, End, Page keys move the cell; Ctrl+C copies it (`copyWanted`).
    """

    cellHovered = Signal(int, int)
    cellClicked = Signal(int, int)
    viewChanged = Signal()
    copyWanted = Signal()

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, label, parent)
        self.n_depths = self.n_positions = 0
        self.ids: NDArray[np.int32] = np.empty((0, 0), np.int32)
        self.p: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.entropy: NDArray[np.float32] = np.empty((0, 0), np.float32)
        self.words: dict[int, str] = {}
        self._axis: Sequence[str] = ()
        self._came: Sequence[int] = ()
        self._first_decode: int | None = None
        self._table: Colours = np.zeros(256, np.uint32)
        self._light: NDArray[np.bool_] = np.zeros(256, np.bool_)
        self.overview = False
        self.chosen: tuple[int, int] | None = None
        self._linked: int | None = None
        self._scene: QPixmap | None = None
        self._side: float | None = None
        self._size: tuple[float, float] | None = None
        self.horizontalScrollBar().valueChanged.connect(self._on_scrolled)
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        theme.changed.connect(self.relayout)

    # state → widget

    def set_run(
        self, n_depths: int, axis: Sequence[str], ids: Sequence[int], first_decode: int | None, *, keep: int
    ) -> None:
        """The path's tokens, and how many of the first positions keep what is known of them."""
        keep = min(keep, self.n_positions, len(axis)) if n_depths == self.n_depths else 0
        shape = (n_depths, len(axis))
        old = (self.ids, self.p, self.entropy)
        self.ids = np.full(shape, -1, np.int32)
        self.p, self.entropy = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
        if keep:
            for new, before in zip((self.ids, self.p, self.entropy), old, strict=True):
                new[:, :keep] = before[:, :keep]
        at_end = self.horizontalScrollBar().value() == self.horizontalScrollBar().maximum()
        grown = self.n_positions and len(axis) > self.n_positions
        first = not self.n_positions
        self.n_depths, self.n_positions = shape
        self._axis, self._came, self._first_decode = axis, ids, first_decode
        self.relayout()
        if first:
            self.verticalScrollBar().setValue(0)
        elif grown and at_end:
            self.horizontalScrollBar().setValue(self.horizontalScrollBar().maximum())

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
            self._redraw()

    def set_table(self, table: Colours) -> None:
        """256 colours: 0 unknown, 1 … 255 probabilities 0 … 1."""
        if np.array_equal(table, self._table):
            return
        self._table = table
        channels = np.stack([(table >> shift) & 255 for shift in (16, 8, 0)], -1) / 255.0  # (256, 3)
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        self._light = linear @ np.array([0.2126, 0.7152, 0.0722]) > LIGHT  # (256,)
        self._redraw()

    def set_overview(self, *, overview: bool) -> None:
        """All depths in sight and no words, or words."""
        if overview != self.overview:
            self.overview = overview
            self.relayout()

    def set_chosen(self, cell: tuple[int, int] | None) -> None:
        if cell != self.chosen:
            self.chosen = cell
            self._describe()
            self.viewport().update()

    def set_linked(self, position: int | None) -> None:
        """The token pointed at elsewhere."""
        if position != self._linked:
            self._linked = position
            self.viewport().update()

    # geometry

    @property
    def head_room(self) -> float:
        """Px above the cells for the tokens of the text."""
        return float(self._theme.px(CELL_HEIGHT))

    @property
    def side_room(self) -> float:
        """Px left of the cells for the depths."""
        if self._side is None:
            metrics = QFontMetricsF(self._theme.font("hint", bold=True))
            self._side = max(metrics.horizontalAdvance(self.depth_name(end)) for end in (0, self.n_depths - 1)) + 8
        return self._side

    @property
    def with_words(self) -> bool:
        """Whether cells are large enough for a word, and a stripe."""
        width, height = self.cell_size()
        return width >= self._theme.px(CELL_WIDTH) * 0.6 and height >= self._theme.px(CELL_HEIGHT) * 0.8

    def cell_size(self) -> tuple[float, float]:
        """Width and height of a cell: where not all fit, those in sight share the room."""
        if self._size is None:
            self._size = self._fitting_size()
        return self._size

    def _fitting_size(self) -> tuple[float, float]:
        room_x, room_y = self.viewport().width() - self.side_room, self.viewport().height() - self.head_room
        wide, high = self._theme.px(CELL_WIDTH), self._theme.px(CELL_HEIGHT)
        if self.overview:
            width = _share(room_x, self.n_positions, LEAST_WIDTH, wide)
            return width, _share(room_y, self.n_depths, LEAST_HEIGHT, high)
        width = _share(room_x, self.n_positions, self._theme.px(TIGHT_WIDTH), wide)
        return _whole(width), _whole(_share(room_y, self.n_depths, self._theme.px(TIGHT_HEIGHT), high))

    def counts(self) -> tuple[int, int]:
        """How many positions and depths are seen at once."""
        width, height = self.cell_size()
        room_x, room_y = self.viewport().width() - self.side_room, self.viewport().height() - self.head_room
        return (min(max(int((room_x + SLACK) / width), 1), self.n_positions),
                min(max(int((room_y + SLACK) / height), 1), self.n_depths))  # fmt: skip

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

    def missing(self) -> list[int]:
        """Depths in sight of which a cell in sight is not known, from the top."""
        depths, positions = self.in_sight()
        unknown = self.ids[slice(*depths), slice(*positions)] < 0
        return [depths[0] + int(row) for row in np.flatnonzero(unknown.any(1))][::-1]

    def sizeHint(self) -> QSize:
        return QSize(560, self._theme.px(10 * CELL_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(180, self._theme.px(5 * CELL_HEIGHT))

    # events

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.relayout()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self.n_positions:
            return
        painter, theme = QPainter(self.viewport()), self._theme
        depths, positions = self.in_sight()
        (width, height), (across, down) = self.cell_size(), self.counts()
        area = QRectF(self.side_room, self.head_room, across * width, down * height)
        if self._scene is None:
            self._scene = self._make_scene(area, depths, positions)
        painter.drawPixmap(0, 0, self._scene)
        painter.save()
        painter.setClipRect(area.adjusted(-1, -1, 1, 1))  # a frame is as thick at the outer cells
        self._paint_frames(painter)
        painter.restore()
        painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
        self._paint_axis(painter, positions)
        self._paint_depths(painter, depths)
        if self.hasFocus():
            painter.setPen(QPen(theme.palette.accent, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(area.adjusted(0.5, 0.5, -1, -1))

    def choose(self, thing: Cell) -> None:
        self.set_chosen(thing)
        self.reveal(thing)
        self.cellClicked.emit(*thing)

    def say_hovered(self, thing: Cell | None) -> None:
        self.cellHovered.emit(*(thing or (-1, -1)))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.n_positions:
            event.ignore()
            return
        if event.key() == Key.Key_C and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.copyWanted.emit()
            return
        depth, position = self.chosen or (self.n_depths - 1, 0)
        last = self.n_positions - 1
        moves = {
            Key.Key_Left: (depth, position - 1), Key.Key_Right: (depth, position + 1),
            Key.Key_Up: (depth + 1, position), Key.Key_Down: (depth - 1, position), Key.Key_Home: (depth, 0),
            Key.Key_End: (depth, last), Key.Key_PageUp: (depth + 8, position), Key.Key_PageDown: (depth - 8, position),
        }  # fmt: skip
        target = moves.get(Key(event.key()))
        if target is None:
            event.ignore()
        else:
            self.choose((min(max(target[0], 0), self.n_depths - 1), min(max(target[1], 0), self.n_positions - 1)))

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
        self._paint_cells(painter, depths, positions)
        painter.end()
        return scene

    def _redraw(self) -> None:
        """Makes the cells anew."""
        self._scene = None
        self.viewport().update()

    def _paint_cells(self, painter: QPainter, depths: Span, positions: Span) -> None:
        width, _ = self.cell_size()
        if not self.with_words:
            self._paint_colours(painter, depths, positions)
            return
        font = self._theme.font("mono_small")
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        room = width - PADDING - STRIPE - 3
        shown: dict[int, str] = {}
        for depth in range(*depths):
            for position in range(*positions):
                rect = self.cell_rect(depth, position).adjusted(0, 0, -1, -1)
                token, level = int(self.ids[depth, position]), self._level(depth, position)
                painter.fillRect(rect, QColor.fromRgb(int(self._table[level])))
                if token < 0:
                    continue
                painter.setPen(Qt.GlobalColor.black if self._light[level] else Qt.GlobalColor.white)
                if self.comes_true(depth, position):
                    # On the cell and not at its edge, where it would be lost in the gap of one of the themes.
                    painter.fillRect(rect.adjusted(2, 3, STRIPE + 2 - rect.width(), -3), painter.pen().color())
                if token not in shown:
                    shown[token] = metrics.elidedText(self.words.get(token, ""), Qt.TextElideMode.ElideRight, room)
                inside = rect.adjusted(PADDING + STRIPE, 0, 0, 0)
                painter.drawText(inside, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown[token])

    def _level(self, depth: int, position: int) -> int:
        p = float(self.p[depth, position])
        return 0 if self.ids[depth, position] < 0 else 1 + round(min(p, 1.0) * 254)

    def _paint_colours(self, painter: QPainter, depths: Span, positions: Span) -> None:
        """The cells in sight as one picture."""
        part = (slice(*depths), slice(*positions))
        p = np.nan_to_num(np.minimum(self.p[part], 1.0))
        levels = np.where(self.ids[part] < 0, 0, 1 + np.rint(p * 254)).astype(np.int64)
        if not levels.size:
            return
        colours = np.ascontiguousarray(self._table[levels[::-1]])
        height, width = colours.shape
        image = QImage(colours.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        top, bottom = self.cell_rect(depths[1] - 1, positions[0]), self.cell_rect(depths[0], positions[1] - 1)
        painter.drawImage(QRectF(top.topLeft(), bottom.bottomRight()), image)

    def _paint_frames(self, painter: QPainter) -> None:
        colours = self._theme.palette
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if self._linked is not None:
            painter.setPen(QPen(colours.cursor, 1))
            top, bottom = self.cell_rect(self.n_depths - 1, self._linked), self.cell_rect(0, self._linked)
            painter.drawRect(QRectF(top.topLeft(), bottom.bottomRight()).adjusted(0.5, 0.5, -1.5, -1.5))
        for cell, colour in ((self.chosen, colours.accent), (self.hovered, colours.cursor)):
            if cell is not None:
                rect = self.cell_rect(*cell).adjusted(-0.5, -0.5, -0.5, -0.5)
                painter.setPen(QPen(QColor(0, 0, 0, 140), 1))
                painter.drawRect(rect.adjusted(-1, -1, 1, 1))
                painter.setPen(QPen(colour, 2))
                painter.drawRect(rect)

    def _paint_axis(self, painter: QPainter, positions: Span) -> None:
        colours, (width, _) = self._theme.palette, self.cell_size()
        pointed = self.hovered or self.chosen
        step = max(1, int(np.ceil(self._theme.px(CELL_WIDTH) * 0.6 / width)))
        painter.setClipRect(QRectF(self.side_room, 0, self.viewport().width(), self.head_room))
        edge, free = float(self.viewport().width()), self.side_room
        for position in range(positions[0] // step * step, positions[1], step):
            bold = position in {pointed[1] if pointed else None, self._linked}
            font = self._theme.font("mono_small", bold=bold)
            painter.setFont(font)
            generated = self._first_decode is not None and position >= self._first_decode
            painter.setPen(colours.text if bold else colours.amber if generated else colours.secondary)
            rect = self.cell_rect(0, position)
            room = QRectF(rect.left() + PADDING, 0, width * step - 2 * PADDING, self.head_room)
            needed = QFontMetricsF(font).horizontalAdvance(self._axis[position])
            if position + step >= self.n_positions:  # none follows: it ends at the edge, and begins before its cell
                room.setRight(edge)
                room.setLeft(min(room.left(), max(edge - needed - 1, free)))
            room.setRight(min(room.right(), edge))
            text = QFontMetricsF(font).elidedText(self._axis[position], Qt.TextElideMode.ElideRight, room.width())
            free = room.left() + min(needed, room.width()) + PADDING
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.setClipping(False)

    def _paint_depths(self, painter: QPainter, depths: Span) -> None:
        colours, (_, height) = self._theme.palette, self.cell_size()
        pointed = self.hovered or self.chosen
        metrics = QFontMetricsF(self._theme.font("hint"))
        step = max(1, int(np.ceil(metrics.height() / height)))
        painter.setClipRect(QRectF(0, self.head_room, self.side_room, self.viewport().height()))
        for depth in range(*depths):
            ends = depth in (0, self.n_depths - 1)
            if not ends and ((depth - 1) % step or min(depth, self.n_depths - 1 - depth) < step):
                continue
            bold = pointed is not None and pointed[0] == depth
            painter.setFont(self._theme.font("hint", bold=bold))
            painter.setPen(colours.text if bold else colours.secondary)
            rect = self.cell_rect(depth, 0)
            y = rect.center().y() - metrics.height() / 2
            if self.overview:  # lines are lower than a name: the outer ones must not be cut
                y = max(min(y, self.viewport().height() - metrics.height()), self.head_room)
            room = QRectF(0, y, self.side_room - 6, metrics.height())
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, self.depth_name(depth))
        painter.setClipping(False)

    def reveal(self, cell: tuple[int, int]) -> None:
        """Scrolls so far that a cell is in sight."""
        (across, down), row = self.counts(), self.n_depths - 1 - cell[0]
        for bar, at, count in ((self.horizontalScrollBar(), cell[1], across), (self.verticalScrollBar(), row, down)):
            bar.setValue(min(max(bar.value(), at - count + 1), at))

    def relayout(self) -> None:
        """Sizes and scroll ranges in the present room."""
        self._side = self._size = None
        (across, down), bars = self.counts(), (self.horizontalScrollBar(), self.verticalScrollBar())
        for bar, cells, count in ((bars[0], self.n_positions, across), (bars[1], self.n_depths, down)):
            bar.setPageStep(max(count, 1))
            bar.setSingleStep(1)
            bar.setRange(0, max(cells - count, 0))
        self._redraw()
        self.viewChanged.emit()

    def _on_scrolled(self) -> None:
        self._redraw()
        self.viewChanged.emit()

    def _describe(self) -> None:
        if self.chosen is not None and self.chosen[0] < self.n_depths and self.chosen[1] < self.n_positions:
            depth, position = self.chosen
            self.setAccessibleDescription(
                tr("{depth}, after {token}: {word}", depth=self.depth_name(depth), token=self._axis[position],
                   word=self.word(depth, position))
            )  # fmt: skip


def _share(room: float, count: int, least: float, most: float) -> float:
    """Px of a cell so that `count` of them have `room`, or where that is under `least` a whole number of them."""
    if count * least > room:
        return max(room, least) / max(int(room // least), 1)
    return min(room / max(count, 1), most)


def _whole(size: float) -> float:
    return float(max(int(size + SLACK), 1))
