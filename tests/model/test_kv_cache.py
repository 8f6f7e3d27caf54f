"""The cache of keys and values: growth, rollback, and bytes true to the allocation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from model.config import DecoderConfig
from model.errors import BadValueError
from model.kv_cache import FIRST_CAPACITY, GivenKV, KVCache
from model.rope import RopeSpec

CONFIG = DecoderConfig(
    family="llama",
    d_vocab=11,
    d_model=12,
    n_layers=3,
    n_heads=4,
    n_kv_heads=2,
    d_head=6,
    d_mlp=8,
    n_ctx=512,
    tied_head=True,
    rope=RopeSpec(theta=10_000.0, dim=6),
    sliding_window=16,
    layer_kinds=("full", "sliding", "full"),
)


def fill(cache: KVCache, *lengths: int) -> tuple[Tensor, Tensor]:
    """Appends random tokens to every layer; all keys and values so far, (L, K, S, D)."""
    for length in lengths:
        for layer in range(CONFIG.n_layers):
            k, v = torch.randn(2, 2, length, 6).to(cache.dtype)
            all_k, all_v = cache.append(layer, k, v)
            assert torch.equal(all_k[:, cache.length :], k) and torch.equal(all_v[:, cache.length :], v)
        cache.advance(length)
    layers = range(CONFIG.n_layers)
    return torch.stack([cache.k(layer) for layer in layers]), torch.stack([cache.v(layer) for layer in layers])


def test_growth_keeps_what_was_there() -> None:
    cache = KVCache(CONFIG, "cpu", torch.float32)
    assert cache.length == 0 and cache.bytes_allocated() == 0
    k, v = fill(cache, 5)
    assert cache.capacity == FIRST_CAPACITY
    grown_k, grown_v = fill(cache, FIRST_CAPACITY, 1)
    assert cache.length == FIRST_CAPACITY + 6 and cache.capacity == 2 * FIRST_CAPACITY
    assert torch.equal(grown_k[:, :, :5], k) and torch.equal(grown_v[:, :, :5], v)


def test_room_asked_for_is_allocated_once() -> None:
    cache = KVCache(CONFIG, "cpu", torch.float32)
    cache.ensure(300)
    at = cache.append(0, torch.zeros(2, 1, 6), torch.zeros(2, 1, 6))[0].data_ptr()
    fill(cache, 299)
    assert cache.capacity == 300 and cache.k(0).data_ptr() == at


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_bytes_are_true(dtype: torch.dtype) -> None:
    cache = KVCache(CONFIG, "cpu", dtype)
    k, _ = fill(cache, 20)
    assert k.dtype == dtype
    assert cache.bytes_used(1) == 2 * 2 * 20 * 6 * dtype.itemsize
    assert cache.bytes_used() == 3 * cache.bytes_used(1)
    assert cache.bytes_allocated(2) == 2 * 2 * FIRST_CAPACITY * 6 * dtype.itemsize
    assert cache.bytes_allocated() == sum(cache.bytes_allocated(layer) for layer in range(3))
    # a serving cache would keep 16 of the sliding layer's 20
    assert cache.bytes_served(1) == cache.bytes_used(1) * 16 // 20
    assert cache.bytes_served() == 2 * cache.bytes_used(0) + cache.bytes_served(1)


def test_a_pass_that_stops_half_way_leaves_nothing() -> None:
    cache = KVCache(CONFIG, "cpu", torch.float32)
    before, _ = fill(cache, 7)
    cache.append(0, torch.ones(2, 3, 6), torch.ones(2, 3, 6))
    assert cache.length == 7 and torch.equal(cache.k(0), before[0])


def test_truncate_forgets_and_keeps_the_memory() -> None:
    cache = KVCache(CONFIG, "cpu", torch.float32)
    k, _ = fill(cache, 30)
    allocated = cache.bytes_allocated()
    cache.truncate(12)
    assert cache.length == 12 and torch.equal(cache.k(1), k[1, :, :12])
    assert cache.bytes_allocated() == allocated
    for wrong in (-1, 13):
        with pytest.raises(BadValueError, match=rf"tokens to keep is {wrong}; expected 0 to 12"):
            cache.truncate(wrong)


def test_more_tokens_than_appended_are_refused() -> None:
    cache = KVCache(CONFIG, "cpu", torch.float32)
    with pytest.raises(BadValueError, match="tokens to advance is 1; expected at most 0"):
        cache.advance(1)


def test_views_are_of_one_memory_and_normal_tensors() -> None:
    cache = KVCache(replace(CONFIG, layer_kinds=()), "cpu", torch.float32)
    with torch.inference_mode():
        cache.append(0, torch.ones(2, 3, 6), torch.ones(2, 3, 6))
        for layer in (1, 2):
            cache.append(layer, torch.ones(2, 3, 6), torch.ones(2, 3, 6))
    cache.advance(3)
    cache.k(0).mul_(2)  # outside inference mode: allowed on normal tensors only
    assert torch.equal(cache.k(0), torch.full((2, 3, 6), 2.0))


def test_given_keys_and_values_are_kept() -> None:
    k, v = torch.randn(2, 2, 9, 6)
    given = GivenKV(k, v)
    assert all(a is b for a, b in zip(given.append(1, torch.zeros(0), torch.zeros(0)), (k, v), strict=True))
