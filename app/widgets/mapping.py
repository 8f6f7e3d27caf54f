"""How a slider's travel maps to a value: linear, logarithmic with an off end, whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

Number = int | float


class Mapping(Protocol):
    """Travel 0 … 1 to a value and back. `bottom`, `high`: the values at the slider's and the box's ends."""

    @property
    def bottom(self) -> Number: ...
    @property
    def high(self) -> Number: ...
    @property
    def default(self) -> Number: ...
    @property
    def whole(self) -> bool: ...

    def value(self, travel: float) -> Number: ...
    def travel(self, value: Number) -> float: ...
    def stepped(self, value: Number, steps: int) -> Number: ...
    def clamp(self, value: Number) -> Number: ...


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Even travel from `low` to `high` in multiples of `step`."""

    low: float
    high: float
    step: float
    default: float
    whole: bool = False

    @property
    def bottom(self) -> float:
        return self.low

    def value(self, travel: float) -> float:
        return self.clamp(self.low + round(travel * (self.high - self.low) / self.step) * self.step)

    def travel(self, value: Number) -> float:
        return (self.clamp(value) - self.low) / (self.high - self.low)

    def stepped(self, value: Number, steps: int) -> float:
        return self.clamp(value + steps * self.step)

    def clamp(self, value: Number) -> float:
        # Twelve digits: 0.1 + 0.2 reads 0.3, and nothing a person typed is lost.
        return round(min(max(float(value), self.low), self.high), 12)


@dataclass(frozen=True, kw_only=True)
class Log:
    """Even ratios from `low` (over 0) to `high`; with `zero` the leftmost 4 % of the travel is 0, which means off."""

    low: float
    high: float
    default: float
    zero: bool = False
    whole: bool = False

    ZERO_TRAVEL: ClassVar[float] = 0.04

    @property
    def bottom(self) -> Number:
        return 0 if self.zero else self.low

    def value(self, travel: float) -> Number:
        start = self.ZERO_TRAVEL if self.zero else 0.0
        if self.zero and travel < start:
            return 0
        share = (travel - start) / (1 - start)
        return self.clamp(self.low * (self.high / self.low) ** share)

    def travel(self, value: Number) -> float:
        value, start = self.clamp(value), self.ZERO_TRAVEL if self.zero else 0.0
        if self.zero and value == 0:
            return 0.0
        if self.high <= self.low:
            return 1.0
        return start + (1 - start) * math.log(value / self.low) / math.log(self.high / self.low)

    def stepped(self, value: Number, steps: int) -> Number:
        if self.whole:
            return self.clamp(int(value) + steps)
        return self.clamp(value * 1.05**steps if value else self.low)

    def clamp(self, value: Number) -> Number:
        if self.zero and value < self.low / 2:
            return 0
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(value)


@dataclass(frozen=True, kw_only=True)
class Whole:
    """Whole numbers: the slider spans `low` … `slider_high`, the box takes everything up to `high`."""

    low: int
    high: int
    default: int
    slider_high: int
    whole: bool = True

    @property
    def bottom(self) -> int:
        return self.low

    def value(self, travel: float) -> int:
        return self.low + round(travel * (self.slider_high - self.low))

    def travel(self, value: Number) -> float:
        return min((self.clamp(value) - self.low) / (self.slider_high - self.low), 1.0)

    def stepped(self, value: Number, steps: int) -> int:
        return self.clamp(int(value) + steps)

    def clamp(self, value: Number) -> int:
        # No float on the way: a seed has 64 bits, a float 53.
        return min(max(int(value), self.low), self.high)
