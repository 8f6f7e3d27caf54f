"""From logits to the next token: penalty, temperature, top-k, top-p, min-p, and a draw on the cumulative distribution.

Pure numpy over full-vocabulary logits, so that a slider's preview runs without the model and off its thread. `Order`
is made once per step and reused by every change of the settings; it sorts only as far as somebody looks.

The candidate order, in which the distribution is summed (float64) and drawn from, is raw logit descending, ties by id.

Conventions at the edges, which differ between libraries: top-k keeps exactly k tokens (ties by id; transformers keeps
every token tied with the k-th); top-p keeps the fewest first tokens whose mass reaches p, as transformers does (a token
stays while the mass before it is under p); min-p keeps p ≥ min_p · p_max, as transformers does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from model.errors import DecoderscopeError
from model.protocol.run_requests import StageInfo
from model.protocol.values import SamplerSettings

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

VOCABULARY = "vocabulary"
"""Name of the first stage: every token with a finite logit."""

_HEAD = 2048  # tokens sorted at first; whoever looks further gets the whole order
_SAMPLED, _MARGIN = 16, 1.25  # every 16th value tells about where the head ends
_WEIGHTLESS = -1e4  # an exponent whose weight is 0 in float64
_LARGEST = 1e300  # penalised logits are held within ± this, so that no difference of two is infinite


class BadLogitsError(DecoderscopeError):
    """Logits from which no distribution can be made."""

    code = "nan_logits"

    def __init__(self, bad: int, d_vocab: int) -> None:
        self.bad, self.d_vocab = bad, d_vocab
        found = f"{bad:,} of {d_vocab:,} logits are NaN or infinite" if bad else "every logit is -inf"
        super().__init__(
            f"No token can be drawn here: {found}. The weights or an edit produce numbers outside the dtype's range; "
            "try float32, or step back and branch elsewhere."
        )


class Order:
    """The candidates of one step, best first: `values` descending, ties by id; tokens at -inf are kept out.

    `n`: how many take part; `bad`: how many logits are NaN or +inf. Its caches are replaced whole, so threads may share
    one.
    """

    def __init__(self, values: NDArray[np.floating]) -> None:
        if values.ndim != 1 or not values.size:
            raise ValueError(f"logits have shape {values.shape}, expected (V,)")
        self.values = values
        finite = np.isfinite(values)
        self.n = int(np.count_nonzero(finite))
        self.bad = int(values.size - self.n - np.count_nonzero(np.isneginf(values)))
        self._finite = None if self.n == values.size else finite
        self.top = float(np.max(values, where=finite, initial=-np.inf)) if self.n else -np.inf
        self._ids: Ids = np.empty(0, np.int64)
        self._places: tuple[Ids, Ids] | None = None
        self._weights: dict[float, tuple[Floats, float]] = {}
        self._entropy: float | None = None

    def ids(self, n: int) -> Ids:
        """The first `n` token ids (n,) of the order, at most `self.n`."""
        n = min(n, self.n)
        if self._ids.size < n:
            self._ids = self._sorted(n if n == 1 else _HEAD if n <= _HEAD else self.n)
        return self._ids[:n]

    def _sorted(self, at_least: int) -> Ids:
        values = self.values if self._finite is None else np.where(self._finite, self.values, -np.inf)
        if at_least == 1:  # greedy: the first of equals is the one with the smallest id
            best: Ids = np.argmax(values, keepdims=True)
            return best
        if at_least >= self.n:
            return np.argsort(-values, kind="stable")[: self.n]
        sample = values[::_SAMPLED]
        among = min(int(at_least * _MARGIN) // _SAMPLED, sample.size)
        threshold = np.partition(sample, sample.size - among)[sample.size - among]
        ids = np.flatnonzero(values >= threshold)  # ties at the threshold come along, so this is a true prefix
        if not at_least <= ids.size <= 2 * at_least or np.isneginf(threshold):  # the sample was unlike the rest
            threshold = np.partition(values, values.size - at_least)[values.size - at_least]
            ids = np.flatnonzero(values >= threshold)
        return ids[np.argsort(-values[ids], kind="stable")]

    def exponents(self, ids: Ids, temperature: float) -> Floats:
        """(value - largest value) / temperature of some tokens, float64 ≤ 0."""
        with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to -inf, which is right
            return (self.values[ids].astype(np.float64) - self.top) / temperature

    def cumulative(self, n: int, temperature: float) -> Floats:
        """Running sum of the first `n` tokens' weights, float64."""
        return np.cumsum(np.exp(self.exponents(self.ids(n), temperature)))

    def weights(self, temperature: float) -> tuple[Floats, float]:
        """exp of the exponents of the whole vocabulary (V,) in id order, 0 for tokens kept out, and their sum."""
        known = self._weights.get(temperature)
        if known is None:
            weights = self._all_exponents(temperature)
            np.exp(weights, out=weights)
            if self._finite is not None:
                weights[~self._finite] = 0.0
            known = weights, float(weights.sum())
            kept = {t: held for t, held in self._weights.items() if t == 1.0}  # the raw ones, and the last others
            self._weights = {**kept, temperature: known}
        return known

    def _all_exponents(self, temperature: float) -> Floats:
        """`exponents` of the whole vocabulary (V,), nonsense for tokens kept out."""
        with np.errstate(over="ignore", invalid="ignore"):
            exponents = self.values.astype(np.float64)
            exponents -= self.top
            if temperature != 1:
                exponents /= temperature
        return exponents

    def entropy_at(self, temperature: float) -> float:
        """Entropy in nats of the whole vocabulary at a temperature: with weights w = exp(x), ln Σ w - Σ w x / Σ w."""
        weights, total = self.weights(temperature)
        exponents = self._all_exponents(temperature)
        if temperature < 1 or self._finite is not None:  # else all of them are finite
            np.maximum(exponents, _WEIGHTLESS, out=exponents)  # 0 · -inf is not 0
        if self._finite is not None:
            exponents[~self._finite] = 0.0
        exponents *= weights
        return max(0.0, float(np.log(total) - exponents.sum() / total))

    def log_probabilities(self, ids: Ids) -> Floats:
        """Natural logarithm of the raw probability of each of `ids`, over the whole vocabulary."""
        result: Floats = self.exponents(ids, 1.0) - np.log(self.weights(1.0)[1])
        return result

    @property
    def entropy(self) -> float:
        """Entropy of the raw distribution in nats."""
        if self._entropy is None:
            self._entropy = self.entropy_at(1.0)
        return self._entropy

    def rank(self, token_id: int) -> int:
        """Place of a token in the order, 0 first."""
        place = int(self._places_in(self._ids)[token_id])
        if place >= 0:
            return place
        value = self.values[token_id]
        above = np.count_nonzero(self.values > value) - np.count_nonzero(np.isposinf(self.values))
        return int(above + np.count_nonzero(self.values[:token_id] == value))

    def _places_in(self, ids: Ids) -> Ids:
        """Place of every token (V,) in what is sorted so far, -1 where it isn't."""
        if self._places is None or self._places[0] is not ids:
            places = np.full(self.values.size, -1, np.int64)
            places[ids] = np.arange(ids.size)
            self._places = ids, places
        return self._places[1]


