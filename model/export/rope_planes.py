"""Rotary planes as a figure: each pair's q and k before and after rotation, and its share of their product."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.errors import BadValueError
from model.export.chart import legend
from model.export.labels import elide, number
from model.export.page import LABEL, TICK, Rect, frame
from model.export.provenance import Provenance
from model.export.raster import Float32

if TYPE_CHECKING:
    from model.export.canvas import Canvas

_CIRCLE = tuple((math.cos(turn), math.sin(turn)) for turn in np.linspace(0, 2 * math.pi, 65))


@dataclass(frozen=True, kw_only=True, eq=False)
class RopePlanes:
    """P pairs: `q_before`, `q_after`, `k_before`, `k_after` float32 (P, 2); `wavelength` (P,) positions a turn;
    `contribution` (P,) to `raw` = q·k, `rest` of which comes from dimensions that aren't rotated. `query` and `key`:
    (position, piece). `scale`: what q·k is multiplied by."""

    q_before: Float32
    q_after: Float32
    k_before: Float32
    k_after: Float32
    wavelength: Float32
    contribution: Float32
    raw: float
    rest: float
    scale: float
    query: tuple[int, str]
    key: tuple[int, str]
    about: Provenance
    title: str = "Rotary planes"

    def __post_init__(self) -> None:
        pairs = self.wavelength.shape[0]
        shapes = {plane.shape for plane in (self.q_before, self.q_after, self.k_before, self.k_after)}
        if not pairs or shapes != {(pairs, 2)} or self.contribution.shape != (pairs,):
            raise BadValueError("planes", sorted(shapes), f"({pairs}, 2), one pair at least")


def draw_rope_planes(canvas: Canvas, planes: RopePlanes) -> None:
    """Draws the whole figure: a plane a pair, each on its own scale, so that angles can be read."""
    unit, palette = canvas.unit, canvas.palette
    area = frame(canvas, planes.title, planes.about)
    (query, q_piece), (key, k_piece) = planes.query, planes.key
    top = legend(
        canvas,
        area,
        [
            (f"q of {elide(q_piece, 16)} at {query:,}", palette.accent, None),
            (f"k of {elide(k_piece, 16)} at {key:,}", palette.amber, None),
            ("before rotation", palette.secondary, (2, 2)),
        ],
    )
    size = LABEL * unit
    words = f"q·k = {number(planes.raw)}   × {number(planes.scale)} = {number(planes.raw * planes.scale)}"
    if planes.rest:
        words += f"   of it not rotated {number(planes.rest)}"
    canvas.text(area.x, area.y + top + size * 1.9, canvas.fit(words, size, area.width), size)
    above = top + size * 2.7
    room = Rect(x=area.x, y=area.y + above, width=area.width, height=max(area.height - above, 16.0))
    pairs = planes.wavelength.shape[0]
    columns = _columns(pairs, room, TICK * unit * 2.6)
    rows = -(-pairs // columns)
    cell = Rect(x=0, y=0, width=room.width / columns, height=room.height / rows)
    small = min(TICK * unit, cell.width / 9.5)
    for pair in range(pairs):
        corner = room.x + pair % columns * cell.width, room.y + pair // columns * cell.height
        _draw_plane(canvas, planes, pair, Rect(x=corner[0], y=corner[1], width=cell.width, height=cell.height), small)


def _columns(pairs: int, room: Rect, words: float) -> int:
    """How many columns make the largest squares with `words` points of text under each."""

    def side(columns: int) -> float:
        return min(room.width / columns, room.height / -(-pairs // columns) - words)

    return max(range(1, pairs + 1), key=side)


def _draw_plane(canvas: Canvas, planes: RopePlanes, pair: int, cell: Rect, small: float) -> None:
    unit, palette = canvas.unit, canvas.palette
    radius = max(min(cell.width * 0.46, (cell.height - small * 2.6) * 0.48), 2.0)
    x, y = cell.x + cell.width / 2, cell.y + radius + 1
    canvas.line([(x + radius * cos, y - radius * sin) for cos, sin in _CIRCLE], width=0.5 * unit)
    canvas.line([(x - radius, y), (x + radius, y)], width=0.4 * unit)
    canvas.line([(x, y - radius), (x, y + radius)], width=0.4 * unit)
    arrows = (
        (planes.q_before, palette.accent, (2.0, 2.0)),
        (planes.k_before, palette.amber, (2.0, 2.0)),
        (planes.q_after, palette.accent, None),
        (planes.k_after, palette.amber, None),
    )
    for vectors, colour, dashes in arrows:
        longest = max(float(np.linalg.norm(other[pair])) for other, other_colour, _ in arrows if other_colour == colour)
        if longest > 0:
            end = x + radius * float(vectors[pair, 0]) / longest, y - radius * float(vectors[pair, 1]) / longest
            canvas.line([(x, y), end], colour=colour, width=(0.7 if dashes else 1.3) * unit, dashes=dashes)
    below = y + radius + small * 1.05
    wave = float(planes.wavelength[pair])
    words = (f"{pair} · λ {_short(wave)}", f"{float(planes.contribution[pair]):+.3g}".replace("-", "−"))
    canvas.text(x, below, words[0], small, colour=palette.secondary, align="center")
    canvas.text(x, below + small * 1.15, words[1], small, align="center")


def _short(wavelength: float) -> str:
    return f"{wavelength:,.0f}" if wavelength >= 100 else f"{wavelength:.3g}"
