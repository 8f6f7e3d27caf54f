"""Rotary embedding as it is shown, from the run's own q and k, against the reference's rotation and plain formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from model.errors import BadValueError
from model.protocol.rope_requests import GetRope
from model.protocol.values import SamplerSettings
from model.rope import RopeSpec
from model.run import Run
from model.views.rope import rope_reply
from tests.model.tiny import llama, made, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)


def run_with(**fields: Any) -> Run:
    run = run_of(made(**fields), random_ids(40))
    run.step(SAMPLED)
    return run


def test_pairs_before_and_after_are_those_of_the_reference() -> None:
    judge, model = llama()
    run = run_of(model, random_ids(30))
    run.step(SAMPLED)
    whole = judge.run(list(run.ids))[0]
    reply, arrays = rope_reply(run, GetRope(layer=1, head=3, query=28, key=11))
    q, k = whole.q[1][3, 28], whole.k[1][1, 11]
    np.testing.assert_allclose(arrays["q_after"], torch.stack((q[:4], q[4:]), 1), atol=1e-4)
    np.testing.assert_allclose(arrays["k_after"], torch.stack((k[:4], k[4:]), 1), atol=1e-4)
    assert reply.kv_head == 1 and reply.raw == pytest.approx((q @ k).item(), abs=1e-4)
    assert arrays["contribution"].sum() + reply.rest == pytest.approx(reply.raw, abs=1e-5) and reply.rest == 0
    inv_freq = 10_000.0 ** (-np.arange(0, 8, 2) / 8)
    np.testing.assert_allclose(arrays["inv_freq"], inv_freq, rtol=1e-6)
    np.testing.assert_allclose(arrays["wavelength"], 2 * math.pi / inv_freq, rtol=1e-6)
    for side, position in (("q", 28), ("k", 11)):
        before = arrays[f"{side}_before"][:, 0] + 1j * arrays[f"{side}_before"][:, 1]
        after = before * np.exp(1j * inv_freq * position)
        np.testing.assert_allclose(arrays[f"{side}_after"], np.stack((after.real, after.imag), 1), atol=1e-4)
        np.testing.assert_allclose(arrays[f"{side}_angle"], inv_freq * position, rtol=1e-6)
    assert 0 <= reply.shift_error < 1e-5
    assert reply.facts is not None and reply.facts.layout == "half-split" and reply.scale == 8**-0.5


def test_the_curve_goes_through_the_score_of_the_real_distance() -> None:
    run = run_with()
    reply, arrays = rope_reply(run, GetRope(layer=0, head=2, query=35, key=20))
    assert reply.curves[0] == "model" and reply.curves[-1] == "none"
    assert "unscaled" not in reply.curves and len(reply.curves) == len(arrays["curve_scores"])
    assert arrays["distance"].tolist() == list(range(41))
    score = reply.raw * reply.scale
    assert arrays["curve_scores"][0, 15] == pytest.approx(score, abs=1e-5)
    assert np.ptp(arrays["curve_scores"][-1]) == 0
    np.testing.assert_allclose(arrays["curve_scores"][:, 0], arrays["curve_scores"][-1, 0], atol=1e-5)  # no turn at 0
    before = (arrays["q_before"] * arrays["k_before"]).sum()
    assert arrays["curve_scores"][-1, 0] == pytest.approx(before * reply.scale, abs=1e-5)
    slow = arrays["curve_scores"][reply.curves.index("linear 4")]
    np.testing.assert_allclose(slow[::4], arrays["curve_scores"][0, : len(slow[::4])], atol=1e-4)
    assert arrays["sinusoidal"][0] == pytest.approx(1, abs=1e-6) and arrays["sinusoidal"].min() < 0.7
    far = rope_reply(run, GetRope(layer=0, head=2, query=35, key=20, reach=4000, distances=100))[1]
    assert far["distance"][-1] == 4000 and len(far["distance"]) == 101
    own = far["distance"].tolist().index(15)  # between two of the even points: the curve has it none the less
    assert far["curve_scores"][0, own] == pytest.approx(score, abs=1e-5)


def test_part_of_a_head_may_keep_still() -> None:
    run = run_with(rope=RopeSpec(theta=100.0, dim=4))
    reply, arrays = rope_reply(run, GetRope(layer=0, head=2, query=35, key=20))
    assert arrays["q_before"].shape == (2, 2) and reply.rest != 0
    assert arrays["contribution"].sum() + reply.rest == pytest.approx(reply.raw, abs=1e-4)


def test_a_scaled_model_shows_itself_and_the_unscaled() -> None:
    rope = RopeSpec(theta=10_000.0, dim=8, kind="yarn", factor=4.0, original_ctx=64, attention_factor=1.1)
    run = run_with(rope=rope)
    reply, arrays = rope_reply(run, GetRope(layer=0, head=2, query=35, key=20))
    assert reply.facts is not None and (reply.facts.kind, reply.facts.factor) == ("yarn", 4.0)
    assert "unscaled" in reply.curves
    assert arrays["curve_scores"][0, 15] == pytest.approx(reply.raw * reply.scale, abs=1e-4)
    np.testing.assert_allclose(arrays["inv_freq"], rope.inv_freq(), rtol=1e-6)
    assert reply.shift_error < 1e-5


def test_other_kinds_of_positions_show_themselves() -> None:
    run = run_with(positions="alibi", rope=None)
    reply, arrays = rope_reply(run, GetRope(layer=0, head=1, query=35, key=20))
    assert reply.positions == "alibi" and reply.slope == 2.0**-4 and reply.curves == ()
    np.testing.assert_allclose(arrays["bias"], -reply.slope * arrays["distance"], rtol=1e-6)
    run = run_with(positions="learned", rope=None, n_positions_table=256)
    reply, arrays = rope_reply(run, GetRope(layer=0, head=1, query=35, key=20))
    assert reply.positions == "learned" and arrays["similarity"].shape == (41,)
    assert arrays["similarity"][35] == pytest.approx(1, abs=1e-6) == arrays["similarity"].max()
    omega = 10_000.0 ** (-np.arange(0, 32, 2) / 32)
    fixed = np.cos((np.arange(41) - 35)[:, None] * omega).mean(1)
    np.testing.assert_allclose(arrays["sinusoidal"], fixed, atol=1e-5)
    reply, arrays = rope_reply(run_with(positions="none", rope=None), GetRope(layer=0, head=1, query=35, key=20))
    assert reply.positions == "none" and arrays == {} and math.isnan(reply.shift_error)


@pytest.mark.parametrize("changes", [{"layer": 3}, {"head": 4}, {"query": 41}, {"key": -1}])
def test_what_is_not_there_is_refused(changes: dict[str, int]) -> None:
    fields = {"layer": 0, "head": 1, "query": 35, "key": 20} | changes
    with pytest.raises(BadValueError):
        rope_reply(run_with(), GetRope(**fields))
