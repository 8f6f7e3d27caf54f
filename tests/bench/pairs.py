"""Two ways of doing a thing, timed in turn: what is believed is the ratio of each pair, never a time of its own."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import torch

Work = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a row measured: the median `value` of `n` measurements, the least and the greatest of them.

    `ours`, `theirs`: medians of what was divided, in `unit`; None where nothing was.
    """

    value: float
    low: float
    high: float
    n: int
    ours: float | None = None
    theirs: float | None = None
    unit: str = "ms"
    note: str = ""

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float], *, note: str = "") -> Self:
        """The ratios of pairs of times in ms."""
        ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        return cls(
            value=statistics.median(ratios),
            low=min(ratios),
            high=max(ratios),
            n=len(ratios),
            ours=statistics.median(ours),
            theirs=statistics.median(theirs),
            note=note,
        )

    @classmethod
    def among(cls, values: Sequence[float], *, unit: str, note: str = "") -> Self:
        """Measurements that are judged as they are."""
        return cls(
            value=statistics.median(values), low=min(values), high=max(values), n=len(values), unit=unit, note=note
        )


def clock(work: Work) -> float:
    """How long `work` takes, ms; with all that it left to a GPU."""
    _settle()
    begun = time.perf_counter()
    work()
    _settle()
    return (time.perf_counter() - begun) * 1e3


def _settle() -> None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


def paired(ours: Work, theirs: Work, pairs: int, *, warm_up: int = 1) -> tuple[list[float], list[float]]:
    """Times in ms of `pairs` pairs, interleaved, each way first in every other pair. In between garbage is collected,
    and what was left to the disk is written: one that syncs its files would wait for those of the other."""
    for _ in range(warm_up):
        ours()
        theirs()
    times: tuple[list[float], list[float]] = ([], [])
    for pair in range(pairs):
        for which in (0, 1) if pair % 2 == 0 else (1, 0):
            times[which].append(_undisturbed((ours, theirs)[which]))
    return times


def ratio(ours: Work, theirs: Work, pairs: int, *, warm_up: int = 1, note: str = "") -> Outcome:
    """Ours ÷ theirs."""
    return Outcome.of(*paired(ours, theirs, pairs, warm_up=warm_up), note=note)


def _undisturbed(work: Work) -> float:
    gc.collect()
    if hasattr(os, "sync"):
        os.sync()
    before = gc.isenabled()
    gc.disable()
    try:
        return clock(work)
    finally:
        if before:
            gc.enable()


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` of `values` do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)]
