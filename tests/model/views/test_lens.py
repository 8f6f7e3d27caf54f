"""The logit lens against the reference's residuals, norm and head; contributions that add up to the logit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from model.errors import BadValueError
from model.protocol.lens_requests import GetAttribution, GetLens, GetRankPath
from model.protocol.values import SamplerSettings
from model.views.lens import attribution_reply, lens_layers, lens_part, lens_reply, lens_rows, rank_path_reply
from tests.model.tiny import llama, made, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)


def test_every_layer_says_what_the_reference_s_head_says_of_it() -> None:
    judge, model = llama()
    run = run_of(model, random_ids(20))
    run.generate(2, SAMPLED)
    whole = judge.run(list(run.ids))[0]
    rows = lens_rows(run, GetLens(rows=(5, 22)))
    for layer in lens_layers(run, GetLens()):
        log_p = judge.model.lm_head(judge.model.model.norm(whole.resid[layer])).log_softmax(-1)[5:22]
        part, arrays = lens_part(run, layer, rows)
        assert part.layer == layer and len(part.pieces) == 17
        assert arrays["ids"].tolist() == log_p.argmax(-1).tolist()
        np.testing.assert_allclose(arrays["probs"], log_p.exp().amax(-1), atol=1e-4)
        np.testing.assert_allclose(arrays["entropy"], -(log_p.exp() * log_p).sum(-1), atol=1e-3)
    reply = lens_reply(run, GetLens())
    assert reply.rows == (0, 22) and reply.layers == 4
    position, token = 9, 17
    path, arrays = rank_path_reply(run, GetRankPath(position=position, token_id=token))
    for layer in range(4):
        row = judge.model.lm_head(judge.model.model.norm(whole.resid[layer]))[position].log_softmax(-1)
        assert arrays["logprob"][layer] == pytest.approx(row[token].item(), abs=1e-3)
        assert arrays["rank"][layer] == int((row > row[token]).sum())
    assert path.token.rank == arrays["rank"][-1] and path.token.id == token


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tied_head": True, "norm_unit_offset": True, "embed_scale": 3.0, "logit_scale": 0.5},
        {"norm": "layer", "head_bias": True, "parallel_residual": True, "shared_norm": True},
        {"post_norm": True, "residual_scale": 0.6},
    ],
)
def test_contributions_add_up_to_the_logit(fields: dict[str, Any]) -> None:
    run = run_of(made(**fields), random_ids(20))
    node = run.step(SAMPLED)
    for position, token in ((7, 3), (20, 50)):
        reply, arrays = attribution_reply(run, GetAttribution(position=position, token_id=token))
        logits = run.decoder.unembed(run.resid(3)[position, None])[0]
        assert reply.logit == pytest.approx(logits[token].item(), abs=1e-4)
        parts = reply.embedding + reply.bias + arrays["attention"].sum() + arrays["feed_forward"].sum()
        assert parts == pytest.approx(reply.logit, abs=2e-4)
        assert abs(reply.unexplained) < 2e-4
        assert np.abs(arrays["attention"]).max() > 0.01 and arrays["feed_forward"].shape == (3,)
    assert reply.logit == run.logits(node.id)[50]


def test_what_one_block_adds_is_its_direct_effect() -> None:
    run = run_of(made(), random_ids(12))
    with torch.inference_mode():
        final = run.resid(3)[11].clone()
        scale = (final.square().mean() + run.config.norm_eps).sqrt()
        seen: list[torch.Tensor] = []
        with run.decoder.hooks({"layers.1.mlp.out": lambda out, _point: seen.append(out)}):
            run.decoder(torch.tensor(run.ids), run.decoder.new_cache())
        without = (final - seen[0][11]) / scale * run.decoder.norm.weight
        assert run.decoder.lm_head is not None
        change = run.logits(11)[9] - float(run.decoder.lm_head.weight[9] @ without)
    _, arrays = attribution_reply(run, GetAttribution(position=11, token_id=9))
    assert arrays["feed_forward"][1] == pytest.approx(change, abs=1e-4)


def test_a_cap_on_logits_is_left_unexplained() -> None:
    run = run_of(made(logit_softcap=2.0), random_ids(12))
    reply, arrays = attribution_reply(run, GetAttribution(position=11, token_id=9))
    linear = reply.embedding + reply.bias + arrays["attention"].sum() + arrays["feed_forward"].sum()
    assert reply.logit == pytest.approx(2 * np.tanh(linear / 2), abs=1e-4)
    assert reply.unexplained == pytest.approx(reply.logit - linear, abs=1e-4)


def test_what_is_not_there_is_refused() -> None:
    run = run_of(made(), random_ids(12))
    with pytest.raises(BadValueError):
        lens_layers(run, GetLens(layers=(4,)))
    with pytest.raises(BadValueError):
        lens_rows(run, GetLens(rows=(12, 20)))
    with pytest.raises(BadValueError):
        attribution_reply(run, GetAttribution(position=11, token_id=61))
    with pytest.raises(BadValueError):
        rank_path_reply(run, GetRankPath(position=12, token_id=0))
    assert lens_layers(run, GetLens(layers=(2, 0))) == (2, 0)
