"""How a heat map is painted: a scene kept until something changes, and an overlay for what follows the mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPixmap

from app.widgets.cell_frame import draw_frame
from app.widgets.colour_bar import draw_bar
from app.widgets.heatmap_axes import Label
from app.widgets.heatmap_boundary import paint_boundaries
from app.widgets.heatmap_image import Hatch, render
from app.widgets.heatmap_layout import LABEL_ROOM
from app.widgets.heatmap_words import LEAST_WORDS, folded
from app.widgets.readout import draw_parts, parts_width

if TYPE_CHECKING:
    from app.widgets.heatmap import HeatMap
    from app.widgets.readout import Part

HATCH = 7
"""Px from line to line across masked cells."""
SEAM_FROM, OUTLINE = 10.0, 2.0
"""Cells so wide (px) are told apart by a hairline; px that a cell's frame stands out over the cell."""


class Scene:
    """Everything but the hover, in one pixmap: a redraw under a moving mouse copies it."""

    def __init__(self) -> None:
        self._pixmap: QPixmap | None = None
        self._memory: Any = None

    def drop(self) -> None:
        self._pixmap = None

    def draw(self, painter: QPainter, heat: HeatMap) -> None:
        if self._pixmap is None:
            self._pixmap = self._make(heat)
        painter.drawPixmap(0, 0, self._pixmap)

    def _make(self, heat: HeatMap) -> QPixmap:
        ratio = heat.devicePixelRatioF()
        pixmap = QPixmap(max(1, round(heat.width() * ratio)), max(1, round(heat.height() * ratio)))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        geometry = heat.geometry_now()
        _, _, height, width = heat.wanted()
        hatch = Hatch(colour=heat.theme.palette.ghost.rgb(), step=round(HATCH * ratio), thick=max(1, round(ratio)))
        image, self._memory = render(heat.tiles, heat.view, (width, height), heat.table, hatch)
        image.setDevicePixelRatio(ratio)
        painter.drawImage(geometry.area.topLeft(), image)
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        _paint_seams(painter, heat)
        paint_boundaries(painter, heat)
        if heat.options.axes:
            rows, cols = axis_labels(heat)
            heat.row_axis.paint(painter, rows, geometry.area.left(), geometry.row_room)
            heat.col_axis.paint(painter, cols, geometry.area.top(), geometry.col_room)
        if not geometry.bar.isNull() and heat.bar is not None:
            draw_bar(painter, heat.theme, geometry.bar, heat.table, heat.bar, geometry.bar_length)
        painter.end()
        return pixmap


def axis_labels(heat: HeatMap) -> tuple[list[Label], list[Label]]:
    """The labels drawn at the left and at the top."""
    area, view = heat.geometry_now().area, heat.view
    rows = heat.row_axis.labels(
        start=view.row, extent=view.rows, origin=area.top(), length=area.height(), count=heat.shape[0]
    )
    cols = heat.col_axis.labels(
        start=view.col, extent=view.cols, origin=area.left(), length=area.width(), count=heat.shape[1]
    )
    return rows, cols


def bold_labels(heat: HeatMap) -> tuple[list[Label], list[Label]]:
    """The labels at the left and at the top of the token that is pointed at and of the chosen cell: on an axis where
    they would touch, the chosen cell's gives way."""
    found: tuple[list[Label], list[Label]] = ([], [])
    if not heat.options.axes:
        return found
    linked = heat.linked_cells(heat.linked) if heat.linked is not None and heat.hovered is None else (None, None)
    cell = heat.hovered or heat.selected or (None, None)
    for at in (0, 1):
        for index in (linked[at], cell[at]):
            label = _bold_label(heat, index, rows=at == 0) if index is not None else None
            if label is not None and not any(touch(heat, label, other, rows=at == 0) for other in found[at]):
                found[at].append(label)
    return found


def touch(heat: HeatMap, label: Label, other: Label, *, rows: bool) -> bool:
    """Whether two labels of an axis stand closer than they may."""
    axis, count = (heat.row_axis, heat.shape[0]) if rows else (heat.col_axis, heat.shape[1])
    return abs(other.centre + other.shift - label.centre - label.shift) < axis.apart(label.piece, other.piece, count)


