"""The sampler once more, without any shortcut: what the fast one is checked against on the user's own logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.protocol.values import SamplerSettings

Floats = NDArray[np.float64]


def plain_distribution(
    logits: NDArray[np.floating], settings: SamplerSettings, previous: Sequence[int]
) -> tuple[Floats, list[int]]:
    """Final probabilities (V,), and how many tokens are left before the first stage and after each: whole float64 rows,
    a mask, one sort a stage. Without a penalty after a temperature of 0, which `model.sampling` explains."""
    values = logits.astype(np.float64)
    kept = np.isfinite(values)
    temperature = 1.0
    counts = [int(kept.sum())]
    for stage in settings.order:
        if stage == "repetition_penalty":
            for token in set(previous):
                value, penalty = values[token], settings.repetition_penalty
                values[token] = value / penalty if value > 0 else value * penalty
        elif stage == "temperature" and not settings.greedy:
            temperature = settings.temperature
        else:
            kept &= _left(stage, settings, values, kept, temperature)
        counts.append(int(kept.sum()))
    return _softmax(values, kept, temperature), counts


def _left(
    stage: str, settings: SamplerSettings, values: Floats, kept: NDArray[np.bool_], temperature: float
) -> NDArray[np.bool_]:
    """Which tokens a filtering stage leaves; the likeliest always stays."""
    p = _softmax(values, kept, temperature)
    best_first = np.lexsort((np.arange(values.size), -np.where(kept, values, -np.inf)))
    left = np.ones(values.size, dtype=bool)
    if stage == "temperature":
        left[best_first[1:]] = False
    elif stage == "top_k" and settings.top_k:
        left[best_first[settings.top_k :]] = False
    elif stage == "top_p" and settings.top_p < 1:
        before = np.cumsum(p[best_first]) - p[best_first]
        left[best_first[1:][before[1:] >= settings.top_p]] = False
    elif stage == "min_p" and settings.min_p:
        left = p >= settings.min_p * p.max()
    return left


def _softmax(values: Floats, kept: NDArray[np.bool_], temperature: float) -> Floats:
    shown = np.where(kept, values, -np.inf)
    weights = np.exp((shown - shown.max()) / temperature)
    result: Floats = weights / weights.sum()
    return result
