"""A page to draw on, measured in points from its top left corner, over matplotlib's Figure (never pyplot).

Text is never parsed as mathematics. Images are nearest-neighbour, one array pixel a device pixel in PNG.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.image import BboxImage
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Polygon, Rectangle
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Bbox, BboxBase, TransformedBbox
from numpy.typing import NDArray

from model.colormaps import lut
from model.export.fonts import families, families_for, printable
from model.export.palette import PALETTES, Palette
from model.export.raster import repeat_whole, widen
from model.export.spec import POINTS, FigureSpec
from model.export.under_way import Check, nothing

Align = Literal["left", "center", "right"]
Anchor = Literal["top", "center", "baseline", "bottom"]
_MEASURE_DPI = 288.0
BAND_PIXELS = 2_000_000
"""Of a large image, what is drawn at a time: some milliseconds."""
HATCH = 4.0
"""Points from line to line across masked cells."""
UNDER_IMAGES = -1
"""matplotlib draws images first (0), then areas (1), then lines (2), in whichever order they were added."""
SEPARATOR = "  ·  "
DRAWING_SETTINGS: Any = {
    "text.hinting": "no_hinting",  # as wide at 72 dots an inch as at 600, so that one layout serves all
    "pdf.fonttype": 42,  # TrueType outlines: text that can be searched, copied and edited
    "svg.fonttype": "none",  # text as text
    "svg.hashsalt": "decoderscope",  # the same figure is the same file
    # what a user's own matplotlibrc may have changed
    "text.usetex": False,
    "path.effects": [],
    "path.sketch": None,
    "savefig.bbox": None,
    "savefig.transparent": False,
}
"""matplotlib's settings while a canvas is in use, for `matplotlib.rc_context`."""


