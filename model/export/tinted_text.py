"""The text as a figure, each token on a ground that shows a number: surprisal, entropy, attention."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.colormaps import Levels, colormap_for, lut
from model.errors import BadValueError
from model.export.labels import columns, elide, escape
from model.export.page import Bar, Rect, frame
from model.export.palette import ON_DARK, ON_LIGHT
from model.export.provenance import Provenance
from model.export.raster import Float32
from model.export.spec import POINTS

if TYPE_CHECKING:
    from model.export.canvas import Canvas

LARGEST, SMALLEST = 24.0, 2.5
"""Sizes of the text in points; where even the smallest does not fit, the rest is counted."""
USUAL, MONO = 13.0, 0.602
"""The type's size where the page follows the text, and the width of one of its letters, in its size."""
BESIDE, AROUND = 90.0, 85.0
"""Points a page takes beside the text, about: bar and margins; and over and under it: title and caption."""
LOWEST, HIGHEST = 2.8, 10.0
"""Inches of a page that is as high as its text."""
MOST_COLUMNS = 60
LEADING, PADDING = 1.75, 0.22
"""Of the text's size: from line to line, and beside each token."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TintedText:
    """`values` float32 (T,), NaN without a number; `pieces` one a token, from position `first`. `marked`: a position
    that is framed, -1: none. `boundary`: the first decoded position, 0: none. `masked`: NaN means masked,
    not unknown."""

    values: Float32
    pieces: tuple[str, ...]
    levels: Levels
    what: str
    about: Provenance
    title: str
    first: int = 0
    marked: int = -1
    boundary: int = 0
    masked: bool = False

    def __post_init__(self) -> None:
        if not self.pieces or self.values.shape != (len(self.pieces),):
            raise BadValueError("values", self.values.shape, f"({len(self.pieces)},), one token at least")


@dataclass(frozen=True, kw_only=True)
class _Chip:
    """A token's place in points: its left edge, its line, its width."""

    x: float
    line: int
    width: float
    words: str


def fitting_height(pieces: tuple[str, ...], width: float) -> float:
    """Inches of a page `width` inches wide that the tokens fill in type of a usual size."""
    words = [elide(escape(piece), MOST_COLUMNS) for piece in pieces]
    chips = _flow(words, [columns(word) * MONO * USUAL for word in words], USUAL, max(width * POINTS - BESIDE, 16.0))
    return round(min(max(((chips[-1].line + 1) * USUAL * LEADING + AROUND) / POINTS, LOWEST), HIGHEST), 1)


def draw_tinted_text(canvas: Canvas, text: TintedText) -> None:
    """Draws the whole figure, as large as fits."""
    unit = canvas.unit
    area = frame(canvas, text.title, text.about)
    visible = text.values[~np.isnan(text.values)]
    bar = Bar(
        levels=text.levels,
        colormap=colormap_for(canvas.spec.colormap, signed=text.levels.signed),
        what=text.what,
        low=float(visible.min()) if visible.size else 0.0,
        high=float(visible.max()) if visible.size else 0.0,
        masked=text.masked and visible.size < text.values.size,
    )
    length = area.height
    room = Rect(
        x=area.x, y=area.y, width=max(area.width - bar.width(canvas, length) - 14 * unit, 16.0), height=area.height
    )
    size, chips = _fitting(canvas, text, room)
    shown = _draw_chips(canvas, text, room, size, chips, bar.colormap)
    if shown < len(chips):
        words = f"… and {len(chips) - shown:,} more tokens"
        canvas.text(room.x, room.bottom, words, SMALLEST * 2 * unit, colour=canvas.palette.secondary)
    bar.draw(canvas, area.right - bar.width(canvas, length), area.y, length)


def _fitting(canvas: Canvas, text: TintedText, room: Rect) -> tuple[float, list[_Chip]]:
    """The largest size at which all lines fit, and where each token then stands."""
    words = [elide(escape(piece), MOST_COLUMNS) for piece in text.pieces]
    at_one = [canvas.measure(word, 10.0, mono=True)[0] / 10.0 for word in words]
    size = LARGEST * canvas.unit
    while True:
        chips = _flow(words, [wide * size for wide in at_one], size, room.width)
        if size <= SMALLEST * canvas.unit or (chips[-1].line + 1) * size * LEADING <= room.height:
            return size, chips
        size *= 0.93


def _flow(words: list[str], widths: list[float], size: float, width: float) -> list[_Chip]:
    chips: list[_Chip] = []
    x, line = 0.0, 0
    for word, wide in zip(words, widths, strict=True):
        whole = min(wide + 2 * PADDING * size, width)
        if x > 0 and x + whole > width:
            x, line = 0.0, line + 1
        chips.append(_Chip(x=x, line=line, width=whole, words=word))
        x += whole + 0.12 * size
        if word.endswith("⏎"):
            x, line = 0.0, line + 1
    return chips


def _draw_chips(canvas: Canvas, text: TintedText, room: Rect, size: float, chips: list[_Chip], colormap: str) -> int:
    """Draws those that fit; returns how many."""
    palette = canvas.palette
    colours, pixels = lut(colormap, palette.masked), text.levels.pixels(text.values)
    lines = max(1, int(room.height / (size * LEADING)))
    if chips[-1].line >= lines:
        lines = max(1, lines - 2)  # room for the count of the rest
    for index, chip in enumerate(chips):
        if chip.line >= lines:
            return index
        red, green, blue, _ = (int(channel) for channel in colours[pixels[index]])
        masked = math.isnan(float(text.values[index]))
        position = text.first + index
        x, y = room.x + chip.x, room.y + chip.line * size * LEADING
        canvas.box(
            x, y, chip.width, size * 1.5,
            fill=palette.masked_hex if masked else f"#{red:02x}{green:02x}{blue:02x}",
            edge=palette.text if position == text.marked else None, line=1.2 * canvas.unit,
        )  # fmt: skip
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 140
        canvas.text(
            x + PADDING * size, y + size * 0.75, canvas.fit(chip.words, size, chip.width, mono=True), size,
            colour=palette.text if masked else ON_DARK if dark else ON_LIGHT, anchor="center", mono=True,
        )  # fmt: skip
        if position == text.boundary and text.boundary:
            x -= 0.06 * size
            canvas.line([(x, y), (x, y + size * 1.5)], colour=palette.amber, width=1.4 * canvas.unit)
    return len(chips)
