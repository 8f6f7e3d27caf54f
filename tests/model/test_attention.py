"""The attention spec's pure methods against a loop over heads and positions, and the fused path against them."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from model import attention
from model.attention import Span, attend
from model.attention_spec import AttentionSpec, alibi_slopes

H, K, D = 6, 2, 8


def spec(**fields: object) -> AttentionSpec:
    return AttentionSpec(**({"n_heads": H, "n_kv_heads": K, "scale": 0.4} | fields))  # type: ignore[arg-type]


SPECS = {
    "plain": spec(),
    "window": spec(window=5),
    "window of one": spec(window=1),
    "soft cap": spec(softcap=1.5),
    "soft cap and window": spec(softcap=1.5, window=4),
    "ALiBi": spec(slopes=alibi_slopes(H)),
    "ALiBi, scaled": spec(slopes=alibi_slopes(H), bias_scale=0.4, bias_bfloat16=True),
    "one KV head": spec(n_kv_heads=1),
    "every head its own": spec(n_kv_heads=H),
}


def by_hand(spec: AttentionSpec, q: Tensor, k: Tensor, v: Tensor, start: int) -> tuple[Tensor, Tensor]:
    """Weights (H, T, S) and z (H, T, D), number by number in float64."""
    n_queries, n_keys = q.shape[1], k.shape[1]
    weights = torch.zeros(spec.n_heads, n_queries, n_keys, dtype=torch.float64)
    for head, row in itertools.product(range(spec.n_heads), range(n_queries)):
        shared = head // (spec.n_heads // spec.n_kv_heads)
        at = start + row
        visible = [key for key in range(n_keys) if key <= at and (spec.window is None or at - key < spec.window)]
        scores = []
        for key in visible:
            score = float(q[head, row].double() @ k[shared, key].double()) * spec.scale
            if spec.slopes is not None:
                score += spec.slopes[head] * key * spec.bias_scale
            if spec.softcap is not None:
                score = spec.softcap * math.tanh(score / spec.softcap)
            scores.append(score)
        peak = max(scores)
        total = sum(math.exp(score - peak) for score in scores)
        for key, score in zip(visible, scores, strict=True):
            weights[head, row, key] = math.exp(score - peak) / total
    z = weights @ v.double().repeat_interleave(spec.n_heads // spec.n_kv_heads, 0)  # (H, T, D)
    return weights, z


def draw(spec: AttentionSpec, n_queries: int, n_keys: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(n_queries * 100 + n_keys)
    q = torch.randn(H, n_queries, D) * 2
    k, v = torch.randn(2, spec.n_kv_heads, n_keys, D) * 2
    return q, k, v


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(("start", "n_queries"), [(0, 9), (6, 3), (8, 1), (0, 1)])
def test_explicit_and_fused_equal_the_formula(name: str, start: int, n_queries: int) -> None:
    spec = SPECS[name]
    q, k, v = draw(spec, n_queries, start + n_queries)
    weights, z = by_hand(spec, q, k, v, start)
    q_pos, k_pos = torch.arange(start, start + n_queries), torch.arange(start + n_queries)
    explicit = spec.weights(q, k, q_pos, k_pos)
    # slopes rounded to bfloat16 differ in the third digit
    close = 1e-2 if spec.bias_bfloat16 else 1e-5
    torch.testing.assert_close(explicit.double(), weights, atol=close, rtol=0)
    torch.testing.assert_close(explicit.sum(-1), torch.ones(H, n_queries), atol=1e-5, rtol=0)
    assert not explicit[:, ~spec.mask(q_pos, k_pos)].any()
    span = Span(start=start, length=n_queries, rope_length=0, device=q.device)
    fused = attend(spec, q, k, v, span)
    torch.testing.assert_close(spec.mix(explicit, v), fused, atol=1e-5, rtol=0)
    torch.testing.assert_close(fused.double(), z, atol=10 * close, rtol=0)


def test_keys_after_the_queries_are_left_out() -> None:
    for spec in SPECS.values():
        q, k, v = draw(spec, 2, 9)
        span = Span(start=3, length=2, rope_length=0, device=q.device)
        torch.testing.assert_close(attend(spec, q, k, v, span), attend(spec, q, k[:, :5], v[:, :5], span))


def test_blocks_of_rows_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SPECS["soft cap and window"]
    q, k, v = draw(spec, 23, 30)
    span = Span(start=7, length=23, rope_length=0, device=q.device)
    whole = attend(spec, q, k, v, span)
    monkeypatch.setattr(attention, "BLOCK_SCORES", H * 30 * 4)
    torch.testing.assert_close(attend(spec, q, k, v, span), whole)


def test_masks_are_made_once_for_all_layers() -> None:
    span = Span(start=4, length=3, rope_length=0, device=torch.device("cpu"))
    assert span.additive_mask(spec(), torch.float32) is span.additive_mask(spec(scale=1.0), torch.float32)
    narrow = span.additive_mask(spec(window=2), torch.float32)
    assert narrow.shape == (3, 4) and narrow.isfinite().sum() == 6


def test_slopes_are_the_papers() -> None:
    assert alibi_slopes(8) == tuple(2.0**-n for n in range(1, 9))
    assert alibi_slopes(1) == (2.0**-8,)
    # twelve heads: those of eight, then every other of sixteen
    expected = [2.0**-n for n in range(1, 9)] + [2.0 ** (-n / 2) for n in (1, 3, 5, 7)]
    assert alibi_slopes(12) == pytest.approx(tuple(expected))


def test_half_precision_scores_are_float32() -> None:
    spec = SPECS["plain"]
    q, k, v = (tensor.bfloat16() for tensor in draw(spec, 4, 4))
    at = torch.arange(4)
    weights = spec.weights(q, k, at, at)
    assert weights.dtype == torch.float32
    assert torch.equal(weights, spec.weights(q.float(), k.float(), at, at))
    assert spec.mix(weights, v).dtype == torch.bfloat16
