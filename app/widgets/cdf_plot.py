"""The cumulative distribution over all kept candidates, with the step's draw and the token it falls on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip

if TYPE_CHECKING:
    from app.theme import Theme

MARGIN_TOP, MARGIN_RIGHT = 6, 8
STRIP = 70
"""Px at 100 % text below which there is no line at one half."""
MARK = 5
"""Px of the mark where the draw enters, left of the plot: it stands clear of the axis's figures."""
NARROW, DOT = 5, 2.6
"""Px of a step under which what the draw falls on is a dot of that radius too."""
FEW = 24
"""Up to so many steps, each one is as wide as its neighbours; more are drawn against the logarithm of the rank."""


class CdfPlot(QWidget):
    """A staircase over ranks: the draw u enters from the left and falls at the candidate it picks."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._cdf: NDArray[np.float64] = np.empty(0)
        self._tokens: NDArray[np.int64] = np.empty(0, np.int64)
        self._draw, self._pick, self._label = 0.0, 0, ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setAccessibleName(tr("Cumulative distribution and the draw"))
        theme.changed.connect(self.update)

    def set_cdf(
        self, cdf: NDArray[np.float64], tokens: NDArray[np.int64], *, draw: float, place: int, label: str
    ) -> None:
        """`cdf`: cumulative probabilities after so many kept tokens, in candidate order, as the ascending `tokens` say;
        `draw` falls on the token `label`, which `place` of them stand before."""
        self._cdf, self._tokens, self._draw, self._label = cdf, tokens, draw, label
        self._pick = int(np.searchsorted(tokens, place, side="right"))
        words = tr(
            "draw u = {draw}, would pick {token}, number {place} of {kept} kept tokens",
            draw=f"{draw:.4f}", token=label, place=f"{place + 1:,}", kept=f"{self.kept:,}",
        )  # fmt: skip
        self.setAccessibleDescription(words)
        self.setToolTip(plain_tip(words))
        self.update()

    @property
    def kept(self) -> int:
        """How many tokens the last point stands after."""
        return int(self._tokens[-1]) if len(self._tokens) else 0

    def sizeHint(self) -> QSize:
        return QSize(260, self._theme.px(96))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._theme.px(48))

    def plot_rect(self) -> QRectF:
        """Where the staircase is drawn."""
        metrics = QFontMetricsF(self._theme.font("hint"))
        left = metrics.horizontalAdvance("0.0") + MARK + 6
        return QRectF(self.rect()).adjusted(left, MARGIN_TOP, -MARGIN_RIGHT, -metrics.height() - 2)

    @property
    def is_strip(self) -> bool:
        """Whether the staircase is too low for a line at one half."""
        return self.height() < self._theme.px(STRIP)

    def edges(self) -> NDArray[np.float64]:
        """Left edges of the steps, 0 … 1, and the right edge of the last: (points + 1,)."""
        count = self.kept
        after = np.concatenate(([0], self._tokens)).astype(np.float64)
        if count <= FEW:
            return after / max(count, 1)
        edges: NDArray[np.float64] = np.log1p(after) / np.log1p(count)
        return edges

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours, plot = self._theme.palette, self.plot_rect()
        painter = QPainter(self)
        hint = self._theme.font("hint")
        painter.setFont(hint)
        metrics = QFontMetricsF(hint)
        for level in (0.0, 1.0) if self.is_strip else (0.0, 0.5, 1.0):
            y = plot.bottom() - level * plot.height()
            painter.setPen(QPen(colours.line, 1))
            painter.drawLine(QPointF(plot.left(), round(y) + 0.5), QPointF(plot.right(), round(y) + 0.5))
            painter.setPen(colours.secondary)
            text = f"{level:.1f}".rstrip("0").rstrip(".")
            place = QRectF(0, y - metrics.height() / 2, plot.left() - MARK - 3, metrics.height())
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
        if not len(self._cdf):
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        edges = plot.left() + self.edges() * plot.width()
        tops = plot.bottom() - np.minimum(self._cdf, 1.0) * plot.height()
        self._paint_pick(painter, plot, edges, tops)
        painter.setPen(QPen(colours.accent, 1.5))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(staircase(plot, edges, tops))
        self._paint_draw(painter, plot, edges)
        if self.kept == 1:
            self._paint_name(painter)
        self._paint_ranks(painter, plot, metrics)

    def _paint_pick(
        self, painter: QPainter, plot: QRectF, edges: NDArray[np.float64], tops: NDArray[np.float64]
    ) -> None:
        if self.kept == 1 or not 0 <= self._pick < len(self._cdf):
            return  # one step from 0 to 1 over the whole width: filled, it would be a slab
        below = tops[self._pick - 1] if self._pick else plot.bottom()
        left, right = edges[self._pick], max(edges[self._pick + 1], edges[self._pick] + 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.palette.amber)
        painter.drawRect(QRectF(left, tops[self._pick], right - left, max(2.0, below - tops[self._pick])))

    def _paint_draw(self, painter: QPainter, plot: QRectF, edges: NDArray[np.float64]) -> None:
        colours = self._theme.palette
        y = plot.bottom() - self._draw * plot.height()
        x = float(edges[self._pick]) if self.kept > 1 and 0 <= self._pick < len(self._cdf) else plot.right()
        painter.setPen(QPen(colours.amber, 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(plot.left(), y), QPointF(x, y))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.amber)
        if self.kept > 1 and 0 <= self._pick < len(self._cdf) and edges[self._pick + 1] - x < NARROW:
            painter.drawEllipse(QPointF((x + edges[self._pick + 1]) / 2, y), DOT, DOT)
        painter.drawPolygon(
            QPolygonF(
                [QPointF(plot.left() - MARK, y - 3.5), QPointF(plot.left() - MARK, y + 3.5), QPointF(plot.left(), y)]
            )
        )

    def name_rect(self) -> QRectF:
        """Where the one token that is kept is named: beside the line of the draw, where there is more room."""
        plot, high = self.plot_rect(), QFontMetricsF(self._theme.font("mono_small")).height()
        y = plot.bottom() - self._draw * plot.height()
        top = y - high - 1 if y - plot.top() > plot.bottom() - y else y + 1
        return QRectF(plot.left() + 6, top, plot.width() - 12, high)

    def _paint_name(self, painter: QPainter) -> None:
        font, place = self._theme.font("mono_small"), self.name_rect()
        painter.setFont(font)
        painter.setPen(self._theme.palette.amber)
        name = QFontMetricsF(font).elidedText(self._label, Qt.TextElideMode.ElideRight, place.width())
        painter.drawText(place, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter, name)
        painter.setFont(self._theme.font("hint"))

    def _paint_ranks(self, painter: QPainter, plot: QRectF, metrics: QFontMetricsF) -> None:
        painter.setPen(self._theme.palette.secondary)
        line = QRectF(plot.left(), plot.bottom() + 2, plot.width(), metrics.height())
        first, last, name = tr("rank 1"), f"{self.kept:,}", tr("cumulative p")
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft, first)
        painter.drawText(line, Qt.AlignmentFlag.AlignRight, last)
        taken = 2 * max(metrics.horizontalAdvance(first), metrics.horizontalAdvance(last)) + 24
        if taken + metrics.horizontalAdvance(name) <= plot.width():
            painter.drawText(line, Qt.AlignmentFlag.AlignHCenter, name)


def staircase(plot: QRectF, edges: NDArray[np.float64], tops: NDArray[np.float64]) -> QPolygonF:
    """From the lower left corner up every step. Steps narrower than half a pixel are joined."""
    points = [QPointF(plot.left(), plot.bottom())]
    drawn = -np.inf
    last = len(tops) - 1
    for index in range(len(tops)):
        if edges[index + 1] - drawn < 0.5 and index != last:
            continue
        points += [QPointF(points[-1].x(), tops[index]), QPointF(edges[index + 1], tops[index])]
        drawn = edges[index + 1]
    return QPolygonF(points)
