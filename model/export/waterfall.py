"""How the sampler narrowed the next token: tokens and mass after each stage, candidates raw and final, the draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.errors import BadValueError
from model.export.labels import elide
from model.export.page import LABEL, TICK, Rect, frame
from model.export.provenance import Provenance
from model.protocol.run_requests import StageInfo
from model.protocol.values import Candidate

if TYPE_CHECKING:
    from model.export.canvas import Canvas

STAGE_TITLES = {
    "vocabulary": "vocabulary",
    "repetition_penalty": "repetition penalty",
    "temperature": "temperature",
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
}


@dataclass(frozen=True, kw_only=True)
class Waterfall:
    """`stages` in their order, the whole vocabulary first; `candidates` by raw rank; `draw` in [0, 1) and the token it
    picks, empty where there is none."""

    stages: tuple[StageInfo, ...]
    candidates: tuple[Candidate, ...]
    about: Provenance
    draw: float | None = None
    picked: str = ""
    title: str = "From logits to the next token"

    def __post_init__(self) -> None:
        if not (self.stages and self.candidates):
            raise BadValueError("stages", len(self.stages), "one stage and one candidate at least")


def draw_waterfall(canvas: Canvas, waterfall: Waterfall) -> None:
    """Draws the whole figure: stages on top, candidates below."""
    unit = canvas.unit
    area = frame(canvas, waterfall.title, waterfall.about)
    row = 15 * unit
    top = Rect(x=area.x, y=area.y, width=area.width, height=row * (len(waterfall.stages) + 1))
    _draw_stages(canvas, waterfall, top, row)
    below = top.bottom + 12 * unit
    bottom = area.bottom - (LABEL * 1.6 * unit if waterfall.draw is not None else 0.0)
    _draw_candidates(canvas, waterfall, Rect(x=area.x, y=below, width=area.width, height=max(bottom - below, row * 2)))
    if waterfall.draw is not None:
        picked = f" → would pick {waterfall.picked}" if waterfall.picked else ""
        canvas.text(area.x, area.bottom, f"draw u = {waterfall.draw:.6f}{picked}", LABEL * unit, mono=True)


def _draw_stages(canvas: Canvas, waterfall: Waterfall, rect: Rect, row: float) -> None:
    unit, palette, size = canvas.unit, canvas.palette, LABEL * canvas.unit
    names = [STAGE_TITLES.get(stage.name, stage.name) for stage in waterfall.stages]
    left = rect.x + max(canvas.measure(name, size)[0] for name in names) + 10 * unit
    kept = [f"{stage.kept:,}" for stage in waterfall.stages]
    numbers = rect.right - canvas.measure("100.00 %", size)[0] - 14 * unit
    bar_end = numbers - max(canvas.measure(text, size)[0] for text in [*kept, "tokens"]) - 12 * unit
    head = rect.y + size
    canvas.text(numbers, head, "tokens", TICK * unit, colour=palette.secondary, align="right")
    canvas.text(rect.right, head, "mass", TICK * unit, colour=palette.secondary, align="right")
    for index, (stage, name) in enumerate(zip(waterfall.stages, names, strict=True)):
        y = rect.y + row * (index + 1)
        middle = y + row * 0.5
        canvas.text(rect.x, middle, name, size, anchor="center")
        canvas.box(left, y + row * 0.2, bar_end - left, row * 0.6, fill=palette.ghost)
        share = max((bar_end - left) * min(max(stage.mass, 0.0), 1.0), 0.6)
        canvas.box(left, y + row * 0.2, share, row * 0.6, fill=palette.accent)
        canvas.text(numbers, middle, kept[index], size, align="right", anchor="center")
        canvas.text(rect.right, middle, f"{stage.mass * 100:.2f} %", size, align="right", anchor="center")


def _draw_candidates(canvas: Canvas, waterfall: Waterfall, rect: Rect) -> None:
    unit, palette = canvas.unit, canvas.palette
    row = 13.5 * unit
    shown = waterfall.candidates[: max(1, int((rect.height - row) / row))]
    size = LABEL * unit
    token = rect.x + canvas.measure("99", size)[0] + 8 * unit
    words = [elide(candidate.piece, 18) for candidate in shown]
    left = token + max(canvas.measure(word, size, mono=True)[0] for word in words) + 10 * unit
    final = rect.right
    raw = final - canvas.measure("0.0000", size)[0] - 12 * unit
    bar_end = raw - canvas.measure("0.0000", size)[0] - 10 * unit
    head = rect.y + size
    for x, text, align in ((token, "token", "left"), (raw, "raw p", "right"), (final, "final p", "right")):
        canvas.text(x, head, text, TICK * unit, colour=palette.secondary, align=align)  # type: ignore[arg-type]
    highest = max(max(candidate.p_raw, candidate.p) for candidate in shown) or 1.0
    for index, (candidate, word) in enumerate(zip(shown, words, strict=True)):
        y = rect.y + row * (index + 1)
        middle = y + row * 0.5
        grey = palette.text if candidate.p > 0 else palette.secondary
        rank_at = token - 8 * unit
        canvas.text(
            rank_at, middle, str(candidate.rank + 1), size, colour=palette.secondary, align="right", anchor="center"
        )  # fmt: skip
        canvas.text(token, middle, word, size, colour=grey, anchor="center", mono=True)
        full = bar_end - left
        canvas.box(left, y + row * 0.16, full * candidate.p_raw / highest, row * 0.68, fill=palette.ghost)
        if candidate.p > 0:
            canvas.box(left, y + row * 0.28, full * candidate.p / highest, row * 0.44, fill=palette.accent)
        canvas.text(
            raw, middle, f"{candidate.p_raw:.4f}", size, colour=palette.secondary, align="right", anchor="center"
        )
        canvas.text(final, middle, f"{candidate.p:.4f}", size, colour=grey, align="right", anchor="center")
