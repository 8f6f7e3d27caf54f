"""What the model expected at prompt positions, against the reference's logits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from model.errors import BadValueError, CancelledError
from model.protocol.run_requests import GetExpected
from model.protocol.values import SamplerSettings
from model.views import prompt_stats
from tests.model.tiny import llama, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=5, top_p=1.0)


@pytest.mark.parametrize("block", [61, 61 * 7, 1 << 22])
def test_statistics_equal_those_of_the_reference_in_any_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_stats, "BLOCK_LOGITS", block)
    judge, model = llama()
    ids = random_ids(30)
    run = run_of(model, ids)
    run.step(SAMPLED)
    log_p = judge.run(ids)[0].logits.double().log_softmax(-1)
    reply, arrays = prompt_stats.prompt_stats_reply(run)
    logprob = [log_p[t - 1, ids[t]].item() for t in range(1, 30)]
    np.testing.assert_allclose(arrays["logprob"][1:], logprob, atol=1e-4)
    np.testing.assert_allclose(arrays["entropy"], -(log_p.exp() * log_p).sum(-1), atol=1e-4)
    ranks = [int((log_p[t - 1] > log_p[t - 1, ids[t]]).sum()) for t in range(1, 30)]
    assert arrays["rank"][1:].tolist() == ranks
    assert math.isnan(arrays["logprob"][0]) and arrays["rank"][0] == -1
    assert arrays["logprob"].dtype == arrays["entropy"].dtype == np.float32 and arrays["rank"].dtype == np.int32
    loss = torch.nn.functional.cross_entropy(judge.run(ids)[0].logits[:-1], torch.tensor(ids[1:])).item()
    assert reply.mean_cross_entropy == pytest.approx(loss, abs=1e-4)
    assert reply.perplexity == pytest.approx(math.exp(loss), rel=1e-4)
    assert (reply.first, reply.last, reply.complete) == (0, 29, True)


def test_what_is_interrupted_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_stats, "BLOCK_LOGITS", 61 * 8)
    _, model = llama()
    run = run_of(model, random_ids(30))
    calls = 0

    def interrupt() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise CancelledError

    with pytest.raises(CancelledError):
        prompt_stats.prompt_stats(run, yield_point=interrupt)
    stats = run.derived["prompt_stats"]
    assert isinstance(stats, prompt_stats.PromptStats) and stats.done == 16
    prompt_stats.prompt_stats(run, yield_point=interrupt)
    assert calls == 5 and stats.done == 30
    prompt_stats.prompt_stats(run, yield_point=interrupt)
    assert calls == 5
    whole = prompt_stats.prompt_stats(run_of(model, random_ids(30)))
    np.testing.assert_array_equal(stats.logprob, whole.logprob)


def test_one_token_has_no_perplexity() -> None:
    _, model = llama()
    reply, _ = prompt_stats.prompt_stats_reply(run_of(model, [3]))
    assert math.isnan(reply.mean_cross_entropy) and math.isnan(reply.perplexity) and reply.complete


def test_ties_rank_by_id() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 3.0, 0.0]])
    ranks = [int(prompt_stats._ranks(logits, torch.tensor([token]))[0]) for token in range(5)]
    assert ranks == [3, 0, 1, 2, 4]


def test_the_expected_token_at_prompt_and_decoded_positions() -> None:
    judge, model = llama()
    run = run_of(model, random_ids(12))
    node = run.step(SAMPLED)
    log_p = judge.run(list(run.ids))[0].logits.double().log_softmax(-1)
    for position in (1, 7, 12):
        reply = prompt_stats.expected_reply(run, GetExpected(position=position))
        row = log_p[position - 1]
        assert reply.token.id == run.ids[position]
        assert math.log(reply.token.p_raw) == pytest.approx(row[reply.token.id].item(), abs=1e-4)
        assert [candidate.id for candidate in reply.top] == row.argsort(descending=True)[:10].tolist()
        assert [candidate.rank for candidate in reply.top] == list(range(10))
        assert reply.entropy == pytest.approx(-(row.exp() * row).sum().item(), abs=1e-4)
        assert reply.position == position
    assert reply.token.p == node.p and reply.top[6].p == 0  # top-k 5
    for position in (0, 13):
        with pytest.raises(BadValueError):
            prompt_stats.expected_reply(run, GetExpected(position=position))
