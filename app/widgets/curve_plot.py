"""Curves over positions, such as entropy and surprisal, on a ground that tells prefill from decode."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.widgets.cursor_plot import CursorPlot
from app.widgets.curve_band import Band, band, outlines
from app.widgets.stroke import stroke
from app.widgets.ticks import short, ticks, whole_ticks

if TYPE_CHECKING:
    from app.theme import Theme

DOT_SPACING = 7
"""Px between positions from which each is also a dot."""
CROWDED = 4
"""Px between positions under which lines are hairlines."""
LEGEND_MARK, LEGEND_GAP, MARK_GAP = 13.0, 14.0, 5.0
SHORT_MARK, SHORT_GAP = 9.0, 8.0
LEGEND_APART = 8.0
"""Px of the line before a name in the legend, between its entries, and from line to name; the first two where it is
narrow; and to what else stands on its line."""
PALE, BAND_LINE = 0.28, 1.3
"""Opacity of the band from lowest to highest, and px of the line of means over it, where positions share pixels."""
BESIDE, NAMED = 3.0, 5.0
"""Px from a position to its figure where that stands within the plot, and from there to what it counts."""
NAME_APART = 10.0
"""Px to the figures at both sides of the name of the axis, where it stands between two."""
VEIL = 0.6
"""How much of what is ahead of the current position is hidden."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """`values`: one a position from 0, NaN where there is none. `colour`: a token of the theme."""

    name: str
    values: NDArray[np.float32]
    colour: str = "accent"
    dashed: bool = False


class CurvePlot(CursorPlot):
    """Positions are those of the text."""

    click_moves: ClassVar[bool] = False
    scrubs: ClassVar[bool] = True

    def __init__(self, theme: Theme, *, unit: str = "nats", label: str = "", parent: QWidget | None = None) -> None:
        super().__init__(theme, label, parent)
        self._unit = unit
        self._series: tuple[Series, ...] = ()
        self._boundary: int | None = None
        self._ahead: int | None = None
        self._taken = 0
        self._inside = False
        self.message = self.note = ""
        self._lines: dict[int, list[QPolygonF]] = {}
        self._bands: dict[int, tuple[Band, list[QPolygonF]]] = {}
        self._lines_key: object = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    # state → widget

    def set_series(self, series: Sequence[Series]) -> None:
        self._series = tuple(series)
        self._lines_key = None
        self._tell_band()
        self.update()

    def set_message(self, text: str) -> None:
        """Words over the prefill's part while its values are not there yet; "": there are none."""
        if text != self.message:
            self.message = text
            self.update()

    def set_note(self, text: str) -> None:
        """Words in place of curves that have no value and will have none; "": there are none."""
        if text != self.note:
            self.note = text
            self.update()

    def set_inside(self, *, inside: bool) -> None:
        """Whether positions are written within the plot, where the curves leave room, and not on a line under it."""
        if inside != self._inside:
            self._inside = inside
            self.update()

    def set_boundary(self, first_decode: int | None) -> None:
        """The position of the first generated token; None: all is prefill."""
        self._boundary = first_decode
        self.update()

    def set_ahead(self, first: int | None) -> None:
        """The first position that was left by going back: from there on all is faint. None: nothing is."""
        if first != self._ahead:
            self._ahead = first
            self.update()

    def set_taken(self, width: int) -> None:
        """Px at the right of the legend's line that something else stands on; the unit then stands left of the
        positions."""
        if width != self._taken:
            self._taken = width
            self.update()

    # geometry

    @property
    def count(self) -> int:
        """Positions on the axis."""
        return max((len(series.values) for series in self._series), default=0)

    @property
    def is_empty(self) -> bool:
        """Whether no position has a value: there is no scale then."""
        return not any(np.isfinite(series.values).any() for series in self._series)

    def plot_rect(self) -> QRectF:
        """Where the curves are drawn."""
        metrics = QFontMetricsF(self._theme.font("hint"))
        left = metrics.horizontalAdvance("00.0") + 8
        if self._inside:
            return QRectF(self.rect()).adjusted(left, metrics.height() + 1, -4, -3)
        return QRectF(self.rect()).adjusted(left, metrics.height() + 3, -4, -metrics.height() - 3)

    def height_for(self, plot: float, *, inside: bool) -> int:
        """Px of height with which the curves have so many, positions written `inside` the plot or under it."""
        line = QFontMetricsF(self._theme.font("hint")).height()
        return math.ceil(plot + (line + 4 if inside else 2 * (line + 3)))

    def legend_places(self) -> tuple[list[float], float, QPointF]:
        """Left edge of every curve's entry, px of its line, where the unit's words begin. Where a row has no room for
        all, lines and gaps are short and the unit stands left of the positions; no curve goes without its name."""
        metrics, plot = QFontMetricsF(self._theme.font("hint")), self.plot_rect()
        names, unit = [metrics.horizontalAdvance(s.name) for s in self._series], metrics.horizontalAdvance(self._unit)
        scale = self._theme.text_scale
        left, mark, gap, beside = plot.left(), LEGEND_MARK * scale, LEGEND_GAP * scale, MARK_GAP * scale
        x = plot.left() - 5 - unit  # at the axis, over its figures or beside those of the positions
        at = QPointF(x, metrics.ascent() if self._inside else plot.bottom() + metrics.ascent() + 3)
        if x < 0:
            at = QPointF(plot.right() - unit, metrics.ascent())
        end = self.width() - self._taken if self._taken else plot.right() - (unit if x < 0 else 0)
        if self._taken or left + sum(names) + len(names) * (mark + beside + gap) - gap + 8 > end:
            at = QPointF(max(plot.left() - 5 - unit, 0.0), plot.bottom() + metrics.ascent() + 3)
            if left + sum(names) + len(names) * (mark + beside + gap) - gap + 8 > end:
                mark, gap = SHORT_MARK * scale, SHORT_GAP * scale
                right = end - LEGEND_APART if self._taken else plot.right() + 4
                left = min(left, max(right - self.legend_least(), 0.0))
        starts = [left + sum(names[:i]) + i * (mark + beside + gap) for i in range(len(names))]
        return starts, mark, at

    def legend_least(self) -> float:
        """Px of the names of all curves, as short as they get."""
        metrics = QFontMetricsF(self._theme.font("hint"))
        names = sum(metrics.horizontalAdvance(series.name) for series in self._series)
        scale = self._theme.text_scale
        return names + scale * (len(self._series) * (SHORT_MARK + MARK_GAP + SHORT_GAP) - SHORT_GAP)

    def x_of(self, position: float) -> float:
        plot = self.plot_rect()
        return plot.left() + (position + 0.5) * plot.width() / max(self.count, 1)

    def position_at(self, point: QPointF) -> int | None:
        plot = self.plot_rect()
        if not self.count or not plot.left() <= point.x() <= plot.right():
            return None
        return min(int((point.x() - plot.left()) * self.count / plot.width()), self.count - 1)

    def words(self, position: int | None) -> str:
        if position is None:
            return ""
        parts = [
            f"{series.name} {short(float(series.values[position]))}"
            for series in self._series
            if position < len(series.values)
        ]
        return tr("position {position}", position=position) + ": " + ", ".join(parts)

    def sizeHint(self) -> QSize:
        return QSize(260, self._theme.px(96))

    def minimumSizeHint(self) -> QSize:
        return QSize(100, self._theme.px(64))

    @property
    def is_banded(self) -> bool:
        """Whether there are more positions than pixels: each pixel's mean is drawn then, and pale from its lowest to
        its highest value."""
        return self.count > max(1, int(self.plot_rect().width()))

    # events

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._tell_band()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, plot = QPainter(self), self.plot_rect()
        hint = self._theme.font("hint")
        painter.setFont(hint)
        metrics = QFontMetricsF(hint)
        self._paint_ground(painter, plot)
        high = self._highest()
        self._paint_axis(painter, plot, metrics, high)
        self._paint_message(painter, plot, metrics)
        self._paint_legend(painter, metrics)
        if not self.count:
            return
        if self.is_banded:
            self._paint_bands(painter, plot, high)
        for series in reversed(self._series):  # the first is over the others
            if not self.is_banded:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing, not self._crowded(plot))
                painter.setPen(self._pen(series, plot))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                for line in self._lines_of(series, plot, high):
                    painter.drawPolyline(line)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_dots(painter, series, plot, high)
        if self._ahead is not None and self._ahead < self.count:
            veil = QColor(self._theme.palette.panel)
            veil.setAlphaF(VEIL)
            left = plot.left() + self._ahead * plot.width() / self.count
            painter.fillRect(QRectF(left, plot.top(), plot.right() - left, plot.height()), veil)

    # inside

    def _tell_band(self) -> None:
        each = self.count / max(1, int(self.plot_rect().width()))
        words = tr("Line: the mean of {n} positions a pixel. Pale: from the lowest to the highest.", n=f"{each:.2g}")
        self.setToolTip(words if self.is_banded else "")

    def _paint_bands(self, painter: QPainter, plot: QRectF, high: float) -> None:
        found = [(series, self._band_of(series, plot, high)) for series in reversed(self._series)]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for series, (_band, areas) in found:
            colour = QColor(getattr(self._theme.palette, series.colour))
            colour.setAlphaF(PALE)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour)
            for area in areas:
                painter.drawPolygon(area)
        for series, (means, _areas) in found:
            colour = getattr(self._theme.palette, series.colour)
            style = Qt.PenStyle.DashLine if series.dashed else Qt.PenStyle.SolidLine
            pen = QPen(colour, BAND_LINE, style, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
            for run in means.runs():
                x = plot.left() + means.middle[run] * plot.width()
                stroke(painter, x, plot.bottom() - means.mean[run] / high * plot.height(), pen)

    def _crowded(self, plot: QRectF) -> bool:
        return plot.width() / max(self.count, 1) < CROWDED

    def _pen(self, series: Series, plot: QRectF) -> QPen:
        """Where a stroke is a pixel or two long, a hairline: dashes could not be seen and cost tens of milliseconds."""
        colour = getattr(self._theme.palette, series.colour)
        if self._crowded(plot):
            return QPen(colour, 0)
        style = Qt.PenStyle.DashLine if series.dashed else Qt.PenStyle.SolidLine
        return QPen(colour, 1.6, style, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)

    def _paint_ground(self, painter: QPainter, plot: QRectF) -> None:
        colours, count = self._theme.palette, max(self.count, 1)
        start = count if self._boundary is None else min(self._boundary, count)
        edge = plot.left() + start * plot.width() / count
        painter.fillRect(QRectF(plot.left(), plot.top(), edge - plot.left(), plot.height()), colours.green_tint)
        painter.fillRect(QRectF(edge, plot.top(), plot.right() - edge, plot.height()), colours.amber_tint)
        for position, colour in ((self.cursor_at, colours.accent), (self.hovered, colours.secondary)):
            if position is not None and position < count and not (self.note and self.is_empty):
                painter.setPen(QPen(colour, 1))
                x = round(self.x_of(position)) + 0.5
                painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))

    def _paint_axis(self, painter: QPainter, plot: QRectF, metrics: QFontMetricsF, high: float) -> None:
        colours = self._theme.palette
        said = (self.message or self.note) and self.is_empty
        for value in () if said else ticks(0.0, high, max(2, int(plot.height() // (metrics.height() * 1.6)))):
            y = plot.bottom() - value / high * plot.height()
            painter.setPen(QPen(colours.line, 1))
            painter.drawLine(QPointF(plot.left(), round(y) + 0.5), QPointF(plot.right(), round(y) + 0.5))
            painter.setPen(colours.secondary)
            top = min(y - metrics.height() / 2, self.height() - metrics.height())
            place = QRectF(0, top, plot.left() - 5, metrics.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, short(value))
        for place, text in () if said and self._inside else self.position_words():
            if self._inside:  # no line of the ground crosses a figure
                painter.fillRect(place, colours.panel)
                prefill = self._boundary is None or self.position_at(place.center()) in range(self._boundary)
                painter.fillRect(place, colours.green_tint if prefill else colours.amber_tint)
            painter.setPen(colours.secondary)
            painter.drawText(QPointF(place.left(), place.top() + metrics.ascent()), text)

    def position_words(self) -> list[tuple[QRectF, str]]:
        """What names positions, with its place: figures, and what they count where that takes no figure's place."""
        if not self.count:
            return []
        metrics, plot, name = QFontMetricsF(self._theme.font("hint")), self.plot_rect(), tr("position")
        words = position_words(self.count, plot, self.x_of, metrics, "" if self._inside else name, beside=self._inside)
        places = [
            (QRectF(left, plot.bottom() + 3, metrics.horizontalAdvance(text), metrics.height()), text)
            for left, text in words
        ]
        return self._words_inside(places, name) if self._inside else places

    def _words_inside(self, places: Sequence[tuple[QRectF, str]], name: str) -> list[tuple[QRectF, str]]:
        """The first and the last figure that no curve passes, both at the upper edge or both at the lower one, and what
        they count beside one of them; figures at either edge where neither has room for two."""
        plot, metrics = self.plot_rect(), QFontMetricsF(self._theme.font("hint"))
        edges = [
            [(at, text) for place, text in places if self._is_free(at := place.translated(0, top - place.top()))]
            for top in (plot.top() + 1, plot.bottom() - metrics.height() - 1)
        ]
        free = max(edges, key=len)
        if len(free) < 2:
            return sorted((word for edge in edges for word in edge), key=lambda word: word[0].left())
        found = [free[0], free[-1]]
        for place, _ in reversed(found):
            beside = QRectF(place.right() + NAMED, place.top(), metrics.horizontalAdvance(name), place.height())
            others = (other for other, _ in found if other != place)
            if plot.contains(beside) and self._is_free(beside) and not any(beside.intersects(at) for at in others):
                return [*found, (beside, name)]
        return found

    def _is_free(self, place: QRectF) -> bool:
        """Whether no curve and not the line of the current position pass there; under the plot none does."""
        if not self._inside:
            return True
        plot, high, each = self.plot_rect(), self._highest(), self.plot_rect().width() / max(self.count, 1)
        if self.cursor_at is not None and place.left() - 2 <= self.x_of(self.cursor_at) <= place.right() + 2:
            return False
        first = max(int((place.left() - plot.left()) / each - 0.5) - 1, 0)
        last = int((place.right() - plot.left()) / each - 0.5) + 2
        for series in self._series:
            values = series.values[first : last + 1]
            values = values[np.isfinite(values)]
            if len(values):
                y = plot.bottom() - values / high * plot.height()
                if y.min() <= place.bottom() + 3 and y.max() >= place.top() - 3:
                    return False
        return True

    def _paint_message(self, painter: QPainter, plot: QRectF, metrics: QFontMetricsF) -> None:
        count = max(self.count, 1)
        share = 1.0 if self._boundary is None or self.is_empty else min(self._boundary / count, 1.0)
        room = QRectF(plot.left() + 6, plot.top(), plot.width() * share - 12, plot.height())
        painter.setPen(self._theme.palette.secondary)
        if self.note and self.is_empty:
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.note)
            return
        text = metrics.elidedText(self.message, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_legend(self, painter: QPainter, metrics: QFontMetricsF) -> None:
        colours, baseline = self._theme.palette, metrics.ascent()
        if self._taken:  # in the middle of the line, as what stands there
            baseline += (self.plot_rect().top() - metrics.height()) / 2
        painter.setPen(colours.secondary)
        (places, mark, unit), scale = self.legend_places(), self._theme.text_scale
        painter.drawText(unit, self._unit)
        for series, x in zip(self._series, places, strict=True):
            y, pale = baseline - metrics.xHeight() / 2, QColor(getattr(colours, series.colour))
            if self.is_banded:
                pale.setAlphaF(PALE)
                painter.fillRect(QRectF(x, y - 4 * scale, mark, 8 * scale), pale)
            pen = QPen(getattr(colours, series.colour), 2 * scale)
            if series.dashed:  # two dashes, whole
                pen.setCapStyle(Qt.PenCapStyle.FlatCap)
                pen.setDashPattern([0.4 * mark / pen.widthF(), 0.2 * mark / pen.widthF()])
            painter.setPen(pen)
            painter.drawLine(QPointF(x, y), QPointF(x + mark, y))
            painter.setPen(colours.secondary)
            painter.drawText(QPointF(x + mark + MARK_GAP * scale, baseline), series.name)

    def _lines_of(self, series: Series, plot: QRectF, high: float) -> list[QPolygonF]:
        """Kept until data or size change: a hover redraws lines it need not make again."""
        self._look_again(plot, high)
        if id(series) not in self._lines:
            self._lines[id(series)] = polylines(series.values, plot, high, self.count)
        return self._lines[id(series)]

    def _band_of(self, series: Series, plot: QRectF, high: float) -> tuple[Band, list[QPolygonF]]:
        """Kept as the lines are."""
        self._look_again(plot, high)
        if id(series) not in self._bands:
            found = band(series.values, self.count, int(plot.width()))
            self._bands[id(series)] = found, outlines(found, plot, high)
        return self._bands[id(series)]

    def _look_again(self, plot: QRectF, high: float) -> None:
        key = (plot.getRect(), high, self.count)
        if self._lines_key != key:
            self._lines_key = key
            self._lines, self._bands = {}, {}

    def _paint_dots(self, painter: QPainter, series: Series, plot: QRectF, high: float) -> None:
        dense = plot.width() / max(self.count, 1) < DOT_SPACING
        marked = [p for p in (self.cursor_at, self.hovered) if p is not None and p < len(series.values)]
        shown = marked if dense else range(len(series.values))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(getattr(self._theme.palette, series.colour))
        for position in shown:
            value = float(series.values[position])
            if np.isfinite(value):
                radius = 3.2 if position in marked else 2.0
                y = plot.bottom() - value / high * plot.height()
                painter.drawEllipse(QPointF(self.x_of(position), y), radius, radius)

    def _highest(self) -> float:
        tops = [float(np.nanmax(s.values)) for s in self._series if len(s.values) and not np.isnan(s.values).all()]
        top = max((t for t in tops if np.isfinite(t)), default=1.0)
        return top * 1.06 if top > 0 else 1.0


def position_words(
    count: int,
    plot: QRectF,
    x_of: Callable[[float], float],
    metrics: QFontMetricsF,
    name: str,
    *,
    beside: bool,
) -> list[tuple[float, str]]:
    """Left edge and text of what stands along the axis: round positions, under their place or `beside` it, and the name
    at the end, if there is one. Where it would stand in a figure's place it stands before the last one, or the figures
    are fewer, or it is not said."""
    widest, named = metrics.horizontalAdvance(f"{count:,}"), metrics.horizontalAdvance(name)
    end, most = plot.right() - named, max(1, int(plot.width() / (widest + 14)))

    def figures(most: int) -> list[tuple[float, str]]:
        found, free = list[tuple[float, str]](), plot.left() - widest
        for value in whole_ticks(0.0, count - 1.0, most) or [0.0]:
            text = f"{int(value):,}"
            width = metrics.horizontalAdvance(text)
            left = x_of(value) + BESIDE if beside else max(x_of(value) - width / 2, plot.left())
            left = min(left, plot.right() - width)
            if left >= free:
                found.append((left, text))
                free = left + width + 8
        return found

    whole = figures(most)
    while most and name:
        found = figures(most)
        last, text = found[-1]
        if len(found) >= min(2, len(whole)) and last + metrics.horizontalAdvance(text) + 6 <= end:
            return [*found, (end, name)]
        if len(found) > 2 and not beside:
            before, ends = found[-2][0] + metrics.horizontalAdvance(found[-2][1]), last - NAME_APART
            if ends - named >= before + NAME_APART:
                return [*found[:-1], (ends - named, name), found[-1]]
        most //= 2
    return whole


def polylines(values: NDArray[np.float32], plot: QRectF, high: float, count: int) -> list[QPolygonF]:
    """The curve as lines broken at NaN. Where there are many values a pixel, each pixel keeps its lowest and highest,
    so that no peak is lost."""
    positions = extremes(values, max(1, int(plot.width()))) if len(values) else np.arange(0)
    shown = values[positions]
    good = np.isfinite(shown)
    x = plot.left() + (positions + 0.5) * plot.width() / max(count, 1)
    y = plot.bottom() - np.where(good, shown, 0) / high * plot.height()
    # Where finite values begin and end: a split at every NaN of a prompt not scored yet took thirty times as long.
    edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False]))))
    return [
        QPolygonF([QPointF(px, py) for px, py in zip(x[begin:end].tolist(), y[begin:end].tolist(), strict=True)])
        for begin, end in edges.reshape(-1, 2).tolist()
    ]


def extremes(values: NDArray[np.float32], bins: int) -> NDArray[np.int64]:
    """Positions of the lowest and highest value of each of `bins` stretches (and of one value of a stretch of NaN)."""
    count = len(values)
    if count <= 2 * bins:
        return np.arange(count)
    width = -(-count // bins)
    padded = np.full(width * -(-count // width), np.nan, dtype=np.float32)
    padded[:count] = values
    table = padded.reshape(-1, width)  # (bins, width)
    low = np.where(np.isfinite(table), table, np.inf).argmin(axis=1)
    top = np.where(np.isfinite(table), table, -np.inf).argmax(axis=1)
    starts = np.arange(len(table)) * width
    both = np.sort(np.stack((low, top), axis=1) + starts[:, np.newaxis], axis=1).ravel()
    found: NDArray[np.int64] = both[np.diff(both, prepend=-1) > 0]  # np.unique would import numpy.ma: 13 ms, once
    return found
