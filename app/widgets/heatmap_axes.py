"""Tokens along the axes of a heat map: which ones fit, where they go, and how they are drawn.

A token every cell while cells are wide enough for a line of text; else round positions with their token, as a ruler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QPolygonF, QTransform

from app.widgets.ticks import nice_count

if TYPE_CHECKING:
    from app.theme import Theme

SLANT, STEEP, LYING = 55.0, 90.0, 35.0
"""Degrees of the keys' tokens over the horizontal; where they may take no more width than the matrix has; where it has
little height and wide cells."""
TICK = 4.0
GAP = 8.0


@dataclass(frozen=True, kw_only=True)
class Label:
    """`index`: of the cell; `centre`: px along the axis; `ruler`: one of few, so it has a tick and its position;
    `shift`: px that words over a counted column stand off its middle."""

    index: int
    centre: float
    piece: str
    ruler: bool = False
    number: str = ""
    shift: float = 0.0


class Axis:
    """One axis: its tokens, the font's measures, what is drawn for a stretch of cells. `origin`: the number of cell 0,
    where the matrix is a part of something longer; `stride`: from one cell's number to the next one's;
    `numbered`: a ruler's labels have it, beside the token."""

    def __init__(self, theme: Theme, *, slanted: bool) -> None:
        self._theme, self._slanted = theme, slanted
        self._pieces: Sequence[str] = ()
        self._widest, self.most_letters = 0.0, 1
        self._widths: dict[str, float] = {}
        self.first_decode: int | None = None
        self.always: int | None = None
        """A cell that has its label whatever the step of the others; neighbours that would touch it go."""
        self.origin, self.stride, self.numbered = 0, 1, True
        self.bare = False
        """Cells of a top axis are just counted, though they have tokens."""
        self.wordy = False
        """Tokens stand without their numbers in a ruler too: another axis has these."""
        self.flat = False
        """The names of a top axis are as short as numbers, and stand as these do."""
        self.slant = SLANT
        self.restyle()

    def restyle(self) -> None:
        """Measures again after the theme changed."""
        self.font = self._theme.font("mono_small")
        self.bold = self._theme.font("mono_small", bold=True)
        self.number_font = self._theme.font("hint")
        self.metrics = QFontMetricsF(self.font)
        self.bold_metrics = QFontMetricsF(self.bold)
        self.number_metrics = QFontMetricsF(self.number_font)
        self._widths.clear()
        self.set_pieces(self._pieces)

    def set_pieces(self, pieces: Sequence[str]) -> None:
        """The token of every cell; fewer (or none): cells without one show their position."""
        self._pieces = pieces
        self.most_letters = max(map(len, pieces), default=1)
        known = self._widths
        for piece in set(pieces).difference(known):
            known[piece] = self.bold_metrics.horizontalAdvance(piece)
        self._widest = max((known[piece] for piece in pieces), default=0.0)

    @property
    def named(self) -> bool:
        """Whether cells have tokens with a number beside them, and are not just counted."""
        return bool(self._pieces) and self.numbered and not self.counts and not self.wordy

    def piece(self, index: int) -> str:
        return self._pieces[index] if 0 <= index < len(self._pieces) else self.number(index)

    def word(self, index: int) -> str:
        """What a label says beside a number."""
        return self.number(index) if self.counts and not self.flat else self.piece(index)

    def number(self, index: int) -> str:
        """A cell's number as it is written."""
        return f"{index * self.stride + self.origin:,}"

    def longest(self, room: float, count: int, *, ruler: bool) -> float:
        """Px the longest label of `count` cells takes along its own direction, when a token may take `room`."""
        last = self.number(max(count - 1, 0))
        named = self._pieces and (self.flat or not self.counts)
        widest = self._widest if named else self.bold_metrics.horizontalAdvance(last)
        number = self.number_metrics.horizontalAdvance(last) + 6
        return min(widest, room) + (number if ruler and self.named else 0.0)

    @property
    def counts(self) -> bool:
        """Whether the cells of a top axis are just counted, or as good as: numbers are short enough not to slant."""
        return self._slanted and (self.bare or self.flat or not self._pieces)

    def spacing(self, count: int) -> float:
        """Px from one label to the next at least, where there are `count` cells."""
        line = max(self.metrics.height(), self.number_metrics.height())
        if self.counts:
            return self.longest(math.inf, count, ruler=False) + 8
        return (line - 1) / math.sin(math.radians(self.slant)) if self._slanted else line - 1

    def apart(self, piece: str, other: str, count: int) -> float:
        """Px between the middles of two labels at least: numbers lie one beside the other, as long as they are."""
        if not self.counts:
            return self.spacing(count)
        return sum(self.bold_metrics.horizontalAdvance(text) for text in (piece, other)) / 2 + 8

    def size_over(self, longest: float) -> tuple[float, float]:
        """Of a top axis: height over the matrix, and overhang at its right, of labels of that length, px."""
        if self.counts:
            return self.metrics.height() + TICK + 3, longest / 2 + 2
        angle = math.radians(self.slant)
        return longest * math.sin(angle) + GAP + 6, longest * math.cos(angle) + 6

    def room_under(self, height: float) -> float:
        """Px along a top axis' labels that so many over the matrix leave them: what `size_over` makes of a length."""
        return (height - GAP - 7) / math.sin(math.radians(self.slant))

    def step(self, pitch: float, count: int) -> int:
        """From one label to the next of `count` cells, `pitch` px each."""
        spacing = self.spacing(count)
        return 1 if pitch >= spacing else max(2, nice_count(spacing / max(pitch, 1e-6)))

    def labels(self, *, start: float, extent: float, origin: float, length: float, count: int) -> list[Label]:
        """Labels of the cells `start` … `start + extent` drawn over `length` px from `origin`; none of them touch."""
        if extent <= 0 or count <= 0:
            return []
        pitch = length / extent
        step = self.step(pitch, count)
        first = math.ceil((start - 0.5) / step - 1e-9) * step
        found = []
        for index in range(max(first, 0), min(count, math.floor(start + extent - 0.5 + 1e-9) + 1), step):
            centre = origin + (index + 0.5 - start) * pitch
            number = self.number(index) if step > 1 and self.named else ""
            found.append(Label(index=index, centre=centre, piece=self.word(index), ruler=step > 1, number=number))
        kept = self.always
        if step > 1 and kept is not None and kept < count and start - 0.5 <= kept <= start + extent - 0.5 + 1e-9:
            centre, number = origin + (kept + 0.5 - start) * pitch, self.number(kept) if self.named else ""
            word = self.word(kept)
            found = [label for label in found if abs(label.centre - centre) >= self.apart(label.piece, word, count)]
            found.append(Label(index=kept, centre=centre, piece=word, ruler=True, number=number))
        return found

    def paint(self, painter: QPainter, labels: Sequence[Label], edge: float, room: float) -> None:
        """Draws labels along the matrix edge (its left side, or its top)."""
        for label in labels:
            self._paint(painter, label, edge, room, self.font, self._colour(label.index, self._theme.palette.secondary))

    def paint_hovered(self, painter: QPainter, label: Label, edge: float, room: float) -> None:
        """The label of the hovered cell: bold, over whatever lies under it."""
        painter.save()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.palette.panel)
        painter.drawPolygon(self.outline(label, edge, room, bold=True, margin=0.5))
        painter.restore()
        self._paint(painter, label, edge, room, self.bold, self._colour(label.index, self._theme.palette.text))

    def outline(self, label: Label, edge: float, room: float, *, bold: bool = False, margin: float = 0.0) -> QPolygonF:
        """The quadrilateral a label covers."""
        metrics = self.bold_metrics if bold else self.metrics
        number = self.number_metrics.horizontalAdvance(label.number) + 6 if label.number else 0.0
        width = min(metrics.horizontalAdvance(label.piece), math.inf if self.counts else room) + number
        height = metrics.ascent()
        if self.counts:
            left = label.centre + label.shift - width / 2 - margin
            return QPolygonF(QRectF(left, edge - TICK - 1 - height - margin, width + 2 * margin, height))
        if self._slanted:
            box = QRectF(-margin, -height / 2 - margin, width + 2 * margin, height + 2 * margin)
            return self._slant(label.centre, edge).map(QPolygonF(box))
        right = edge - GAP
        return QPolygonF(
            QRectF(right - width - margin, label.centre - height / 2 - margin, width + 2 * margin, height + 2 * margin)
        )

    def _colour(self, index: int, plain: QColor) -> QColor:
        generated = self.first_decode is not None and index >= self.first_decode
        return self._theme.palette.amber if generated else plain

    def _slant(self, centre: float, edge: float) -> QTransform:
        return QTransform.fromTranslate(centre, edge - GAP).rotate(-self.slant)

    def _paint(self, painter: QPainter, label: Label, edge: float, room: float, font: QFont, colour: QColor) -> None:
        metrics = self.metrics if font is self.font else self.bold_metrics
        text = label.piece
        if metrics.horizontalAdvance(text) > room and not self.counts:  # those stand as far apart as they are long
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        width = metrics.horizontalAdvance(text)
        number = self.number_metrics.horizontalAdvance(label.number) + 6 if label.number else 0.0
        painter.save()
        if label.ruler:
            painter.setPen(QPen(self._theme.palette.secondary, 1))
            at = label.centre
            if self._slanted:
                painter.drawLine(QPointF(at, edge - TICK), QPointF(at, edge))
            else:
                painter.drawLine(QPointF(edge - TICK, at), QPointF(edge, at))
        if self.counts:
            text_x, number_x = label.centre + label.shift - width / 2, 0.0
            middle = edge - TICK - 1 - metrics.ascent() / 2
        elif self._slanted:
            painter.setTransform(self._slant(label.centre, edge), combine=True)
            text_x, number_x, middle = number, 0.0, 0.0
        else:
            right = edge - GAP
            text_x, number_x, middle = right - number - width, right - number + 6, label.centre
        if label.number:
            painter.setFont(self.number_font)
            painter.setPen(self._theme.palette.secondary)
            painter.drawText(QPointF(number_x, middle + _sink(self.number_metrics)), label.number)
        painter.setFont(font)
        painter.setPen(colour)
        painter.drawText(QPointF(text_x, middle + _sink(metrics)), text)
        painter.restore()


def _sink(metrics: QFontMetricsF) -> float:
    """From the middle of a line of text down to its baseline."""
    return (metrics.ascent() - metrics.descent()) / 2 - 0.5
