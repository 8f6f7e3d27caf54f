"""The self-check: silent on a sound run, and each row fails on the fault it is there for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from model import sampling
from model.attention_spec import AttentionSpec
from model.config import MoeSpec
from model.loading import LoadedModel
from model.protocol.values import SamplerSettings
from model.rope import Rotation
from model.run import Run
from model.store import Buffer
from model.transformer import Decoder
from model.views import attention_exact, self_check
from tests.model.tiny import llama, made, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)
ALL = ["captured", "cached", "fused", "shown", "sums", "rope", "sampler", "blocks", "keys"]


def sound(model: LoadedModel) -> Run:
    run = run_of(model, random_ids(24), chunk=10)
    run.generate(5, SAMPLED)
    return run


def failing(run: Run, *, quick: bool = False) -> list[str]:
    return [row.name for row in self_check.self_check(run, quick=quick) if not row.ok]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"layer_kinds": ("sliding", "full", "sliding"), "sliding_window": 7},
        {"attn_softcap": 3.0, "post_norm": True},
        {"moe": MoeSpec(n_experts=6, top_k=2, d_expert=24, layers=(1, 2))},
        {"parallel_residual": True, "shared_norm": True, "norm": "layer", "gated_mlp": False, "activation": "gelu"},
    ],
)
def test_every_row_holds_on_a_sound_run(fields: dict[str, Any]) -> None:
    run = sound(made(**fields))
    rows = self_check.self_check(run, quick=False)
    assert [row.name for row in rows] == ALL
    for row in rows:
        assert row.ok and 0 <= row.error <= row.bound and row.title and row.detail, row
    assert [row.name for row in self_check.self_check(run)] == ALL[2:]


def test_rows_that_do_not_apply_are_left_out() -> None:
    for positions in ("alibi", "none"):
        rows = self_check.self_check(sound(made(positions=positions, rope=None)), quick=False)
        assert [row.name for row in rows] == [name for name in ALL if name != "rope"]
        assert all(row.ok for row in rows)


def test_half_precision_holds_its_own_bounds() -> None:
    model = made()
    for dtype in (torch.bfloat16, torch.float16):
        decoder = Decoder(model.decoder.config)
        decoder.load_state_dict({name: w.to(dtype) for name, w in model.decoder.state_dict().items()}, assign=True)
        rows = self_check.self_check(
            sound(LoadedModel(decoder=decoder, tokenizer=model.tokenizer, info=model.info)), quick=False
        )
        assert all(row.ok for row in rows), [row for row in rows if not row.ok]


def test_the_doctor_makes_its_own_run() -> None:
    rows = self_check.doctor(llama()[1])
    assert [row.name for row in rows] == ALL and all(row.ok for row in rows)
    assert all(row.ok for row in self_check.doctor(llama(max_position_embeddings=9)[1]))


def test_capturing_that_touches_an_activation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sound(made())
    write = Buffer.write

    def spoil(self: Buffer, start: int, rows: Tensor) -> None:
        write(self, start, rows)
        rows.mul_(1.001)

    monkeypatch.setattr(Buffer, "write", spoil)
    assert failing(run) == ["captured"]


def test_a_cache_that_is_not_what_the_text_says_is_found() -> None:
    run = sound(made())
    with torch.inference_mode():
        run.v(0)[:, 3] += 1.0
    run.generate(1, SAMPLED)
    assert "cached" in failing(run)


def test_fused_attention_of_another_formula_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sound(made())
    original = torch.nn.functional.scaled_dot_product_attention

    def wrong(*args: Any, **options: Any) -> Tensor:
        return original(*args, **(options | {"scale": options["scale"] * 1.05}))

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", wrong)
    assert "fused" in failing(run, quick=True)


def test_weights_shown_that_were_not_used_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sound(made())
    original = attention_exact.stage_rows

    def shifted(*args: Any) -> tuple[Tensor, Tensor]:
        weights, visible = original(*args)
        return weights.roll(1, -1), visible

    monkeypatch.setattr(self_check, "stage_rows", shifted)
    assert "shown" in failing(run, quick=True)
    assert "sums" in failing(run, quick=True)  # some weight fell on a hidden key


def test_rows_that_do_not_sum_to_one_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sound(made())
    normalize = AttentionSpec.normalize_
    monkeypatch.setattr(AttentionSpec, "normalize_", staticmethod(lambda *args: normalize(*args) * 1.001))
    assert "sums" in failing(run, quick=True)


def test_a_rotation_that_is_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sound(made())

    def wrong(self: Rotation, x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return x * self.cos + torch.cat((second, first), -1) * self.sin * 0.99

    monkeypatch.setattr(Rotation, "turn", wrong)
    assert "rope" in failing(run, quick=True)


@pytest.mark.parametrize("stage", ["keep_nucleus", "keep_likeliest", "keep_near_best", "penalise"])
def test_a_sampler_stage_off_by_one_is_found(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = sound(made())
    original: Callable[..., None] = getattr(sampling._Sieve, stage)

    def wrong(self: Any, settings: SamplerSettings, *rest: Any) -> None:
        before = self.kept
        original(self, settings, *rest)
        if stage == "penalise":
            self.order = sampling.Order(np.asarray(self.order.values) + np.arange(61) * 1e-3)
        elif self.kept < before:
            self.kept += 1

    monkeypatch.setattr(sampling._Sieve, stage, wrong)
    assert failing(run, quick=True) == ["sampler"]


def test_where_frequencies_changed_on_the_way_decoding_is_not_compared_with_one_pass() -> None:
    scaling = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "original_max_position_embeddings": 26,
        "short_factor": [1.0, 1.1, 1.2, 1.3],
        "long_factor": [1.5, 2.0, 4.0, 6.0],
        "factor": 4.0,
    }
    rows = self_check.self_check(sound(llama(max_position_embeddings=104, rope_scaling=scaling)[1]), quick=False)
    assert [row.name for row in rows] == [name for name in ALL if name != "cached"]
    assert all(row.ok for row in rows)


def test_a_residual_that_is_not_the_run_s_is_found() -> None:
    run = sound(made())
    with torch.inference_mode():
        run.resid(2)[-3] *= 1.01
    assert "blocks" in failing(run, quick=True)


def test_stored_keys_of_another_text_are_found() -> None:
    run = sound(made())
    with torch.inference_mode():
        run.k(1)[0, -2] += 0.05
    assert "keys" in failing(run, quick=True)


def test_numbers_that_are_none_never_pass() -> None:
    run = sound(made())
    with torch.inference_mode():
        run.resid(2)[-1] = torch.nan
    assert "blocks" in failing(run, quick=True)
