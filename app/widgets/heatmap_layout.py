"""Where the parts of a heat map go: labels, matrix, readout and colour bar."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF

from app.widgets.colour_bar import BarText, bar_width
from app.widgets.heatmap_axes import GAP, LYING, SLANT, STEEP, Axis
from app.widgets.heatmap_view import fit_pitch

if TYPE_CHECKING:
    from app.theme import Theme

LABEL_ROOM = 96.0
"""Px a token on an axis may take at 100 % text; longer ones are elided."""
LEAST_ROOM = 30.0
"""Px at 100 % text a token at the top has however low the matrix is: under it nothing of it would be left."""
CELLS_LEAST = 200.0
"""Px at 100 % text of cells beside which tokens of the rows take more than their share."""
BAR_LENGTH, BAR_SHORT = 96.0, 48.0
READOUT_LEAST, READOUT_BRIEF, READOUT_KEYED = 356.0, 280.0, 300.0
"""Px at 100 % text of the readout beside a bar of full length, and beside a short one: two tokens and a value; and
beside words that have room elsewhere."""
LONGEST = "1.23457e-06"
"""A value as long as any without a sign."""
STRIP_GAP, KEY_GAP = 14.0, 18.0
"""Px between the parts of a line under the matrix, and before the words of its line."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """`square`: cells are square; `most_pitch`: a cell's side at most, px; what is drawn besides the cells; `tokens`:
    the axes that stand for tokens of the text, which are linked with it; `tokens_over`: columns have their tokens, else
    just their numbers; `numbers_over`, `numbers_beside`: a ruler's have both, over and beside the matrix; `steep`:
    those over it stand upright, and take no width beside it; `ruler_share`: of the width, what tokens of a ruler may
    take at the left; `over_least`: px of height at least that tokens over the columns leave the cells, 0: they have a
    share of the height; `lying`: these slant less; `bar_length`: px of the colour bar at most; `key_beside`: px at
    100 % text of the readout at least beside words in its line; `line_named`: words say what the line of the first
    decode row tells apart, and have room kept for them at the right where there is no place else; `further`:
    the name of another line, after those words where both have room left of the colour bar; `folds`: the readout takes
    two lines where one has no room for the tokens."""

    square: bool = True
    most_pitch: float = 60.0
    axes: bool = True
    readout: bool = True
    bar: bool = True
    tokens: Literal["both", "rows", "cols"] = "both"
    tokens_over: bool = True
    numbers_over: bool = True
    numbers_beside: bool = True
    steep: bool = False
    lying: bool = False
    over_least: float = 0.0
    ruler_share: float = 0.13
    bar_length: float = BAR_LENGTH
    key_beside: float = READOUT_KEYED
    line_named: bool = True
    further: str = ""
    folds: bool = True


def dress_axes(rows: Axis, axis: Axis, options: Options) -> None:
    """Makes the axes beside the rows and over the columns as `options` have them."""
    rows.wordy = not options.numbers_beside
    dress_axis(axis, options)


def dress_axis(axis: Axis, options: Options) -> None:
    """Makes the axis over the columns as `options` have it."""
    axis.wordy = not options.numbers_over
    axis.bare, axis.slant = not options.tokens_over, STEEP if options.steep else LYING if options.lying else SLANT


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Rectangles in px. `room`: what a token on either axis may take along its direction. `readout`, `bar`
    and `key` (words in the bar's line, left of it, or in one over it) are null rectangles where they are left out.
    `lines`: of the readout, its second one `value` where that is not null."""

    area: QRectF
    readout: QRectF
    bar: QRectF
    bar_length: float
    row_room: float
    col_room: float
    key: QRectF
    lines: int = 1
    value: QRectF = field(default_factory=QRectF)


