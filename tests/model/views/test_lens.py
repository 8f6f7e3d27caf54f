"""The lens: top tokens, ranks and logits of every depth against the reference's own norm and head; terms add up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from model.errors import BadValueError
from model.protocol.lens_requests import GetLens, GetLensPath, GetLensTerms
from model.protocol.values import SamplerSettings
from model.run import Run
from model.views.lens import lens_parts, path_reply, terms_reply, token_path, token_terms, top_of
from tests.model.family_cases import CASES
from tests.model.reference import TOLERANCE, decoder_for, reference
from tests.model.test_families import prompt_of
from tests.model.tiny import llama, loaded, made, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)


def case_run(name: str) -> Run:
    torch.set_num_threads(1)
    case = CASES[name]
    judge = reference(case.reference, gain=case.gain, attention=case.attention, **case.fields)
    decoder = decoder_for(judge.config, judge.tensors)
    return run_of(loaded(decoder), prompt_of(case)[: decoder.config.n_ctx])


def test_every_depth_is_the_reference_s_head_on_its_hidden_states() -> None:
    judge, model = llama()
    run = run_of(model, random_ids(30), chunk=11)
    run.generate(4, SAMPLED)
    with torch.no_grad():
        theirs = judge.run(list(run.ids))[0]
        norm, head = judge.model.model.norm, judge.model.lm_head
        logits = [head(norm(resid)) for resid in theirs.resid]  # L + 1 of (T, V)
    message = GetLens(positions=(2, 34), depths=(3, 0, 1, 2))
    for part, arrays in lens_parts(run, message):
        wanted = logits[part.depth][2:34]
        p = wanted.softmax(-1)
        assert arrays["ids"].tolist() == wanted.argmax(-1).tolist()
        np.testing.assert_allclose(arrays["p"], p.amax(-1), atol=TOLERANCE)
        np.testing.assert_allclose(arrays["entropy"], torch.special.entr(p).sum(-1), atol=TOLERANCE)
        assert len(part.pieces) == 32
    for asked in (-1, 0, 17, 60):
        reply, arrays = path_reply(run, GetLensPath(position=21, token=asked))
        assert reply.top_id == int(logits[3][21].argmax())
        token = reply.token_id
        assert token == (reply.top_id if asked < 0 else asked)
        rows = torch.stack([depth[21] for depth in logits])  # (L + 1, V)
        order = torch.argsort(rows, dim=-1, descending=True, stable=True)
        assert arrays["rank"].tolist() == [int((row == token).nonzero()) for row in order]
        np.testing.assert_allclose(arrays["logit"], rows[:, token], atol=TOLERANCE)
        np.testing.assert_allclose(arrays["p"], rows.softmax(-1)[:, token], atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_terms_sum_to_the_model_s_logit_in_every_family(name: str) -> None:
    run = case_run(name)
    config = run.config
    for position, token in ((3, 7), (run.length - 1, -1)):
        reply, arrays = terms_reply(run, GetLensTerms(position=position, token=token))
        logits = run.decoder.unembed(run.resid(config.n_layers)[position : position + 1])[0]
        assert reply.logit == float(logits[reply.token_id])
        total = reply.embed + arrays["attn"].sum() + arrays["mlp"].sum() + reply.bias + reply.rest
        assert total == pytest.approx(reply.logit, abs=1e-12)
        if config.logit_softcap is None and not config.residual_from_norm:
            # float32 rounding of the stream and of the head's sum, on logits up to 30
            assert abs(reply.rest) < 2e-4


def test_terms_are_the_reference_s_hidden_states_through_the_frozen_norm() -> None:
    judge, model = llama()
    run = run_of(model, random_ids(25))
    theirs = judge.run(list(run.ids))[0]
    norm, head = judge.model.model.norm, judge.model.lm_head
    last = theirs.resid[-1][20].double()
    scale = 1 / (last.square().mean() + judge.model.config.rms_norm_eps).sqrt()
    terms = token_terms(run, 20, 11)
    assert terms.scale == pytest.approx(float(scale), rel=1e-5)
    direction = norm.weight.double() * head.weight[11].double() * scale
    for layer in range(3):
        added = (theirs.resid[layer + 1][20] - theirs.resid[layer][20]).double() @ direction
        assert terms.attn[layer] + terms.mlp[layer] == pytest.approx(float(added), abs=TOLERANCE)
    assert terms.embed == pytest.approx(float(theirs.resid[0][20].double() @ direction), abs=TOLERANCE)


def test_the_rest_is_what_a_soft_cap_takes() -> None:
    run = run_of(made(logit_softcap=4.0), random_ids(12))
    terms = token_terms(run, 11, -1)
    before = terms.logit - terms.rest
    assert terms.logit == pytest.approx(4.0 * np.tanh(before / 4.0), abs=1e-4)
    assert abs(terms.rest) > 0.1


def test_what_is_known_is_kept_and_stays_true_on_another_branch() -> None:
    run = run_of(made(), random_ids(10))
    run.generate(5, SAMPLED)
    first = top_of(run, 2, range(15))
    asked: list[int] = []
    unembed = run.decoder.unembed

    def counted(resid: torch.Tensor) -> torch.Tensor:
        asked.append(len(resid))
        return unembed(resid)

    run.decoder.unembed = counted  # type: ignore[method-assign]
    try:
        assert top_of(run, 2, range(15)) == first and not asked
        run.branch(run.path[1], 3, SAMPLED)
        asked.clear()
        again = top_of(run, 2, range(run.length))
        assert again[:12] == first[:12] and asked == [1]
    finally:
        del run.decoder.unembed


def test_what_is_not_there_is_refused() -> None:
    run = run_of(made(), random_ids(6))
    with pytest.raises(BadValueError):
        list(lens_parts(run, GetLens(positions=(0, 6), depths=(4,))))
    with pytest.raises(BadValueError):
        token_path(run, 6, -1)
    with pytest.raises(BadValueError):
        token_path(run, 0, 61)
    with pytest.raises(BadValueError):
        terms_reply(run, GetLensTerms(position=0, token=-2))
