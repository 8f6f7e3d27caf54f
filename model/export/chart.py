"""Two axes on a canvas: ticks, grid, curves, steps and bars. Points from data, never the other way round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.export.labels import number
from model.export.page import LABEL, TICK, Rect, even

if TYPE_CHECKING:
    from model.export.canvas import Canvas

Words = Callable[[float], str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chart:
    """A plotting area and its data ranges."""

    canvas: Canvas
    rect: Rect
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The point of a data pair."""
        rect, (x0, x1), (y0, y1) = self.rect, self.x_range, self.y_range
        return rect.x + rect.width * (x - x0) / (x1 - x0), rect.bottom - rect.height * (y - y0) / (y1 - y0)

    def axes(
        self, x_title: str, y_title: str, *, x_words: Words = number, y_words: Words = number, x_whole: bool = False
    ) -> None:
        """Ticks, words and titles outside the area, a hairline grid inside. `x_whole`: x counts things."""
        canvas, rect, unit = self.canvas, self.rect, self.canvas.unit
        palette, tick = canvas.palette, TICK * unit
        for value in even(*self.y_range, max(2, int(rect.height / (tick * 3.2)))):
            _, y = self.at(0, value)
            canvas.line([(rect.x, y), (rect.right, y)], width=0.4 * unit)
            words = y_words(value)
            canvas.text(
                rect.x - 4 * unit, y, words, tick, colour=palette.secondary, align="right", anchor="center"
            )  # fmt: skip
        for value in even(*self.x_range, max(2, int(rect.width / (tick * 6)))):
            if x_whole and value != round(value):
                continue
            x, _ = self.at(value, 0)
            canvas.line([(x, rect.bottom), (x, rect.bottom + 2.5 * unit)], colour=palette.secondary, width=0.5 * unit)
            canvas.text(
                x, rect.bottom + 4 * unit + tick, x_words(value), tick, colour=palette.secondary, align="center"
            )
        canvas.line([(rect.x, rect.bottom), (rect.right, rect.bottom)], colour=palette.secondary, width=0.6 * unit)
        size = LABEL * unit
        canvas.text(
            rect.x + rect.width / 2, rect.bottom + 6 * unit + tick + size * 1.2, x_title, size, align="center"
        )  # fmt: skip
        if y_title:
            canvas.text(rect.x, rect.y - size * 0.7, y_title, size)

    def curve(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        *,
        colour: str,
        width: float = 1.2,
        dashes: Sequence[float] | None = None,
    ) -> None:
        """A line through data points."""
        points = [self.at(x, y) for x, y in zip(xs, ys, strict=True)]
        if len(points) > 1:
            self.canvas.line(points, colour=colour, width=width * self.canvas.unit, dashes=dashes)

    def steps(self, xs: Sequence[float], ys: Sequence[float], *, colour: str, dashes: Sequence[float] | None) -> None:
        """A line that keeps each value until the next."""
        across = [xs[0]]
        along = [ys[0]]
        for x, y in zip(xs[1:], ys[1:], strict=True):
            across += [x, x]
            along += [along[-1], y]
        self.curve(across, along, colour=colour, dashes=dashes)


def bytes_words(value: float) -> str:
    """Bytes with a decimal unit: "875 kB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{number(value)} {unit}"
        value /= 1000
    return f"{number(value)} TB"


def legend(canvas: Canvas, area: Rect, entries: Sequence[tuple[str, str, Sequence[float] | None]]) -> float:
    """(words, colour, dashes) in as many lines as they need at the top of `area`; returns their height."""
    unit = canvas.unit
    size = TICK * unit
    x, y = area.x, area.y + size
    for words, colour, dashes in entries:
        wide = 22 * unit + canvas.measure(words, size)[0]
        if x > area.x and x + wide > area.right:
            x, y = area.x, y + size * 1.5
        canvas.line(
            [(x, y - size * 0.35), (x + 17 * unit, y - size * 0.35)], colour=colour, width=1.2 * unit, dashes=dashes
        )
        canvas.text(x + 22 * unit, y, words, size, colour=canvas.palette.secondary)
        x += wide + 14 * unit
    return y - area.y
