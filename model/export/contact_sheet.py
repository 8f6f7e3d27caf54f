"""Many heads on one page: rows of layers, columns of heads, grouped by the KV head they share."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from model.colormaps import Levels, colormap_for, lut
from model.errors import BadValueError
from model.export.labels import every
from model.export.page import LABEL, TICK, Bar, Rect, frame
from model.export.provenance import Provenance
from model.export.raster import Float32, enlarge, pool
from model.export.spec import POINTS

if TYPE_CHECKING:
    from model.export.canvas import Canvas  # which loads matplotlib; a canvas is handed in

GAP, GROUP_GAP = 0.07, 0.3
"""Of a tile's side: between tiles, and more between groups of heads that share a KV head."""
LEAST_BAR = 150.0
"""Points of a colour bar whose words can be read, where there are few rows beside it."""
BESIDE, AROUND = 125.0, 128.0
"""Points a page takes beside its tiles, about: labels, bar, margins; and over and under them: titles and caption."""
LOWEST, HIGHEST = 3.5, 10.0
"""Inches of a page that is as high as its tiles."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ContactSheet:
    """`tiles` float32 (L, H, h, w), NaN masked, pooled; `layers` and `heads` their indices. `groups`: the KV head of
    each head, the same for heads that share one. `levels`: one scale for all, or None: each tile from 0 to its own
    maximum (or symmetric when `signed`). `boundary`: share of a tile's height above the first decoded row, 0: none."""

    tiles: Float32
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    groups: tuple[int, ...]
    levels: Levels | None
    about: Provenance
    title: str
    what: str
    signed: bool = False
    boundary: float = 0.0

    def __post_init__(self) -> None:
        expected = (len(self.layers), len(self.heads), len(self.heads))
        if (*self.tiles.shape[:2], len(self.groups)) != expected or self.tiles.ndim != 4 or not self.tiles.size:
            raise BadValueError("tiles", self.tiles.shape, f"({expected[0]}, {expected[1]}, h, w) and a group a head")


def fitting_height(groups: tuple[int, ...], n_layers: int, width: float) -> float:
    """Inches of a page `width` inches wide that so many rows of these heads fill."""
    side = max(width * POINTS - BESIDE, 8.0) / (_columns(groups)[-1] + 1)
    height = (side * (n_layers * (1 + GAP) - GAP) + AROUND) / POINTS
    return round(min(max(height, LOWEST), HIGHEST), 1)


def draw_contact_sheet(canvas: Canvas, sheet: ContactSheet) -> None:
    """Draws the whole figure; the tiles are one image."""
    unit = canvas.unit
    area = frame(canvas, sheet.title, sheet.about)
    bar = _bar(canvas, sheet)
    label = TICK * unit
    left = canvas.measure("000", label)[0] + LABEL * unit * 1.8
    top = LABEL * unit * 1.7 + label * 1.6 + label * 1.5
    columns = _columns(sheet.groups)
    span = columns[-1] + 1
    rows = len(sheet.layers) * (1 + GAP) - GAP
    side, right, length = (area.height - top) / rows, 0.0, 0.0
    for _ in range(2):  # a lower bar may want more room beside it
        length = max(side * rows, min(area.height - top, LEAST_BAR * unit), 8.0)
        right = 14 * unit + bar.width(canvas, length) if bar else 0.0
        side = min((area.width - left - right) / span, side)
    side = max(canvas.device(side - 0.5 * 72 / canvas.spec.dpi), 1) * 72 / canvas.spec.dpi
    x = canvas.snap(area.x + left + max(0.0, (area.width - left - right - side * span) / 2))
    y = canvas.snap(area.y + top)
    rect = Rect(x=x, y=y, width=side * span, height=side * rows)
    _draw_tiles(canvas, sheet, rect, side, columns)
    _draw_labels(canvas, sheet, rect, side, columns)
    if bar:
        bar.draw(canvas, rect.right + 14 * unit, rect.y, max(rect.height, min(length, LEAST_BAR * unit)))


def _bar(canvas: Canvas, sheet: ContactSheet) -> Bar | None:
    if sheet.levels is None:
        return None
    low, high = np.fmin.reduce(sheet.tiles, axis=None), np.fmax.reduce(sheet.tiles, axis=None)
    return Bar(
        levels=sheet.levels,
        colormap=colormap_for(canvas.spec.colormap, signed=sheet.signed),
        what=sheet.what,
        low=0.0 if np.isnan(low) else float(low),
        high=0.0 if np.isnan(high) else float(high),
        masked=bool(np.isnan(sheet.tiles).any()),
    )


