"""One matrix as a figure: tokens on both axes, the boundary between prefill and decode, a colour bar, a caption."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.colormaps import Levels, colormap_for
from model.errors import BadValueError
from model.export.labels import elide, every, shown_indices
from model.export.page import LABEL, Bar, Rect, frame
from model.export.provenance import Provenance
from model.export.raster import Float32, pool

if TYPE_CHECKING:
    from model.export.canvas import Canvas  # which loads matplotlib; a canvas is handed in

TOKEN = 8.0
SMALLEST_TOKEN = 5.0
GRID_LINES = 48
"""Cells a side up to which hairlines part them."""
MAX_COLUMNS = 22
"""A token's label is elided past this many monospace columns."""
_TURNS = (45.0, 60.0, 90.0)
_BOUNDARY_WORDS = ("prefill ↑", "decode ↓")


@dataclass(frozen=True, kw_only=True, eq=False)
class HeatMap:
    """A matrix ready to be drawn. `values` float32 (h, w), NaN masked, may be pooled already; `rows` and `cols` are
    the half-open ranges of positions they span, `row_pieces` and `col_pieces` one piece a position. `boundary`: the
    first decoded position, 0 if none. `low`, `high`: the extremes of the unpooled data (NaN: taken from `values`)."""

    values: Float32
    rows: tuple[int, int]
    cols: tuple[int, int]
    row_pieces: tuple[str, ...]
    col_pieces: tuple[str, ...]
    levels: Levels
    about: Provenance
    title: str
    what: str
    boundary: int = 0
    row_title: str = "queries"
    col_title: str = "keys"
    low: float = math.nan
    high: float = math.nan

    def __post_init__(self) -> None:
        for name, span, pieces, cells in (
            ("rows", self.rows, self.row_pieces, self.values.shape[0]),
            ("cols", self.cols, self.col_pieces, self.values.shape[1]),
        ):
            if len(pieces) != span[1] - span[0] or not 1 <= cells <= len(pieces):
                raise BadValueError(name, (span, len(pieces), cells), "one piece a position and at most one cell each")

    def extremes(self) -> tuple[float, float]:
        """(lowest, highest) visible value; NaN where nothing is visible."""
        if not math.isnan(self.low):
            return self.low, self.high
        visible = self.values[~np.isnan(self.values)]
        return (float(visible.min()), float(visible.max())) if visible.size else (math.nan, math.nan)


@dataclass(frozen=True, kw_only=True)
class _Axis:
    """The labels of one axis: (place in cells from the start, words), their size, turn and extent across the axis;
    `decoded`: the place from which tokens are generated."""

    labels: tuple[tuple[float, str], ...]
    decoded: float
    size: float
    turn: float
    extent: float
    thinned: bool


def draw_heat_map(canvas: Canvas, heat: HeatMap) -> None:
    """Draws the whole figure."""
    area = frame(canvas, heat.title, heat.about)
    low, high = heat.extremes()
    bar = Bar(
        levels=heat.levels,
        colormap=colormap_for(canvas.spec.colormap, signed=heat.levels.signed),
        what=heat.what,
        low=low,
        high=high,
        masked=bool(np.isnan(heat.values).any()),
    )
    rect, left, top = _place(canvas, heat, area, bar)
    _draw_cells(canvas, heat, rect, bar.colormap)
    _draw_labels(canvas, heat, rect, left, top)
    _draw_boundary(canvas, heat, rect)
    bar.draw(canvas, rect.right + _boundary_width(canvas, heat) + 12 * canvas.unit, rect.y, rect.height)


def _place(canvas: Canvas, heat: HeatMap, area: Rect, bar: Bar) -> tuple[Rect, _Axis, _Axis]:
    """The matrix's rectangle and its two axes. Labels need room, room decides the labels: three rounds settle it."""
    unit = canvas.unit
    n_rows, n_cols = len(heat.row_pieces), len(heat.col_pieces)
    title = LABEL * unit * 1.6
    rect = Rect(x=area.x, y=area.y, width=area.width * 0.7, height=area.height * 0.7)
    for _ in range(3):
        left = _axis(canvas, heat, heat.row_pieces, rect.height, upright=True, most=area.width * 0.3)
        top = _axis(canvas, heat, heat.col_pieces, rect.width, upright=False, most=area.height * 0.3)
        x, y = area.x + title + left.extent, area.y + title + top.extent
        right = _boundary_width(canvas, heat) + 12 * unit + bar.width(canvas, rect.height)
        # the last slanted labels lean over to the right
        lean = max((place / n_cols * rect.width + _lean(canvas, top, words) for place, words in top.labels), default=0)
        right = max(right, lean - rect.width)
        width, height = max(area.right - right - x, 8.0), max(area.bottom - y, 8.0)
        cell = min(width / n_cols, height / n_rows)
        wide, high = min(width, cell * n_cols * 1.6), min(height, cell * n_rows * 1.6)
        if n_rows == n_cols:
            wide = high = min(width, height)
        x += (area.right - right - x - wide) / 2  # what is left over goes to both sides
        snapped = canvas.snap(x), canvas.snap(y)
        rect = Rect(x=snapped[0], y=snapped[1], width=_floor(canvas, wide), height=_floor(canvas, high))
    return rect, left, top


def _floor(canvas: Canvas, length: float) -> float:
    return canvas.device(length - 0.5 * 72 / canvas.spec.dpi) * 72 / canvas.spec.dpi


