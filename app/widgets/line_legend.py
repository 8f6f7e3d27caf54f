"""What the lines of a plot are called: in rows over it, or where these take too much of its height beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.i18n import tr
from app.plain import tip
from app.widgets.ticks import figure, short

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.line_frame import Frame
    from app.widgets.line_plot import Line

SWATCH, MARK, GAP, COLUMN_GAP, FIGURE_GAP = 18.0, 13.0, 14.0, 12.0, 6.0
"""Px at 100 % text of the line before a name with what parts them, and of that line; of what parts entries."""
LEAST_PLOT, ROWS_OVER = 40, 2
"""Px of height in which a plot's shape is still seen; rows of names over it from which on they go beside it."""
LEAST_BESIDE, MOST_NAME, PALE, NEAR = 185, 150, 0.42, 5.0
"""Px of width a plot keeps beside the names, axes and all; the longest name there; the ground of bars; px to a line
that is pointed at."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Entry:
    """`lines`: one, or all those that have no place of their own, which the last entry counts."""

    lines: tuple[Line, ...]
    rect: QRectF
    name: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Legend:
    """`rows`: lines of text over the plot, what the axes are called among them; `column`: px at the plot's right;
    `scale`: how large the lines before names are."""

    entries: tuple[Entry, ...]
    rows: int
    column: float = 0.0
    scale: float = 1.0

    def at(self, point: QPointF) -> Entry | None:
        """The entry a point of the plot's widget is on."""
        return next((entry for entry in self.entries if entry.rect.contains(point)), None)

    def shows(self, line: Line) -> bool:
        """Whether a line has an entry of its own."""
        return any(entry.lines == (line,) for entry in self.entries)


def lay_out(lines: Sequence[Line], theme: Theme, size: QSizeF, heading: str, right_name: str) -> Legend:
    """Where the named ones of `lines` stand on a plot of `size`. `heading`, `right_name`: what the axes are called, on
    the first row: the heading over its axis at the left, the right axis' name at the right."""
    named = [line for line in lines if line.name]
    metrics, scale = QFontMetricsF(theme.font("hint")), theme.text_scale
    over = _over(named, metrics, SWATCH, size, heading, right_name)
    rows = 1 + max((row for _, row, _ in over), default=0)
    larger = _over(named, metrics, SWATCH * scale, size, heading, right_name)
    if 1 + max((row for _, row, _ in larger), default=0) > rows:  # no row more for them
        scale = 1.0
    over = larger if scale != 1 else over
    beside = _column_width(named, theme, metrics)
    if rows > ROWS_OVER and size.width() - beside >= theme.px(LEAST_BESIDE):
        return _beside(named, metrics, theme.text_scale, size, beside)
    # A line without its name tells nothing: the plot gives way, to a height in which its shape is still seen.
    room = size.height() - theme.px(LEAST_PLOT) - 1.5 * metrics.height() - 4
    rows = min(rows, max(1, int(room / metrics.height())))
    return Legend(entries=_entries(over, rows, metrics, SWATCH * scale), rows=rows, scale=scale)


def nearest(lines: Sequence[Line], frame: Frame, x: float, y: float) -> Line | None:
    """The named line that is drawn nearest to `y` at `x`, where that is near enough to be meant."""
    away = [
        (abs(float(frame.py(np.array([value]), right=line.right)[0]) - y), index)
        for index, line in enumerate(lines)
        if line.style == "line" and line.name and math.isfinite(value := line.at(x))
    ]
    least, index = min(away, default=(math.inf, 0))
    return lines[index] if least <= NEAR else None


def paint(painter: QPainter, theme: Theme, legend: Legend, values: Mapping[int, float], pointed: Line | None) -> None:
    """Draws the entries. `values`: the figure beside each line, by its `id`; `pointed`: the line that stands out."""
    colours, metrics, swatch = theme.palette, QFontMetricsF(theme.font("hint")), SWATCH * legend.scale
    for entry in legend.entries:
        left, line, here = entry.rect.left(), entry.lines[0], pointed in entry.lines
        baseline = entry.rect.top() + metrics.ascent()
        alone = len(entry.lines) == 1
        if alone:
            middle = QPointF(left, baseline - metrics.xHeight() / 2)
            _paint_swatch(painter, theme, line, middle, baseline, legend.scale)
        painter.setPen(colours.text if here else colours.secondary)
        painter.setFont(theme.font("hint", bold=here))
        painter.drawText(QPointF(left + (swatch if alone else 0), baseline), entry.name)
        painter.setFont(theme.font("hint"))
        if alone and values and line.style == "line":
            painter.setPen(colours.text)
            figures = figures_of(line, values[id(line)])
            drawn = QFontMetricsF(theme.font("hint", bold=here)).horizontalAdvance(entry.name)
            at = left + swatch + drawn + metrics.horizontalAdvance(" ")
            if legend.column:  # figures of a column end in one line
                at = entry.rect.right() - metrics.horizontalAdvance(figures)
            painter.drawText(QPointF(at, baseline), figures)


def figures_of(line: Line, value: float) -> str:
    """A value of a line beside its name: digits as many as beside the other names, but a count has just its own."""
    return short(value, even=not line.counts)


