"""Where in the model one is: the way in, every block, the way out, as one row of cells; of blocks that have no room for
their numbers, as a scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.widgets.ticks import nice_count

if TYPE_CHECKING:
    from app.theme import Theme

HEIGHT = 26
GAP = 2.0
APART = 8.0
"""Px between the numbers of a scale."""
MOST_ENDS = 0.42
"""Share of the width that the ends may take with their whole names."""
LEAST_PITCH = 3.0
"""Px from a line of the scale to the next."""
Key = Qt.Key
NUMBER = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip


class PlaceBar(QWidget):
    """Cell 0 is the way in, 1 … n the blocks 0 … n - 1, n + 1 the way out. `placeChosen` carries a cell; arrows, Home
    and End choose."""

    placeChosen = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._blocks, self._place = 1, 0
        self._hovered = -1
        self._written: tuple[tuple[str, float], tuple[str, float]] | None = None
        self.setAccessibleName(tr("Place in the model"))
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._restyle)

    def set_places(self, blocks: int, place: int) -> None:
        """How many blocks there are, and where one is."""
        if (blocks, place) != (self._blocks, self._place):
            self._blocks, self._place, self._written = blocks, place, None
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
        ends = [width for _, width in self._ends()]
        inner = max(self.width() - sum(ends) - 2 * GAP, 8.0)
        pitch = min(inner / self._blocks, self._theme.px(40))
        if cell == 0:
            return QRectF(0.5, 0.5, ends[0] - 1, self.height() - 1)
        left = ends[0] + GAP + (cell - 1) * pitch
        width = ends[1] - 1 if cell == self._blocks + 1 else max(pitch - GAP, 1.5)
        return QRectF(left + 0.5, 0.5, width, self.height() - 1)

    def numbered(self) -> list[int]:
        """The cells of the blocks whose numbers are written: all, or those of a scale."""
        metrics = QFontMetricsF(self._theme.font("hint"))
        wide, pitch = metrics.horizontalAdvance(str(self._blocks - 1)), self.cell_rect(1).width() + GAP
        step = 1 if wide + 4 <= pitch else max(2, nice_count((wide + APART) / pitch))
        return list(range(1, self._blocks + 1, step))

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
        wide, numbered = metrics.horizontalAdvance(str(self._blocks - 1)) + 4, self.numbered()
        scale = len(numbered) < self._blocks
        for cell in (0, *(range(1, self._blocks + 1) if not scale else ()), self._blocks + 1):
            if cell != self._place:
                self._paint_cell(painter, cell, self.cell_rect(cell), metrics)
        if scale:
            self._paint_scale(painter, numbered)
        painter.setPen(colours.secondary)
        shown = [cell for cell in (self._hovered, self._place) if 0 < cell <= self._blocks] if scale else []
        covered = [self._grown(cell, wide + APART / 2) for cell in shown]
        for cell in numbered:
            rect = self.cell_rect(cell).adjusted(-wide, 0, wide, -4 if scale else 0)
            word = metrics.horizontalAdvance(str(cell - 1))
            place = QRectF(rect.center().x() - word / 2, rect.top(), word, rect.height())
            if scale:
                place.moveLeft(max(place.left(), self.cell_rect(1).left() + 2))
            if cell != self._place and not any(place.intersects(other) for other in covered):
                painter.drawText(place, NUMBER, str(cell - 1))
        if scale and 0 < self._hovered <= self._blocks and self._hovered != self._place:
            self._paint_cell(painter, self._hovered, self._grown(self._hovered, wide), metrics, named=True)
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

    def _ends(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """What the first and the last cell say and their px: names, or where these leave the blocks no room short
        ones."""
        if self._written is None:
            metrics, last = QFontMetricsF(self._theme.font("hint")), self._blocks + 1
            names = self.name(0), self.name(last)
            if sum(metrics.horizontalAdvance(name) + 16 for name in names) > self.width() * MOST_ENDS:
                names = tr("emb."), tr("out")
            first, end = ((name, metrics.horizontalAdvance(name) + 16) for name in names)
            self._written = first, end
        return self._written

    def _paint_scale(self, painter: QPainter, numbered: list[int]) -> None:
        """One field for all blocks, with a line for each, as far as they stand apart."""
        colours, numbers = self._theme.palette, set(numbered)
        first, last = self.cell_rect(1), self.cell_rect(self._blocks)
        painter.setPen(QPen(colours.line, 1))
        painter.setBrush(colours.raised)
        field = QRectF(first.topLeft(), last.bottomRight())
        painter.drawRoundedRect(field, 4, 4)
        painter.setPen(QPen(colours.secondary, 1))
        every = last.left() - first.left() >= LEAST_PITCH * (self._blocks - 1)
        for cell in range(1, self._blocks + 1):
            if every or cell in numbers:
                x = round(self.cell_rect(cell).center().x()) + 0.5
                high = 5 if cell in numbers else 3
                painter.drawLine(QPointF(x, field.bottom() - high), QPointF(x, field.bottom() - 1))

    def _paint_cell(
        self, painter: QPainter, cell: int, rect: QRectF, metrics: QFontMetricsF, *, named: bool = False
    ) -> None:
        colours, here = self._theme.palette, cell == self._place
        painter.setPen(QPen(colours.accent if here else colours.line, 1))
        painter.setBrush(colours.accent if here else colours.hover if cell == self._hovered else colours.raised)
        radius = min(4.0, rect.width() / 2)
        painter.drawRoundedRect(rect, radius, radius)
        inner = 0 < cell <= self._blocks
        if inner and not here and not named:
            return
        painter.setPen(colours.accent_text if here else colours.secondary)
        text = str(cell - 1) if inner else self._ends()[cell > 0][0]
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)

    def _hover(self, cell: int) -> None:
        if cell != self._hovered:
            self._hovered = cell
            self.setToolTip(self.name(cell) if cell >= 0 else "")
            self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._written = None

    def _restyle(self) -> None:
        self._written = None
        self.updateGeometry()
        self.update()
