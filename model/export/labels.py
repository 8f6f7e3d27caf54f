"""Words on figures: what is printable, what fits, which of many labels are shown. Pure; draws nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

_NAMED = {"\n": "⏎", "\r": "␍", "\t": "⇥"}
_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Controls, formatting (bidirectional marks, zero-width joiners), surrogates, private, unassigned, line separators."""
_STEPS = (1, 2, 5)


def escape(text: str, printable: Callable[[str], bool] = lambda _: True) -> str:
    """`text` with nothing invisible or reordering in it: newline ⏎, tab ⇥, other controls and every character that
    `printable` refuses as ⟨U+1F600⟩."""
    return "".join(_shown(character, printable) for character in text)


def _shown(character: str, printable: Callable[[str], bool]) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if unicodedata.category(character) in _HIDDEN_CATEGORIES or not printable(character):
        return f"⟨U+{ord(character):04X}⟩"
    return character


def columns(text: str) -> int:
    """Width in monospace columns: East Asian wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def elide(text: str, limit: int) -> str:
    """`text` in at most `limit` columns (2 or more), an ellipsis in the place of what was cut from its end."""
    if columns(text) <= limit:
        return text
    kept, used = [], 1
    for character in text:
        used += columns(character)
        if used > limit:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def every(count: int, length: float, spacing: float) -> int:
    """Show one label in how many: the least of 1, 2, 5, 10, 20 … that keeps `spacing` between the centres of `count`
    labels spread evenly over `length` (same unit)."""
    step, power = 1, 1
    while step < count and length / count * step < spacing:
        index = _STEPS.index(step // power)
        if index == len(_STEPS) - 1:
            power *= 10
        step = _STEPS[(index + 1) % len(_STEPS)] * power
    return step


def shown_indices(first: int, count: int, step: int) -> list[int]:
    """Those of the positions first … first + count - 1 that are multiples of `step`; the first one if none is."""
    start = -(-first // step) * step
    return list(range(start, first + count, step)) or [first]


def number(value: float) -> str:
    """A value on an axis: four significant digits at most, no exponent between 1e-4 and 1e5."""
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e5:
        return f"{value:.4g}".replace("-", "−")
    mantissa, exponent = f"{value:.3g}".split("e") if "e" in f"{value:.3g}" else f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(exponent)}".replace("-", "−")