def lay_out(
    theme: Theme,
    rect: QRectF,
    shape: tuple[int, int],
    axes: tuple[Axis, Axis],
    options: Options,
    bar: BarText | None,
    ratio: float,
    *,
    beside: float = 0.0,
    key: float = 0.0,
    both: float = 0.0,
    told: float = 0.0,
    under: float = 0.0,
) -> Geometry:
    """Shares out `rect`; the matrix sits at the top left, as large as it fits. `ratio`: device pixels a px. `beside`:
    px that stay free right of the matrix; `key`: px of words in the colour bar's line; `both`: of these and those of
    another line after them, left of the bar; `told`: px of width under which the readout takes two lines; `under`: px
    of words that have a line over the bar's for themselves."""
    strips = _strips(theme, rect, options, bar, key, told)
    if under:
        strips = tuple(replace(strip, bottom=strip.bottom - strip.high) for strip in strips)
    area, rooms = _place(theme, rect, shape, axes, options, strips[0].bottom, ratio, beside)
    if len(strips) > 1:
        closer, closer_rooms = _place(theme, rect, shape, axes, options, strips[1].bottom, ratio, beside)
        if closer.height() > area.height():
            strips, area, rooms = strips[1:], closer, closer_rooms
    readout, bar_rect, words = strips[0].readout, strips[0].bar, QRectF()
    if not (readout.isNull() and bar_rect.isNull()):
        # The strips follow the matrix, so that they are read together.
        tops = [strip.top() for strip in (readout, bar_rect) if not strip.isNull()]
        if under:
            tops.append(strips[0].bottom)
        shift = min(0.0, area.bottom() + 6 - min(tops))
        readout.translate(0, shift)
        strips[0].value.translate(0, shift)
        bar_rect.translate(0, shift)
        if bar_rect.top() == readout.top() and not readout.isNull():
            # The bar ends with the matrix where the readout has room for it.
            least = rect.left() + READOUT_LEAST * theme.text_scale + STRIP_GAP + bar_rect.width()
            bar_rect.moveRight(min(bar_rect.right(), max(area.right(), least)))
            readout.setRight(bar_rect.left() - STRIP_GAP)
            spare = readout.width() - STRIP_GAP - options.key_beside * theme.text_scale
            taken = next((px for px in (both, key) if px and px <= spare), 0.0)
            if taken:  # both names, else the first
                readout.setRight(readout.right() - STRIP_GAP - taken)
                words = QRectF(readout.right() + STRIP_GAP, bar_rect.top(), taken, bar_rect.height())
        if under:
            words = QRectF(rect.left(), strips[0].bottom + shift, under, strips[0].high)
    return Geometry(
        area=area, readout=readout, bar=bar_rect, bar_length=strips[0].length, row_room=rooms[0], col_room=rooms[1],
        key=words, lines=strips[0].lines, value=strips[0].value,
    )  # fmt: skip


def _place(
    theme: Theme,
    rect: QRectF,
    shape: tuple[int, int],
    axes: tuple[Axis, Axis],
    options: Options,
    bottom: float,
    ratio: float,
    beside: float,
) -> tuple[QRectF, tuple[float, float]]:
    """The matrix over `bottom`, and the rooms of its labels."""
    row_room = col_room = 0.0
    most, least, area = LABEL_ROOM * theme.text_scale, LEAST_ROOM * theme.text_scale, QRectF()
    margin = 4.0 if bottom < rect.bottom() else 2.0  # to what is under the matrix, or to the end of the widget
    rulers = (False, False)
    while True:
        # A ruler's labels are longer by their number, and the cells need the room more.
        shares = [options.ruler_share if ruler else max(options.ruler_share, 0.2) for ruler in rulers]
        row_room, over = min(most, rect.width() * shares[0]), rect.height() * shares[1]
        if options.over_least:
            over = max(over, axes[1].room_under(bottom - margin - rect.top() - options.over_least))
        col_room = min(most, max(over, least))
        left, top, overhang = 1.0, 1.0, beside
        if options.axes:
            height, overhang = axes[1].size_over(axes[1].longest(col_room, shape[1], ruler=rulers[1]))
            top, overhang = math.ceil(height), max(overhang, beside)
            if options.tokens == "rows":  # which are told apart before cells are wider than they need be
                number = axes[0].longest(0.0, shape[0], ruler=rulers[0])
                spare = rect.width() - max(overhang, 2.0) - number - GAP - 3 - CELLS_LEAST * theme.text_scale
                row_room = min(most, max(row_room, spare))
            left = math.ceil(axes[0].longest(row_room, shape[0], ruler=rulers[0]) + GAP + 2)
        room = QRectF(rect.left() + left, rect.top() + top, 0, 0)
        room.setRight(max(rect.right() - max(overhang, 2.0), room.left() + 8))
        room.setBottom(max(bottom - margin, room.top() + 8))
        area = _matrix(room, shape, options, ratio)
        pitches = area.height() / max(shape[0], 1), area.width() / max(shape[1], 1)
        crowded = [
            not axis.counts and pitch < axis.spacing(count)
            for axis, pitch, count in zip(axes, pitches, shape, strict=True)
        ]
        found = (rulers[0] or crowded[0], rulers[1] or crowded[1])
        if found == rulers:
            break
        rulers = found
    spare = room.right() - area.right()
    if options.axes and options.square and spare >= 1 and row_room < most:
        # A square matrix that the height limits leaves width: the rows' tokens take it before it lies idle.
        wider = min(most, row_room + spare)
        left = math.ceil(axes[0].longest(wider, shape[0], ruler=rulers[0]) + GAP + 2)
        moved = min(rect.left() + left - area.left(), spare)
        if moved > 0:
            row_room = min(wider, row_room + moved + 1)  # a whole pixel: `left` has been rounded, and has two more
            area.translate(math.floor(moved), 0)
    idle = room.bottom() - area.bottom()
    if options.axes and options.square and not axes[1].counts and idle >= 1 and col_room < most:
        # Likewise tokens over one that the width limits, where they reach no farther out at the right than they may.
        taller = min(most, col_room + idle)
        height, reach = axes[1].size_over(axes[1].longest(taller, shape[1], ruler=rulers[1]))
        moved = min(rect.top() + math.ceil(height) - area.top(), idle)
        if moved > 0 and (options.steep or area.right() + reach <= rect.right()):
            col_room = min(taller, col_room + moved + 1)
            area.translate(0, math.floor(moved))
    return area, (row_room, col_room)


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


