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
    """For a logarithmic axis: 1, and where there are few also 2 and 5, times powers of ten; fewer of them where `most`
    have room over the whole range."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1,) if last - first > 3 else (1, 3) if last - first > 1 else (1, 2, 5)
    found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors
             if low <= factor * 10.0**power <= high]  # fmt: skip
    least = (math.log10(high) - math.log10(low)) / max(most, 1)
    apart: list[float] = []
    for value in found:
        if not apart or math.log10(value / apart[-1]) >= least:
            apart.append(value)
    return apart


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


def short(value: float) -> str:
    """A value for an axis: three significant digits, no trailing zeros."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}" if value else "0"
    if not 1e-3 <= abs(value) < 1e6:
        return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")
    text = f"{value:,.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def longest_short(least: float, most: float) -> str:
    """A text as long as the longest that `short` makes of sizes from `least` to `most` (over 0)."""
    first, last = math.floor(math.log10(least)), math.floor(math.log10(most))
    # Of each power of ten one value with three digits; beyond these powers the digits are those of the exponent.
    sizes = (8.88 * 10.0**power for power in range(max(first, -4), min(last, 7) + 1))
    return max((short(size) for size in (least, most, *sizes)), key=len)
