"""The sampler against an independent reference, and its edges."""

from __future__ import annotations

import time
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from model import sampling
from model.protocol.values import DEFAULT_ORDER, SamplerSettings, SamplerStage

Logits = NDArray[np.float32]

# float32 softmax and cumulative sums in the reference against float64 here: 1e-6 absolute on probabilities ≤ 1.
P_TOLERANCE = 2e-6


def settings_of(**changes: object) -> SamplerSettings:
    off: dict[str, object] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    return SamplerSettings(**(off | changes))  # type: ignore[arg-type]


def logits_of(seed: int, n: int = 300, spread: float = 3.0) -> Logits:
    return (np.random.default_rng(seed).standard_normal(n) * spread).astype(np.float32)


def plain(
    logits: Logits, chosen: SamplerSettings, previous: list[int], masks: list[NDArray[np.bool_]] | None = None
) -> tuple[NDArray[np.float64], list[tuple[str, int]]]:
    """The sampler written once more, slowly: whole float64 arrays, a mask, one sort a stage. Final p (V,), stages;
    `masks` is given the tokens kept after each."""
    values = logits.astype(np.float64)
    kept = np.isfinite(values)
    masks = [] if masks is None else masks
    masks.append(kept.copy())
    temperature, stages = 1.0, [(sampling.VOCABULARY, int(kept.sum()))]
    for stage in chosen.order:
        shown = np.where(kept, values, -np.inf)
        p = np.exp((shown - shown.max()) / temperature)
        p /= p.sum()
        ids = np.lexsort((np.arange(values.size), -shown))
        if stage == "repetition_penalty":
            for token in set(previous):
                value = values[token]
                factor = 1 / chosen.repetition_penalty if value > 0 else chosen.repetition_penalty
                values[token] = value * factor
        elif stage == "temperature":
            if chosen.temperature == 0:
                kept[ids[1:]] = False
            else:
                temperature = chosen.temperature
        elif stage == "top_k" and chosen.top_k:
            kept[ids[chosen.top_k :]] = False
        elif stage == "top_p" and chosen.top_p < 1:
            before = np.concatenate([[0.0], np.cumsum(p[ids])[:-1]])
            kept[ids[1:][before[1:] >= chosen.top_p]] = False
        elif stage == "min_p" and chosen.min_p:
            kept &= p >= chosen.min_p * p.max()
        stages.append((stage, int(kept.sum())))
        masks.append(kept.copy())
    shown = np.where(kept, values, -np.inf)
    final = np.exp((shown - shown.max()) / temperature)
    return final / final.sum(), stages


orders = st.sampled_from(list(permutations(DEFAULT_ORDER)))


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(1, 400),
    temperature=st.sampled_from([1e-3, 0.3, 0.8, 1.0, 1.7, 50.0]),
    top_k=st.sampled_from([0, 1, 3, 40, 1000]),
    top_p=st.floats(0, 1),
    min_p=st.sampled_from([0.0, 0.003, 0.05, 0.4, 1.0]),
    penalty=st.sampled_from([1.0, 1.3, 0.7]),
    order=orders,
    previous=st.lists(st.integers(0, 399), max_size=20),
)
def test_every_order_of_stages_equals_a_plain_reference(
    seed: int,
    n: int,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    penalty: float,
    order: tuple[SamplerStage, ...],
    previous: list[int],
) -> None:
    logits = logits_of(seed, n)
    previous = [token for token in previous if token < n]
    chosen = SamplerSettings(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=penalty, order=order
    )
    distribution = sampling.apply(sampling.order_of(logits), chosen, previous)
    expected, stages = plain(logits, chosen, previous)
    ids = np.arange(n)
    np.testing.assert_allclose(distribution.probabilities(ids), expected, atol=1e-12)
    assert [(stage.name, stage.kept) for stage in distribution.stages] == stages
    kept = distribution.ids()
    assert len(kept) == distribution.kept == stages[-1][1]
    np.testing.assert_array_equal(kept, kept[np.lexsort((kept, -logits[kept]))])  # raw logit descending
    cdf = distribution.cdf()
    assert (np.diff(cdf) >= 0).all()
    assert abs(cdf[-1] - 1) < 1e-12
    p = expected[expected > 0]
    assert distribution.entropy == pytest.approx(float(-(p * np.log(p)).sum()), abs=1e-9)


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 0.7},
        {"top_k": 17},
        {"top_p": 0.63},
        {"min_p": 0.02},
        {"repetition_penalty": 1.4},
        {"temperature": 1.3, "top_k": 50, "top_p": 0.8, "min_p": 0.01, "repetition_penalty": 0.8},
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_equal_those_of_transformers(changes: dict[str, float], seed: int) -> None:
    from transformers import (
        LogitsProcessorList,
        MinPLogitsWarper,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    chosen = settings_of(**changes)
    previous = [3, 5, 5, 90]
    warpers = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(chosen.repetition_penalty)])
    warpers.append(TemperatureLogitsWarper(chosen.temperature))
    if chosen.top_k:
        warpers.append(TopKLogitsWarper(chosen.top_k))
    if chosen.top_p < 1:
        warpers.append(TopPLogitsWarper(chosen.top_p))
    if chosen.min_p:
        warpers.append(MinPLogitsWarper(chosen.min_p))
    logits = logits_of(seed)
    theirs = torch.softmax(warpers(torch.tensor([previous]), torch.from_numpy(logits)[None].clone()), -1)[0].numpy()
    ours = sampling.apply(sampling.order_of(logits), chosen, previous).probabilities(np.arange(logits.size))
    np.testing.assert_array_equal(ours > 0, theirs > 0)
    np.testing.assert_allclose(ours, theirs, atol=P_TOLERANCE)


