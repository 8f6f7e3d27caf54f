"""Where the parts of a heat map go: labels, matrix, readout and colour bar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF

from app.widgets.colour_bar import BarText, bar_width
from app.widgets.heatmap_axes import GAP, Axis
from app.widgets.heatmap_view import fit_pitch

if TYPE_CHECKING:
    from app.theme import Theme

LABEL_ROOM = 96.0
"""Px a token on an axis may take at 100 % text; longer ones are elided."""
LEAST_ROOM = 30.0
"""Px at 100 % text a token at the top has however low the matrix is: under it nothing of it would be left."""
BAR_LENGTH = 96.0
READOUT_LEAST = 380.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """`square`: cells are square; `most_pitch`: a cell's side at most, px; what is drawn besides the cells; `tokens`:
    the axes that stand for tokens of the text, which are linked with it."""

    square: bool = True
    most_pitch: float = 60.0
    axes: bool = True
    readout: bool = True
    bar: bool = True
    tokens: Literal["both", "rows", "cols"] = "both"


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Rectangles in px. `room`: what a token on either axis may take along its direction. `readout` and `bar` are
    null rectangles where they are left out."""

    area: QRectF
    readout: QRectF
    bar: QRectF
    bar_length: float
    row_room: float
    col_room: float


def lay_out(
    theme: Theme,
    rect: QRectF,
    shape: tuple[int, int],
    axes: tuple[Axis, Axis],
    options: Options,
    bar: BarText | None,
    ratio: float,
) -> Geometry:
    """Shares out `rect`; the matrix sits at the top left, as large as it fits. `ratio`: device pixels a px."""
    readout, bar_rect, bottom = _strips(theme, rect, options, bar)
    row_room = col_room = 0.0
    most, area = LABEL_ROOM * theme.text_scale, QRectF()
    for ruler in (False, True):
        # A ruler's labels are longer by their number, and the cells need the room more.
        share = 0.13 if ruler else 0.2
        least = LEAST_ROOM * theme.text_scale
        row_room, col_room = min(most, rect.width() * share), min(most, max(rect.height() * share, least))
        left, top, overhang = 1.0, 1.0, 1.0
        if options.axes:
            left = math.ceil(axes[0].longest(row_room, shape[0], ruler=ruler) + GAP + 2)
            height, overhang = axes[1].size_over(axes[1].longest(col_room, shape[1], ruler=ruler))
            top = math.ceil(height)
        room = QRectF(rect.left() + left, rect.top() + top, 0, 0)
        room.setRight(max(rect.right() - max(overhang, 2.0), room.left() + 8))
        room.setBottom(max(bottom - 4, room.top() + 8))
        area = _matrix(room, shape, options, ratio)
        pitches = area.height() / max(shape[0], 1), area.width() / max(shape[1], 1)
        if all(
            axis.counts or pitch >= axis.spacing(count) for axis, pitch, count in zip(axes, pitches, shape, strict=True)
        ):
            break
    if not readout.isNull():
        # The strips follow the matrix, so that they are read together.
        shift = min(0.0, area.bottom() + 6 - min(readout.top(), bar_rect.top() if not bar_rect.isNull() else math.inf))
        readout.translate(0, shift)
        bar_rect.translate(0, shift)
    return Geometry(
        area=area, readout=readout, bar=bar_rect, bar_length=_bar_length(rect), row_room=row_room, col_room=col_room
    )


def _matrix(room: QRectF, shape: tuple[int, int], options: Options, ratio: float) -> QRectF:
    rows, cols = max(shape[0], 1), max(shape[1], 1)
    if not options.square:
        width = min(room.width(), cols * options.most_pitch)
        height = min(room.height(), rows * options.most_pitch)
        return QRectF(room.left(), room.top(), round(width), round(height))
    pitch = fit_pitch(rows, cols, width=room.width(), height=room.height(), ratio=ratio, most=options.most_pitch)
    width, height = cols * pitch, rows * pitch
    if pitch * ratio < 3:
        width, height = round(width * ratio) / ratio, round(height * ratio) / ratio
    return QRectF(room.left(), room.top(), max(width, 1.0), max(height, 1.0))


def _strips(theme: Theme, rect: QRectF, options: Options, bar: BarText | None) -> tuple[QRectF, QRectF, float]:
    """The readout and the colour bar at the bottom, on one line where both fit; and the y above them."""
    line = math.ceil(QFontMetricsF(theme.font("mono")).height()) + 4.0
    bottom = rect.bottom()
    with_bar = options.bar and bar is not None
    needed = bar_width(theme, bar, _bar_length(rect)) if with_bar and bar is not None else 0.0
    bar_rect, readout = QRectF(), QRectF()
    if options.readout:
        readout = QRectF(rect.left(), bottom - line, rect.width(), line)
        if with_bar and rect.width() - needed - 16 >= READOUT_LEAST * theme.text_scale:
            bar_rect = QRectF(rect.right() - needed, bottom - line, needed, line)
            readout.setRight(bar_rect.left() - 16)
            return readout, bar_rect, bottom - line
        bottom -= line
    if with_bar:
        bar_rect = QRectF(rect.left(), bottom - line, min(needed, rect.width()), line)
        bottom -= line
    return readout, bar_rect, bottom


def _bar_length(rect: QRectF) -> float:
    return min(BAR_LENGTH, rect.width() * 0.25)
