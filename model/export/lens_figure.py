"""The logit lens as a figure: the likeliest token of every layer and position, coloured by its probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.colormaps import Levels, colormap_for, lut
from model.errors import BadValueError
from model.export.labels import elide, every
from model.export.page import LABEL, TICK, Bar, Rect, frame
from model.export.palette import ON_DARK, ON_LIGHT
from model.export.provenance import Provenance
from model.export.raster import Float32

if TYPE_CHECKING:
    from model.export.canvas import Canvas

INPUT_COLUMNS = 14
"""An input token is elided past this many monospace columns."""
CROWDED = 1.05
"""Of the type's size, between the centres of tokens that stand upright."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LensGrid:
    """`p` float32 (L, T): the probability of the top token after each layer at each position; `pieces` the tokens,
    [layer][position]. `layers` are depths: 0 is the embedding, l + 1 the stream after layer l; `n_layers` of the model
    tells which is the output. `inputs`: the piece at each position; `first`: the index of the first; `boundary`: the
    first decoded position, 0: none."""

    p: Float32
    pieces: tuple[tuple[str, ...], ...]
    layers: tuple[int, ...]
    inputs: tuple[str, ...]
    about: Provenance
    first: int = 0
    boundary: int = 0
    title: str = "Logit lens · top token after each layer"
    n_layers: int | None = None

    def __post_init__(self) -> None:
        shape = (len(self.layers), len(self.inputs))
        if self.p.shape != shape or [len(row) for row in self.pieces] != [shape[1]] * shape[0] or 0 in shape:
            raise BadValueError("p", self.p.shape, f"{shape}, and a piece for each")

    @property
    def names(self) -> tuple[str, ...]:
        """What the rows are called: the layer whose end they show."""
        return tuple(
            "embedding" if depth == 0 else f"{depth - 1}, output" if depth == self.n_layers else str(depth - 1)
            for depth in self.layers
        )


@dataclass(frozen=True, kw_only=True)
class _Inputs:
    """The tokens under the columns: (column, words), their size, their turn in degrees, the height they take."""

    words: tuple[tuple[int, str], ...]
    size: float
    turn: float
    extent: float


def _inputs(canvas: Canvas, pieces: tuple[str, ...], cell: float) -> _Inputs:
    """Level where each fits its column of `cell` points, else slanted or upright; all of them where a legible size
    allows it."""
    size = TICK * canvas.unit
    step = every(len(pieces), cell * len(pieces), size * CROWDED)
    words = tuple((col, elide(pieces[col], INPUT_COLUMNS)) for col in range(0, len(pieces), step))
    widest = max(canvas.measure(word, size, mono=True)[0] for _, word in words)
    if widest + 2 * canvas.unit <= cell * step:
        return _Inputs(words=words, size=size, turn=0.0, extent=size * 1.7)
    turn = next((turn for turn in (45.0, 60.0) if cell * step * math.sin(math.radians(turn)) >= size * 1.15), 90.0)
    sine, cosine = math.sin(math.radians(turn)), math.cos(math.radians(turn))
    return _Inputs(words=words, size=size, turn=turn, extent=widest * sine + size * (cosine + 0.7))


def draw_lens(canvas: Canvas, lens: LensGrid) -> None:
    """Draws the whole figure, the last layer on top."""
    unit, palette = canvas.unit, canvas.palette
    area = frame(canvas, lens.title, lens.about)
    colormap = colormap_for(canvas.spec.colormap, signed=False)
    levels = Levels(low=0.0, high=1.0)
    bar = Bar(levels=levels, colormap=colormap, what="probability", low=0.0, high=1.0, masked=False)
    size = TICK * unit
    widest = max(canvas.measure(name, size)[0] for name in lens.names)
    left = widest + LABEL * unit * 1.8
    count, layers = len(lens.inputs), len(lens.layers)
    width = area.width - left - 14 * unit - bar.width(canvas, area.height)
    below = _inputs(canvas, lens.inputs, max(width, 8.0) / count)
    under = below.extent + LABEL * unit * 2.0
    rect = Rect(
        x=canvas.snap(area.x + left), y=canvas.snap(area.y), width=max(width, 8.0), height=max(area.height - under, 8.0)
    )
    rows = lens.p[::-1]
    canvas.pixels(rect.x, rect.y, rect.width, rect.height, levels.pixels(rows), colormap)
    cell, tall = rect.width / count, rect.height / layers
    text = min(size, tall * 0.62, cell / 4 / 0.62)
    colours = lut(colormap)
    if text >= 3.2 * unit:
        for row in range(layers):
            pieces, values = lens.pieces[layers - 1 - row], rows[row]
            for col in range(count):
                red, green, blue, _ = (int(value) for value in colours[levels.pixels(values[col : col + 1])[0]])
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 140
                canvas.text(
                    rect.x + (col + 0.5) * cell,
                    rect.y + (row + 0.5) * tall,
                    elide(pieces[col], max(2, int(cell / (text * 0.62)))),
                    text,
                    colour=ON_DARK if dark else ON_LIGHT,
                    align="center",
                    anchor="center",
                    mono=True,
                )
    for index in range(0, layers, every(layers, rect.height, size * 1.3)):
        y = rect.bottom - (index + 0.5) * tall
        canvas.text(rect.x - 4 * unit, y, lens.names[index], size, align="right", anchor="center")
    for col, word in below.words:
        x, y = rect.x + (col + 0.5) * cell, rect.bottom + 4 * unit
        generated = 0 < lens.boundary <= lens.first + col
        voice = palette.amber if generated else palette.text  # as in the window
        if below.turn:
            canvas.text(
                x - below.size * 0.1, y + below.size * 0.5, word, below.size, colour=voice, align="right",
                anchor="center", turn=below.turn, mono=True,
            )  # fmt: skip
        else:
            canvas.text(x, y + below.size * 0.9, word, below.size, colour=voice, align="center", mono=True)
    title = LABEL * unit
    canvas.text(
        rect.x + rect.width / 2, rect.bottom + under - size * 0.2, "input token →", title, colour=palette.secondary,
        align="center",
    )  # fmt: skip
    canvas.text(
        rect.x - widest - title * 0.9, rect.y + rect.height / 2, "after layer →", title,
        colour=palette.secondary, align="center", turn=90,
    )  # fmt: skip
    bar.draw(canvas, rect.right + 14 * unit, rect.y, rect.height)
