"""Amounts as they are written: three digits that mean something, a prefix, the unit."""

from __future__ import annotations

import math

PREFIXES = ("", "K", "M", "G", "T", "P", "E")
THOUSAND = 1000.0


def three(value: float) -> str:
    """Three significant digits below a thousand, no exponent; 0 stays 0."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    places = max(0, 2 - math.floor(math.log10(abs(value)) + 1e-9))
    return f"{value:,.{min(places, 6)}f}"


def amount(value: float, unit: str) -> str:
    """ "5.16 GFLOP", "876 KB": decimal prefixes; whole bytes and operations below a thousand stay whole."""
    if not math.isfinite(value):
        return "–"
    step, shown = 0, float(value)
    while abs(shown) >= THOUSAND - 0.5 and step < len(PREFIXES) - 1:
        shown, step = shown / THOUSAND, step + 1
    text = f"{shown:,.0f}" if step == 0 and float(shown).is_integer() else three(shown)
    return f"{text} {PREFIXES[step]}{unit}"


def short_amount(value: float, unit: str) -> str:
    """As `amount`, for an axis: no trailing zeros."""
    text, _, rest = amount(value, unit).partition(" ")
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {rest}"


def duration(ms: float) -> str:
    """ "0.83 ms", "41.2 ms", "6.02 s"."""
    return f"{three(ms / THOUSAND)} s" if ms >= THOUSAND else f"{three(ms)} ms"


def times(ratio: float) -> str:
    """ "19.1 ×"."""
    return f"{three(ratio)} ×" if ratio != 1 else "1 ×"
