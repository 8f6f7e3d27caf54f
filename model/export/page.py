"""What every figure has around its picture: title, caption, margins, colour bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from model.colormaps import N_COLOURS, Levels
from model.export.labels import number
from model.export.provenance import SCALE_WORDS, Provenance

if TYPE_CHECKING:
    from model.export.canvas import Canvas  # which loads matplotlib; a canvas is handed in

TITLE, LABEL, TICK, CAPTION = 10.0, 8.0, 7.0, 6.2
"""Type sizes in points."""
MARGIN = 11.0
MASKED_WORD = "masked"


@dataclass(frozen=True, kw_only=True)
class Rect:
    """Points from the page's top left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


def frame(canvas: Canvas, title: str, about: Provenance) -> Rect:
    """Draws the title and the caption; returns what is left between them."""
    unit = canvas.unit
    margin = MARGIN * unit
    width = canvas.width - 2 * margin
    top = margin
    if title:
        size = TITLE * unit
        canvas.text(margin, top + size * 0.8, canvas.fit(title, size, width, bold=True), size, bold=True)
        top += size * 1.5
    size, leading = CAPTION * unit, CAPTION * unit * 1.42
    lines = canvas.wrap(about.caption(), size, width, max(0, int(canvas.height * 0.2 / leading)))
    bottom = canvas.height - margin
    for index, line in enumerate(reversed(lines)):
        canvas.text(margin, bottom - index * leading - size * 0.2, line, size, colour=canvas.palette.secondary)
    if lines:
        bottom -= len(lines) * leading + 6 * unit
    return Rect(x=margin, y=top, width=width, height=max(bottom - top, 1.0))


def bar_ticks(levels: Levels, spacing: float) -> list[float]:
    """Round values on a colour bar, high to low, at least `spacing` (a share of its length) apart."""
    if levels.scale == "linear" and not levels.signed:
        candidates = even(levels.low, levels.high, max(2, int(1 / spacing)))
    else:
        top = np.log10(levels.high)
        decades = range(int(np.floor(top)), int(np.floor(top)) - 14, -1)
        digits = [(digit, power) for power in decades for digit in (5, 2, 1)]
        if levels.scale == "log":
            digits.sort(key=lambda pair: pair[0] != 1)  # whole decades first, what fits between them after
        candidates = [digit * 10.0**power for digit, power in digits]
        if levels.scale == "linear":
            candidates = [value for value in even(0.0, levels.high, max(1, int(0.5 / spacing))) if value > 0]
        if levels.signed:
            candidates = [0.0, *candidates, *(-value for value in candidates)]
        elif levels.low <= 0:
            candidates = [0.0, *candidates]
    slack = 1e-9 * (levels.high - levels.low)
    ticks: list[float] = []
    places: list[float] = []
    for value in candidates:
        place = float(levels.place(np.array([value]))[0])
        if levels.low - slack <= value <= levels.high + slack and all(abs(place - at) >= spacing for at in places):
            ticks.append(value)
            places.append(place)
    return sorted(ticks, reverse=True)


def even(low: float, high: float, most: int) -> list[float]:
    """About `most` round values, evenly apart, from `low` to `high`."""
    rough = (high - low) / most
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(float(factor * power) for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [index * step for index in range(first, last + 1)]


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A colour bar: levels, a map's name, what is measured, the data's extremes, whether there are masked cells."""

    levels: Levels
    colormap: str
    what: str
    low: float
    high: float
    masked: bool

    def labels(self, length: float, unit: float) -> list[tuple[float, str]]:
        """(place 0 … 1, words) of each tick on a bar of `length` points; ≥ and ≤ at ends where the data goes on."""
        spacing = min(0.5, TICK * unit * 1.6 / length)
        labels = [
            (float(self.levels.place(np.array([value]))[0]), number(value))
            for value in bar_ticks(self.levels, max(spacing, 0.07))
        ]
        ends = []
        if self.high > self.levels.high * (1 + 1e-6):
            ends.append((1.0, f"≥ {number(self.levels.high)}"))
        if self.low < self.levels.low - 1e-6 * abs(self.levels.low):
            ends.append((0.0, f"≤ {number(self.levels.low)}"))
        return [*ends, *(label for label in labels if all(abs(label[0] - end[0]) > spacing for end in ends))]

    def width(self, canvas: Canvas, length: float) -> float:
        """Points it takes to the right of its own left edge."""
        unit = canvas.unit
        masked = 13 * unit + canvas.measure(MASKED_WORD, TICK * unit)[0] if self.masked else 0.0
        words = len(self._words(canvas, length)) * LABEL * 1.25 * unit
        return max(self._ticks_width(canvas, length) + 5 * unit + words, masked)

    def _words(self, canvas: Canvas, length: float) -> list[str]:
        """The quantity and the scale in force, in one line where it fits, else in two."""
        scale = f"{SCALE_WORDS[self.levels.scale]} scale"
        size = LABEL * canvas.unit
        if canvas.measure(f"{self.what}, {scale}", size)[0] <= length:
            return [f"{self.what}, {scale}"]
        return [canvas.fit(self.what, size, length), canvas.fit(scale, size, length)]

    def _ticks_width(self, canvas: Canvas, length: float) -> float:
        """From the bar's left edge to the end of its numbers."""
        words = [text for _, text in self.labels(length, canvas.unit)]
        return 13 * canvas.unit + max((canvas.measure(text, TICK * canvas.unit)[0] for text in words), default=0.0)

    def draw(self, canvas: Canvas, x: float, y: float, length: float) -> None:
        """Its ramp from `y` down over `length`, the highest value at the top; a masked swatch below it."""
        unit, palette = canvas.unit, canvas.palette
        wide = 8 * unit
        swatch = wide + 5 * unit if self.masked and length > 5 * wide else 0.0
        ramp = length - swatch
        steps = min(N_COLOURS, canvas.device(ramp))
        pixels = np.rint(np.linspace(255, 1, steps)).astype(np.uint8)[:, None]
        canvas.pixels(x, y, wide, ramp, pixels, self.colormap)
        tick = TICK * unit
        for place, text in self.labels(ramp, unit):
            at = min(max(y + ramp * (1 - place), y + tick * 0.3), y + ramp - tick * 0.3)
            canvas.text(x + wide + 5 * unit, at, text, tick, colour=palette.secondary, anchor="center")
            line = y + ramp * (1 - place)
            canvas.line([(x + wide, line), (x + wide + 2.5 * unit, line)], colour=palette.secondary, width=0.5 * unit)
        if swatch:
            canvas.masked(x, y + length - wide, wide, wide)
            canvas.text(
                x + wide + 5 * unit,
                y + length - wide / 2,
                MASKED_WORD,
                tick,
                colour=palette.secondary,
                anchor="center",
            )
        at = x + self._ticks_width(canvas, ramp) + (4 + LABEL) * unit
        for words in self._words(canvas, ramp):
            canvas.text(at, y + ramp / 2, words, LABEL * unit, align="center", turn=90)
            at += LABEL * 1.25 * unit