def order_of(logits: NDArray[np.float32]) -> Order:
    """The candidate order of logits (V,). NaN and +inf are counted in `bad`; `apply` refuses such an order."""
    return Order(logits)


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """The next token's distribution after the sampler.

    `raw`: the order of the raw logits; `order`: that of the penalised ones (the same object without a penalty), whose
    first `kept` tokens are left; `total`: their weight at `temperature`.
    """

    raw: Order
    order: Order
    kept: int
    temperature: float
    total: float
    stages: tuple[StageInfo, ...]

    def ids(self, n: int | None = None) -> Ids:
        """The first `n` kept tokens (all of them without `n`) in candidate order."""
        n = self.kept if n is None else min(n, self.kept)
        if self.order is self.raw or self.kept == self.raw.n:
            return self.raw.ids(n)
        ids = self.order.ids(self.kept)
        return ids[np.lexsort((ids, -self.raw.values[ids]))][:n]

    def probabilities(self, ids: Ids) -> Floats:
        """Final probability of each of `ids` (n,); 0 where the sampler cut it or its logit is -inf."""
        last = self.order.ids(self.kept)[-1] if self.kept < self.order.n else None
        values = self.order.values[ids]
        if last is None:
            kept = np.isfinite(values)
        else:
            bound = self.order.values[last]
            kept = (values > bound) | ((values == bound) & (ids <= last))
        p = np.zeros(ids.shape)
        p[kept] = np.exp(self.order.exponents(ids[kept], self.temperature)) / self.total
        return p

    def cdf(self, n: int | None = None) -> Floats:
        """Cumulative final probability of the first `n` kept tokens, in candidate order, float64."""
        return np.minimum(self.cumulative(self.kept if n is None else n) / self.total, 1.0)

    def points(self, most: int, place: int) -> Ids:
        """After how many kept tokens (n,) a curve of the cumulative distribution has its points: after every one where
        there are at most `most`; else after every one of the first, then ever further apart, on a logarithmic axis
        evenly, up to the last, and right before and after the token at `place`."""
        if self.kept <= most:
            return np.arange(1, self.kept + 1)
        each = most // 2
        spread = np.geomspace(each, self.kept, most - each - 2)
        counts = np.concatenate((np.arange(1, each), np.round(spread).astype(np.int64), [max(place, 1), place + 1]))
        counts.sort()
        distinct: Ids = counts[np.diff(counts, prepend=0) > 0]
        return distinct

    def cumulative(self, n: int) -> Floats:
        """Running sum of the first `n` kept tokens' weights in candidate order, float64."""
        return np.cumsum(np.exp(self.order.exponents(self.ids(n), self.temperature)))

    @property
    def entropy(self) -> float:
        """Entropy of the final distribution in nats."""
        if self.kept == self.order.n:
            return self.order.entropy_at(self.temperature)
        return _entropy(np.exp(self.order.exponents(self.order.ids(self.kept), self.temperature)), self.total)


