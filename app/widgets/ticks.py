"""Round places for ticks, and figures with as many digits as mean something."""

from __future__ import annotations

import math
from collections.abc import Mapping

THOUSAND = 1000


def nice_step(least: float) -> float:
    """The smallest of 1, 2, 5 × 10ⁿ that is at least `least` (over 0)."""
    base = 10.0 ** math.floor(math.log10(least))
    return next(factor * base for factor in (1, 2, 5, 10) if factor * base >= least * (1 - 1e-9))


def nice_count(least: float) -> int:
    """`nice_step` in whole numbers."""
    return max(1, round(nice_step(max(1.0, least))))


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round values from `low` to `high`."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or most < 1:
        return []
    step = nice_step((high - low) / most)
    first = math.ceil(low / step - 1e-9)
    return [round(step * n, 12) for n in range(first, math.floor(high / step + 1e-9) + 1)]


def whole_ticks(low: float, high: float, most: int) -> list[float]:
    """`ticks` in whole numbers."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low or most < 1:
        return []
    step = nice_count((high - low) / most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(step * n) for n in range(first, last + 1)]


def named_ticks(
    low: float, high: float, most: int, names: Mapping[float, str], *, whole: bool
) -> list[tuple[float, str]]:
    """Round values and how they are written, in order, with the places of `names` that lie between."""
    round_values = (whole_ticks if whole else ticks)(low, high, most)
    places = {*round_values, *(place for place in names if low <= place <= high)}
    return [(place, names.get(place, short(place))) for place in sorted(places)]


def decades(low: float, high: float, most: int) -> list[float]:
    """For a logarithmic axis with room for `most` figures: powers of ten, every so many of them where there are many;
    where there are few and all have room also 2 and 5 times these."""
    least = (math.log10(high) - math.log10(low)) / max(most, 1)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)

    def inside(factors: tuple[int, ...], every: int = 1) -> list[float]:
        found = (factor * 10.0**power for power in powers if power % every == 0 for factor in factors)
        return [value for value in found if low <= value <= high]

    tens = inside((1,), max(1, math.ceil(least - 1e-9)))
    if len(tens) > 3 or (least > math.log10(2) and len(tens) > 1):
        return tens
    apart: list[float] = []
    for value in inside((1, 2, 5)):
        if not apart or math.log10(value / apart[-1]) >= least - 1e-9:
            apart.append(value)
    return apart


def between_decades(low: float, high: float, decade: float, apart: float = 2.0) -> list[float]:
    """2 … 9 times powers of ten inside a logarithmic axis that gives a power of ten `decade` px, as far as they stand
    `apart`; else 2 and 5 times these, else none."""
    factors = next(
        (some for some in (range(2, 10), (2, 5)) if decade * math.log10(10 / max(some)) >= apart), ()
    )  # fmt: skip
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = (factor * 10.0**power for power in powers for factor in factors)
    return [value for value in found if low <= value <= high]


def figure(value: float, digits: int = 4) -> str:
    """A value for a readout: `digits` significant digits, thousands separated, no needless exponent."""
    if math.isnan(value):
        return "–"
    if value == 0 or math.isinf(value):
        return f"{value:.0f}"
    size = abs(value)
    if not 1e-4 <= size < 1e6:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{value:,.{min(places, 6)}f}"


def short(value: float, *, even: bool = False) -> str:
    """A value for an axis: three significant digits, no trailing zeros; `even`: with these, beside others."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}" if value else "0"
    if not 1e-3 <= abs(value) < 1e6:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    text = f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text and not even else text


def longest_short(least: float, most: float) -> str:
    """A text as long as the longest that `short` makes of sizes from `least` to `most` (over 0)."""
    first, last = math.floor(math.log10(least)), math.floor(math.log10(most))
    # Of each power of ten one value with three digits; beyond these powers the digits are those of the exponent.
    sizes = (8.88 * 10.0**power for power in range(max(first, -4), min(last, 7) + 1))
    return max((short(size) for size in (least, most, *sizes)), key=len)
