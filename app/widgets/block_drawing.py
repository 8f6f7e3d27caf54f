"""A decoder as a drawing: the stream from tokens to logits, and in each block what is read from it and added to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QToolTip, QWidget

from app.plain import tip as plain_tip
from app.widgets.block_drawing_flat import Laid, flat_height, flat_width, lay_flat

if TYPE_CHECKING:
    from app.theme import Theme

STREAM, INDENT, RADIUS = 22.0, 48.0, 9.0
INDENT_SHARE, EDGE = 0.15, 8.0
"""Of the width at most what is left of a block's boxes, and px right of them."""
LOW, TWO_LINES, HIGH = 20.0, 36.0, 58.0
"""Px of a box at 100 % text: with name and detail on one line, with a line for each, and with air round them."""
CLOSE, WIDE = 12.0, 26.0
"""Px between boxes at 100 % text."""
INSIDE, HALF = 10.0, 0.6
"""Px at either side of a box's text; of its width what each of two lines takes at most."""
WRAP = Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap
SHARE = 2.2
"""Times a box is higher than a gap, between these bounds."""


@dataclass(frozen=True, kw_only=True)
class Op:
    """A box: its name, what is in it, and a figure at its right."""

    name: str
    detail: str = ""
    note: str = ""


Branch = tuple[Op, ...]


@dataclass(frozen=True, kw_only=True)
class Outline:
    """`first` and `last` are on the stream. A block, which comes `blocks` times, is groups that are added one after the
    other; the branches of a group read the same stream and are added together."""

    first: Branch
    groups: tuple[tuple[Branch, ...], ...]
    last: Branch
    blocks: int
    caption: str

    def ops(self) -> list[Op]:
        """Every box in the order of a token's way."""
        inner = [op for group in self.groups for branch in group for op in branch]
        return [*self.first, *inner, *self.last]


class DrawingPage(QScrollArea):
    """A drawing that is scrolled where it is higher than the place, and sideways where a name has no room in it."""

    def __init__(self, theme: Theme, drawing: QWidget) -> None:
        super().__init__()
        self._theme = theme
        self.setWidget(drawing)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(drawing.accessibleName())
        self.viewport().setAutoFillBackground(False)
        drawing.setAutoFillBackground(False)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(160), self._theme.px(60))


