"""Rotary pairs as planes: q and k before and after they are turned, all pairs small, the chosen one large."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QHelpEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip
from app.widgets.cursor_plot import CursorPlot
from app.widgets.sign_colours import sign_colour
from app.widgets.ticks import figure, short

if TYPE_CHECKING:
    from app.theme import Theme

Floats = NDArray[np.float32]
KEY_SIDE = 9.0
"""Px of a piece of colour in the caption."""
WORDS_FROM = 46.0
"""Px of a small plane from which its number is written under it, beside the line itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Planes:
    """P pairs. `q_before` … `k_after` (P, 2); `q_angle`, `k_angle` (P,) radians turned; `wavelength` (P,) positions a
    turn; `share` (P,) of each pair in q·k. `half`: pair i is dimensions i and i + half."""

    q_before: Floats
    q_after: Floats
    k_before: Floats
    k_after: Floats
    q_angle: Floats
    k_angle: Floats
    wavelength: Floats
    share: Floats
    half: int

    @property
    def count(self) -> int:
        return int(self.share.shape[0])


class PlaneGrid(CursorPlot):
    """Every pair, each on its own scale, its ground tinted by its share of q·k. Positions are pairs."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        self.planes: Planes | None = None
        self._scene: QPixmap | None = None
        super().__init__(theme, label, parent)
        self.cursor_at = 0

    def set_planes(self, planes: Planes | None) -> None:
        self.planes = planes
        self.redraw()

    @property
    def count(self) -> int:
        return self.planes.count if self.planes else 0

    def line_step(self) -> int:
        return self.columns()

    @property
    def head(self) -> float:
        """Px of the caption over the planes."""
        return QFontMetricsF(self._theme.font("hint")).height() + 3

    def columns(self) -> int:
        """How many columns make the largest squares."""
        count, height = self.planes.count if self.planes else 1, self.height() - self.head
        return max(range(1, count + 1), key=lambda n: min(self.width() / n, height / math.ceil(count / n)))

    def cell(self, pair: int) -> QRectF:
        """Where a pair's square is drawn."""
        count, columns, head = self.planes.count if self.planes else 1, self.columns(), self.head
        side = max(min(self.width() / columns, (self.height() - head) / math.ceil(count / columns)), 1.0)
        row, column = divmod(pair, columns)
        return QRectF(column * side, head + row * side, side, side)

    def position_at(self, point: QPointF) -> int | None:
        first = self.cell(0)
        side = first.width()
        column, row = int(point.x() // side), int((point.y() - first.top()) // side)
        pair = row * self.columns() + column
        return pair if 0 <= column < self.columns() and row >= 0 and pair < self.count else None

    def sizeHint(self) -> QSize:
        return QSize(320, self._theme.px(150))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._theme.px(96))

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            about = self.words(self.position_at(QPointF(event.pos())))
            QToolTip.showText(event.globalPos(), about or self.caption(), self)
            return True
        return bool(super().event(event))

    def words(self, position: int | None) -> str:
        planes, pair = self.planes, position
        if planes is None or pair is None:
            return ""
        return tr(
            "pair {i}: a turn every {wave} positions, adds {share} to q·k",
            i=pair, wave=short(float(planes.wavelength[pair])), share=short(float(planes.share[pair])),
        )  # fmt: skip

    def resizeEvent(self, _event: object) -> None:
        self.redraw()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.planes is None:
            return
        painter, ratio, colours = QPainter(self), self.devicePixelRatioF(), self._theme.palette
        if self._scene is None or self._scene.devicePixelRatio() != ratio:
            self._scene = self._draw(ratio, self.planes)
        painter.drawPixmap(0, 0, self._scene)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for pair, colour in ((self.hovered, colours.secondary), (self.cursor_at, colours.accent)):
            if pair is not None and pair < self.planes.count:
                width = 2.0 if self.hasFocus() and pair == self.cursor_at else 1.4
                painter.setPen(QPen(colour, width))
                painter.drawRoundedRect(self.cell(pair).adjusted(1, 1, -1, -1), 4, 4)

    def redraw(self) -> None:
        self._scene = None
        self.update()

    def _draw(self, ratio: float, planes: Planes) -> QPixmap:
        pixmap = QPixmap(max(1, round(self.width() * ratio)), max(1, round(self.height() * ratio)))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter, colours = QPainter(pixmap), self._theme.palette
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        font = self._theme.font("hint")
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        most = float(np.abs(planes.share).max(initial=0.0)) or 1.0
        self._draw_caption(painter, planes, metrics)
        names = self.names()
        for pair in range(planes.count):
            cell = self.cell(pair).adjusted(2, 2, -2, -2)
            share = float(planes.share[pair])
            ground = QColor(sign_colour(negative=share < 0))
            ground.setAlphaF(0.38 * math.sqrt(abs(share) / most))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ground)
            painter.drawRoundedRect(cell, 3, 3)
            below = metrics.height() if names else 0.0
            radius = (min(cell.width(), cell.height() - below) - 6) / 2
            centre = QPointF(cell.center().x(), cell.top() + 3 + radius)
            draw_plane(painter, self._theme, planes, pair, centre, radius)
            if names:
                painter.setPen(colours.secondary)
                place = QRectF(cell.left(), cell.bottom() - below, cell.width(), below)
                painter.drawText(place, Qt.AlignmentFlag.AlignCenter, names[pair])
        painter.end()
        return pixmap

    def names(self) -> list[str]:
        """What is written under each plane; nothing where it has no room under all of them."""
        if self.planes is None:
            return []
        metrics, room = QFontMetricsF(self._theme.font("hint")), self.cell(0).width() - 4
        names = [f"{pair} · λ {compact(float(wave))}" for pair, wave in enumerate(self.planes.wavelength)]
        fit = room >= WORDS_FROM + metrics.height() and all(metrics.horizontalAdvance(name) <= room for name in names)
        return names if fit else []

    def caption(self) -> str:
        """Which pairs these are and what their grounds say."""
        words = tr("pairs 0–{last}", last=self.count - 1) + " · " + tr("tint: share of q·k")
        return words if self.planes is not None else ""

    def _draw_caption(self, painter: QPainter, planes: Planes, metrics: QFontMetricsF) -> None:
        """Which pairs these are and what their grounds say, as much as has room."""
        words = tr("pairs 0–{last}", last=planes.count - 1)
        tint = " · " + tr("tint: share of q·k")
        key = metrics.horizontalAdvance(tint + "  +  −") + 3 * KEY_SIDE
        painter.setPen(self._theme.palette.secondary)
        painter.drawText(QPointF(0, metrics.ascent()), words)
        x = metrics.horizontalAdvance(words)
        if x + key > self.width():
            return
        painter.drawText(QPointF(x, metrics.ascent()), tint)
        x += metrics.horizontalAdvance(tint) + 6
        for sign in ("+", "−"):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(sign_colour(negative=sign != "+"))
            painter.drawRoundedRect(QRectF(x, metrics.ascent() - KEY_SIDE, KEY_SIDE, KEY_SIDE), 2, 2)
            painter.setPen(self._theme.palette.secondary)
            painter.drawText(QPointF(x + KEY_SIDE + 3, metrics.ascent()), sign)
            x += KEY_SIDE + 3 + metrics.horizontalAdvance(sign) + 6