def told(entry: Entry, values: Mapping[int, float]) -> str:
    """The tip of an entry: of each of its lines the name, the value, what it is."""
    words = []
    for line in entry.lines:
        value = f" {figure(values[id(line)])}" if values and line.style == "line" else ""
        words.append("\n".join(filter(None, (line.name + value, line.tip))))
    return tip("\n".join(words))


def pale(theme: Theme, line: Line) -> QColor:
    """What bars are drawn in: seen on the panel, and under a line of the same colour."""
    colour = QColor(getattr(theme.palette, line.colour))
    colour.setAlphaF(PALE)
    return colour


# inside


def _width(line: Line, metrics: QFontMetricsF, swatch: float) -> float:
    # Room for the line's widest figure is kept, so that a moving mouse moves nothing.
    figures = f" {line.widest}" if line.style == "line" else ""
    return swatch + metrics.horizontalAdvance(line.name + figures)


def _over(
    named: Sequence[Line], metrics: QFontMetricsF, swatch: float, size: QSizeF, heading: str, right_name: str
) -> list[tuple[Line, int, float]]:
    """Row and left edge of every line."""
    x, row, places = metrics.horizontalAdvance(heading) + GAP if heading else 0.0, 0, []
    room = max(size.width() - (metrics.horizontalAdvance(right_name) + 12.0 if right_name else 0.0), 60.0)
    for line in named:
        width = _width(line, metrics, swatch) + GAP
        if x > 0 and x + width > room + GAP:
            row, x, room = row + 1, 0.0, size.width()
        places.append((line, row, x))
        x += width
    return places


def _entries(
    over: Sequence[tuple[Line, int, float]], rows: int, metrics: QFontMetricsF, swatch: float
) -> tuple[Entry, ...]:
    """Those that `rows` rows have room for, the last of them the number of all the others where there are any."""
    shown = [place for place in over if place[1] < rows]
    rest = [line for line, row, _ in over if row >= rows]
    if rest and len(shown) > 1:
        rest.insert(0, shown[-1][0])
    high = metrics.height()
    entries = [
        Entry(lines=(line,), rect=QRectF(x, row * high, _width(line, metrics, swatch), high), name=line.name)
        for line, row, x in (shown[:-1] if rest and len(shown) > 1 else shown)
    ]
    if rest and len(shown) > 1:
        _, row, x = shown[-1]
        entries.append(_count(rest, QPointF(x, row * high), metrics))
    return tuple(entries)


def _count(rest: Sequence[Line], at: QPointF, metrics: QFontMetricsF) -> Entry:
    name = tr("{n} more", n=len(rest))
    size = QSizeF(metrics.horizontalAdvance(name) + 4, metrics.height())
    return Entry(lines=tuple(rest), rect=QRectF(at, size), name=name)


def _column_width(named: Sequence[Line], theme: Theme, metrics: QFontMetricsF) -> float:
    figures = max((metrics.horizontalAdvance(line.widest) for line in named if line.style == "line"), default=0.0)
    names = max((metrics.horizontalAdvance(line.name) for line in named), default=0.0)
    return COLUMN_GAP + SWATCH * theme.text_scale + min(names, theme.px(MOST_NAME)) + FIGURE_GAP + figures + 1


def _beside(named: Sequence[Line], metrics: QFontMetricsF, scale: float, size: QSizeF, column: float) -> Legend:
    """One line under the other, from the top; the last one that has room counts the others where there are any."""
    high, left = metrics.height(), size.width() - column + COLUMN_GAP
    most = max(1, math.floor(size.height() / high))
    shown = named if len(named) <= most else named[: most - 1]
    rects = [QRectF(left, row * high, column - COLUMN_GAP - 1, high) for row in range(len(named))]
    figures = max((metrics.horizontalAdvance(line.widest) for line in named if line.style == "line"), default=0.0)
    room = column - COLUMN_GAP - SWATCH * scale - FIGURE_GAP - figures
    entries = [
        Entry(lines=(line,), rect=rect, name=metrics.elidedText(line.name, Qt.TextElideMode.ElideRight, room))
        for line, rect in zip(shown, rects, strict=False)
    ]
    if len(shown) < len(named):
        entries.append(_count(named[len(shown) :], rects[len(shown)].topLeft(), metrics))
    return Legend(entries=tuple(entries), rows=1, column=column, scale=scale)


def _paint_swatch(painter: QPainter, theme: Theme, line: Line, at: QPointF, baseline: float, scale: float) -> None:
    colour = getattr(theme.palette, line.colour)
    if line.style == "dots":
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawEllipse(at + QPointF(6 * scale, 0), 2.4 * scale, 2.4 * scale)
    elif line.style == "bars":
        painter.fillRect(QRectF(at.x() + 2 * scale, baseline - 8 * scale, 9 * scale, 9 * scale), pale(theme, line))
    else:
        pen = QPen(colour, 2 * scale)
        if line.dashed:  # two dashes, whole
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
            pen.setDashPattern([0.2 * MARK, 0.1 * MARK])
        painter.setPen(pen)
        painter.drawLine(at, at + QPointF(MARK * scale, 0))