def test_ties_are_ordered_by_id_and_top_k_keeps_exactly_k() -> None:
    logits = np.array([1, 2, 2, 2, 0, -0.0], np.float32)
    order = sampling.order_of(logits)
    assert order.ids(6).tolist() == [1, 2, 3, 0, 4, 5]
    assert [order.rank(token) for token in range(6)] == [3, 0, 1, 2, 4, 5]
    assert sampling.apply(order, settings_of(top_k=2)).ids().tolist() == [1, 2]


def test_a_long_order_is_the_same_looked_at_by_parts_and_whole() -> None:
    logits = np.round(logits_of(1, 20_000), 1).astype(np.float32)  # many ties
    expected = np.lexsort((np.arange(logits.size), -logits))
    for n in (1, 10, 2048, 2049, 20_000):
        order = sampling.order_of(logits)
        np.testing.assert_array_equal(order.ids(10), expected[:10])
        np.testing.assert_array_equal(order.ids(n), expected[:n])


@pytest.mark.parametrize("token_penalty", [1.0, 3.0])
@pytest.mark.parametrize("place", list(permutations(("repetition_penalty", "temperature", "top_k"))))
def test_greedy_takes_the_best_token_after_the_penalty(place: tuple[SamplerStage, ...], token_penalty: float) -> None:
    logits = np.array([0.0, 5.0, 4.0, -1.0], np.float32)
    chosen = settings_of(temperature=0.0, top_k=3, repetition_penalty=token_penalty, order=(*place, "top_p", "min_p"))
    distribution = sampling.apply(sampling.order_of(logits), chosen, [1])
    best = 1 if token_penalty == 1 else 2
    assert [sampling.pick(distribution, u) for u in (0.0, 0.5, 0.999)] == [best] * 3
    assert distribution.probabilities(np.array([best])) == [1.0]
    assert distribution.entropy == 0


def test_extremes_have_a_defined_meaning() -> None:
    order = sampling.order_of(np.array([1.0, 3.0, 2.0, -np.inf], np.float32))
    everything = np.arange(4)
    assert sampling.apply(order, settings_of(top_p=0.0)).ids().tolist() == [1]
    assert sampling.apply(order, settings_of(top_k=99)).ids().tolist() == [1, 2, 0]
    assert sampling.apply(order, settings_of(min_p=1.0)).ids().tolist() == [1]
    for temperature in (1e-9, 1e-320):
        cold = sampling.apply(order, settings_of(temperature=temperature))
        assert cold.probabilities(everything).tolist() == [0, 1, 0, 0]
        assert sampling.pick(cold, 0.99) == 1
    hot = sampling.apply(order, settings_of(temperature=1e300))
    np.testing.assert_allclose(hot.probabilities(everything), [1 / 3, 1 / 3, 1 / 3, 0])
    for penalty in (1e-308, 1e308):
        extreme = sampling.apply(order, settings_of(repetition_penalty=penalty), [0, 1, 3])
        assert np.isfinite(extreme.probabilities(everything)).all()


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.floats(width=32, allow_nan=True, allow_infinity=True), min_size=1, max_size=30),
    temperature=st.floats(0, 1e30),
    top_p=st.floats(0, 1),
    u=st.floats(0, 1, exclude_max=True),
)
def test_any_logits_give_a_kept_token_or_a_refusal(
    values: list[float], temperature: float, top_p: float, u: float
) -> None:
    logits = np.array(values, np.float32)
    order = sampling.order_of(logits)
    chosen = settings_of(temperature=temperature, top_p=top_p, repetition_penalty=1.2)
    bad = int(np.isnan(logits).sum() + np.isposinf(logits).sum())
    if bad or np.isneginf(logits).all():
        with pytest.raises(sampling.BadLogitsError) as refused:
            sampling.apply(order, chosen, [0])
        assert refused.value.bad == bad
        return
    distribution = sampling.apply(order, chosen, [0])
    token = sampling.pick(distribution, u)
    assert token in distribution.ids()
    assert np.isfinite(logits[token])
    assert np.isfinite(distribution.cdf()).all()


def test_a_draw_falls_where_the_cdf_says() -> None:
    order = sampling.order_of(logits_of(5, 3000, 0.1))  # flat: the draw may fall far down the order
    for chosen in (settings_of(), settings_of(top_k=7), settings_of(repetition_penalty=2.0)):
        distribution = sampling.apply(order, chosen, [1, 2, 3])
        ids, cdf = distribution.ids(), distribution.cdf()
        for u in np.linspace(0, 1, 97)[:-1]:
            assert sampling.pick(distribution, float(u)) == ids[np.searchsorted(cdf, u, side="right")]
        assert sampling.pick(distribution, 1.0) == ids[-1]