def _entropy(weights: Floats, total: float) -> float:
    p = weights[weights > 0] / total
    return max(0.0, float(-(p * np.log(p)).sum()))


@dataclass(kw_only=True)
class _Sieve:
    """The sampler under way: the first `kept` of `order` are left."""

    order: Order
    kept: int
    temperature: float = 1.0
    penalised: bool = False
    passed: list[tuple[str, Order, int]] = field(default_factory=list)

    def penalise(self, settings: SamplerSettings, previous: Iterable[int]) -> None:
        if self.penalised or settings.repetition_penalty == 1:
            return
        self.penalised = True
        values = penalised(self.order.values, settings.repetition_penalty, previous)
        if self.kept < self.order.n:  # a filter came first: what it cut stays out
            left = self.order.ids(self.kept)
            values, whole = np.full_like(values, -np.inf), values
            values[left] = whole[left]
        self.order = Order(values)

    def heat(self, settings: SamplerSettings, previous: Iterable[int]) -> None:
        if settings.greedy:
            # A penalty listed later counts all the same: it commutes with the scaling whose limit this is.
            self.penalise(settings, previous)
            self.kept = 1
        else:
            self.temperature = settings.temperature

    def keep_likeliest(self, settings: SamplerSettings) -> None:
        if settings.top_k:
            self.kept = min(self.kept, settings.top_k)

    def keep_nucleus(self, settings: SamplerSettings) -> None:
        if settings.top_p == 1:
            return
        whole = self.kept == self.order.n
        n = min(self.kept, _HEAD) if whole else self.kept
        cumulative = self.order.cumulative(n, self.temperature)
        total = self.order.weights(self.temperature)[1] if whole else float(cumulative[-1])
        if cumulative[-1] < settings.top_p * total and n < self.kept:
            cumulative = self.order.cumulative(self.kept, self.temperature)
        before = int(np.searchsorted(cumulative, settings.top_p * total, side="left"))
        self.kept = min(before + 1, self.kept)

    def keep_near_best(self, settings: SamplerSettings) -> None:
        if settings.min_p == 0:
            return
        n = min(self.kept, _HEAD)
        weights = np.exp(self.order.exponents(self.order.ids(n), self.temperature))
        if n < self.kept and weights[-1] >= settings.min_p:
            weights = np.exp(self.order.exponents(self.order.ids(self.kept), self.temperature))
        self.kept = max(1, int(np.searchsorted(-weights, -settings.min_p, side="right")))