@dataclass(frozen=True, kw_only=True)
class _Strips:
    """Readout, colour bar and its length at the bottom, the y over them, and px of height of a line."""

    readout: QRectF
    bar: QRectF
    length: float
    bottom: float
    high: float
    lines: int = 1
    value: QRectF = field(default_factory=QRectF)


def _strips(
    theme: Theme, rect: QRectF, options: Options, bar: BarText | None, key: float, told: float
) -> tuple[_Strips, ...]:
    """On one line where both fit, else on two; where a brief readout and a short bar fit on one, that as well, for a
    matrix that gains by it. A bar that has its line for itself is shorter where `key` px of words need the room. A
    readout that has less than `told` px takes two, the second one beside the bar where a value has room there."""
    line = math.ceil(QFontMetricsF(theme.font("mono")).height()) + 4.0
    bottom, length = rect.bottom(), min(options.bar_length, rect.width() * 0.25)
    shown = bar if options.bar else None
    words = bar_width(theme, shown, 0.0) if shown is not None else 0.0
    if key and not options.readout:
        length = min(length, max(rect.width() - words - KEY_GAP - key, BAR_SHORT))

    def beside(length: float) -> _Strips:
        right = QRectF(rect.right() - words - length, bottom - line, words + length, line)
        left = QRectF(rect.left(), bottom - line, right.left() - STRIP_GAP - rect.left(), line)
        return _Strips(readout=left, bar=right, length=length, bottom=bottom - line, high=line)

    room = rect.width() - words - STRIP_GAP
    both = options.readout and shown is not None
    if both and room - BAR_SHORT >= READOUT_LEAST * theme.text_scale:
        return (beside(min(options.bar_length, room - READOUT_LEAST * theme.text_scale)),)
    over, readout, bar_rect, value = bottom, QRectF(), QRectF(), QRectF()
    lines = 1 if rect.width() >= told else 2
    figure = f"-{LONGEST}" if shown is not None and shown.values[0] < 0 else LONGEST
    left = rect.width() - STRIP_GAP - QFontMetricsF(theme.font("mono", bold=True)).horizontalAdvance(figure)
    least = bar_width(theme, shown, BAR_SHORT, brief=True) if shown is not None else math.inf
    folds = lines > 1 and least <= left
    if options.readout:
        high = line if folds else lines * line
        over -= high
        readout = QRectF(rect.left(), over, rect.width(), high)
    if shown is not None:
        over -= line
        bar_rect = QRectF(rect.left(), over, min(words + length, rect.width()), line)
        if folds:
            length = min(length, max(left - words, BAR_SHORT))
            bar_rect.setWidth(words + length if words + length <= left else least)
            value = QRectF(bar_rect.right() + STRIP_GAP, over, 0, line)
            value.setRight(rect.right())
    apart = _Strips(readout=readout, bar=bar_rect, length=length, bottom=over, high=line, lines=lines, value=value)
    brief = both and room - BAR_SHORT >= READOUT_BRIEF * theme.text_scale
    return (apart, beside(BAR_SHORT)) if brief else (apart,)