class BlockDrawing(QWidget):
    """Boxes as high as the widget allows; a tip over each says all of it."""

    def __init__(self, theme: Theme, label: str) -> None:
        super().__init__()
        self._theme = theme
        self.outline: Outline | None = None
        self.setAccessibleName(label)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self._restyle)

    def _restyle(self) -> None:
        self.updateGeometry()
        self.update()

    def set_outline(self, outline: Outline | None) -> None:
        if outline != self.outline:
            self.outline = outline
            lines = [_sentence(op) for op in outline.ops()] if outline else []
            self.setAccessibleDescription("; ".join(lines))
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(320), self._theme.px(420))

    def minimumSizeHint(self) -> QSize:
        """High enough for every box at its lowest; where that has to be scrolled in any case, for all that is said in
        each. Wide enough for every name."""
        scale, height, place = self._theme.text_scale, self._theme.px(160), self.parentWidget()
        width = self._least_width(self.outline) if self.outline is not None else 0
        if self.outline is not None and place is not None and self._flat(self.outline, place.size()):
            height = math.ceil(flat_height(self.outline) * scale)
        elif self.outline is not None:
            rows, gaps = _counts(self.outline)
            height = math.ceil((rows * LOW + gaps * CLOSE) * scale) + 4
            if place is not None and place.height() < height:
                box = self._whole_box(self.outline, max(place.width(), width))
                height = math.ceil(rows * box + gaps * TWO_LINES * scale / SHARE) + 4
        return QSize(width, height)

    # geometry

    def _flat(self, outline: Outline, room: QSize) -> bool:
        """Whether the stream goes to the right: where it is too low for boxes under one another, and wide enough."""
        (rows, gaps), scale = _counts(outline), self._theme.text_scale
        upright = (rows * LOW + gaps * CLOSE) * scale + 4
        return room.height() < upright and (
            room.width() >= flat_width(outline, self._need, scale) and room.height() >= flat_height(outline) * scale
        )

    def _need(self, op: Op) -> float:
        """Px in which a box has name and figure whole, and what is in it on two lines."""
        small = QFontMetricsF(self._theme.font("hint"))
        name = QFontMetricsF(self._theme.font("table", bold=True)).horizontalAdvance(op.name)
        note = small.horizontalAdvance(op.note) + 14 if op.note else 0.0
        return max(name + note, small.horizontalAdvance(op.detail) * HALF) + 2 * INSIDE + 2

    def _indent(self, width: float) -> float:
        """Px left of a block's boxes, in which the stream is."""
        return min(INDENT * self._theme.text_scale, max(width * INDENT_SHARE, 3 * RADIUS))

    def _beside(self, width: float, group: int) -> float:
        """Px of each of a group's branches, at least."""
        gap = WIDE * self._theme.text_scale
        return (width - 2 - EDGE - self._indent(width) - gap * (group - 1)) / group

    def _least_width(self, outline: Outline) -> int:
        """Px in which every name is whole, those of branches beside one another too."""
        bold = QFontMetricsF(self._theme.font("table", bold=True))

        def need(ops: Branch) -> float:
            return max((bold.horizontalAdvance(op.name) for op in ops), default=0.0) + 2 * INSIDE + 2

        widest = max(need(outline.first), need(outline.last))
        for group in outline.groups:
            gap = WIDE * self._theme.text_scale
            inner = len(group) * max(map(need, group)) + gap * (len(group) - 1) + 2 + EDGE
            widest = max(widest, min(inner + INDENT * self._theme.text_scale, max(inner / (1 - INDENT_SHARE),
                                                                                 inner + 3 * RADIUS)))  # fmt: skip
        return math.ceil(widest) + 1

    def _whole_box(self, outline: Outline, width: float) -> float:
        """Px of height in which every box of a drawing `width` px wide says all it has to, two lines at least."""
        bold = QFontMetricsF(self._theme.font("table", bold=True))
        rooms = [(width - 2, [*outline.first, *outline.last])]
        rooms += [(self._beside(width, len(group)), [op for branch in group for op in branch])
                  for group in outline.groups]  # fmt: skip
        least = TWO_LINES * self._theme.text_scale
        for room, ops in rooms:
            said = max((self._lines(op, room - 2 * INSIDE) for op in ops), default=0.0)
            least = max(least, bold.height() + said + 4)
        return least

    def _lines(self, op: Op, room: float) -> float:
        """Px of height of what is under a name."""
        text = _under(op) if self._crowded(op, room) else op.detail
        small = QFontMetricsF(self._theme.font("hint"))
        return small.boundingRect(QRectF(0, 0, room, 9999), WRAP, text).height() if text else 0.0

    def _crowded(self, op: Op, room: float) -> bool:
        """Whether name and figure have no room on one line."""
        bold, small = QFontMetricsF(self._theme.font("table", bold=True)), QFontMetricsF(self._theme.font("hint"))
        return bool(op.note) and bold.horizontalAdvance(op.name) + 10 + small.horizontalAdvance(op.note) > room

    def pitch(self, outline: Outline) -> tuple[float, float]:
        """Px of a box and of a gap: what the height allows, within bounds."""
        (rows, gaps), scale, room = _counts(outline), self._theme.text_scale, self.height() - 4
        gap = min(max(room / (SHARE * rows + gaps), CLOSE * scale), WIDE * scale)
        whole = self._whole_box(outline, self.width())
        if room >= rows * whole + gaps * CLOSE * scale:
            gap = min(gap, (room - rows * whole) / gaps)
        return min(max((room - gaps * gap) / rows, LOW * scale), max(HIGH * scale, whole)), gap

    def boxes(self) -> list[tuple[QRectF, Op]]:
        """Every box with its place."""
        return [] if self.outline is None else self._lay_out(self.outline)[0]

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            found = next((op for rect, op in self.boxes() if rect.contains(QPointF(event.pos()))), None)
            QToolTip.showText(event.globalPos(), plain_tip(_sentence(found)) if found else "", self)
            return True
        return bool(super().event(event))

    # painting

    def paintEvent(self, _event: QPaintEvent) -> None:
        outline = self.outline
        if outline is None:
            return
        painter, colours = QPainter(self), self._theme.palette
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        boxes, wires, sums, frame = self._lay_out(outline)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colours.line, 1, Qt.PenStyle.DashLine))
        painter.drawRoundedRect(frame, 8, 8)
        hint = self._theme.font("hint")
        painter.setFont(hint)
        painter.setPen(colours.secondary)
        line = QFontMetricsF(hint).height()
        corner, side = QRectF(frame.left() + 10, frame.top() + 3, frame.width() - 20, line), Qt.AlignmentFlag.AlignRight
        if self._flat(outline, self.size()):  # its boxes are at the top, and only sums reach under the stream
            corner.moveBottom(frame.bottom() - 3)
            side = Qt.AlignmentFlag.AlignLeft
        painter.drawText(corner, side, outline.caption)
        for wire in wires:
            self._paint_wire(painter, wire)
        for centre in sums:
            painter.setPen(QPen(colours.secondary, 1.4))
            painter.setBrush(colours.panel)
            painter.drawEllipse(centre, RADIUS, RADIUS)
            painter.drawLine(QLineF(centre.x() - 4, centre.y(), centre.x() + 4, centre.y()))
            painter.drawLine(QLineF(centre.x(), centre.y() - 4, centre.x(), centre.y() + 4))
        for rect, op in boxes:
            self._paint_box(painter, rect, op)

    def _lay_out(self, outline: Outline) -> Laid:
        scale = self._theme.text_scale
        if self._flat(outline, self.size()):
            return lay_flat(outline, self._need, self.size().toSizeF(), scale, RADIUS)
        (high, gap), x = self.pitch(outline), STREAM * scale
        left, right, indent = 1.0, self.width() - 1.0, self._indent(self.width())
        x *= indent / (INDENT * scale)
        boxes: list[tuple[QRectF, Op]] = []
        wires: list[list[QPointF]] = []
        sums: list[QPointF] = []
        y, last = 2.0, 2.0

        def on_stream(op: Op) -> None:
            nonlocal y, last
            if boxes:
                wires.append([QPointF(x, last), QPointF(x, y)])
            boxes.append((QRectF(left, y, right - left, high), op))
            last = y + high
            y = last + gap

        for op in outline.first:
            on_stream(op)
        top = y
        y += gap
        for group in outline.groups:
            out = y
            y += gap * 0.7
            width = (right - EDGE - left - indent - gap * (len(group) - 1)) / len(group)
            deepest = max(map(len, group))
            foot = y + deepest * high + (deepest - 1) * gap + gap * 0.8
            for column, branch in enumerate(group):
                start = left + indent + column * (width + gap)
                middle, at = start + width / 2, y
                wires.append([QPointF(x, out), QPointF(middle, out), QPointF(middle, at)])
                for number, op in enumerate(branch):
                    if number:
                        wires.append([QPointF(middle, at - gap), QPointF(middle, at)])
                    boxes.append((QRectF(start, at, width, high), op))
                    at += high + gap
                wires.append([QPointF(middle, at - gap), QPointF(middle, foot), QPointF(x + RADIUS, foot)])
            wires.append([QPointF(x, last), QPointF(x, foot - RADIUS)])
            sums.append(QPointF(x, foot))
            last = foot + RADIUS
            y = foot + gap
        frame = QRectF(left, top, right - left, y - top)
        y += gap
        for op in outline.last:
            on_stream(op)
        return boxes, wires, sums, frame

    def _paint_wire(self, painter: QPainter, points: list[QPointF]) -> None:
        colour = self._theme.palette.secondary
        painter.setPen(QPen(colour, 1.2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(QPolygonF(points))
        end, way = points[-1], points[-1] - points[-2]
        length = max((way.x() ** 2 + way.y() ** 2) ** 0.5, 1e-6)
        unit = way / length
        side = QPointF(-unit.y(), unit.x())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawPolygon(QPolygonF([end, end - unit * 6 + side * 3, end - unit * 6 - side * 3]))

    def _paint_box(self, painter: QPainter, rect: QRectF, op: Op) -> None:
        colours = self._theme.palette
        painter.setPen(QPen(colours.line, 1))
        painter.setBrush(colours.raised)
        painter.drawRoundedRect(rect, 6, 6)
        strong, hint = self._theme.font("table", bold=True), self._theme.font("hint")
        bold, small = QFontMetricsF(strong), QFontMetricsF(hint)
        inside = rect.adjusted(INSIDE, 2, -INSIDE, -2)
        under, figure = op.detail, op.note
        lines = self._lines(op, inside.width())
        if self._crowded(op, inside.width()) and bold.height() + lines <= inside.height() + 2:
            under, figure = _under(op), ""
        note = small.horizontalAdvance(figure) + 10 if figure else 0.0
        both = bool(under) and inside.height() >= bold.height() + small.height()
        said = small.height()
        if both and small.horizontalAdvance(under) > inside.width() and bold.height() + lines <= inside.height() + 2:
            said = max(said, lines)
        top = QRectF(inside.left(), inside.top(), inside.width(), inside.height())
        if both:
            top = QRectF(inside.left(), inside.center().y() - (bold.height() + said) / 2, inside.width(),
                         bold.height())  # fmt: skip
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setFont(strong)
        painter.setPen(colours.text)
        name = bold.elidedText(op.name, Qt.TextElideMode.ElideRight, top.width() - note)
        painter.drawText(top, middle | Qt.AlignmentFlag.AlignLeft, name)
        painter.setFont(hint)
        painter.setPen(colours.secondary)
        painter.drawText(top, middle | Qt.AlignmentFlag.AlignRight, figure)
        place = QRectF(top.left(), top.bottom(), top.width(), said)
        if not both:
            place = top.adjusted(bold.horizontalAdvance(name) + 10, 0, -note, 0)
        if said > small.height():
            painter.drawText(place, WRAP, under)
            return
        detail = small.elidedText(under, Qt.TextElideMode.ElideRight, place.width())
        painter.drawText(place, middle | Qt.AlignmentFlag.AlignLeft, detail)


def _counts(outline: Outline) -> tuple[int, float]:
    """How many boxes lie over one another, and how many gaps."""
    rows = len(outline.first) + len(outline.last) + sum(max(map(len, group)) for group in outline.groups)
    return rows, rows + 1.5 * len(outline.groups) + 1


def _under(op: Op) -> str:
    """What a box says under its name where its figure has no room beside it."""
    return " · ".join(part for part in (op.detail, op.note) if part)


def _sentence(op: Op) -> str:
    return " · ".join(part for part in (op.name, op.detail, op.note) if part)