class _Pixels(BboxImage):
    """Colours (h, w, 4) uint8 in a box of `size` (high, wide) device pixels, each repeated and none mixed: resampling
    takes longer than all else on a page. PDF and SVG stretch them to the box, in PNG they are repeated band by band,
    `check` asked before each."""

    def __init__(self, box: BboxBase, rgba: NDArray[np.uint8], size: tuple[int, int], check: Check) -> None:
        super().__init__(box, interpolation="none", origin="upper")
        self.rgba, self.size, self.check = rgba, size, check

    def draw(self, renderer: RendererBase) -> None:
        """Called by matplotlib, which counts rows from the bottom."""
        box, context = self.get_window_extent(renderer), renderer.new_gc()
        high, wide = self.size
        if renderer.option_scale_image():
            stretch = Affine2D().scale(box.width, box.height)
            upright = repeat_whole(self.rgba, high, wide)[::-1]
            renderer.draw_image(context, box.x0, box.y0, upright, stretch)
        else:
            step = max(1, BAND_PIXELS // wide)
            for top in range(0, high, step):
                self.check()
                bottom = min(top + step, high)
                rows = np.arange(bottom - 1, top - 1, -1, dtype=np.int64) * self.rgba.shape[0] // high
                first, last = int(rows[-1]), int(rows[0]) + 1
                band = widen(self.rgba[first:last], wide)[rows - first]
                renderer.draw_image(context, round(box.x0), round(box.y0) + high - bottom, band)
        context.restore()


class Canvas:
    """The page of one figure."""

    def __init__(self, spec: FigureSpec, *, check: Check = nothing, whole_chain: bool = False) -> None:
        """`check` is asked now and then while the page is laid out and drawn, and may raise to end it. `whole_chain`:
        every word names all typefaces, for a file that is drawn where others are installed."""
        self.spec, self.check, self._whole_chain = spec, check, whole_chain
        wide, high = spec.pixels
        self.figure = Figure(figsize=(wide / spec.dpi, high / spec.dpi), dpi=spec.dpi)
        self.width, self.height = wide / spec.dpi * POINTS, high / spec.dpi * POINTS
        self.palette: Palette = PALETTES[spec.theme]
        if self.palette.ground is None:
            self.figure.patch.set_alpha(0.0)
        else:
            self.figure.patch.set_facecolor(self.palette.ground)
        # points from the top left → display
        self._to_display = Affine2D().scale(1 / self.width, -1 / self.height).translate(0, 1) + self.figure.transFigure

    @property
    def unit(self) -> float:
        """How much larger than usual type and gaps are: 1 up to a page of 9 inches, smaller on a stamp."""
        side = min(self.width, self.height) / POINTS
        return max(side / 9, 1.0) if side > 9 else min(1.0, max(0.6, side / 3.2))

    @cached_property
    def _renderer(self) -> RendererAgg:
        renderer: RendererAgg = RendererAgg(8, 8, _MEASURE_DPI)  # type: ignore[no-untyped-call]  # matplotlib
        return renderer

    def measure(self, text: str, size: float, *, mono: bool = False, bold: bool = False) -> tuple[float, float]:
        """(width, height) in points."""
        if not text:
            return 0.0, 0.0
        self.check()
        words = printable(text)
        wide, high, _ = self._renderer.get_text_width_height_descent(  # type: ignore[no-untyped-call]  # matplotlib
            words, self._font(words, size, mono=mono, bold=bold), ismath=False
        )
        return wide * POINTS / _MEASURE_DPI, high * POINTS / _MEASURE_DPI

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        colour: str | None = None,
        align: Align = "left",
        anchor: Anchor = "baseline",
        turn: float = 0.0,
        mono: bool = False,
        bold: bool = False,
    ) -> None:
        """Sets `text` at a point; `turn` degrees counter-clockwise about it. `anchor` "center": the middle of capitals,
        so that a line of marks stands as a line of letters does."""
        if anchor == "center":
            anchor, lift = "baseline", 0.36 * size
            x += lift * math.sin(math.radians(turn))
            y += lift * math.cos(math.radians(turn))
        words = printable(text)
        artist = self.figure.text(
            x,
            y,
            words,
            transform=self._to_display,
            fontproperties=self._font(words, size, mono=mono, bold=bold),
            color=colour or self.palette.text,
            ha=align,
            va=anchor,
            rotation=turn,
            rotation_mode="anchor",
            parse_math=False,
        )
        self._ask_before(artist)

    def line(
        self,
        points: Sequence[tuple[float, float]],
        *,
        colour: str | None = None,
        width: float = 0.6,
        dashes: Sequence[float] | None = None,
    ) -> None:
        """A line through points."""
        xs, ys = zip(*points, strict=True)
        self._add(
            Line2D(
                xs,
                ys,
                transform=self._to_display,
                color=colour or self.palette.line,
                linewidth=width,
                linestyle=(0, tuple(dashes)) if dashes else "solid",
                solid_capstyle="butt",
                dash_capstyle="butt",
            )
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str | None = None,
        edge: str | None = None,
        line: float = 0.6,
    ) -> None:
        """A rectangle, filled or framed."""
        self._add(
            Rectangle(
                (x, y),
                width,
                height,
                transform=self._to_display,
                facecolor=fill or "none",
                edgecolor=edge or "none",
                linewidth=line if edge else 0.0,
            )
        )

    def area(self, points: Sequence[tuple[float, float]], *, fill: str, alpha: float = 1.0) -> None:
        """A filled polygon."""
        self._add(
            Polygon(np.asarray(points), transform=self._to_display, facecolor=fill, edgecolor="none", alpha=alpha)
        )

    def snap(self, value: float) -> float:
        """The nearest device pixel's edge."""
        return round(value * self.spec.dpi / POINTS) * POINTS / self.spec.dpi

    def device(self, length: float) -> int:
        """Device pixels in a length, at least one."""
        return max(1, round(length * self.spec.dpi / POINTS))

    def image(self, x: float, y: float, width: float, height: float, rgba: NDArray[np.uint8]) -> None:
        """(h, w, 4) colours in a rectangle with snapped corners; h and w no more than its device pixels."""
        size = self.device(height), self.device(width)
        low, high_edge = 1 - (y + height) / self.height, 1 - y / self.height  # an image's box grows upwards
        corners = Bbox.from_extents(x / self.width, low, (x + width) / self.width, high_edge)
        box = TransformedBbox(corners, self.figure.transFigure)
        self._add(_Pixels(box, rgba, size, self.check))

    def pixels(
        self, x: float, y: float, width: float, height: float, pixels: NDArray[np.uint8], colormap: str, *,
        hatched: bool = False,
    ) -> None:  # fmt: skip
        """(h, w) pixels (0 masked) through a colour map, as `image`; masked ones `hatched` where asked for."""
        if hatched and not pixels.all():
            self.masked(x, y, width, height)
            self.image(x, y, width, height, lut(colormap)[pixels])
        else:
            self.image(x, y, width, height, lut(colormap, self.palette.masked)[pixels])

    def masked(self, x: float, y: float, width: float, height: float) -> None:
        """The ground of masked cells, under every image: lines from lower left to upper right, which no colour of a map
        has."""
        ground = Rectangle(
            (x, y), width, height, transform=self._to_display, facecolor=self.palette.masked_hex, edgecolor="none",
            zorder=UNDER_IMAGES,
        )  # fmt: skip
        self._add(ground)
        step = HATCH * self.unit
        places: list[tuple[float, float]] = []
        for at in np.arange(step / 2, width + height, step).tolist():
            # x + y = at, from where it enters at the left or at the bottom to where it leaves at the top or right
            into, out = max(0.0, at - height), min(at, width)
            places += [(x + into, y + at - into), (x + out, y + at - out)]
        path = Path(places, [Path.MOVETO, Path.LINETO] * (len(places) // 2))
        lines = PathPatch(
            path, transform=self._to_display, facecolor="none", edgecolor=self.palette.hatch,
            linewidth=0.5 * self.unit, capstyle="butt", zorder=UNDER_IMAGES,
        )  # fmt: skip
        self._add(lines)

    def _add(self, artist: Artist) -> None:
        self.figure.add_artist(artist)
        self._ask_before(artist)

    def _ask_before(self, artist: Artist) -> None:
        """`check` is asked whenever it is to be drawn: a page may hold thousands."""
        draw = artist.draw

        def asked(renderer: RendererBase) -> None:
            self.check()
            draw(renderer)

        artist.draw = asked  # type: ignore[method-assign]

    def wrap(self, phrases: Iterable[str], size: float, width: float, lines: int) -> list[str]:
        """Phrases joined by dots into at most `lines` lines of `width` points, broken between phrases, else words."""
        done: list[str] = []
        current = ""
        for phrase in phrases:
            joined = f"{current}{SEPARATOR}{phrase}" if current else phrase
            if self.measure(joined, size)[0] <= width:
                current = joined
                continue
            if current:
                done.append(current)
            *full, current = self._break(phrase, size, width)
            done += full
        done = [*done, current] if current else done
        if len(done) > lines:
            done = [*done[: lines - 1], self.fit(done[lines - 1] + " …", size, width)] if lines else []
        return done

    def fit(self, text: str, size: float, width: float, *, mono: bool = False, bold: bool = False) -> str:
        """`text`, its end replaced by an ellipsis where it is wider than `width`."""
        if self.measure(text, size, mono=mono, bold=bold)[0] <= width:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.measure(text[:middle].rstrip() + "…", size, mono=mono, bold=bold)[0] <= width:
                low = middle
            else:
                high = middle - 1
        return text[:low].rstrip() + "…" if low else ""

    def _break(self, phrase: str, size: float, width: float) -> list[str]:
        lines = [""]
        for word in phrase.split(" "):
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if self.measure(joined, size)[0] <= width:
                lines[-1] = joined
            elif lines[-1]:
                lines.append(self.fit(word, size, width))
            else:
                lines[-1] = self.fit(word, size, width)
        return lines

    def _font(self, words: str, size: float, *, mono: bool, bold: bool) -> FontProperties:
        family = families(mono=mono) if self._whole_chain else families_for(words, mono=mono, bold=bold)
        return FontProperties(family=list(family), size=size, weight="bold" if bold else "normal")