def _axis(
    canvas: Canvas, heat: HeatMap, pieces: tuple[str, ...], length: float, *, upright: bool, most: float
) -> _Axis:
    """Labels along `length` points. All of them where a legible size allows it, else one in 2, 5, 10 … with its
    position written after it."""
    unit, count, first = canvas.unit, len(pieces), (heat.rows if upright else heat.cols)[0]
    cell = length / count
    size, turn = _fitting(cell, unit, upright=upright)
    thinned = size < SMALLEST_TOKEN * unit
    if thinned:
        size = TOKEN * 0.85 * unit
    step = every(count, length, size * 1.35) if thinned else 1
    columns = max(3, min(MAX_COLUMNS, int(most / (size * 0.62))))
    labels = []
    for position in shown_indices(first, count, step):
        words = elide(pieces[position - first], columns)
        labels.append((position - first + 0.5, f"{words} {position}" if thinned else words))
    sine, cosine = math.sin(math.radians(turn)), math.cos(math.radians(turn))
    extent = 0.0
    for _, words in labels:
        wide, _high = canvas.measure(words, size, mono=True)
        extent = max(extent, wide if upright else wide * sine + size * cosine)
    decoded = heat.boundary - first if heat.boundary else math.inf
    return _Axis(labels=tuple(labels), decoded=decoded, size=size, turn=turn, extent=extent + 5 * unit, thinned=thinned)


def _fitting(cell: float, unit: float, *, upright: bool) -> tuple[float, float]:
    """(size, turn) of labels that fit cells `cell` points apart; under SMALLEST_TOKEN: they do not."""
    if upright:
        return min(TOKEN * unit, cell / 1.2), 0.0
    for turn in _TURNS:
        size = min(TOKEN * unit, cell * math.sin(math.radians(turn)) / 1.15)
        if size >= TOKEN * 0.8 * unit:
            return size, turn
    return size, _TURNS[-1]


def _lean(canvas: Canvas, axis: _Axis, words: str) -> float:
    return canvas.measure(words, axis.size, mono=True)[0] * math.cos(math.radians(axis.turn)) + axis.size * 0.5


def _draw_cells(canvas: Canvas, heat: HeatMap, rect: Rect, colormap: str) -> None:
    values = pool(heat.values, canvas.device(rect.height), canvas.device(rect.width), signed=heat.levels.signed)
    canvas.pixels(rect.x, rect.y, rect.width, rect.height, heat.levels.pixels(values), colormap, hatched=True)
    height, width = values.shape
    if max(height, width) > GRID_LINES or max(len(heat.row_pieces), len(heat.col_pieces)) > GRID_LINES:
        return
    ground = canvas.palette.masked_hex if canvas.palette.ground else "#ffffff40"
    hair = 0.35 * canvas.unit
    for row in range(1, height):
        y = rect.y + rect.height * row / height
        canvas.line([(rect.x, y), (rect.right, y)], colour=ground, width=hair)
    for col in range(1, width):
        x = rect.x + rect.width * col / width
        canvas.line([(x, rect.y), (x, rect.bottom)], colour=ground, width=hair)


def _draw_labels(canvas: Canvas, heat: HeatMap, rect: Rect, left: _Axis, top: _Axis) -> None:
    unit, palette = canvas.unit, canvas.palette
    n_rows, n_cols = len(heat.row_pieces), len(heat.col_pieces)
    for place, words in left.labels:
        y, voice = rect.y + rect.height * place / n_rows, _voice(canvas, left, place)
        canvas.text(rect.x - 4 * unit, y, words, left.size, colour=voice, align="right", anchor="center", mono=True)
        if left.thinned:
            canvas.line([(rect.x - 2.5 * unit, y), (rect.x, y)], colour=palette.secondary, width=0.5 * unit)
    for place, words in top.labels:
        x = rect.x + rect.width * place / n_cols
        upright = top.turn == 90
        canvas.text(
            x + (0 if upright else top.size * 0.25),
            rect.y - 4 * unit,
            words,
            top.size,
            colour=_voice(canvas, top, place),
            turn=top.turn,
            anchor="center" if upright else "baseline",
            mono=True,
        )
        if top.thinned:
            canvas.line([(x, rect.y - 2.5 * unit), (x, rect.y)], colour=palette.secondary, width=0.5 * unit)
    size = LABEL * unit
    canvas.text(
        rect.x + rect.width / 2,
        rect.y - top.extent - size * 0.5,
        f"{heat.col_title} →",
        size,
        colour=palette.secondary,
        align="center",
    )
    canvas.text(
        rect.x - left.extent - size * 0.5,
        rect.y + rect.height / 2,
        f"← {heat.row_title}",
        size,
        colour=palette.secondary,
        align="center",
        turn=90,
    )


def _voice(canvas: Canvas, axis: _Axis, place: float) -> str:
    """The colour of a label: generated tokens are amber, as in the window."""
    return canvas.palette.amber if place >= axis.decoded else canvas.palette.text


def _boundary_inside(heat: HeatMap) -> bool:
    return heat.rows[0] < heat.boundary < heat.rows[1]


def _boundary_width(canvas: Canvas, heat: HeatMap) -> float:
    if not _boundary_inside(heat):
        return 0.0
    return max(canvas.measure(words, 6.5 * canvas.unit)[0] for words in _BOUNDARY_WORDS) + 5 * canvas.unit


def _draw_boundary(canvas: Canvas, heat: HeatMap, rect: Rect) -> None:
    if not _boundary_inside(heat):
        return
    unit, amber = canvas.unit, canvas.palette.amber
    y = rect.y + rect.height * (heat.boundary - heat.rows[0]) / len(heat.row_pieces)
    canvas.line([(rect.x, y), (rect.right + 3 * unit, y)], colour=amber, width=0.9 * unit, dashes=(4, 2.5))
    size = 6.5 * unit
    x = rect.right + 5 * unit
    canvas.text(x, y - size * 0.35, _BOUNDARY_WORDS[0], size, colour=amber)
    canvas.text(x, y + size * 1.05, _BOUNDARY_WORDS[1], size, colour=amber)
