"""Lines and dots over any x, signed or logarithmic, with a cursor: scores by distance, a function, norms by layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.plain import tip
from app.widgets import line_axes, line_bars, line_legend
from app.widgets.crisp_text import draw_crisp
from app.widgets.curve_plot import extremes
from app.widgets.free_place import free_place
from app.widgets.line_axes import BESIDE
from app.widgets.line_frame import Frame, value_range
from app.widgets.stroke import stroke
from app.widgets.ticks import decades, figure, longest_short, short, ticks

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.line_legend import Legend

Floats = NDArray[np.float32]
_MOVES = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_PageUp: -10, Qt.Key.Key_PageDown: 10}
MOST_RIGHT = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """`x` ascending and `y`, (n,) each, NaN where there is none. `colour`: a token of the theme. `style`: a line, dots
    alone, or bars from the bottom (a pale ground, on a scale of their own unless `right`). `right`: on an axis of its
    own at the right. `tip`: what it is."""

    name: str
    x: Floats
    y: Floats
    colour: str = "accent"
    dashed: bool = False
    style: Literal["line", "dots", "bars"] = "line"
    right: bool = False
    key: str = ""
    tip: str = ""

    def at(self, x: float) -> float:
        """The value at the point nearest to x; NaN where there is none."""
        return float(self.y[int(np.abs(self.x - x).argmin())]) if len(self.x) else math.nan

    @cached_property
    def counts(self) -> bool:
        """Whether its values are whole numbers."""
        seen = self.y[np.isfinite(self.y)]
        return bool((seen == np.round(seen)).all())

    @cached_property
    def widest(self) -> str:
        """A figure as wide as `short` makes of any of the values."""
        seen = self.y[np.isfinite(self.y)]
        sizes = np.abs(seen[seen != 0])
        sign = "-" if bool((seen < 0).any()) else ""
        return sign + (longest_short(float(sizes.min()), float(sizes.max())) if len(sizes) else "0")


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One point that is pointed out: a ring, and words beside it where nothing else is drawn."""

    x: float
    y: float
    colour: str = "text"
    text: str = ""


