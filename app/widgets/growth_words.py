"""What is written about the curve of the KV cache's bytes: its legend, and the bytes of one position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.i18n import tr
from app.widgets.units import amount

if TYPE_CHECKING:
    from app.theme import Palette

FORMULA_WIDTH = 6.0
SWATCH, SWATCH_GAP, ENTRY_GAP = 14.0, 6.0, 14.0
SHORT_SWATCH, SHORT_SWATCH_GAP, SHORT_ENTRY_GAP = 9.0, 4.0, 8.0


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line of the plot and its name, on one line of text from `left` on."""

    words: str
    pen: QPen
    left: float
    swatch: float = SWATCH
    gap: float = SWATCH_GAP

    @property
    def words_left(self) -> float:
        return self.left + self.swatch + self.gap

    def paint(self, painter: QPainter, metrics: QFontMetricsF, colours: Palette) -> None:
        """Draws it on the first line."""
        y = metrics.ascent() - metrics.xHeight() / 2
        painter.setPen(self.pen)
        painter.drawLine(QPointF(self.left, y), QPointF(self.left + self.swatch, y))
        painter.setPen(colours.secondary)
        painter.drawText(QPointF(self.words_left, metrics.ascent()), self.words)


def legend(colours: Palette, metrics: QFontMetricsF, left: float, right: float) -> list[Entry]:
    """The entries between two x; where these leave no room for all, in short and from 0 on, as many as have room."""
    lines = (
        (tr("used"), dashed_pen(colours.accent, 2.2, ())),
        (tr("allocated"), dashed_pen(colours.secondary, 1.4, (4.0, 3.0))),
        (tr("formula"), dashed_pen(halo(colours.amber), FORMULA_WIDTH, ())),
    )
    found: list[Entry] = []
    for start, swatch, gap, apart in (
        (left, SWATCH, SWATCH_GAP, ENTRY_GAP), (0.0, SHORT_SWATCH, SHORT_SWATCH_GAP, SHORT_ENTRY_GAP),
    ):  # fmt: skip
        found, x = [], start
        for words, pen in lines:
            dashed = pen.style() is Qt.PenStyle.CustomDashLine
            end = x + swatch + gap + metrics.horizontalAdvance(words)
            if end <= right:
                mark = QPen(pen)
                if swatch < SWATCH and dashed:  # two dashes: the line's own are as long as all of it
                    mark.setDashPattern([2.5, 1.4])
                found.append(Entry(words=words, pen=mark, left=x, swatch=swatch, gap=gap))
            x = end + apart
        if len(found) == len(lines):
            break
    return found


def value_words(piece: str, position: int, *, used: int, allocated: int, formula: int) -> tuple[str, ...]:
    """The bytes once a token was computed, in words, from all of it to the least."""
    token = f"{piece} ({position:,})" if piece else f"({position:,})"
    parts = (
        f"{token} · " + tr("used {bytes}", bytes=amount(used, "B")),
        tr("allocated {bytes}", bytes=amount(allocated, "B")),
        tr("formula {bytes}", bytes=amount(formula, "B")),
    )
    both = f"{token} · {amount(used, 'B')} / {amount(allocated, 'B')}"  # in the order of the legend
    return " · ".join(parts), f"{both} · {parts[2]}", " · ".join(parts[:2]), both, parts[0]


def halo(colour: QColor) -> QColor:
    """A colour that lets what it lies on be seen."""
    faint = QColor(colour)
    faint.setAlpha(110)
    return faint


def dashed_pen(colour: QColor, width: float, dashes: tuple[float, ...]) -> QPen:
    """A pen that ends where its line does."""
    pen = QPen(colour, width)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    if dashes:
        pen.setDashPattern(list(dashes))
    return pen
