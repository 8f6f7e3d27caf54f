"""Rotary frequencies and the turn itself, against the paper's formula and transformers' tables."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from model.errors import BadValueError
from model.rope import MAX_CTX, ROPE_KINDS, RopeSpec

PAIRS = torch.arange(8)


def test_a_pair_turns_by_position_times_frequency() -> None:
    # arXiv:2104.09864, eq. 34, pair by pair in complex numbers
    x = torch.randn(3, 5, 16, dtype=torch.float32)
    positions = torch.tensor([0, 1, 2, 70, 4095])
    turned = RopeSpec(theta=10_000.0, dim=16).rotation(positions, length=4096).turn(x)
    angle = positions[:, None].double() * 10_000.0 ** (-2 * PAIRS.double() / 16)  # (T, D/2)
    expected = torch.complex(x[..., :8].double(), x[..., 8:].double()) * torch.exp(1j * angle)
    # float32 angles near 4,095 radians are off by up to 2.4e-4
    torch.testing.assert_close(turned[..., :8].double(), expected.real, atol=2e-3, rtol=0)
    torch.testing.assert_close(turned[..., 8:].double(), expected.imag, atol=2e-3, rtol=0)
    torch.testing.assert_close(turned[:, :3, :8].double(), expected.real[:, :3], atol=1e-6, rtol=0)


def test_the_rest_of_a_head_stays() -> None:
    x = torch.randn(2, 3, 16)
    turned = RopeSpec(theta=100.0, dim=6).rotation(torch.arange(3), length=3).turn(x)
    assert torch.equal(turned[..., 6:], x[..., 6:])
    assert not torch.equal(turned[:, 1:, :6], x[:, 1:, :6])


@given(shift=st.integers(0, 100_000), distance=st.integers(0, 500))
def test_scores_depend_on_distance_only(shift: int, distance: int) -> None:
    q, k = torch.randn(2, 1, 1, 32, generator=torch.Generator().manual_seed(0))
    spec = RopeSpec(theta=10_000.0, dim=32)

    def score(at: int) -> float:
        rotation = spec.rotation(torch.tensor([at + distance, at]), length=at + distance + 1)
        turned = rotation.turn(torch.cat((q, k), 1))
        return float(turned[0, 0] @ turned[0, 1])

    # float32 angles: an error of position · 2^-24 in the fastest pair
    assert score(shift) == pytest.approx(score(0), abs=1e-4 + 2e-6 * (shift + distance))


def test_half_precision_turns_in_float32() -> None:
    x = torch.randn(2, 4, 16).bfloat16()
    rotation = RopeSpec(theta=10_000.0, dim=16).rotation(torch.arange(4000, 4004), length=4004)
    assert rotation.cos.dtype == torch.float32
    turned = rotation.turn(x)
    assert turned.dtype == torch.bfloat16
    assert torch.equal(turned, rotation.turn(x.float()).bfloat16())


SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 4.0},
    "yarn": {"factor": 8.0, "original_max_position_embeddings": 512, "beta_fast": 16.0, "beta_slow": 2.0},
    "yarn, not truncated": {"factor": 8.0, "original_max_position_embeddings": 512, "truncate": False},
    "yarn, mscale": {"factor": 8.0, "original_max_position_embeddings": 512, "mscale": 0.7, "mscale_all_dim": 1.0},
    "llama3": {
        "factor": 32.0,
        "original_max_position_embeddings": 512,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    },
    "longrope": {
        "original_max_position_embeddings": 512,
        "short_factor": [1.0 + i / 10 for i in range(16)],
        "long_factor": [4.0 + i for i in range(16)],
    },
}


@pytest.mark.parametrize("name", SCALINGS)
@pytest.mark.parametrize("length", [1, 512, 513, 4096, 5000])
def test_frequencies_are_transformers(name: str, length: int) -> None:
    from model.families.reading import ConfigReader, read_rope

    kind = name.split(",", maxsplit=1)[0]
    scaling = {"rope_type": kind, "rope_theta": 5_000.0, **SCALINGS[name]}
    theirs = LlamaConfig(head_dim=32, max_position_embeddings=4096, rope_parameters=dict(scaling))
    spec = read_rope(ConfigReader({"rope_parameters": scaling}), 32, 4096)
    inv_freq, attention = ROPE_INIT_FUNCTIONS[kind](theirs, torch.device("cpu"), seq_len=length)
    torch.testing.assert_close(spec.inv_freq(length), inv_freq, rtol=2e-6, atol=0)
    assert spec.attention_factor == pytest.approx(attention)
    assert spec.changes_with_length is (kind in {"dynamic", "longrope"})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"theta": 0.0}, "rope theta is 0.0; expected a finite number above 0."),
        ({"theta": math.nan}, "rope theta is nan; expected a finite number above 0."),
        ({"dim": 7}, "rotary dimensions is 7; expected an even number from 2 (RoPE turns pairs)."),
        (
            {"dim": 2**62},
            "rotary dimensions is 4611686018427387904; expected an even number from 2 (RoPE turns pairs).",
        ),
        ({"theta": 1e308}, "rope theta is 1e+308; expected a number from 1e-09 to 1e+12."),
        ({"beta_slow": 5e-324}, "rope beta_slow is 5e-324; expected a number from 1e-09 to 1e+12."),
        (
            {"original_ctx": 2**62},
            "rope original context is 4611686018427387904; expected a whole number from 0 to 100000000.",
        ),
        ({"original_ctx": -1}, "rope original context is -1; expected a whole number from 0 to 100000000."),
        ({"factor": math.inf}, "rope factor is inf; expected a finite number above 0."),
        ({"kind": "cubic"}, "rope type is 'cubic'; expected one of default, linear, dynamic, yarn, llama3, longrope."),
        ({"kind": "llama3"}, "rope original context is 0; expected a whole number from 1."),
        ({"kind": "longrope", "original_ctx": 8}, "length of rope short_factor is 0; expected 4, one per pair."),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(BadValueError) as caught:
        RopeSpec(**({"theta": 10_000.0, "dim": 8} | fields))
    assert str(caught.value) == says


@pytest.mark.parametrize("kind", ROPE_KINDS)
@pytest.mark.parametrize("name", ["theta", "factor", "beta_fast", "beta_slow", "attention_factor"])
@pytest.mark.parametrize("value", [1e-9, 1e12])
def test_frequencies_at_the_edges_of_every_range_are_numbers_or_a_refusal(kind: Any, name: str, value: float) -> None:
    pairs = {"short_factor": (1.0, 2.0), "long_factor": (1.0, 2.0)}
    fields: dict[str, Any] = {"theta": 1e4, "dim": 4, "original_ctx": MAX_CTX, **pairs, name: value}
    with contextlib.suppress(BadValueError):
        assert RopeSpec(kind=kind, **fields).inv_freq(MAX_CTX).shape == (2,)