def paint_overlay(painter: QPainter, heat: HeatMap) -> None:
    """The chosen and the hovered cell with their guides and labels, and the readout."""
    geometry = heat.geometry_now()
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    pointed = heat.hovered
    if heat.linked is not None and pointed is None:
        _trace_token(painter, heat, heat.linked)
    if heat.selected is not None and heat.selected != pointed:
        _paint_frame(painter, heat, heat.selected, chosen=True)
    cell = pointed or heat.selected
    if cell is not None:
        _paint_guides(painter, heat, cell)
    for rows, labels in zip((True, False), bold_labels(heat), strict=True):
        for label in labels:
            _paint_label(painter, heat, label, rows=rows)
    if pointed is not None:
        _paint_frame(painter, heat, pointed, chosen=False)
    if heat.hasFocus():
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(heat.theme.palette.accent, 1))
        painter.drawRect(geometry.area.adjusted(-1.5, -1.5, 1.5, 1.5))
    if not geometry.readout.isNull():
        lines = readout_lines(heat)
        place, value = QRectF(geometry.readout), geometry.value
        if value.isNull() and len(lines) > 1:
            place.setHeight(place.height() / 2)
            value = place.translated(0, place.height())
        for words, where in zip(lines, (place, value), strict=False):
            draw_parts(painter, heat.theme, words, where)


def readout_lines(heat: HeatMap) -> list[list[Part]]:
    """The cell in as many words as its place has room for: in two lines its tokens and its value, where it has both."""
    geometry = heat.geometry_now()
    if geometry.lines < 2 or not heat.readout():
        return [shown_readout(heat)]
    room = geometry.readout.width()
    beside = room if geometry.value.isNull() else geometry.value.width()
    forms = [folded(heat.readout(brief=brief)) for brief in range(LEAST_WORDS)]
    tokens = next((t for t, _ in forms if parts_width(heat.theme, t) <= room), forms[-1][0])
    value = next((v for _, v in forms if parts_width(heat.theme, v) <= beside), forms[-1][1])
    return [tokens, value]


def shown_readout(heat: HeatMap) -> list[Part]:
    """The cell in as many words as its line has room for: its value at least."""
    room, forms = heat.geometry_now().readout.width(), range(LEAST_WORDS + 1)
    fitting = (parts for brief in forms if parts_width(heat.theme, parts := heat.readout(brief=brief)) <= room)
    return next(fitting, heat.readout(brief=LEAST_WORDS))


def _paint_seams(painter: QPainter, heat: HeatMap) -> None:
    """Hairlines between cells that are large enough to bear them."""
    area, view = heat.geometry_now().area, heat.view
    height, width = area.height() / view.rows, area.width() / view.cols
    if min(height, width) < SEAM_FROM:
        return
    colour = QColor(heat.theme.palette.masked)
    colour.setAlphaF(0.35)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    painter.setPen(QPen(colour, 0))
    for index in range(int(view.row) + 1, int(view.row + view.rows) + 1):
        y = area.top() + (index - view.row) * height
        painter.drawLine(QPointF(area.left(), y), QPointF(area.right() - 1, y))
    for index in range(int(view.col) + 1, int(view.col + view.cols) + 1):
        x = area.left() + (index - view.col) * width
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom() - 1))
    painter.restore()


def _paint_frame(painter: QPainter, heat: HeatMap, cell: tuple[int, int], *, chosen: bool) -> None:
    """A frame round a cell, never smaller than it can be seen; of a cell that a zoom cuts, round what is in sight."""
    area, rect = heat.geometry_now().area, heat.cell_rect(cell)
    if not area.intersects(rect):
        return
    grow = max(0.0, (7 - min(rect.width(), rect.height())) / 2)
    around = grow + OUTLINE
    painter.save()
    painter.setClipRect(area.adjusted(-around, -around, around, around))
    draw_frame(painter, heat.theme.palette, rect.adjusted(-grow, -grow, grow, grow), chosen=chosen)
    painter.restore()


