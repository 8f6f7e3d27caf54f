"""Where decode begins in a heat map: a dashed line and its words, which hide no cell that says something."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.i18n import tr
from app.widgets import heatmap_columns
from app.widgets.heatmap_layout import lay_out
from app.widgets.heatmap_words import told_width

if TYPE_CHECKING:
    from app.widgets.heatmap import HeatMap
    from app.widgets.heatmap_layout import Geometry, Options

SAMPLE, SAMPLE_GAP, BAR_GAP, BESIDE_GAP = 16.0, 6.0, 16.0, 3.0
"""Px of the piece of line before words beside the colour bar, the gaps after it and before it, and the one between a
map and words at its right."""
CORNER_SHARE = 0.93
"""Of a map's size without them, what words at its right leave at least: else they stand in the corner of its tokens."""
MOST_WIDTH, LEAST_LINES = 0.52, 9
FEW_WIDTH, FEW_LINES = 0.3, 4
"""Words on cells take at most this share of the width where there is height for so many lines of text; the second
pair where there is no place for them elsewhere."""
DASHES = ((2.0, (4.0, 2.0)), 4.0)
"""Width of the line and its pattern, in widths; width of the bed under it, px."""
THIN_ROWS = 6.0
"""Px of a row under which the line is one pixel of the rows over it: a thick one would hide whole rows."""


def boundary_words() -> str:
    """What the line tells apart."""
    return tr("prefill ↑ decode ↓")


def lay_out_with_words(heat: HeatMap, rect: QRectF, options: Options) -> Geometry:
    """Shares out `rect`: the words of the line take no room of the matrix where they have a place anyway. By what the
    mask will hide, not by the cells that are here: these do not move what is drawn."""
    axes, ratio, key = (heat.row_axis, heat.col_axis), heat.devicePixelRatioF(), key_width(heat)
    both = _further_from(heat) + further_width(heat) if options.further else 0.0
    told = told_width(heat.theme, heat.shape, axes) if options.folds and options.square and options.readout else 0.0

    def laid(beside: float, under: float = 0.0) -> Geometry:
        return lay_out(
            heat.theme, rect, heat.shape, axes, options, heat.bar, ratio, beside=beside, key=key, both=both, told=told,
            under=under,
        )  # fmt: skip

    largest = laid(0.0)
    wanted = options.line_named and options.square and options.readout and options.tokens == "both"
    if not wanted or not has_line(heat) or _has_place(heat, rect, largest):
        return largest
    beside, under = laid(_halves_width(heat) + BESIDE_GAP), _line_width(heat)
    if beside.lines > 1 and under <= rect.width():  # it is narrow: the words take a line before they take its width
        return max(beside, laid(0.0, under), key=lambda found: found.area.width())
    corner = _corner(heat, rect, largest.area)
    if not corner.isNull() and beside.area.width() < CORNER_SHARE * largest.area.width():
        return replace(largest, key=corner)
    return beside


def _corner(heat: HeatMap, rect: QRectF, area: QRectF) -> QRectF:
    """Over the rows' tokens and left of the columns', where no other words stand; null: without room for two lines."""
    width = SAMPLE + SAMPLE_GAP + _halves_width(heat)
    high, away = 2 * QFontMetricsF(heat.theme.font("hint")).height(), 2 * BESIDE_GAP
    place = QRectF(area.left() - away - width, area.top() - 2 * away - high, width, high)
    return place if heat.options.axes and rect.contains(place) else QRectF()


def _has_place(heat: HeatMap, rect: QRectF, geometry: Geometry) -> bool:
    """Whether the words stand on cells that a causal mask hides, or beside the colour bar, of the whole matrix."""
    assert heat.boundary is not None
    area, pitch = geometry.area, geometry.area.height() / heat.shape[0]
    place = _on_cells(heat, area, area.top() + heat.boundary * pitch)
    row, col = (place.bottom() - area.top()) / pitch, (place.left() - area.left()) / pitch
    if heat.is_causal and area.contains(place) and col >= math.ceil(row):
        return True
    return _beside_bar(heat, geometry).right() <= rect.right() and not _shares_line(geometry)


def key_width(heat: HeatMap) -> float:
    """Px of the words beside a piece of their line in the colour bar's; 0 where there is no line."""
    if heat.options.square:
        return 0.0
    return _line_width(heat) if has_line(heat) else heatmap_columns.key_width(heat)


def _line_width(heat: HeatMap) -> float:
    return SAMPLE + SAMPLE_GAP + QFontMetricsF(heat.theme.font("hint")).horizontalAdvance(boundary_words())


