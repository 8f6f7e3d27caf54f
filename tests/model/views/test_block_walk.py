"""The block walk: every family's numbers are the reference's, the operations follow from each other, terms sum up."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.errors import BadValueError, DecoderscopeError
from model.protocol.values import SamplerSettings
from model.protocol.walk_requests import GetWalk, GetWalkTensor, WalkReply
from model.run import Run
from model.views.block_walk import walk_reply
from model.views.walk_parts import PARTS, tensor_reply, typical_top
from tests.model.family_cases import CASES, Case
from tests.model.reference import TOLERANCE, Reference, decoder_for, reference
from tests.model.tiny import loaded, made, random_ids, run_of

Ops = dict[str, NDArray[np.float32]]
SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)


def walked(run: Run, **fields: object) -> tuple[WalkReply, Ops]:
    reply, arrays = walk_reply(run, GetWalk(**fields))  # type: ignore[arg-type]
    return reply, {op.id: np.asarray(arrays[str(index)]) for index, op in enumerate(reply.ops)}


def _near(ours: object, wanted: object, *, atol: float = 2e-5) -> None:
    """Equal up to float32 sums of at most 96 products of values up to 10."""
    np.testing.assert_allclose(np.asarray(ours), np.asarray(wanted), rtol=2e-5, atol=atol)


def case_run(name: str) -> tuple[Case, Reference, Run]:
    torch.set_num_threads(1)
    case = CASES[name]
    judge = reference(case.reference, gain=case.gain, attention=case.attention, **case.fields)
    ids = torch.randint(61, (case.prompt,), generator=torch.Generator().manual_seed(1)).tolist()
    decoder = decoder_for(judge.config, judge.tensors)
    return case, judge, run_of(loaded(decoder), ids[: decoder.config.n_ctx])


@pytest.mark.parametrize("name", CASES)
def test_a_walk_of_every_family_is_the_reference_s(name: str) -> None:
    _, judge, run = case_run(name)
    theirs = judge.run(list(run.ids))[0]
    n_layers, position = run.config.n_layers, run.length - 3
    for layer in range(n_layers):
        reply, ops = walked(run, place="block", position=position, layer=layer, head=1)
        _near(ops["resid_pre"][0], theirs.resid[layer][position], atol=TOLERANCE)
        _near(ops["resid_post"][0], theirs.resid[layer + 1][position], atol=TOLERANCE)
        if theirs.patterns:
            weights = np.nan_to_num(ops["attn.pattern"][0])
            _near(weights, theirs.patterns[layer][1, position], atol=TOLERANCE)
        assert reply.error < reply.bound  # block l on the stored residual = the next stored residual
    _, into = walked(run, place="embed", position=position)
    _near(into["embed.out"][0], theirs.resid[0][position], atol=TOLERANCE)
    _, out = walked(run, place="head", position=position)
    _near(out["head.logits"][0], theirs.logits[position], atol=TOLERANCE)
    _near(out["head.softmax"][0], theirs.logits[position].softmax(-1), atol=TOLERANCE)
    assert walked(run, place="head", position=run.length - 1)[0].error < 1e-5


@pytest.mark.parametrize("name", CASES)
def test_the_operations_follow_from_each_other(name: str) -> None:
    """The formula beside an operation, worked out from the operations before it."""
    _, _, run = case_run(name)
    config, position = run.config, run.length - 2
    _, ops = walked(run, place="block", position=position, layer=1, head=2)
    _near(ops["attn.scaled"], ops["attn.dots"] * config.scale(1))
    scores = ops.get("attn.cap", ops.get("attn.bias", ops["attn.scaled"]))
    seen = ~np.isnan(ops["attn.mask"])
    np.testing.assert_array_equal(ops["attn.mask"][seen], scores[seen])
    powers = np.exp(ops["attn.mask"][seen].astype(np.float64) - np.nanmax(ops["attn.mask"]))
    _near(ops["attn.pattern"][seen], powers / powers.sum())
    np.testing.assert_array_equal(ops["attn.concat"][2], ops["attn.z"][0])
    if config.gated_mlp or config.has_experts(1):
        _near(ops["mlp.act"] * ops["mlp.up"], ops["mlp.post"])
    o = ops.get("attn.out", ops.get("attn.post_norm", ops["attn.proj"]))
    m = ops.get("mlp.out", ops.get("mlp.post_norm", ops["mlp.down"]))
    if config.parallel_residual:
        _near(ops["resid_pre"] + o + m, ops["resid_post"])
        assert "resid_mid" not in ops
    elif not config.residual_from_norm:
        _near(ops["resid_pre"] + o, ops["resid_mid"])
        _near(ops["resid_mid"] + m, ops["resid_post"])
    assert ("attn.rot_q" in ops) == (config.rope_of(1) is not None)
    assert ("attn.bias" in ops) == (config.positions == "alibi")
    assert ("moe.router" in ops) == config.has_experts(1)


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom, heads not a power of two", "mixtral", "gemma2"])
def test_terms_sum_to_the_result(name: str) -> None:
    _, _, run = case_run(name)
    for op in PARTS:
        message = GetWalkTensor(place="block", op=op, what="parts", position=9, layer=1, head=2)
        reply, arrays = tensor_reply(run, message)
        assert reply.total < 2e-5, op
        assert not reply.pooled and arrays["values"].shape == reply.shape
    _, ops = walked(run, place="block", position=9, layer=1, head=2)
    message = GetWalkTensor(place="block", op="attn.scaled", what="parts", position=9, layer=1, head=2)
    _near(tensor_reply(run, message)[1]["values"].sum(1), ops["attn.scaled"][0])


def test_all_positions_are_what_each_position_s_walk_says() -> None:
    run = run_of(made(qk_norm="head", moe=None), random_ids(20), chunk=7)
    run.generate(3, SAMPLED)
    walks = [walked(run, place="block", position=p, layer=1, head=3) for p in range(run.length)]
    for op in walks[0][0].ops:
        if not op.at_positions:
            continue
        message = GetWalkTensor(place="block", op=op.id, what="positions", position=4, layer=1, head=3)
        reply, arrays = tensor_reply(run, message)
        row = max(op.first_row, 0)
        each = np.stack([ops[op.id][row] for _, ops in walks])
        assert reply.shape == each.shape
        _near(arrays["values"], each)


def test_colours_end_before_the_few_values_that_are_far_beyond_all_others() -> None:
    values = np.random.default_rng(0).normal(size=(20, 500)).astype(np.float32)
    assert typical_top(values) == np.abs(values).max()
    values[0, 3:9] = (900, -400, 700, np.nan, 300, -300)
    sizes = np.abs(values[np.isfinite(values)])
    top = typical_top(values)
    assert 2 < top < 4 and 0.985 < (sizes <= top).mean() < 0.995
    assert typical_top(np.zeros((2, 2), np.float32)) == 0.0
    assert typical_top(np.full((2, 2), np.nan, np.float32)) == np.inf


def test_a_part_of_a_large_matrix_is_pooled_and_exact_when_close() -> None:
    run = run_of(made(), random_ids(200))
    whole = tensor_reply(run, GetWalkTensor(place="block", op="attn.z", what="parts", position=199, head=1))
    small, arrays = tensor_reply(
        run, GetWalkTensor(place="block", op="attn.z", what="parts", position=199, head=1, height=20, width=8)
    )
    assert small.pooled and arrays["pixels"].shape == (20, 8) and "values" not in arrays
    part, close = tensor_reply(
        run, GetWalkTensor(place="block", op="attn.z", what="parts", position=199, head=1, rows=(50, 60), cols=(2, 5))
    )
    assert (part.rows, part.cols) == ((50, 60), (2, 5)) and (part.low, part.high) == (small.low, small.high)
    np.testing.assert_array_equal(close["values"], whole[1]["values"][50:60, 2:5])


def test_statistics_are_numpy_s_and_masked_cells_do_not_count() -> None:
    run = run_of(made(layer_kinds=("sliding",) * 3, sliding_window=5), random_ids(30))
    reply, ops = walked(run, place="block", position=20, layer=0, head=0)
    for op in reply.ops:
        seen = ops[op.id][~np.isnan(ops[op.id])].astype(np.float64)
        assert (op.low, op.high) == (seen.min(), seen.max())
        assert (op.mean, op.std) == pytest.approx((seen.mean(), seen.std()), rel=1e-12)
        assert op.norm == pytest.approx(np.linalg.norm(seen), rel=1e-12)
    assert np.flatnonzero(~np.isnan(ops["attn.mask"][0])).tolist() == [16, 17, 18, 19, 20]
    pattern = next(op for op in reply.ops if op.id == "attn.pattern")
    assert [token.id for token in pattern.tokens] == (np.argsort(-np.nan_to_num(ops["attn.pattern"][0]))[:5]).tolist()


def test_nearest_tokens_are_those_of_largest_cosine() -> None:
    run = run_of(made(), random_ids(8))
    reply, _ = walked(run, place="embed", position=3)
    table = run.decoder.embed_tokens.weight.double().numpy()
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosine = unit @ unit[run.ids[3]]
    cosine[run.ids[3]] = -2
    best = np.argsort(-cosine)[:8]
    assert [token.id for token in reply.ops[0].tokens] == best.tolist()
    _near([token.value for token in reply.ops[0].tokens], cosine[best], atol=1e-6)


def test_a_walk_changes_nothing_and_refuses_what_is_not_there() -> None:
    run = run_of(made(), random_ids(12))
    before = [run.resid(layer).clone() for layer in range(4)]
    walked(run, place="block", position=5, layer=2, head=1)
    assert all(torch.equal(run.resid(layer), rows) for layer, rows in enumerate(before))
    assert not any(module._forward_hooks for module in run.decoder.modules())
    for fields in ({"position": 12}, {"layer": 3}, {"head": 4}):
        with pytest.raises(BadValueError):
            walked(run, **({"place": "block", "position": 0} | fields))
    for what in ("parts", "positions"):
        with pytest.raises(DecoderscopeError):
            tensor_reply(run, GetWalkTensor(place="block", op="attn.nothing", what=what, position=0))
