"""From pixels 0 … 255 to a picture of the cells in sight: nearest neighbour where cells are larger than a screen
pixel, the strongest of them where they are smaller, so that no bright line is lost on the way to the screen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage

from app.widgets.heatmap_view import View

Pixels = NDArray[np.uint8]
Colours = NDArray[np.uint32]
Ints = NDArray[np.int64]
NOTHING = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Tile:
    """Cells rows × cols (half-open) of a matrix. `pixels` uint8 (h, w): 0 is masked, 1 … 255 the colour map; h, w less
    than the rectangle where cells are pooled. `values` float32, one a cell, NaN where masked, or None when pooled."""

    pixels: Pixels
    rows: tuple[int, int]
    cols: tuple[int, int]
    values: NDArray[np.float32] | None = None
    signed: bool = False

    @property
    def pooled(self) -> tuple[float, float]:
        """Cells a pixel, down and across."""
        height, width = self.pixels.shape
        return (self.rows[1] - self.rows[0]) / max(height, 1), (self.cols[1] - self.cols[0]) / max(width, 1)

    def holds(self, row: int, col: int) -> bool:
        return self.rows[0] <= row < self.rows[1] and self.cols[0] <= col < self.cols[1]

    def value(self, row: int, col: int) -> float | None:
        """The exact value of a cell (NaN: masked); None when this tile does not have it."""
        if self.values is None or not self.holds(row, col):
            return None
        return float(self.values[row - self.rows[0], col - self.cols[0]])

    def is_masked(self, rows: tuple[int, int], cols: tuple[int, int]) -> bool:
        """Whether none of these cells (half-open) that this tile has shows anything."""
        down, across = self.pooled
        top, bottom = ((row - self.rows[0]) / down for row in rows)
        left, right = ((col - self.cols[0]) / across for col in cols)
        part = self.pixels[
            max(math.floor(top), 0) : max(math.ceil(bottom), 0), max(math.floor(left), 0) : max(math.ceil(right), 0)
        ]
        return not part.any()


def colour_table(lut: NDArray[np.uint8], masked: QColor) -> Colours:
    """(256,) packed 0xAARRGGBB of an RGB(A) table; entry 0 is the masked colour, opaque."""
    table = np.full(256, 0xFF000000, dtype=np.uint32)
    for channel, shift in enumerate((16, 8, 0)):
        table |= lut[:, channel].astype(np.uint32) << shift
    table[0] = masked.rgb()
    return table


@dataclass(frozen=True, kw_only=True)
class Hatch:
    """Lines through masked cells, so that these differ from any colour of a map by more than theirs: packed `colour`,
    `step` and `thick` in device pixels across."""

    colour: int
    step: int
    thick: int


def render(
    tiles: list[Tile], view: View, size: tuple[int, int], table: Colours, hatch: Hatch | None = None
) -> tuple[QImage, NDArray[Any]]:
    """The view as an image of `size` = (width, height) device pixels, later tiles over earlier ones; uncovered cells
    have the colour of masked ones without their `hatch`. The array is the image's memory: keep it as long as the
    image."""
    width, height = max(size[0], 1), max(size[1], 1)
    indexed = np.zeros((height, width), dtype=np.uint8)
    covered = np.zeros((height, width), dtype=np.bool_)
    for tile in tiles:
        covered[_draw(indexed, tile, view)] = True
    colours = table[indexed]  # (height, width)
    if hatch is not None:
        covered &= indexed == 0
        if covered.any():
            line = (np.arange(height)[:, np.newaxis] + np.arange(width)) % hatch.step < hatch.thick
            colours[covered & line] = hatch.colour
    return QImage(colours.data, width, height, 4 * width, QImage.Format.Format_RGB32), colours


def _draw(out: Pixels, tile: Tile, view: View) -> tuple[slice, slice]:
    """Draws a tile; which pixels it covers."""
    height, width = out.shape
    row_edges = _edges(height, view.row, view.rows, tile.rows, tile.pixels.shape[0])
    col_edges = _edges(width, view.col, view.cols, tile.cols, tile.pixels.shape[1])
    rows, cols = _covered(row_edges, tile.pixels.shape[0]), _covered(col_edges, tile.pixels.shape[1])
    if rows.start >= rows.stop or cols.start >= cols.stop:
        return slice(0, 0), slice(0, 0)
    part = _sample(tile.pixels, row_edges, rows, axis=0, signed=tile.signed)
    out[rows, cols] = _sample(part, col_edges, cols, axis=1, signed=tile.signed)
    return rows, cols


def _edges(count: int, start: float, extent: float, span: tuple[int, int], pixels: int) -> NDArray[np.float64]:
    """Where each of `count` screen pixels begins, and the last one ends, in pixels of the tile: (count + 1,)."""
    cells = start + np.arange(count + 1) * (extent / count)
    scaled = (cells - span[0]) * (pixels / max(span[1] - span[0], 1))
    # A pixel for a pixel must come out as just that, whatever the rounding of the division.
    nearest: NDArray[np.float64] = np.rint(scaled)
    snapped: NDArray[np.float64] = np.where(np.abs(scaled - nearest) < 1e-6, nearest, scaled)
    return snapped


def _covered(edges: NDArray[np.float64], pixels: int) -> slice:
    """Screen pixels whose centre lies on the tile."""
    centres = (edges[:-1] + edges[1:]) / 2
    inside = np.flatnonzero((centres >= 0) & (centres < pixels))
    return slice(int(inside[0]), int(inside[-1]) + 1) if len(inside) else slice(0, 0)


def _sample(pixels: Pixels, edges: NDArray[np.float64], screen: slice, *, axis: int, signed: bool) -> Pixels:
    """The tile's pixel under each screen pixel, or the strongest of them where there are several."""
    count = pixels.shape[axis]
    low, high = edges[screen.start : screen.stop], edges[screen.start + 1 : screen.stop + 1]
    if float(np.max(high - low)) <= 1:
        return np.take(pixels, np.clip(np.floor((low + high) / 2).astype(np.int64), 0, count - 1), axis=axis)
    starts: Ints = np.clip(np.floor(low).astype(np.int64), 0, count - 1)
    end = int(np.clip(np.ceil(high[-1]), starts[-1] + 1, count))
    top = _strongest(np.maximum, pixels, starts, end, axis)
    if not signed:
        return top
    # Of a signed map the value farthest from zero (pixel 128), and no masked cell while there is another.
    low_end = _strongest(np.minimum, np.where(pixels == 0, np.uint8(255), pixels), starts, end, axis)
    below, above = 128 - low_end.astype(np.int16), top.astype(np.int16) - 128
    return np.where((below > above) & (top > 0), low_end, top)


def _strongest(pick: np.ufunc, pixels: Pixels, starts: Ints, end: int, axis: int) -> Pixels:
    """`pick` over the stretches that begin at `starts`; the last one ends at `end`."""
    if axis == 1:
        reduced: Pixels = pick.reduceat(pixels[:, :end], starts, axis=1)
        return reduced
    # Row by row: numpy's reduceat down the columns takes ten times as long.
    out = np.empty((len(starts), pixels.shape[1]), dtype=np.uint8)
    stops = np.append(starts[1:], end)
    for index, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        pick.reduce(pixels[start : max(stop, start + 1)], axis=0, out=out[index])
    return out