@given(st.integers(1, 60_000), st.floats(0, 1, exclude_max=True))
def test_a_curve_has_the_last_token_and_both_sides_of_the_draw(kept: int, u: float) -> None:
    order = sampling.order_of(logits_of(5, 60_000, 0.1))
    distribution = sampling.apply(order, settings_of(top_k=kept))
    place = sampling.place(distribution, u)
    assert distribution.ids(place + 1)[place] == sampling.pick(distribution, u)
    points = distribution.points(4096, place)
    if kept <= 4096:
        assert points.tolist() == list(range(1, kept + 1))
        return
    assert points.size <= 4096
    assert (np.diff(points) > 0).all()
    assert (points[0], points[-1]) == (1, kept)
    assert {max(place, 1), place + 1} <= set(points.tolist())
    widest = np.diff(np.log1p(points))[np.log1p(points[1:]) > np.log1p(kept) / 2].max()
    assert widest < np.log1p(kept) / 500, "no step is wider than half a pixel of a curve 250 px wide"


def test_draws_are_the_same_for_a_seed_and_uniform() -> None:
    draws = [sampling.draw(7, position) for position in range(4000)]
    assert draws[:50] == [sampling.draw(7, position) for position in range(50)]
    assert draws != [sampling.draw(8, position) for position in range(4000)]
    assert len(set(draws)) == 4000
    assert all(0 <= u < 1 for u in draws)
    counts = np.histogram(draws, 10, (0, 1))[0]
    # Chi-squared with 9 degrees of freedom exceeds 27.9 with probability 0.001; the seed is fixed.
    assert ((counts - 400) ** 2 / 400).sum() < 27.9
    assert 0 <= sampling.draw(2**64 - 1, 2**31) < 1


def test_mass_is_of_the_penalised_tempered_vocabulary() -> None:
    logits = logits_of(3, 100)
    chosen = SamplerSettings(temperature=0.6, top_k=20, top_p=0.7, min_p=0.0, repetition_penalty=1.5)
    stages = sampling.apply(sampling.order_of(logits), chosen, [4, 8]).stages
    whole, _ = plain(logits, settings_of(temperature=0.6, repetition_penalty=1.5), [4, 8])
    ranked = np.sort(whole)[::-1]
    assert [stage.name for stage in stages] == [sampling.VOCABULARY, *DEFAULT_ORDER]
    for stage in stages:
        assert stage.mass == pytest.approx(ranked[: stage.kept].sum(), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    temperature=st.sampled_from([0.0, 0.02, 0.6, 1.0]),
    top_k=st.sampled_from([0, 1, 20]),
    top_p=st.sampled_from([0.3, 0.9, 1.0]),
    penalty=st.sampled_from([1.0, 1.4]),
    order=orders,
)
def test_mass_is_one_quantity_at_every_temperature(
    seed: int, temperature: float, top_k: int, top_p: float, penalty: float, order: tuple[SamplerStage, ...]
) -> None:
    """Against a softmax of the whole penalised vocabulary; at 0 that of T = 1e-9, the limit where no logits tie."""
    logits, previous = logits_of(seed, 100), [0, 3, 3, 17]
    assume(np.unique(logits).size == logits.size)
    assume(temperature > 0 or order.index("repetition_penalty") < order.index("temperature"))
    chosen = settings_of(temperature=temperature, top_k=top_k, top_p=top_p, repetition_penalty=penalty, order=order)
    masks: list[NDArray[np.bool_]] = []
    plain(logits, chosen, previous, masks)
    whole, _ = plain(logits, settings_of(temperature=temperature or 1e-9, repetition_penalty=penalty), previous)
    stages = sampling.apply(sampling.order_of(logits), chosen, previous).stages
    assert [stage.mass for stage in stages] == pytest.approx([whole[mask].sum() for mask in masks], abs=1e-9)


def test_a_preview_costs_a_fraction_of_a_softmax_and_a_sort() -> None:
    logits = logits_of(0, 151_936)
    order = sampling.order_of(logits)
    tensor = torch.from_numpy(logits)

    def reference() -> None:
        torch.sort(torch.softmax(tensor, 0), descending=True)

    def preview(step: int) -> None:
        chosen = SamplerSettings(temperature=0.5 + step / 50, top_k=0, top_p=0.9 + step / 400)
        distribution = sampling.apply(order, chosen)
        place = sampling.place(distribution, 0.5)
        distribution.ids(place + 1)
        distribution.cdf()[distribution.points(4096, place) - 1]
        assert distribution.entropy > 0

    order.ids(order.n)  # once per step
    ratios = []
    for step in range(9):
        start = time.perf_counter()
        reference()
        middle = time.perf_counter()
        preview(step)
        ratios.append((time.perf_counter() - middle) / (middle - start))
    assert sorted(ratios)[4] <= 0.3, ratios
