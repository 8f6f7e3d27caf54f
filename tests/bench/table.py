"""What a row of the table is, what came of it, and the table in print."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from tests.bench.pairs import Outcome

if TYPE_CHECKING:
    from tests.bench.subject import Subject

Verdict = Literal["yes", "NO", "skipped", "–"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One promise. `over`: what it is divided by ("" for bytes); `bound`: the most it may be, in `unit` ("" a ratio).

    `pairs`: measurements unless asked otherwise. `why`: the reason where the bound is known to be missed. `on_gpu`:
    says something where the model is on one.
    """

    name: str
    what: str
    over: str
    bound: float
    measure: Callable[[Subject, int], Outcome]
    unit: Literal["", "GB"] = ""
    pairs: int = 5
    needs_reference: bool = False
    why: str = ""
    on_gpu: bool = True


@dataclass(frozen=True, kw_only=True)
class Result:
    """A row measured, or the reason why it was not. `is_judged`: the bounds are promises for two threads of a CPU."""

    row: Row
    outcome: Outcome | None = None
    skipped: str = ""
    is_judged: bool = True

    @property
    def verdict(self) -> Verdict:
        """Whether the bound was reached; a number that is none reaches nothing."""
        if self.outcome is None:
            return "skipped"
        if not self.is_judged:
            return "–"
        return "yes" if math.isfinite(self.outcome.value) and self.outcome.value <= self.row.bound else "NO"

    @property
    def note(self) -> str:
        """What there is to say beside the numbers."""
        if self.outcome is None:
            return self.skipped
        why = self.row.why if self.verdict == "NO" else ""
        return "; ".join(part for part in (self._absolute(), self.outcome.note, why) if part)

    def _absolute(self) -> str:
        made = self.outcome
        if made is None or made.ours is None or made.theirs is None:
            return ""
        return f"{_short(made.ours)} ÷ {_short(made.theirs)} {made.unit}"

    def cells(self) -> tuple[str, ...]:
        """The row as words: name, what, measured, spread, bound, reached, note."""
        row, made, unit = self.row, self.outcome, f" {self.row.unit}".rstrip()
        measured = "–" if made is None else f"{made.value:.3f}{unit}"
        spread = "–" if made is None else f"{made.low:.3f} … {made.high:.3f} ({made.n})"
        what = f"{row.what} ÷ {row.over}" if row.over else row.what
        return row.name, what, measured, spread, f"≤ {row.bound:g}{unit}", self.verdict, self.note

    def as_json(self) -> dict[str, object]:
        """The same as numbers."""
        row = self.row
        facts = {"name": row.name, "what": row.what, "over": row.over, "bound": row.bound, "unit": row.unit}
        made = None if self.outcome is None else asdict(self.outcome)
        return {**facts, "reached": self.verdict, "outcome": made, "note": self.note}


def _short(number: float) -> str:
    """Three digits or all before the point."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


HEADS = ("row", "what", "median", "spread (n)", "bound", "reached", "note")


def markdown(about: str, results: Iterable[Result]) -> str:
    """The table, for a file: `about` above it."""
    lines = ["# Speed and memory, as ratios", "", about, "", _line(HEADS), _line(("---",) * len(HEADS))]
    lines += [_line(result.cells()) for result in results]
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def in_print(result: Result) -> str:
    """A result on two lines of a terminal."""
    name, what, measured, spread, bound, reached, note = result.cells()
    head = f"{reached:<7} {name:<22} {measured:>9} {bound:<9} {spread:<26}"
    return f"{head} {what}\n{'':8}{note}".rstrip()


def document(about: str, results: Iterable[Result]) -> str:
    """The table as JSON."""
    return json.dumps({"about": about, "rows": [result.as_json() for result in results]}, ensure_ascii=False, indent=1)
