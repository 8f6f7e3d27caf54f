"""The KV panel's numbers: bytes measured, contents as they are, K before rotation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model import recompute
from model.config import LIMITS
from model.costs import bytes_read, flops
from model.errors import BadValueError
from model.export.activations import _raw_blocks
from model.protocol.kv_requests import GetKvContents
from model.protocol.values import SamplerSettings
from model.views.heat import shrink
from model.views.kv import kv_contents, kv_contents_reply, kv_reply, recompute_reply
from tests.model.tiny import llama, made, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)


def test_bytes_are_measured_and_equal_the_formula() -> None:
    run = run_of(made(), random_ids(60), chunk=25)
    run.generate(10, SAMPLED)
    reply, arrays = kv_reply(run)
    assert reply.used == reply.formula == 70 * reply.bytes_per_token == arrays["used"].sum()
    assert reply.allocated == run.cache.bytes_allocated() == arrays["allocated"].sum() == arrays["grown_to"][-1]
    assert arrays["grown_at"].tolist() == [0, 67]  # the prompt's room and an eighth, then doubled
    assert reply.served == reply.used and (arrays["windows"] == 0).all()
    assert (reply.bytes_per_token_mha, reply.bytes_per_token_mqa) == (
        2 * reply.bytes_per_token,
        reply.bytes_per_token // 2,
    )
    assert reply.tokens_left_context == 186
    assert reply.weights_matrix_bytes == 3 * 4 * 70 * 70 * 4
    assert reply.prefill.tokens == 60 and reply.prefill.ms == run.prefill_ms
    assert reply.decode.ms == np.median([run.nodes[node].ms for node in run.path])
    weights = bytes_read(run.config, 4)
    assert weights == (run.model.info.parameters - 60 * 32) * 4  # of the embedding one row
    assert reply.prefill.bytes_read == 3 * weights + (25 + 50 + 60) * reply.bytes_per_token
    assert reply.decode.bytes_read == weights + 66 * reply.bytes_per_token
    assert reply.recompute_flops == flops(run.config, 0, 71) > 20 * reply.decode.flops


def test_tokens_left_are_those_the_budget_takes() -> None:
    run = run_of(made(), random_ids(10), budget_bytes=150_000)
    left = kv_reply(run)[0].tokens_left_memory
    taken = 0
    while run.store.keeps_queries(2) and taken < 2 * left:
        run.generate(1, SAMPLED, stop_at_end_of_text=False)
        taken += 1
    assert left - 64 <= taken <= left + 1  # buffers grow 64 positions at a time


def test_a_sliding_window_is_served_with_less() -> None:
    run = run_of(made(layer_kinds=("sliding", "full", "sliding"), sliding_window=7), random_ids(20))
    reply, arrays = kv_reply(run)
    assert arrays["windows"].tolist() == [7, 0, 7]
    assert arrays["served"].tolist() == [arrays["used"][0] * 7 // 20, arrays["used"][1], arrays["used"][2] * 7 // 20]
    assert reply.served == arrays["served"].sum() < reply.used


def test_the_widest_window_a_model_may_name_is_told_as_it_is() -> None:
    widest = LIMITS["sliding_window"][1]
    run = run_of(made(layer_kinds=("sliding", "full", "sliding"), sliding_window=widest), random_ids(20))
    reply, arrays = kv_reply(run)
    assert arrays["windows"].tolist() == [widest, 0, widest] and reply.served == reply.used
    assert reply.decode.tokens == 0


def test_contents_are_the_cache_s_and_k_before_rotation_turns_into_them() -> None:
    judge, model = llama()
    run = run_of(model, random_ids(30))
    run.generate(4, SAMPLED)
    whole = judge.run(list(run.ids))[0]
    for layer in range(3):
        for head in range(2):
            k = kv_contents(run, layer, head, "k", (0, 34))
            np.testing.assert_allclose(k, whole.k[layer][head], atol=1e-4)
            before = torch.from_numpy(kv_contents(run, layer, head, "k_unrotated", (0, 34)))
            rope = run.config.rope_of(layer)
            assert rope is not None
            turned = rope.rotation(torch.arange(34), length=34).turn(before)
            np.testing.assert_allclose(turned, k, atol=1e-4)
            assert np.array_equal(kv_contents(run, layer, head, "v", (5, 9)), run.v(layer)[head, 5:9])
    plain = run_of(made(positions="alibi", rope=None), random_ids(9))
    assert np.array_equal(kv_contents(plain, 0, 0, "k_unrotated", (0, 9)), kv_contents(plain, 0, 0, "k", (0, 9)))


@pytest.mark.parametrize("block", [8, 512])
def test_a_key_made_again_has_the_same_bits_wherever_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(recompute, "BLOCK_ROWS", block)
    run = run_of(made(d_model=192, d_head=48), random_ids(30))
    run.generate(4, SAMPLED)
    whole = kv_contents(run, 1, 1, "k_unrotated", (0, 34))
    for begin, end in [(at, at + 1) for at in range(34)] + [(3, 11), (7, 34), (16, 24)]:
        assert np.array_equal(kv_contents(run, 1, 1, "k_unrotated", (begin, end)), whole[begin:end])
    exported = next(_raw_blocks(run, "layers.1.attn.k", (2, 34, 48)))
    assert np.array_equal(exported[1], whole)


def test_contents_as_pixels() -> None:
    run = run_of(made(), random_ids(40))
    run.step(SAMPLED)
    message = GetKvContents(layer=1, kv_head=1, what="k_unrotated")
    reply, arrays = kv_contents_reply(run, message)
    assert reply.recomputed and not reply.pooled and reply.rows == (0, 41) and reply.dims == (0, 8)
    assert reply.low == -reply.high == -np.abs(arrays["values"]).max() and reply.boundary == 40
    small, pixels = kv_contents_reply(run, GetKvContents(layer=1, kv_head=1, what="v", height=10, width=4))
    assert small.pooled and not small.recomputed and pixels["pixels"].shape == (10, 4) and "values" not in pixels
    for message in (GetKvContents(layer=3, kv_head=0), GetKvContents(layer=0, kv_head=2)):
        with pytest.raises(BadValueError):
            kv_contents_reply(run, message)


def test_recomputing_is_measured_and_changes_nothing() -> None:
    run = run_of(made(), random_ids(40))
    run.step(SAMPLED)
    before = run.k(0).clone()
    reply = recompute_reply(run)
    assert reply.tokens == 41 and reply.ms > 0 and reply.cached_ms > 0
    assert reply.flops == flops(run.config, 0, 41) and reply.cached_flops == flops(run.config, 40, 41)
    assert torch.equal(run.k(0), before) and run.length == 41


@settings(deadline=None)
@given(shape=st.tuples(st.integers(1, 40), st.integers(1, 40)), size=st.tuples(st.integers(1, 45), st.integers(1, 45)))
def test_a_small_picture_keeps_the_strongest(shape: tuple[int, int], size: tuple[int, int]) -> None:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    small = shrink(values, *size)
    h, w = small.shape
    assert (h, w) == (min(shape[0], size[0]), min(shape[1], size[1]))
    ys, xs = np.arange(shape[0]) * h // shape[0], np.arange(shape[1]) * w // shape[1]
    for y in range(h):
        for x in range(w):
            cells = values[np.ix_(ys == y, xs == x)]
            assert small[y, x] == cells.flat[np.abs(cells).argmax()]