class PlaneView(QWidget):
    """One pair, large: both vectors before (dashed) and after (solid), the angles they turned by, and its numbers."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.planes: Planes | None = None
        self.pair = 0
        self.setAccessibleName(label)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def set_pair(self, planes: Planes | None, pair: int) -> None:
        self.planes, self.pair = planes, pair
        self.setAccessibleDescription(", ".join(self.lines()))
        self.update()

    def lines(self) -> list[str]:
        """The pair's numbers, a line each."""
        planes = self.planes
        if planes is None or not 0 <= self.pair < planes.count:
            return []
        pair, half = self.pair, planes.half
        return [
            tr("pair {i} · dims {a}, {b}", i=pair, a=pair, b=pair + half),
            tr("λ {wave} positions", wave=short(float(planes.wavelength[pair]))),
            tr("q turned {angle}", angle=_turns(float(planes.q_angle[pair]))),
            tr("k turned {angle}", angle=_turns(float(planes.k_angle[pair]))),
            tr("adds {share} to q·k", share=short(float(planes.share[pair]))),
        ]

    def sizeHint(self) -> QSize:
        return QSize(230, self._theme.px(150))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._theme.px(96))

    def paintEvent(self, _event: QPaintEvent) -> None:
        planes, colours = self.planes, self._theme.palette
        if planes is None or not 0 <= self.pair < planes.count:
            return
        painter = QPainter(self)
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        font = self._theme.font("hint")
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        head = metrics.height() + 3
        painter.setPen(colours.secondary)
        captions = self.captions()
        caption = next((each for each in captions if metrics.horizontalAdvance(each) <= self.width()), captions[-1])
        caption = metrics.elidedText(caption, Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(QPointF(0, metrics.ascent()), caption)
        painter.translate(0, head)
        height = self.height() - head
        lines = self.lines()
        words = max(metrics.horizontalAdvance(line) for line in lines) + 8
        beside = self.width() - words >= min(height, 84)
        tall = len(lines) * metrics.height() + 4
        room = QRectF(0, 0, self.width() - words, height) if beside else QRectF(
            0, 0, self.width(), height - min(tall, height / 2)
        )  # fmt: skip
        radius = max(min(room.width(), room.height()) / 2 - metrics.height(), 8.0)
        centre = QPointF(radius + metrics.height(), room.center().y()) if beside else room.center()
        draw_plane(painter, self._theme, planes, self.pair, centre, radius, large=True)
        x = centre.x() + radius + metrics.height() + 4 if beside else 4.0
        top = max(0.0, (height - tall) / 2) if beside else room.bottom()
        for row, line in enumerate(lines):
            voice = colours.accent if row == 2 else colours.amber if row == 3 else colours.secondary
            painter.setPen(colours.text if row in {0, 4} else voice)
            baseline = top + metrics.ascent() + row * metrics.height()
            if baseline + metrics.descent() <= height + 1:
                shown = metrics.elidedText(line, Qt.TextElideMode.ElideRight, self.width() - x)
                painter.drawText(QPointF(x, baseline), shown)

    def captions(self) -> tuple[str, str]:
        """What the lines stand for, the longer words first."""
        return tr("solid: after rotation · dashed: before"), tr("solid after · dashed before")

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            words = "\n".join([*self.lines(), self.captions()[0]]) if self.lines() else ""
            QToolTip.showText(event.globalPos(), plain_tip(words), self)
            return True
        return bool(super().event(event))


def draw_plane(
    painter: QPainter, theme: Theme, planes: Planes, pair: int, centre: QPointF, radius: float, *, large: bool = False
) -> None:
    """A circle with axes and four arrows; q and k each fill the circle with their own length."""
    colours = theme.palette
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colours.line, 1))
    painter.drawEllipse(centre, radius, radius)
    painter.drawLine(centre - QPointF(radius, 0), centre + QPointF(radius, 0))
    painter.drawLine(centre - QPointF(0, radius), centre + QPointF(0, radius))
    for before, after, turned, colour, name, ring in (
        (planes.k_before, planes.k_after, planes.k_angle, colours.amber, "k", 0.42),
        (planes.q_before, planes.q_after, planes.q_angle, colours.accent, "q", 0.56),
    ):
        longest = max(float(np.hypot(*before[pair])), float(np.hypot(*after[pair])))
        if longest <= 0:
            continue
        start, end = (centre + _point(vector[pair], radius / longest) for vector in (before, after))
        if large:
            _draw_arc(painter, centre, radius * ring, before[pair], float(turned[pair]), colour)
        faint = QColor(colour)
        faint.setAlphaF(0.7)
        painter.setPen(QPen(faint, 1.0 if not large else 1.3, Qt.PenStyle.DashLine))
        painter.drawLine(centre, start)
        painter.setPen(QPen(colour, 1.6 if not large else 2.2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(centre, end)
        if large:
            _draw_head(painter, centre, end, colour)
            metrics = QFontMetricsF(painter.font())
            out = end + (end - centre) * (metrics.height() * 0.55 / max(radius, 1.0))
            painter.setPen(colour)
            box = QRectF(out.x() - 12, out.y() - metrics.height() / 2, 24, metrics.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, name)


def _point(vector: Floats, factor: float) -> QPointF:
    """On screen y runs down."""
    return QPointF(float(vector[0]) * factor, -float(vector[1]) * factor)


def _draw_arc(painter: QPainter, centre: QPointF, radius: float, before: Floats, turned: float, colour: QColor) -> None:
    """From the vector before, by what is left of the angle after whole turns."""
    start, left = math.atan2(float(before[1]), float(before[0])), math.fmod(turned, 2 * math.pi)
    steps = max(2, round(abs(left) * 16))
    points = [
        centre + QPointF(radius * math.cos(start + left * i / steps), -radius * math.sin(start + left * i / steps))
        for i in range(steps + 1)
    ]
    painter.setPen(QPen(colour, 1))
    painter.drawPolyline(QPolygonF(points))


def _draw_head(painter: QPainter, centre: QPointF, end: QPointF, colour: QColor) -> None:
    way = end - centre
    length = math.hypot(way.x(), way.y())
    if length < 10:
        return
    unit = way / length
    side = QPointF(-unit.y(), unit.x())
    base = end - unit * 8
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawPolygon(QPolygonF([end, base + side * 3.6, base - side * 3.6]))
    painter.setBrush(Qt.BrushStyle.NoBrush)


def compact(value: float) -> str:
    """Three digits and a letter: 148,990 is 149k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _turns(angle: float) -> str:
    """Radians, with whole turns apart where there are any."""
    whole = math.floor(abs(angle) / (2 * math.pi))
    left = math.fmod(angle, 2 * math.pi)
    return (
        tr("{n}·2π + {rad} rad", n=f"{whole:,}", rad=figure(left, 3))
        if whole
        else tr("{rad} rad", rad=figure(angle, 3))
    )