def further_width(heat: HeatMap) -> float:
    """Px of the name of another line beside a piece of it."""
    return SAMPLE + SAMPLE_GAP + QFontMetricsF(heat.theme.font("hint")).horizontalAdvance(heat.options.further)


def _further_from(heat: HeatMap) -> float:
    """Px from the first words in the bar's line to the next."""
    width = key_width(heat)
    return width + BAR_GAP if width else 0.0


def further_place(heat: HeatMap) -> QRectF | None:
    """Where the name of another line stands, in the colour bar's: after the words of the first decode row's where these
    are left of the bar and both have room there, else right of the bar and of what is there; None: nowhere."""
    geometry = heat.geometry_now()
    bar, key, found, width = geometry.bar, geometry.key, words_place(heat), further_width(heat)
    if bar.isNull():
        return None
    line = QFontMetricsF(heat.theme.font("hint")).height()
    words = found[0] if found is not None and not found[1] and found[0].bottom() > bar.top() else QRectF()
    left = key.left() + _further_from(heat)
    if key.isNull() or left + width > key.right() + 0.5:
        left = max(bar.right(), words.right()) + BAR_GAP
        if left + width > heat.width():
            return None
    return QRectF(left, bar.center().y() - line / 2, width, line)


def words_place(heat: HeatMap) -> tuple[QRectF, bool] | None:
    """Where the words of the line above the first decode row stand, and whether that is on the cells: over masked ones,
    right of the map at the line (in two lines where it is narrow), beside the colour bar or over it, in the corner of
    the tokens, else over cells of a map that has many and nowhere else a name for it; None: nowhere, as they would hide
    more than they tell."""
    y = row_line(heat)
    if y is None or not heat.options.line_named:
        return None
    geometry = heat.geometry_now()
    area, bar, metrics = geometry.area, geometry.bar, QFontMetricsF(heat.theme.font("hint"))
    width, line = metrics.horizontalAdvance(boundary_words()), metrics.height()
    if heat.options.square and not geometry.key.isNull():
        return geometry.key, False
    on_cells = _on_cells(heat, area, y)
    if area.contains(on_cells) and _is_masked(heat, on_cells):
        return on_cells, True
    if area.right() + 4 + width <= heat.width() and heat.options.tokens == "both":
        return QRectF(area.right() + 4, min(y - line / 2, area.bottom() - line), width, line), False
    halves = _halves_width(heat)
    if area.right() + BESIDE_GAP + halves <= heat.width() and heat.options.tokens == "both":
        top = max(min(y - line, area.bottom() - 2 * line), area.top())
        return QRectF(area.right() + BESIDE_GAP, top, halves, 2 * line), False
    if not geometry.key.isNull():
        return QRectF(geometry.key.left(), bar.center().y() - line / 2, key_width(heat), line), False
    beside_bar = _beside_bar(heat, geometry)
    if not _shares_line(geometry) and beside_bar.right() <= heat.width():
        return beside_bar, False
    if heat.options.tokens != "both":
        return None
    roomy = width <= area.width() * MOST_WIDTH and area.height() >= LEAST_LINES * line
    if not roomy and (width > area.width() * FEW_WIDTH or area.height() < FEW_LINES * line):
        return None
    return on_cells, True


def _on_cells(heat: HeatMap, area: QRectF, y: float) -> QRectF:
    """The words at the right end of the line, over it where there is room."""
    metrics = QFontMetricsF(heat.theme.font("hint"))
    width, line = metrics.horizontalAdvance(boundary_words()), metrics.height()
    top = y - line - 3 if y - area.top() > line + 4 else y + 3
    return QRectF(area.right() - width - 11, top, width + 8, line)


def _beside_bar(heat: HeatMap, geometry: Geometry) -> QRectF:
    """The words after a piece of their line, right of the colour bar."""
    metrics, bar = QFontMetricsF(heat.theme.font("hint")), geometry.bar
    width, line = _line_width(heat), metrics.height()
    return QRectF(bar.right() + BAR_GAP, bar.center().y() - line / 2, width, line)


def _shares_line(geometry: Geometry) -> bool:
    """Whether the readout or its value is on the line of the colour bar, or there is no bar."""
    return (
        geometry.bar.isNull()
        or not geometry.value.isNull()
        or (not geometry.readout.isNull() and geometry.bar.top() == geometry.readout.top())
    )


def _halves() -> tuple[str, str]:
    """What is above the line, and what under it."""
    above, arrow, under = boundary_words().partition("↑")
    return above + arrow, under.strip()


def _halves_width(heat: HeatMap) -> float:
    metrics = QFontMetricsF(heat.theme.font("hint"))
    return max(metrics.horizontalAdvance(half) for half in _halves())


def has_line(heat: HeatMap) -> bool:
    """Whether some rows are prefill's and some are decode's."""
    return heat.boundary is not None and 0 < heat.boundary < heat.shape[0]