class LinePlot(QWidget):
    """`xHovered` (NaN: none) and `xClicked` carry the x of the nearest point of the first line. Arrow keys move it.
    `whole`: x counts something, so that halves are no ticks; `x_names`: places on it that have a name. The name of x
    has a line under the figures where the plot is high enough; where it is low, and `titled`, it stands over the plot
    with that of y, so that no tick gives way to a name."""

    xHovered = Signal(float)
    xClicked = Signal(float)

    def __init__(
        self,
        theme: Theme,
        label: str,
        *,
        x_name: str = "",
        y_name: str = "",
        right_name: str = "",
        log: bool = False,
        zero: bool = True,
        whole: bool = False,
        x_names: Mapping[float, str] | None = None,
        titled: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme, self._x_name, self._y_name, self._right_name = theme, x_name, y_name, right_name
        self._log, self._zero, self._whole, self._titled = log, zero, whole, titled
        self._x_names = dict(x_names or {})
        self.lines: tuple[Line, ...] = ()
        self.pointed: Line | None = None
        self._legend: Legend | None = None
        self._marks: tuple[Mark, ...] = ()
        self._mark_places: list[QRectF | None] | None = None
        self._cursor: float | None = None
        self._hovered: float | None = None
        self._scene: QPixmap | None = None
        self._found: Frame | None = None
        self.setAccessibleName(label)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self._drop)

    # state → widget

    def set_lines(self, lines: Sequence[Line]) -> None:
        self.lines = tuple(lines)
        self.pointed = None
        self._drop()
        self._describe()

    def set_names(self, *, x: str, y: str) -> None:
        """What the axes show."""
        if (x, y) != (self._x_name, self._y_name):
            self._x_name, self._y_name = x, y
            self._drop()

    def set_marks(self, marks: Sequence[Mark]) -> None:
        if tuple(marks) != self._marks:
            self._marks, self._mark_places = tuple(marks), None
            self.update()

    def set_cursor(self, x: float | None) -> None:
        """The x that is chosen."""
        if x != self._cursor:
            self._cursor = x
            self._describe()
            self.update()

    def set_hovered(self, x: float | None) -> None:
        """The x that is pointed at, here or elsewhere."""
        if x != self._hovered:
            self._hovered = x
            self.update()

    def value_at(self, line: Line, x: float) -> float:
        """A line's value at its point nearest to x."""
        return line.at(x)

    # geometry

    def frame(self) -> Frame:
        """Where things are at the present size."""
        if self._found is None:
            self._found = self._lay_out()
        return self._found

    def legend(self) -> Legend:
        """What the lines are called, and where."""
        if self._legend is None:
            right = self._right_name if self._two_axes else ""
            size = QSizeF(self.width(), self.height() - self._name_room)
            self._legend = line_legend.lay_out(self.lines, self._theme, size, self._heading, right)
        return self._legend

    def x_at(self, point: QPointF) -> float | None:
        """The x of the first line's point nearest to a point of the widget."""
        frame, first = self.frame(), next((line for line in self.lines if line.style != "bars" and len(line.x)), None)
        if first is None or not frame.plot.adjusted(-2, -2, 2, 2).contains(point):
            return None
        x = frame.x[0] + (point.x() - frame.plot.left()) / frame.plot.width() * (frame.x[1] - frame.x[0])
        return float(first.x[int(np.abs(first.x - x).argmin())])

    def sizeHint(self) -> QSize:
        return QSize(260, self._theme.px(150))

    def minimumSizeHint(self) -> QSize:
        return QSize(130, self._theme.px(96))

    # events

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        x = self.x_at(at)
        self._hover(x)
        if (entry := self.legend().at(at)) is not None:
            self._point(entry.lines[0] if len(entry.lines) == 1 else None, line_legend.told(entry, self._values()))
            return
        line = None if x is None else line_legend.nearest(self.lines, self.frame(), x, at.y())
        self._point(line, "" if line is None or self.legend().shows(line) else tip(line.name))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)
        self._point(None)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        x = self.x_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and x is not None:
            self.xClicked.emit(x)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        first = next((line for line in self.lines if line.style != "bars" and len(line.x)), None)
        if first is None or key not in {*_MOVES, Qt.Key.Key_Home, Qt.Key.Key_End}:
            event.ignore()
            return
        at = int(np.abs(first.x - (self._cursor if self._cursor is not None else first.x[0])).argmin())
        last = len(first.x) - 1
        at = 0 if key is Qt.Key.Key_Home else last if key is Qt.Key.Key_End else min(max(at + _MOVES[key], 0), last)
        self.set_cursor(float(first.x[at]))
        self.xClicked.emit(float(first.x[at]))

    def resizeEvent(self, _event: object) -> None:
        self._drop()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._drop()
        super().changeEvent(event)

    def focusInEvent(self, event: object) -> None:
        super().focusInEvent(event)  # type: ignore[arg-type] # QFocusEvent
        self.update()

    def focusOutEvent(self, event: object) -> None:
        super().focusOutEvent(event)  # type: ignore[arg-type] # QFocusEvent
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not self.lines:
            return
        painter, ratio = QPainter(self), self.devicePixelRatioF()
        if self._scene is None or self._scene.devicePixelRatio() != ratio:
            self._scene = self._draw_scene(ratio)
        painter.drawPixmap(0, 0, self._scene)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_overlay(painter, self.frame())

    # inside

    def _drop(self) -> None:
        self._scene = self._found = self._mark_places = self._legend = None
        self.update()

    def _lay_out(self) -> Frame:
        metrics = QFontMetricsF(self._theme.font("hint"))
        drawn = [line for line in self.lines if line.style != "bars" and np.isfinite(line.y).any()]
        left = value_range([line.y for line in drawn if not line.right], log=self._log, zero=self._zero)
        right = value_range([line.y for line in drawn if line.right], log=False)
        line = metrics.height()
        legend = self.legend()
        rows = legend.rows
        under = line + 4 + self._name_room
        height = max(self.height() - (rows + 0.5) * line - under, 10)
        marks = (
            ticks(*left, max(2, int(height / (line * 1.7))))
            if not self._log
            else decades(*left, int(height / (line * 1.1)))
        )
        widest = max((metrics.horizontalAdvance(short(value)) for value in marks), default=10.0)
        far, right_marks = 0.0, list[float]()
        bars = line_bars.axis(self.lines)
        right = right if bars is None else bars
        if bars is not None or any(line.right for line in drawn):
            right_marks = ticks(*right, min(MOST_RIGHT, max(2, int(height / (line * 1.7)))))
            far = max(metrics.horizontalAdvance(short(value)) for value in (*right_marks, 0.5)) + BESIDE + 2
        plot = QRectF(self.rect()).adjusted(widest + 7, rows * line + line / 2, -max(far, 4) - legend.column, -under)
        xs = [line.x for line in drawn if len(line.x)]
        x = (min(float(x[0]) for x in xs), max(float(x[-1]) for x in xs)) if xs else (0.0, 1.0)
        x = x if x[1] > x[0] else (x[0] - 0.5, x[0] + 0.5)
        frame = Frame(plot=plot, x=x, left=left, right=right, log=self._log, ticks=marks, right_ticks=right_marks)
        if (self._titled or self._below or not self._x_name) and (found := self._x_ticks(frame, metrics)):
            value, text = found[-1]  # its words are under it: what reaches out at the right is kept free
            end = self.width() - legend.column
            plot.setRight(plot.right() - max(frame.px(value) + metrics.horizontalAdvance(text) / 2 - end, 0))
        return frame

    @property
    def _two_axes(self) -> bool:
        return bool(self._right_name) and any(line.right for line in self.lines)

    @property
    def _heading(self) -> str:
        over = self._titled and self._x_name and not self._below
        return tr("{y} by {x}", y=self._y_name, x=self._x_name) if over else self._y_name

    @property
    def _below(self) -> bool:
        """Whether the name of x has a line of its own."""
        return bool(self._x_name) and self.height() >= self._theme.px(line_axes.NAMED_FROM)

    @property
    def _name_room(self) -> float:
        return QFontMetricsF(self._theme.font("hint")).height() - 1 if self._below else 0.0

    def _draw_scene(self, ratio: float) -> QPixmap:
        pixmap = QPixmap(max(1, round(self.width() * ratio)), max(1, round(self.height() * ratio)))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter, frame = QPainter(pixmap), self.frame()
        painter.setFont(self._theme.font("hint"))
        name = self._x_name if self._below or not self._titled else ""
        size, found = (
            (self.width() - self.legend().column, self.height()),
            self._x_ticks(frame, QFontMetricsF(painter.font())),
        )
        line_axes.paint(painter, self._theme, frame, found, size, name, below=self._below)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setClipRect(frame.plot.adjusted(-3, -2, 3, 2))
        for line in sorted(self.lines, key=lambda line: line.style != "bars"):
            self._paint_line(painter, frame, line)
        painter.end()
        return pixmap

    def _x_ticks(self, frame: Frame, metrics: QFontMetricsF) -> list[tuple[float, str]]:
        return line_axes.x_ticks(frame, metrics, self._x_names, whole=self._whole)

    def _paint_line(self, painter: QPainter, frame: Frame, line: Line, thick: float = 1.6) -> None:
        colour = QColor(getattr(self._theme.palette, line.colour))
        if not len(line.x):
            return
        if line.style == "bars":
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(line_legend.pale(self._theme, line))
            painter.drawRects(line_bars.rects(line, frame))
            return
        x = frame.plot.left() + (line.x - frame.x[0]) / (frame.x[1] - frame.x[0]) * frame.plot.width()
        y = frame.py(line.y, right=line.right)
        if line.style == "dots":
            painter.setPen(Qt.PenStyle.NoPen)
            colour.setAlphaF(0.85 if len(x) < 200 else 0.4)
            painter.setBrush(colour)
            for px, py in zip(x.tolist(), y.tolist(), strict=True):
                painter.drawEllipse(QPointF(px, py), 2.2, 2.2)
            return
        style = Qt.PenStyle.DashLine if line.dashed else Qt.PenStyle.SolidLine
        kept = extremes(line.y, max(1, int(frame.plot.width())))
        kept = kept[np.isfinite(line.y[kept])]
        pen = QPen(colour, thick, style, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
        stroke(painter, x[kept], y[kept], pen)

    def _paint_overlay(self, painter: QPainter, frame: Frame) -> None:
        colours, plot = self._theme.palette, frame.plot
        painter.setFont(self._theme.font("hint"))
        for x, colour in ((self._cursor, colours.accent), (self._hovered, colours.secondary)):
            if x is not None and frame.x[0] <= x <= frame.x[1]:
                painter.setPen(QPen(colour, 1))
                at = round(frame.px(x)) + 0.5
                painter.drawLine(QPointF(at, plot.top()), QPointF(at, plot.bottom()))
        shown = self._shown()
        if shown is not None and frame.x[0] <= shown <= frame.x[1]:
            painter.setPen(Qt.PenStyle.NoPen)
            for line in self.lines:
                value = self.value_at(line, shown)
                if line.style == "line" and math.isfinite(value):
                    painter.setBrush(getattr(colours, line.colour))
                    y = float(frame.py(np.array([value]), right=line.right)[0])
                    painter.drawEllipse(QPointF(frame.px(shown), y), 3.0, 3.0)
        if self.pointed is not None:
            painter.save()
            painter.setClipRect(plot.adjusted(-3, -2, 3, 2))
            self._paint_line(painter, frame, self.pointed, 3.2)
            painter.restore()
        self._paint_marks(painter, frame)
        self._paint_names(painter)
        if self.hasFocus():
            painter.setPen(QPen(colours.accent, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(plot.adjusted(-1.5, -1.5, 1.5, 1.5))

    def mark_places(self) -> list[QRectF | None]:
        """Of each mark where its words stand; None: they would lie on something, or there are none."""
        if self._mark_places is None:
            frame, metrics = self.frame(), QFontMetricsF(self._theme.font("hint"))
            curves = [
                (frame.plot.left() + (line.x - frame.x[0]) / (frame.x[1] - frame.x[0]) * frame.plot.width(),
                 frame.py(line.y, right=line.right))
                for line in self.lines if line.style == "line"
            ]  # fmt: skip
            ends = np.array([frame.plot.left(), frame.plot.right()], np.float32)
            zero = [] if self._log else [(ends, frame.py(np.zeros(2, np.float32)))]
            self._mark_places = []
            for mark in self._marks:
                size = QSizeF(metrics.horizontalAdvance(mark.text) + 4, metrics.height() - 2)
                at, place = self._mark_at(mark), None
                # On the line of 0 only where there is no place off it, and over bars where there is none beside them.
                bars = line_bars.outlines(self.lines, frame)
                for lines in ([*curves, *zero, *bars], [*curves, *bars], curves):
                    place = place or (free_place(at, size, frame.plot, lines) if mark.text else None)
                self._mark_places.append(place)
        return self._mark_places

    def _mark_at(self, mark: Mark) -> QPointF:
        frame = self.frame()
        return QPointF(frame.px(mark.x), float(frame.py(np.array([mark.y]))[0]))

    def _paint_marks(self, painter: QPainter, frame: Frame) -> None:
        for mark, place in zip(self._marks, self.mark_places(), strict=True):
            at = self._mark_at(mark)
            if not frame.plot.adjusted(-6, -6, 6, 6).contains(at):
                continue
            painter.setPen(QPen(getattr(self._theme.palette, mark.colour), 1.6))
            painter.setBrush(self._theme.palette.panel)
            painter.drawEllipse(at, 4.0, 4.0)
            if place is not None:
                painter.fillRect(place, self._theme.palette.panel)
                painter.setPen(getattr(self._theme.palette, mark.colour))  # whose value it is
                painter.drawText(place, Qt.AlignmentFlag.AlignCenter, mark.text)

    def _paint_names(self, painter: QPainter) -> None:
        """What the axes and the lines are called."""
        metrics, legend = QFontMetricsF(self._theme.font("hint")), self.legend()
        painter.setPen(self._theme.palette.secondary)
        end = self.width() - 5 - legend.column
        room = end
        if self._two_axes:
            left = end - metrics.horizontalAdvance(self._right_name)
            draw_crisp(painter, QPointF(max(left, 0.0), metrics.ascent()), self._right_name)
            room = left - line_legend.GAP if legend.column else float(self.width())
        heading = metrics.elidedText(self._heading, Qt.TextElideMode.ElideRight, room)
        draw_crisp(painter, QPointF(0, metrics.ascent()), heading)
        line_legend.paint(painter, self._theme, legend, self._values(), self.pointed)

    def _shown(self) -> float | None:
        """The x whose values are said: where the mouse is, else the cursor's."""
        return self._cursor if self._hovered is None else self._hovered

    def _values(self) -> dict[int, float]:
        """Each line's value there, by its `id`; empty where there is none."""
        shown = self._shown()
        return {} if shown is None else {id(line): self.value_at(line, shown) for line in self.lines}

    def _point(self, line: Line | None, tip: str = "") -> None:
        """Lets one line stand out; None: all are alike."""
        self.setToolTip(tip)
        if line is not self.pointed:
            self.pointed = line
            self.update()

    def _hover(self, x: float | None) -> None:
        if x != self._hovered:
            self.set_hovered(x)
            self.xHovered.emit(math.nan if x is None else x)

    def _describe(self) -> None:
        if self._cursor is None:
            self.setAccessibleDescription("")
            return
        values = [
            f"{line.name} {figure(self.value_at(line, self._cursor))}"
            for line in self.lines
            if line.name and line.style != "bars"
        ]
        self.setAccessibleDescription(
            f"{self._x_name} {self._x_names.get(self._cursor, figure(self._cursor))}: " + ", ".join(values)
        )