def _columns(groups: tuple[int, ...]) -> list[float]:
    """The left edge of each head's column, in sides of a tile."""
    between = GROUP_GAP if len(set(groups)) < len(groups) else GAP
    edges = [0.0]
    for before, after in itertools.pairwise(groups):
        edges.append(edges[-1] + 1 + (GAP if before == after else between))
    return edges


def _draw_tiles(canvas: Canvas, sheet: ContactSheet, rect: Rect, side: float, columns: list[float]) -> None:
    """One image for all: an atlas in device pixels."""
    pixels = canvas.device(side)
    step = rect.width / side / (columns[-1] + 1) * pixels
    high = round((len(sheet.layers) * (1 + GAP) - GAP) * pixels)
    wide = round((columns[-1] + 1) * step)
    colours = lut(colormap_for(canvas.spec.colormap, signed=sheet.signed), canvas.palette.masked)
    atlas = np.zeros((high, wide, 4), dtype=np.uint8)
    if canvas.palette.ground is not None:  # a PDF has a second image where one is not opaque
        atlas[:] = bytearray.fromhex(f"{canvas.palette.ground[1:]}ff")
    drawn = _tile_pixels(sheet, pixels)
    for row in range(len(sheet.layers)):
        top = min(round(row * (1 + GAP) * pixels), high - pixels)
        for col, edge in enumerate(columns):
            left = min(round(edge * pixels), wide - pixels)
            atlas[top : top + pixels, left : left + pixels] = colours[enlarge(drawn[row, col], pixels, pixels)]
    canvas.image(rect.x, rect.y, rect.width, rect.height, atlas)
    if 0 < sheet.boundary < 1 and side > 24 * canvas.unit:
        for row in range(len(sheet.layers)):
            y = rect.y + (row * (1 + GAP) + sheet.boundary) * side
            for edge in columns:
                ends = [(rect.x + edge * side, y), (rect.x + (edge + 1) * side, y)]
                canvas.line(ends, colour=canvas.palette.amber, width=0.5 * canvas.unit, dashes=(3, 2))


def _tile_pixels(sheet: ContactSheet, side: int) -> NDArray[np.uint8]:
    """(L, H, h, w) colour indices of every tile, pooled to at most `side`."""
    values = pool(sheet.tiles, side, side, signed=sheet.signed)
    if sheet.levels is not None:
        return sheet.levels.pixels(values)
    pixels = np.empty(values.shape, dtype=np.uint8)
    for at in np.ndindex(values.shape[:2]):
        visible = values[at][~np.isnan(values[at])]
        low, high = (float(visible.min()), float(visible.max())) if visible.size else (0.0, 0.0)
        levels = Levels.spanning(low, high, signed=sheet.signed, scale="linear" if sheet.signed else "sqrt")
        pixels[at] = levels.pixels(values[at])
    return pixels


def _draw_labels(canvas: Canvas, sheet: ContactSheet, rect: Rect, side: float, columns: list[float]) -> None:
    unit, palette = canvas.unit, canvas.palette
    size = min(TICK * unit, max(side * 0.8, 4.0 * unit))
    for row in range(0, len(sheet.layers), every(len(sheet.layers), rect.height, size * 1.25)):
        y = rect.y + (row * (1 + GAP) + 0.5) * side
        canvas.text(rect.x - 4 * unit, y, str(sheet.layers[row]), size, align="right", anchor="center")
    for col in range(0, len(columns), every(len(columns), rect.width, size * 1.6)):
        x = rect.x + (columns[col] + 0.5) * side
        canvas.text(x, rect.y - 4 * unit, str(sheet.heads[col]), size, align="center")
    title = LABEL * unit
    bracket = rect.y - 4 * unit - size * 1.15
    shared = len(set(sheet.groups)) < len(sheet.groups)
    if shared:
        for group in dict.fromkeys(sheet.groups):
            members = [columns[index] for index, other in enumerate(sheet.groups) if other == group]
            ends = rect.x + members[0] * side, rect.x + (members[-1] + 1) * side
            drop = 2.5 * unit
            points = [(ends[0], bracket + drop), (ends[0], bracket), (ends[1], bracket), (ends[1], bracket + drop)]
            canvas.line(points, colour=palette.secondary, width=0.6 * unit)
            words = f"KV {group}"
            if canvas.measure(words, size)[0] < ends[1] - ends[0] + side * GROUP_GAP:
                middle = (ends[0] + ends[1]) / 2
                canvas.text(middle, bracket - 2 * unit, words, size, colour=palette.secondary, align="center")
    top = bracket - (2 * unit + size * 1.3 if shared else 0.0)
    canvas.text(rect.x + rect.width / 2, top, "heads →", title, colour=palette.secondary, align="center")
    x = rect.x - canvas.measure("000", size)[0] - title * 0.9
    canvas.text(x, rect.y + rect.height / 2, "← layers", title, colour=palette.secondary, align="center", turn=90)
