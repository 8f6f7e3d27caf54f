"""Steps, ticks and figures of axes."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.widgets.ticks import decades, figure, nice_step, ticks


@given(st.floats(1e-9, 1e9))
def test_a_nice_step_is_one_two_or_five(least: float) -> None:
    step = nice_step(least)
    assert least * (1 - 1e-6) <= step <= least * 2.5 * (1 + 1e-6)
    mantissa = step / 10.0 ** math.floor(math.log10(step) + 1e-9)
    assert min(abs(mantissa - m) for m in (1, 2, 5, 10)) < 1e-6


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(1, 12))
def test_ticks_lie_inside_and_are_few(low: float, span: float, most: int) -> None:
    found = ticks(low, low + span, most)
    assert len(found) <= most + 1
    assert all(low - span * 1e-6 <= value <= low + span * (1 + 1e-6) for value in found)


@given(st.floats(-1e12, 1e12))
def test_figures_read_back_to_their_digits(value: float) -> None:
    shown = float(figure(value, 6).replace(",", ""))
    assert shown == pytest.approx(value, rel=5.1e-6, abs=1e-12)


@given(low=st.floats(0.05, 1e4), span=st.floats(0.1, 9), most=st.integers(1, 12))
def test_a_logarithmic_axis_has_few_figures_that_stand_apart(low: float, span: float, most: int) -> None:
    high = low * 10**span
    found = decades(low, high, most)
    assert all(low <= value <= high for value in found) and found == sorted(found)
    assert all(math.log10(after / before) >= span / most - 1e-6 for before, after in pairwise(found))
    tens = [value for value in found if f"{value:.0e}"[0] == "1"]
    assert len(found) == len(tens) or {f"{value:.0e}"[0] for value in found} <= {"1", "2", "5"}


def test_powers_of_ten_are_evenly_thinned() -> None:
    assert decades(0.77, 102, 6) == [1, 10, 100]
    assert decades(0.77, 102, 8) == [1, 2, 5, 10, 20, 50, 100]
    assert decades(1, 1e6, 4) == [1, 100, 10_000, 1_000_000]
    assert decades(2, 8, 3) == [2, 5]
