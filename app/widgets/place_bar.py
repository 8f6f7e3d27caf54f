"""Where in the model one is: the way in, every block, the way out, as one row of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.widgets.ticks import nice_count

if TYPE_CHECKING:
    from app.theme import Theme

HEIGHT = 26
GAP = 2.0
Key = Qt.Key


class PlaceBar(QWidget):
    """Cell 0 is the way in, 1 … n the blocks 0 … n - 1, n + 1 the way out. `placeChosen` carries a cell; arrows, Home
    and End choose."""

    placeChosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._blocks, self._place = 1, 0
        self._hovered = -1
        self.setAccessibleName(tr("Place in the model"))
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._restyle)

    def set_places(self, blocks: int, place: int) -> None:
        """How many blocks there are, and where one is."""
        if (blocks, place) != (self._blocks, self._place):
            self._blocks, self._place = blocks, place
            self.setAccessibleDescription(self.name(place))
            self.update()

    @property
    def place(self) -> int:
        return self._place

    def name(self, cell: int) -> str:
        """What a cell is."""
        if cell == 0:
            return tr("Embedding")
        return tr("Output head") if cell == self._blocks + 1 else tr("Block {layer}", layer=cell - 1)

    def sizeHint(self) -> QSize:
        return QSize(420, self._theme.px(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(140, self._theme.px(HEIGHT))

    def cell_rect(self, cell: int) -> QRectF:
        """Where a cell is drawn."""
        metrics = QFontMetricsF(self._theme.font("hint"))
        ends = [metrics.horizontalAdvance(self.name(end)) + 16 for end in (0, self._blocks + 1)]
        inner = max(self.width() - sum(ends) - 2 * GAP, 8.0)
        pitch = min(inner / self._blocks, self._theme.px(40))
        if cell == 0:
            return QRectF(0.5, 0.5, ends[0] - 1, self.height() - 1)
        left = ends[0] + GAP + (cell - 1) * pitch
        width = ends[1] - 1 if cell == self._blocks + 1 else max(pitch - GAP, 1.5)
        return QRectF(left + 0.5, 0.5, width, self.height() - 1)

    def cell_at(self, x: float) -> int:
        """The cell at a place along the bar, -1 for none."""
        for cell in range(self._blocks + 2):
            rect = self.cell_rect(cell)
            if rect.left() - GAP <= x <= rect.right():
                return cell
        return -1

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = self._theme.font("hint")
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        pitch = self.cell_rect(1).width() + GAP
        wide = metrics.horizontalAdvance(str(self._blocks - 1)) + 4
        step = nice_count(wide / pitch) if pitch > 0 else 1
        for cell in range(self._blocks + 2):
            if cell != self._place:
                self._paint_cell(painter, cell, self.cell_rect(cell), metrics)
        painter.setPen(colours.secondary)
        for cell in range(1, self._blocks + 1, step):
            rect, near = self.cell_rect(cell), abs(cell - self._place) * pitch < wide
            if cell != self._place and (step == 1 or not near):
                painter.drawText(rect.adjusted(-wide, 0, wide, 0), Qt.AlignmentFlag.AlignCenter, str(cell - 1))
        self._paint_cell(painter, self._place, self._grown(self._place, wide), metrics)
        if self.hasFocus():
            painter.setPen(QPen(colours.accent_text, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            rect = self._grown(self._place, metrics.horizontalAdvance("000") + 4)
            painter.drawRoundedRect(rect.adjusted(2, 2, -2, -2), 2, 2)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(self.cell_at(event.position().x()))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position().x())
        if event.button() == Qt.MouseButton.LeftButton and cell >= 0:
            self.placeChosen.emit(cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = self._blocks + 1
        moves = {Key.Key_Left: self._place - 1, Key.Key_Right: self._place + 1, Key.Key_Home: 0, Key.Key_End: last}
        target = moves.get(Key(event.key()))
        if target is None:
            event.ignore()
        else:
            self.placeChosen.emit(min(max(target, 0), last))

    def _grown(self, cell: int, least: float) -> QRectF:
        """A cell's rectangle, wide enough for its number."""
        rect = self.cell_rect(cell)
        more = max(0.0, (least - rect.width()) / 2)
        return rect.adjusted(-more, 0, more, 0)

    def _paint_cell(self, painter: QPainter, cell: int, rect: QRectF, metrics: QFontMetricsF) -> None:
        colours, here = self._theme.palette, cell == self._place
        painter.setPen(QPen(colours.accent if here else colours.line, 1))
        painter.setBrush(colours.accent if here else colours.hover if cell == self._hovered else colours.raised)
        radius = min(4.0, rect.width() / 2)
        painter.drawRoundedRect(rect, radius, radius)
        inner = 0 < cell <= self._blocks
        if inner and not here:
            return
        painter.setPen(colours.accent_text if here else colours.secondary)
        text = str(cell - 1) if inner else self.name(cell)
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)

    def _hover(self, cell: int) -> None:
        if cell != self._hovered:
            self._hovered = cell
            self.setToolTip(self.name(cell) if cell >= 0 else "")
            self.update()

    def _restyle(self) -> None:
        self.updateGeometry()
        self.update()