def _paint_guides(painter: QPainter, heat: HeatMap, cell: tuple[int, int]) -> None:
    """Thin lines from the cell to both tokens."""
    area, rect = heat.geometry_now().area, heat.cell_rect(cell)
    colour = QColor(heat.theme.palette.cursor)
    colour.setAlphaF(0.75)
    shade = QColor(Qt.GlobalColor.black)
    shade.setAlphaF(0.3)
    painter.save()
    painter.setClipRect(area.adjusted(-6, -6, 0, 0))
    middle = rect.center()
    for pen in (QPen(shade, 2.4), QPen(colour, 1)):
        painter.setPen(pen)
        painter.drawLine(QPointF(area.left() - 6, middle.y()), QPointF(rect.left(), middle.y()))
        painter.drawLine(QPointF(middle.x(), area.top() - 6), QPointF(middle.x(), rect.top()))
    painter.restore()


def _trace_token(painter: QPainter, heat: HeatMap, token: int) -> None:
    """The row and the column of a token that is pointed at elsewhere."""
    area = heat.geometry_now().area
    colour = QColor(heat.theme.palette.cursor)
    colour.setAlphaF(0.8)
    painter.save()
    painter.setClipRect(area.adjusted(-1, -1, 1, 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour, 1))
    row_at, col_at = heat.linked_cells(token)
    if row_at is not None:
        row = heat.cell_rect((row_at, 0))
        painter.drawRect(QRectF(area.left(), row.top(), area.width(), row.height()))
    if col_at is not None:
        col = heat.cell_rect((0, col_at))
        painter.drawRect(QRectF(col.left(), area.top(), col.width(), area.height()))
    painter.restore()


def _bold_label(heat: HeatMap, index: int, *, rows: bool) -> Label | None:
    """The label of a cell that is in sight and has one."""
    axis, count = (heat.row_axis, heat.shape[0]) if rows else (heat.col_axis, heat.shape[1])
    area = heat.geometry_now().area
    rect = heat.cell_rect((index, 0) if rows else (0, index))
    centre = rect.center().y() if rows else rect.center().x()
    low, high = (area.top(), area.bottom()) if rows else (area.left(), area.right())
    if not low <= centre <= high or index >= count or not axis.piece(index):
        return None
    ruler = (rect.height() if rows else rect.width()) < axis.spacing(count)
    number = axis.number(index) if ruler and axis.named else ""
    if axis.bare and not rows:  # over columns that have no room for all their tokens, this one has its own
        most = LABEL_ROOM * heat.theme.text_scale
        piece = axis.bold_metrics.elidedText(axis.piece(index), Qt.TextElideMode.ElideRight, most)
        half = axis.bold_metrics.horizontalAdvance(piece) / 2 + 1
        shift = max(min(centre, heat.width() - half), half) - centre
        return Label(index=index, centre=centre, piece=piece, ruler=ruler, shift=shift)
    return Label(index=index, centre=centre, piece=axis.word(index), ruler=ruler, number=number)


def _paint_label(painter: QPainter, heat: HeatMap, label: Label, *, rows: bool) -> None:
    geometry, axis = heat.geometry_now(), heat.row_axis if rows else heat.col_axis
    spacing = axis.spacing(heat.shape[0 if rows else 1])
    edge, room = (geometry.area.left(), geometry.row_room) if rows else (geometry.area.top(), geometry.col_room)
    # Labels it would cover in part are taken away whole, and those of a ruler that it would touch.
    near, whole = (0.5, 2.0) if label.ruler else (0.0, 0.0)  # with what hangs under the line and blurs its edge
    outline = axis.outline(label, edge, room, bold=True, margin=near)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(heat.theme.palette.panel)
    for other in axis_labels(heat)[0 if rows else 1]:
        away = abs(other.centre - label.centre)
        touches = label.ruler and touch(heat, label, other, rows=rows)
        if touches or (away < 2 * spacing and axis.outline(other, edge, room, margin=near).intersects(outline)):
            painter.drawPolygon(axis.outline(other, edge, room, margin=whole))
    axis.paint_hovered(painter, label, edge, room)