def _is_masked(heat: HeatMap, place: QRectF) -> bool:
    """Whether no cell under `place` has a value: a mask hides them all. Without cells nobody knows yet: as at a causal
    matrix, where the cells right of the diagonal are the masked ones."""
    area, view = heat.geometry_now().area, heat.view
    if heat.options.tokens != "both":
        return False
    rows, cols = area.height() / view.rows, area.width() / view.cols
    first = view.row + (place.top() - area.top()) / rows, view.col + (place.left() - area.left()) / cols
    last = view.row + (place.bottom() - area.top()) / rows, view.col + (place.right() - area.left()) / cols
    if not heat.tiles:
        return first[1] >= math.ceil(last[0])
    return all(
        tile.is_masked((math.floor(first[0]), math.ceil(last[0])), (math.floor(first[1]), math.ceil(last[1])))
        for tile in heat.tiles
    )


def row_line(heat: HeatMap) -> float | None:
    """The y of the line above the first decode row, px; None where it is not in sight."""
    area, boundary = heat.geometry_now().area, heat.boundary
    if not boundary or not 0 < boundary < heat.shape[0]:
        return None
    y = area.top() + (boundary - heat.view.row) / heat.view.rows * area.height()
    return float(round(y)) if area.top() - 0.5 <= y <= area.bottom() + 0.5 else None


def paint_boundaries(painter: QPainter, heat: HeatMap) -> None:
    """The line above the first decode row with its words, and the one left of the first decode column."""
    area, y = heat.geometry_now().area, row_line(heat)
    cols = heat.col_boundary
    if cols and 0 < cols < heat.shape[1]:
        x = round(area.left() + (cols - heat.view.col) / heat.view.cols * area.width())
        if area.left() - 1 <= x <= area.right() + 0.5:
            _dash(painter, heat, QLineF(x, area.top(), x, area.bottom()))
    heatmap_columns.paint_words(painter, heat)
    if y is None:
        return
    _dash(painter, heat, QLineF(area.left(), y, area.right(), y))
    found = words_place(heat)
    if found is None:
        return
    place, inside = found
    amber = heat.theme.palette.amber
    painter.setFont(heat.theme.font("hint"))
    halved = place.height() > 1.5 * QFontMetricsF(heat.theme.font("hint")).height()
    said = "\n".join(_halves()) if halved else boundary_words()
    if inside or (place.top() < area.bottom() and place.right() > area.left()):
        if inside:
            paint_plate(painter, heat, place)
        painter.setPen(amber)
        painter.drawText(place.adjusted(0, 0, 1, 0), _LEFT if halved else _CENTRE, said)
        return
    middle = round(place.center().y())
    painter.setPen(dashes(amber))
    painter.drawLine(QPointF(place.left(), middle), QPointF(place.left() + SAMPLE, middle))
    painter.setPen(amber)
    words = place.adjusted(SAMPLE + SAMPLE_GAP, 0, 1, 0)
    painter.drawText(words, _LEFT, said)


def paint_plate(painter: QPainter, heat: HeatMap, place: QRectF) -> None:
    """What words on cells lie on: opaque, so that they read as well as anywhere on the panel."""
    painter.setBrush(heat.theme.palette.panel)
    painter.setPen(Qt.PenStyle.NoPen)
    if heat.options.tokens != "both":
        edge = QColor(heat.theme.palette.amber)
        edge.setAlphaF(0.55)
        painter.setPen(QPen(edge, 1))
    painter.drawRoundedRect(place, 3, 3)


def _dash(painter: QPainter, heat: HeatMap, line: QLineF) -> None:
    """A dashed amber line on a bed, so that the dashes show on any colour of the map."""
    ground, bed, thin = QColor(heat.theme.palette.masked), DASHES[1], False
    if line.y1() == line.y2() and heat.geometry_now().area.height() / heat.view.rows < THIN_ROWS:
        line.translate(0, -0.5)
        bed, thin = 1.0, True
    ground.setAlphaF(0.8)
    painter.setPen(QPen(ground, bed, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
    painter.drawLine(line)
    painter.setPen(dashes(heat.theme.palette.amber, thin=thin))
    painter.drawLine(line)


def dashes(colour: QColor, *, thin: bool = False) -> QPen:
    """The pen of the line, or of a piece of it before its words."""
    width, pattern = DASHES[0]
    pen = QPen(colour, 1.0 if thin else width, Qt.PenStyle.CustomDashLine, Qt.PenCapStyle.FlatCap)
    pen.setDashPattern([length * (2 if thin else 1) for length in pattern])
    return pen


_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
_CENTRE = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignHCenter
