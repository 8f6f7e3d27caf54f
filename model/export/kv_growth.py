"""The KV cache as it grew: bytes used and allocated against position, beside the formula and other head layouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.errors import BadValueError
from model.export.chart import Chart, bytes_words, legend
from model.export.page import LABEL, TICK, Rect, frame
from model.export.provenance import Provenance

if TYPE_CHECKING:
    from model.export.canvas import Canvas


@dataclass(frozen=True, kw_only=True)
class KVGrowth:
    """`positions`: tokens in the cache at each measurement, ascending; `used`, `allocated`: bytes then.
    `per_token`: bytes of one token by the formula; `layouts`: the same for other layouts, name → bytes ("MHA" …).
    `boundary`: tokens prefilled. `chunks`: (tokens in the cache, bytes used, bytes allocated) after each chunk of the
    prefill, whose tokens come all at once."""

    positions: tuple[int, ...]
    used: tuple[int, ...]
    allocated: tuple[int, ...]
    per_token: int
    layouts: tuple[tuple[str, int], ...]
    boundary: int
    about: Provenance
    chunks: tuple[tuple[int, int, int], ...] = ()
    title: str = "KV cache growth"

    def __post_init__(self) -> None:
        if not len(self.positions) == len(self.used) == len(self.allocated) >= 1:
            raise BadValueError("positions", len(self.positions), "as many bytes used and allocated, one at least")

    def used_line(self) -> list[tuple[float, float]]:
        """(tokens, bytes): a step up at each chunk's begin, then a slope."""
        line: list[tuple[float, float]] = [(0, 0)]
        for end, used, _allocated in self.chunks:
            line += [(line[-1][0], used), (end, used)]
        return line + list(zip(self.positions, self.used, strict=True))

    def allocated_steps(self) -> list[tuple[float, float]]:
        """(tokens from which, bytes)."""
        starts = (0, *(end for end, _used, _allocated in self.chunks))
        steps = [(start, room) for start, (_end, _used, room) in zip(starts, self.chunks, strict=False)]
        return [*steps, *zip(self.positions, self.allocated, strict=True)]


def draw_kv_growth(canvas: Canvas, growth: KVGrowth) -> None:
    """Draws the whole figure."""
    unit, palette = canvas.unit, canvas.palette
    area = frame(canvas, growth.title, growth.about)
    last = max(growth.positions[-1], 1)
    # a layout that needs far more than was measured would flatten the curve: the axis follows the measurement
    top = 1.12 * max(*growth.allocated, growth.per_token * last)
    ticks = max(canvas.measure(bytes_words(value), TICK * unit)[0] for value in (top, top * 0.77))
    right = max((canvas.measure(name, TICK * unit)[0] for name, _ in growth.layouts), default=0.0) + 8 * unit
    key = legend(
        canvas,
        area,
        [
            ("used, measured", palette.accent, None),
            ("allocated, measured", palette.secondary, (4, 2.5)),
            (f"{growth.per_token:,} B a token", palette.amber, (2, 2)),
        ],
    )
    above = key + LABEL * unit * 2.4
    rect = Rect(
        x=area.x + ticks + 10 * unit,
        y=area.y + above,
        width=max(area.width - ticks - right - 10 * unit, 8.0),
        height=max(area.height - above - (TICK + LABEL * 1.2 + 10) * unit, 8.0),
    )
    chart = Chart(canvas=canvas, rect=rect, x_range=(0, last), y_range=(0, top))
    if 0 < growth.boundary < last:
        (x, _), (end, _) = chart.at(growth.boundary, 0), chart.at(last, 0)
        canvas.area(
            [(rect.x, rect.y), (x, rect.y), (x, rect.bottom), (rect.x, rect.bottom)], fill=palette.green, alpha=0.08
        )
        canvas.area([(x, rect.y), (end, rect.y), (end, rect.bottom), (x, rect.bottom)], fill=palette.amber, alpha=0.08)
        for words, at, align, colour in (
            ("prefill", x - 4 * unit, "right", palette.green),
            ("decode", x + 4 * unit, "left", palette.amber),
        ):
            canvas.text(at, rect.y + TICK * unit * 1.2, words, TICK * unit, colour=colour, align=align)  # type: ignore[arg-type]
    chart.axes("tokens in the cache", "bytes", x_words=lambda value: f"{value:,.0f}", y_words=bytes_words, x_whole=True)
    for name, per_token in growth.layouts:
        end_x = min(float(last), top / per_token)
        chart.curve([0, end_x], [0, end_x * per_token], colour=palette.secondary, width=0.6)
        x, y = chart.at(end_x, end_x * per_token)
        canvas.text(x + 3 * unit, y + TICK * unit * 0.35, name, TICK * unit, colour=palette.secondary)
    starts, rooms = zip(*growth.allocated_steps(), strict=True)
    chart.steps(starts, rooms, colour=palette.secondary, dashes=(4, 2.5))
    tokens, used = zip(*growth.used_line(), strict=True)
    chart.curve(tokens, used, colour=palette.accent, width=1.6)
    chart.curve([0, last], [0, last * growth.per_token], colour=palette.amber, width=0.8, dashes=(2, 2))