def apply(order: Order, settings: SamplerSettings, previous: Iterable[int] = ()) -> Distribution:
    """The distribution `settings` make of a step's raw logits; `previous`: ids before it, for the penalty.

    A stage's mass is the share its tokens hold of the whole vocabulary's probability after penalty and temperature,
    wherever these two stand in the order. Greedy is the limit of ever smaller temperatures: the first token after the
    penalty (of equal ones the one with the smallest id, which is the one drawn) holds all of it. Raises BadLogitsError
    when logits are NaN or +inf or all -inf.
    """
    if order.bad or not order.n:
        raise BadLogitsError(order.bad, order.values.size)
    previous = list(previous) if settings.repetition_penalty != 1 else []
    sieve = _Sieve(order=order, kept=order.n)
    sieve.passed.append((VOCABULARY, sieve.order, sieve.kept))
    for stage in settings.order:
        match stage:
            case "repetition_penalty":
                sieve.penalise(settings, previous)
            case "temperature":
                sieve.heat(settings, previous)
            case "top_k":
                sieve.keep_likeliest(settings)
            case "top_p":
                sieve.keep_nucleus(settings)
            case "min_p":
                sieve.keep_near_best(settings)
        sieve.passed.append((stage, sieve.order, sieve.kept))
    temperature = 1.0 if settings.greedy else settings.temperature
    final = sieve.order
    if sieve.kept == final.n:
        total = final.weights(temperature)[1]
    else:
        total = float(np.exp(final.exponents(final.ids(sieve.kept), temperature)).sum())
    return Distribution(
        raw=order,
        order=final,
        kept=sieve.kept,
        temperature=temperature,
        total=total,
        stages=_stages(sieve, order, settings, previous),
    )


def _stages(sieve: _Sieve, raw: Order, settings: SamplerSettings, previous: list[int]) -> tuple[StageInfo, ...]:
    whole = raw
    if sieve.penalised:
        first = sieve.order if sieve.order.n == raw.n else None
        whole = first or Order(penalised(raw.values, settings.repetition_penalty, previous))
    masses: dict[tuple[int, int], float] = {}
    stages = []
    for name, order, kept in sieve.passed:
        key = (id(order), kept)
        if key not in masses:
            masses[key] = 1.0 if kept == raw.n else _mass(whole, order.ids(kept), settings)
        stages.append(StageInfo(name=name, kept=kept, mass=masses[key]))
    return tuple(stages)


def _mass(whole: Order, ids: Ids, settings: SamplerSettings) -> float:
    if settings.greedy:
        return float(whole.ids(1)[0] in ids)
    total = whole.weights(settings.temperature)[1]
    return min(1.0, float(np.exp(whole.exponents(ids, settings.temperature)).sum()) / total)


def penalised(values: NDArray[np.floating], penalty: float, previous: Iterable[int]) -> Floats:
    """Logits (V,) float64 with those of `previous` ids divided by `penalty` when positive, multiplied when negative.

    Source: Keskar et al. 2019, "CTRL", section 4.1, with the sign rule of the transformers library.
    """
    result = values.astype(np.float64)
    ids = np.unique(np.fromiter(previous, np.int64))
    ids = ids[(ids >= 0) & (ids < values.size)]
    with np.errstate(over="ignore"):
        changed = np.where(result[ids] > 0, result[ids] / penalty, result[ids] * penalty)
    result[ids] = np.where(np.isneginf(result[ids]), -np.inf, np.clip(changed, -_LARGEST, _LARGEST))
    return result


def draw(seed: int, position: int) -> float:
    """The number in [0, 1) that chooses the token at `position`: Philox4x64 with the seed as key, the position as
    counter (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3")."""
    return float(np.random.Generator(np.random.Philox(key=seed, counter=position)).random())


def pick(distribution: Distribution, u: float) -> int:
    """The token on which `u` in [0, 1) falls; at the very end, the last kept one."""
    index = place(distribution, u)
    return int(distribution.ids(index + 1)[index])


def place(distribution: Distribution, u: float) -> int:
    """How many kept tokens stand before the one on which `u` in [0, 1) falls."""
    target = u * distribution.total
    cumulative = distribution.cumulative(min(distribution.kept, _HEAD))
    if cumulative[-1] <= target and cumulative.size < distribution.kept:
        cumulative = distribution.cumulative(distribution.kept)
    return min(int(np.searchsorted(cumulative, target, side="right")), cumulative.size - 1)
