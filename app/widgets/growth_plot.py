"""Bytes of the KV cache against position: what was used and set aside, the formula, and other layouts of heads."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QPixmap, QPolygonF, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.i18n import tr
from app.widgets.cursor_plot import CursorPlot
from app.widgets.growth_words import FORMULA_WIDTH, dashed_pen, halo, legend, value_words
from app.widgets.ticks import ticks
from app.widgets.units import amount, short_amount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.state.run_book import PathToken
    from app.theme import Theme

HEADROOM = 1.1
MOST_TICKS = 8
TALL, READ = 124, 146
"""Px of height at 100 % text from which positions and phases both stand under the plot, and from which the bytes of
the token pointed at (else the chosen one) have a line over it."""
READ_GAP = 3
"""Px between the legend and that line."""
DOT, BESIDE = 3.4, 8.0
"""Px of the radius of the dot at a line's end, and between the plot and the words beside it, which keep clear of it."""
Points = list[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Growth:
    """`chunk_ends`: the length after each chunk of the prefill. `grown`: (length from which, bytes set aside).
    `per_token`: by the formula; `layouts`: the same of other layouts, (name, bytes)."""

    length: int
    n_prompt: int
    used: int
    chunk_ends: tuple[int, ...]
    grown: tuple[tuple[int, int], ...]
    per_token: int
    layouts: tuple[tuple[str, int], ...] = ()

    def used_at(self, position: int) -> int:
        """Bytes filled once the token at a position was computed; a chunk of the prefill is filled at once."""
        end = position + 1
        if position < self.n_prompt and self.chunk_ends:
            at = bisect.bisect_right(self.chunk_ends, position)
            end = self.chunk_ends[at] if at < len(self.chunk_ends) else self.n_prompt
        return self.used * end // max(self.length, 1)

    def allocated_at(self, position: int) -> int:
        """Bytes set aside by then."""
        return max((size for start, size in self.grown if start <= position), default=0)

    def used_line(self) -> Points:
        """A step up for each chunk, then a slope."""
        points: Points = [(0.0, 0.0)]
        start = 0
        for end in self.chunk_ends:
            size = float(self.used_at(start))
            points += [(float(start), size), (float(end), size)]
            start = end
        return [*points, (float(self.length), float(self.used))]

    def allocated_line(self) -> Points:
        """Steps, from the first room that was made to the end."""
        points: Points = []
        for start, size in self.grown:
            at = float(min(start, self.length))
            points += [(at, points[-1][1]), (at, float(size))] if points else [(at, float(size))]
        return [*points, (float(self.length), points[-1][1])] if points else []


class GrowthPlot(CursorPlot):
    """Positions are those of the text: what is drawn over the tick p are the bytes once the token at p was computed."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, tr("Bytes of the KV cache by position"), parent)
        self._growth: Growth | None = None
        self._tokens: Sequence[PathToken] = ()
        self._rect: QRectF | None = None
        self._scene: QPixmap | None = None

    # state → widget

    def set_growth(self, growth: Growth | None) -> None:
        if growth != self._growth:
            self._growth = growth
            self.describe(self.hovered)
            self.redraw()

    def redraw(self) -> None:
        self._rect = self._scene = None
        whole = self._layout_words()
        self.setToolTip("" if self._have_room(whole) else " · ".join(words for _, _, words in whole))
        self.update()

    def resizeEvent(self, _event: QResizeEvent) -> None:
        self.redraw()

    def set_tokens(self, tokens: Sequence[PathToken]) -> None:
        """The tokens of the text, for the readout."""
        if tokens is not self._tokens:
            self._tokens = tokens
            self.update()

    @property
    def growth(self) -> Growth | None:
        return self._growth

    @property
    def count(self) -> int:
        return self._growth.length if self._growth else 0

    def words(self, position: int | None) -> str:
        growth = self._growth
        if growth is None:
            return ""
        at = growth.length - 1 if position is None else position
        return tr(
            "{n} tokens: {used} of {allocated}, formula {formula}",
            n=f"{at + 1:,}", used=amount(growth.used_at(at), "B"), allocated=amount(growth.allocated_at(at), "B"),
            formula=amount(growth.per_token * (at + 1), "B"),
        )  # fmt: skip

    # geometry

    def plot_rect(self) -> QRectF:
        """Where the lines are drawn; measured once, as a paint event asks often."""
        if self._rect is None:
            self._rect = self._measured_rect()
        return QRectF(self._rect)

    def _measured_rect(self) -> QRectF:
        metrics = QFontMetricsF(self._theme.font("hint"))
        left, right = self._left(metrics), self._right_of(self.layout_words(), metrics)
        below = metrics.height() * (2 if self._tall else 1) + 3
        above = metrics.height() * (2 if self._reads else 1) + (3 + READ_GAP if self._reads else 3)
        return QRectF(self.rect()).adjusted(left, above, -max(right, 6.0), -below)

    @staticmethod
    def _left(metrics: QFontMetricsF) -> float:
        return metrics.horizontalAdvance("888 MB") + 8

    @staticmethod
    def _right_of(words: Sequence[tuple[int, float, str]], metrics: QFontMetricsF) -> float:
        return max((metrics.horizontalAdvance(line) + BESIDE + 2 for _, _, line in words), default=0.0)

    @property
    def _reads(self) -> bool:
        return self.height() >= self._theme.px(READ)

    def readout(self, room: float = float("inf")) -> str:
        """The bytes of the token pointed at, else of the chosen one, as much as has `room` px."""
        growth, position = self._growth, self.cursor_at if self.hovered is None else self.hovered
        if growth is None or position is None or not 0 <= position < growth.length:
            return ""
        piece = self._tokens[position].piece if position < len(self._tokens) else ""
        metrics = QFontMetricsF(self._theme.font("hint"))
        found = value_words(
            piece, position, used=growth.used_at(position), allocated=growth.allocated_at(position),
            formula=growth.per_token * (position + 1),
        )  # fmt: skip
        return next((words for words in found if metrics.horizontalAdvance(words) <= room), "")

    @property
    def _tall(self) -> bool:
        """Whether there is height for numbers and phases under the plot; else the phases, which hold numbers too."""
        return self.height() >= self._theme.px(TALL)

    def phase_words(self) -> list[tuple[QRectF, str]]:
        """The words under the plot, each with its place: as near the middle of its stretch as the other allows."""
        growth, plot = self._growth, self.plot_rect()
        if growth is None:
            return []
        metrics = QFontMetricsF(self._theme.font("hint"))
        n_prompt = min(growth.n_prompt, growth.length)
        edge, top = self._edge(plot, growth), self.height() - metrics.height() - 1
        spans = [
            (tr("prefill"), n_prompt, plot.left(), edge),
            (tr("decode"), growth.length - n_prompt, edge, plot.right()),
        ]
        words = [(f"{name} {count:,}", start, end) for name, count, start, end in spans if count]
        widths = [metrics.horizontalAdvance(text) for text, _, _ in words]
        lefts = [
            min(max((start + end - width) / 2, plot.left()), self.width() - width)
            for (_, start, end), width in zip(words, widths, strict=True)
        ]
        if len(lefts) > 1 and lefts[0] + widths[0] + 10 > lefts[1]:
            lefts[0] = max(plot.left(), min(lefts[0], lefts[1] - 10 - widths[0]))
            lefts[1] = max(lefts[1], lefts[0] + widths[0] + 10)
        return [
            (QRectF(left, top, width, metrics.height()), text)
            for left, width, (text, _, _) in zip(lefts, widths, words, strict=True)
        ]

    def x_of(self, position: float) -> float:
        return self._x_in(self.plot_rect(), position + 1)

    def position_at(self, point: QPointF) -> int | None:
        plot = self.plot_rect()
        if not self.count or not plot.left() <= point.x() <= plot.right():
            return None
        first = self._first
        length = first + (point.x() - plot.left()) / plot.width() * max(self.count - first, 1)
        return min(max(round(length) - 1, 0), self.count - 1)

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(320), self._theme.px(150))

    def minimumSizeHint(self) -> QSize:
        return QSize(140, self._theme.px(80))

    # painting

    def paintEvent(self, _event: QPaintEvent) -> None:
        growth, ratio = self._growth, self.devicePixelRatioF()
        if growth is None or not growth.length:
            return
        if self._scene is None or self._scene.devicePixelRatio() != ratio:
            self._scene = self._draw_scene(ratio, growth)
        painter, plot = QPainter(self), self.plot_rect()
        painter.drawPixmap(0, 0, self._scene)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_marks(painter, plot, growth, self._high())
        if self._reads:
            font = self._theme.font("hint")
            metrics = QFontMetricsF(font)
            painter.setFont(font)
            painter.setPen(self._theme.palette.text)
            words = self.readout(self.width())
            left = min(plot.left(), self.width() - metrics.horizontalAdvance(words))
            painter.drawText(QPointF(left, metrics.height() + READ_GAP + metrics.ascent()), words)

    # inside

    def _draw_scene(self, ratio: float, growth: Growth) -> QPixmap:
        """Everything that stays under a moving mouse."""
        pixmap = QPixmap(max(1, round(self.width() * ratio)), max(1, round(self.height() * ratio)))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter, plot, high = QPainter(pixmap), self.plot_rect(), self._high()
        font, colours = self._theme.font("hint"), self._theme.palette
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
        self._paint_ground(painter, plot, growth)
        self._paint_axes(painter, plot, growth, high, metrics)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_layouts(painter, plot, growth, high, metrics)
        start, end = float(self._first), float(growth.length)
        formula: Points = [(start, growth.per_token * start), (end, growth.per_token * end)]
        for points, colour, width, dashes in (
            (growth.allocated_line(), colours.secondary, 1.4, (4.0, 3.0)),
            (formula, halo(colours.amber), FORMULA_WIDTH, ()),  # wide and below: where both agree, both are seen
            (growth.used_line(), colours.accent, 2.2, ()),
        ):
            painter.setPen(dashed_pen(colour, width, dashes))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(QPolygonF([self._place_of(plot, high, x, y) for x, y in points]))
        painter.setPen(colours.secondary)
        entries = legend(colours, metrics, plot.left(), float(self.width()))
        beside = all(entry.left >= plot.left() for entry in entries)
        if beside and metrics.horizontalAdvance(tr("bytes")) <= plot.left() - 5:
            place = QRectF(0, 0, plot.left() - 5, metrics.height())
            painter.drawText(place, _MIDDLE_RIGHT, tr("bytes"))
        for entry in entries:
            entry.paint(painter, metrics, colours)
        painter.end()
        return pixmap

    def _high(self) -> float:
        """Bytes at the upper edge."""
        growth = self._growth
        if growth is None:
            return 1.0
        return HEADROOM * max(growth.used, growth.per_token * growth.length, growth.allocated_at(growth.length), 1)

    def layout_words(self) -> list[tuple[int, float, str]]:
        """Of each other layout: its bytes a token, the length at which its line ends, and what is written beside the
        plot; a line that leaves the plot says so, and how many bytes it leads to: on one line, as a second one would
        lie at the end of the line of what is used and read as its value. Where that left the plot less than half of the
        width the bytes are in the tool tip alone."""
        whole = self._layout_words()
        return whole if self._have_room(whole) else self._layout_words(brief=True)

    def _layout_words(self, *, brief: bool = False) -> list[tuple[int, float, str]]:
        growth, high = self._growth, self._high()
        if growth is None:
            return []
        found: list[tuple[int, float, str]] = []
        for name, size in growth.layouts:
            end = size * growth.length
            words = name if end <= high else f"{name} ↑" if brief else f"{name} ↑ {short_amount(end, 'B')}"
            stop = max(min(float(growth.length), high / max(size, 1)), float(self._first))
            found.append((size, stop, words))
        return found

    def _have_room(self, words: Sequence[tuple[int, float, str]]) -> bool:
        """Whether these leave the plot half of the width."""
        metrics = QFontMetricsF(self._theme.font("hint"))
        return self.width() - self._left(metrics) - self._right_of(words, metrics) >= self.width() / 2

    def layout_places(self) -> list[tuple[QRectF, str]]:
        """Those words with their places: at the height where the line ends, or at the upper edge."""
        plot, high, metrics = self.plot_rect(), self._high(), QFontMetricsF(self._theme.font("hint"))
        found: list[tuple[QRectF, str]] = []
        for per_token, stop, words in self.layout_words():
            y = self._place_of(plot, high, stop, min(stop * per_token, high)).y()
            top = max(y - metrics.ascent() / 2, found[-1][0].bottom() if found else plot.top())
            place = QRectF(plot.right() + BESIDE, top, metrics.horizontalAdvance(words), metrics.height())
            found.append((place, words))
        return found

    @property
    def _first(self) -> int:
        """The length at the left edge: one token, which is position 0; none where there is no other."""
        return 1 if self.count > 1 else 0

    def _x_in(self, plot: QRectF, length: float) -> float:
        """With the plot's place at hand: it measures words, and a line has many points. Lengths under the first are at
        the left edge: there the prefill's jump starts from nothing."""
        first = self._first
        return plot.left() + max(length - first, 0.0) * plot.width() / max(self.count - first, 1)

    def _edge(self, plot: QRectF, growth: Growth) -> float:
        """Where decode begins: half way between the last position of the prompt and the first one after it."""
        if growth.n_prompt >= growth.length:
            return plot.right()
        return self._x_in(plot, growth.n_prompt + 0.5) if growth.n_prompt else plot.left()

    def _place_of(self, plot: QRectF, high: float, x: float, y: float) -> QPointF:
        return QPointF(self._x_in(plot, x), plot.bottom() - y / high * plot.height())

    def _paint_ground(self, painter: QPainter, plot: QRectF, growth: Growth) -> None:
        colours, edge = self._theme.palette, self._edge(plot, growth)
        prefill = QRectF(plot.left(), plot.top(), edge - plot.left(), plot.height())
        decode = QRectF(edge, plot.top(), plot.right() - edge, plot.height())
        painter.fillRect(prefill, colours.green_tint)
        painter.fillRect(decode, colours.amber_tint)
        for number, (place, words) in enumerate(self.phase_words()):
            painter.setPen(colours.amber if number or not growth.n_prompt else colours.green)
            painter.drawText(place.adjusted(-1, 0, 1, 0), Qt.AlignmentFlag.AlignCenter, words)

    def _paint_axes(self, painter: QPainter, plot: QRectF, growth: Growth, high: float, metrics: QFontMetricsF) -> None:
        colours = self._theme.palette
        for value in ticks(0.0, high, max(1, min(MOST_TICKS, int(plot.height() // (metrics.height() * 1.7))))):
            y = round(plot.bottom() - value / high * plot.height()) + 0.5
            painter.setPen(QPen(colours.line, 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            painter.setPen(colours.secondary)
            place = QRectF(0, y - metrics.height() / 2, plot.left() - 5, metrics.height())
            painter.drawText(place, _MIDDLE_RIGHT, short_amount(value, "B") if value else "0")
        if not self._tall:
            return
        widest = metrics.horizontalAdvance(f"{growth.length:,}") + 16
        free = 0.0
        painter.setPen(colours.secondary)
        baseline = plot.bottom() + metrics.ascent() + 3
        last = float(growth.length - 1)
        for value in ticks(0.0, last, max(1, int(plot.width() // widest))) if last else [0.0]:
            if value != int(value):
                continue
            text = f"{int(value):,}"
            width = metrics.horizontalAdvance(text)
            left = min(self._x_in(plot, value + 1) - width / 2, self.width() - width)
            if left >= free:
                painter.drawText(QPointF(left, baseline), text)
                free = left + width + 8
        if metrics.horizontalAdvance(tr("position")) <= plot.left() - 5:
            place = QRectF(0, self.height() - metrics.height() - 1, plot.left() - 5, metrics.height())
            painter.drawText(place, _MIDDLE_RIGHT, tr("position"))

    def _paint_layouts(
        self, painter: QPainter, plot: QRectF, growth: Growth, high: float, metrics: QFontMetricsF
    ) -> None:
        """What leaves the plot ends at its upper edge: an axis that held it would flatten what was measured."""
        colours = self._theme.palette
        for per_token, stop, _words in self.layout_words():
            painter.setPen(QPen(colours.secondary, 0.8))
            first = float(self._first)
            last = self._place_of(plot, high, stop, min(stop * per_token, high))
            painter.drawLine(self._place_of(plot, high, first, min(first * per_token, high)), last)
            if stop < growth.length:
                painter.setPen(dashed_pen(colours.secondary, 0.8, (1.0, 3.0)))
                painter.drawLine(last, plot.topRight())
        painter.setPen(colours.secondary)
        for place, line in self.layout_places():
            painter.drawText(QPointF(place.left(), place.top() + metrics.ascent()), line)

    def _paint_marks(self, painter: QPainter, plot: QRectF, growth: Growth, high: float) -> None:
        colours = self._theme.palette
        for position, colour in ((self.cursor_at, colours.accent), (self.hovered, colours.secondary)):
            if position is None or position >= growth.length:
                continue
            x = round(self._x_in(plot, position + 1)) + 0.5
            painter.setPen(QPen(colour, 1))
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.accent)
            painter.drawEllipse(QPointF(x, self._place_of(plot, high, 0, growth.used_at(position)).y()), 3, 3)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.accent)
        painter.drawEllipse(self._place_of(plot, high, growth.length, growth.used), DOT, DOT)


_MIDDLE_RIGHT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
