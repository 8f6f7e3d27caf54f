"""Where decode begins along the columns of a heat map, and which columns are masked, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.i18n import tr

if TYPE_CHECKING:
    from app.widgets.heatmap import HeatMap

GAP, BAR_GAP = 6.0, 16.0
"""Px between a line and its words, and before them beside a colour bar."""
Word = tuple[QRectF, str, QColor]


def words() -> tuple[str, str]:
    """What is left of the line, and what right of it."""
    return tr("← prefill"), tr("decode →")


def has_line(heat: HeatMap) -> bool:
    """Whether some columns are prefill's and some are decode's."""
    return heat.col_boundary is not None and 0 < heat.col_boundary < heat.shape[1]


def key_width(heat: HeatMap) -> float:
    """Px of both words with a piece of the line between them; 0 where there is no line."""
    metrics = QFontMetricsF(heat.theme.font("hint"))
    return sum(metrics.horizontalAdvance(word) for word in words()) + 2 * GAP + 1 if has_line(heat) else 0.0


def key_place(heat: HeatMap) -> QRectF:
    """Where the words stand in the colour bar's line; null where that has no room."""
    geometry, width = heat.geometry_now(), key_width(heat)
    if not width or not geometry.key.isNull():
        return geometry.key if width else QRectF()
    bar = geometry.bar
    alone = not bar.isNull() and (geometry.readout.isNull() or bar.top() != geometry.readout.top())
    if alone and bar.right() + BAR_GAP + width <= heat.width():
        return QRectF(bar.right() + BAR_GAP, bar.top(), width, bar.height())
    return QRectF()


def cell_words(heat: HeatMap) -> list[Word]:
    """Words on masked cells, which have room for them: of the line where the colour bar's has none, and what masked
    cells are."""
    area, theme = heat.geometry_now().area, heat.theme
    metrics = QFontMetricsF(theme.font("hint"))
    if not heat.options.axes or not heat.tiles or heat.shape[0] != 1 or area.height() < metrics.height():
        return []
    found: list[Word] = []
    top = area.center().y() - metrics.height() / 2
    if has_line(heat) and key_place(heat).isNull():
        assert heat.col_boundary is not None
        x = area.left() + (heat.col_boundary - heat.view.col) / heat.view.cols * area.width()
        left, right = words()
        width = metrics.horizontalAdvance(left)
        both = [
            (QRectF(x - GAP - width, top, width, metrics.height()), left, theme.palette.amber),
            (QRectF(x + GAP, top, metrics.horizontalAdvance(right), metrics.height()), right, theme.palette.amber),
        ]
        if all(_is_masked(heat, place) for place, _, _ in both):
            found += both
    for said in (tr("hidden by the mask"), tr("masked cells")):
        width = metrics.horizontalAdvance(said)
        place = QRectF(area.right() - 8 - width, top, width, metrics.height())
        clear = not any(place.adjusted(-12, 0, 12, 0).intersects(other) for other, _, _ in found)
        if clear and not _on_line(heat, place) and _is_masked(heat, place):
            return [*found, (place, said, theme.palette.secondary)]
    return found


def paint_words(painter: QPainter, heat: HeatMap) -> None:
    """Says what the line tells apart, and what masked cells are."""
    painter.setFont(heat.theme.font("hint"))
    for place, said, colour in cell_words(heat):
        painter.setPen(colour)
        painter.drawText(place.adjusted(0, 0, 1, 0), _LEFT, said)
    key = key_place(heat)
    if key.isNull():
        return
    left, right = words()
    metrics, amber = QFontMetricsF(heat.theme.font("hint")), heat.theme.palette.amber
    x = round(key.left() + metrics.horizontalAdvance(left) + GAP)
    painter.setPen(amber)
    painter.drawText(key.adjusted(0, 0, 1, 0), _LEFT, left)
    painter.drawText(QRectF(x + GAP, key.top(), key.right() - x, key.height()), _LEFT, right)
    pen = QPen(amber, 2.0, Qt.PenStyle.CustomDashLine, Qt.PenCapStyle.FlatCap)
    pen.setDashPattern([2.0, 1.0])
    painter.setPen(pen)
    painter.drawLine(QPointF(x, key.top() + 2), QPointF(x, key.bottom() - 2))


def _on_line(heat: HeatMap, place: QRectF) -> bool:
    if not has_line(heat):
        return False
    assert heat.col_boundary is not None
    area = heat.geometry_now().area
    x = area.left() + (heat.col_boundary - heat.view.col) / heat.view.cols * area.width()
    return place.left() - GAP < x < place.right() + GAP


def _is_masked(heat: HeatMap, place: QRectF) -> bool:
    """Whether `place` lies on masked cells alone, with a little room at its sides."""
    area, view = heat.geometry_now().area, heat.view
    wide = place.adjusted(-4, 0, 4, 0)
    if wide.left() < area.left() or wide.right() > area.right():
        return False
    width = area.width() / view.cols
    first, last = (view.col + (x - area.left()) / width for x in (wide.left(), wide.right()))
    span = (math.floor(first), math.ceil(last))
    return all(tile.is_masked((0, heat.shape[0]), span) for tile in heat.tiles)


_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
