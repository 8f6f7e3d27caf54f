"""The run tree: laws of decoding, going back and elsewhere without the model, cancelling, restoring."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model import sampling
from model.errors import BadValueError, CancelledError
from model.prefill import ContextFullError, PromptError, chunk_for
from model.protocol.values import SamplerSettings
from model.recompute import activations
from model.run import Run
from model.tree import NoNodeError
from tests.model.reference import TOLERANCE
from tests.model.tiny import llama, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)
GREEDY = SamplerSettings(temperature=0.0)


def rows_of(run: Run) -> dict[str, torch.Tensor]:
    """Everything kept of the active path."""
    layers = range(run.config.n_layers)
    rows = {f"resid {layer}": run.resid(layer) for layer in range(run.config.n_layers + 1)}
    for layer in layers:
        q = run.store.rows("q", layer)
        assert q is not None
        rows |= {f"q {layer}": q, f"k {layer}": run.k(layer), f"v {layer}": run.v(layer)}
    return {name: tensor.clone() for name, tensor in rows.items()}


def assert_same_rows(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


@pytest.mark.parametrize("chunk", [0, 1, 7])
def test_prefill_and_decode_equal_the_reference_in_one_forward(chunk: int) -> None:
    judge, model = llama()
    run = run_of(model, random_ids(20), chunk=chunk)
    for _ in range(5):
        run.step(SAMPLED)
    whole = judge.run(list(run.ids))[0]
    for layer in range(run.config.n_layers + 1):
        torch.testing.assert_close(run.resid(layer), whole.resid[layer], atol=TOLERANCE, rtol=0)
    for layer in range(run.config.n_layers):
        torch.testing.assert_close(rows_of(run)[f"q {layer}"], whole.q[layer], atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(run.k(layer), whole.k[layer], atol=TOLERANCE, rtol=0)
    for node in (run.tree.root, *run.path):
        expected = whole.logits[run.tree.position(node)].numpy()
        np.testing.assert_allclose(run.logits(node), expected, atol=TOLERANCE)


def test_capturing_changes_no_bit_of_the_logits() -> None:
    _, model = llama()
    ids = random_ids(20)
    run = run_of(model, ids)
    node = run.step(SAMPLED)
    cache = model.decoder.new_cache()
    prefilled = model.decoder(torch.tensor(ids), cache)
    decoded = model.decoder(torch.tensor([node.token_id]), cache)
    assert np.array_equal(run.logits(run.tree.root), prefilled[0].numpy())
    assert np.array_equal(run.logits(node.id), decoded[0].numpy())
    assert not run.altered
    assert all(not point.listeners for point in model.decoder.hook_points.values())


def test_the_same_seed_gives_the_same_tokens_and_another_seed_others() -> None:
    _, model = llama()

    def tokens(seed: int) -> list[int]:
        run = run_of(model, random_ids(12))
        run.generate(12, replace(SAMPLED, seed=seed))
        return [run.nodes[node].token_id for node in run.path]

    assert tokens(7) == tokens(7)
    assert tokens(7) != tokens(8)


def test_greedy_tokens_equal_those_of_the_reference() -> None:
    judge, model = llama()
    ids = random_ids(10, seed=3)
    run = run_of(model, ids)
    run.generate(16, GREEDY)
    expected = list(ids)
    for _ in range(16):
        expected.append(int(judge.run(expected)[0].logits[-1].argmax()))
    assert list(run.ids) == expected


def test_a_node_records_where_its_token_came_from() -> None:
    _, model = llama()
    run = run_of(model, random_ids(9))
    before = torch.from_numpy(run.logits(run.tree.root).copy())
    node = run.step(replace(SAMPLED, temperature=0.9, top_k=5))
    log_p = before.double().log_softmax(-1)
    assert node.position == 9 and node.parent == 8 and node.id == 9 and not node.forced
    assert node.logprob == pytest.approx(log_p[node.token_id].item(), abs=1e-9)
    assert node.entropy == pytest.approx(-(log_p.exp() * log_p).sum().item(), abs=1e-9)
    assert node.draw == sampling.draw(7, 9) == run.draw(8, 7)
    distribution = sampling.apply(run.order(8), node.settings)
    assert node.token_id == sampling.pick(distribution, node.draw)
    assert node.p == distribution.probabilities(np.array([node.token_id]))[0] > node.settings.min_p
    assert node.ms > 0


def test_going_back_and_forth_runs_nothing_and_restores_every_row() -> None:
    _, model = llama()
    run = run_of(model, random_ids(15))
    run.generate(6, SAMPLED)
    first, rows = run.path, rows_of(run)
    fork = first[2]
    with mock.patch.object(type(model.decoder), "forward", side_effect=AssertionError("the model was run")):
        for node in (first[0], first[-1], run.tree.root, first[3], first[-1]):
            assert run.seek(node) == 0
            assert run.current == node and run.length == run.tree.position(node) + 1
    assert_same_rows(rows_of(run), rows)
    other = next(token for token in range(9) if token != run.nodes[first[3]].token_id)
    branch = run.branch(fork, other, SAMPLED)
    assert branch.forced and branch.parent == fork and run.path == (*first[:3], branch.id)
    run.generate(7, SAMPLED)
    second, other_rows = run.path, rows_of(run)
    alone = run_of(model, random_ids(15))
    for node in second:
        alone.step(SAMPLED, force_token=run.nodes[node].token_id)
    assert_same_rows(other_rows, rows_of(alone))
    with mock.patch.object(type(model.decoder), "forward", side_effect=AssertionError("the model was run")):
        for node in (first[-1], second[-1], first[4], second[4], first[-1]):
            assert run.seek(node) == 0
        assert_same_rows(rows_of(run), rows)
        assert run.branch(fork, other, SAMPLED) == branch
        run.seek(second[-1])
    assert_same_rows(rows_of(run), other_rows)


@settings(max_examples=25, deadline=None)
@given(moves=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=25), tight=st.booleans())
def test_any_walk_through_the_tree_ends_at_rows_equal_to_a_straight_run(
    moves: list[tuple[int, int]], tight: bool
) -> None:
    _, model = llama()
    prompt = random_ids(5)
    run = run_of(model, prompt, budget_bytes=180_000 if tight else 1 << 30)
    for kind, number in moves:
        nodes = [run.tree.root, *run.nodes]
        if kind == 0:
            run.seek(nodes[number % len(nodes)])
        elif kind == 1:
            run.branch(nodes[number % len(nodes)], number, SAMPLED)
        else:
            run.step(replace(SAMPLED, seed=number % 3), reuse=True)
        assert run.length == run.tree.position(run.current) + 1
        assert run.store.nbytes <= run.store.budget
    straight = run_of(model, prompt)
    for token in run.ids[5:]:
        straight.step(SAMPLED, force_token=token)
    assert run.ids == straight.ids
    for layer in range(run.config.n_layers):
        assert torch.equal(run.k(layer), straight.k(layer))
        assert torch.equal(run.v(layer), straight.v(layer))
        assert torch.equal(run.resid(layer + 1), straight.resid(layer + 1))
    assert np.array_equal(run.logits(run.current), straight.logits(straight.current))


def test_a_step_that_was_made_before_is_gone_to() -> None:
    _, model = llama()
    run = run_of(model, random_ids(8))
    run.generate(4, SAMPLED)
    path = run.path
    run.seek(run.tree.root)
    with mock.patch.object(type(model.decoder), "forward", side_effect=AssertionError("the model was run")):
        run.generate(4, SAMPLED)
    assert run.path == path and len(run.nodes) == 4
    run.seek(run.tree.root)
    run.generate(1, replace(SAMPLED, seed=9))
    assert len(run.nodes) == 5


@pytest.mark.parametrize("after", [0, 1, 4, 7])
def test_cancelling_a_prefill_keeps_whole_chunks_and_a_usable_run(after: int) -> None:
    _, model = llama()
    ids = random_ids(20)
    calls = iter(range(10**6))

    def cancel() -> None:
        if next(calls) == after:
            raise CancelledError

    run = Run(model, budget_bytes=1 << 30)
    with pytest.raises(CancelledError):
        run.prefill(ids, chunk=8, yield_point=cancel)
    whole = 8 * (after // run.config.n_layers)
    assert run.length == run.n_prompt == whole and run.prompt_ids == tuple(ids[:whole])
    if whole == 0:
        run.prefill(ids)
        assert run.length == 20
        return
    assert run.state().stop == "cancelled"
    short = run_of(model, ids[:whole], chunk=8)
    np.testing.assert_allclose(run.logits(run.current), short.logits(short.current), atol=1e-5)
    run.step(GREEDY)
    short.step(GREEDY)
    assert run.ids == short.ids


def test_cancelling_a_step_leaves_the_run_as_it_was() -> None:
    _, model = llama()
    run = run_of(model, random_ids(20))
    run.generate(2, SAMPLED)
    rows, ids = rows_of(run), run.ids
    calls = iter(range(10**6))

    def cancel() -> None:
        if next(calls) == 2:
            raise CancelledError

    with pytest.raises(CancelledError):
        run.generate(3, SAMPLED, yield_point=cancel)
    assert run.stop == "cancelled" and run.ids == ids and len(run.nodes) == 2
    assert_same_rows(rows_of(run), rows)
    run.generate(2, SAMPLED)
    whole = run_of(model, random_ids(20))
    whole.generate(4, SAMPLED)
    assert run.ids == whole.ids
    assert_same_rows(rows_of(run), rows_of(whole))


def test_views_served_between_layers_leave_the_rows_alone() -> None:
    _, model = llama()
    run = Run(model, budget_bytes=1 << 30)
    quiet = run_of(model, random_ids(20), chunk=8)

    def look() -> None:
        if run.length:
            seen = activations(run, 1, ["mlp.post", "attn.rot_q"], 0, run.length)
            assert seen["mlp.post"].shape[0] == run.length

    run.prefill(random_ids(20), chunk=8, yield_point=look)
    run.step(SAMPLED, yield_point=look)
    quiet.step(SAMPLED)
    assert_same_rows(rows_of(run), rows_of(quiet))


def test_progress_counts_tokens_up_to_the_whole_prompt() -> None:
    _, model = llama()
    seen: list[tuple[str, int, int, str]] = []
    run_of(model, random_ids(20), chunk=8, progress=lambda *report: seen.append(report))
    done = [report[1] for report in seen]
    assert done == sorted(done) and done[0] == 0 and done[-1] == 20
    assert {(what, total, unit) for what, _, total, unit in seen} == {("prefill", 20, "tokens")}


def test_chunks_shrink_when_a_layer_is_slow_and_never_when_asked_for() -> None:
    _, model = llama(max_position_embeddings=2048)
    assert chunk_for(model.decoder.config, torch.device("cpu")) == 1024
    with mock.patch("model.prefill.LAYER_SECONDS", 0.0):
        assert run_of(model, random_ids(1600)).chunks == (1024, 512, 64)
        assert run_of(model, random_ids(2000)).chunks == (1024, 512, 256, 208)
        assert run_of(model, random_ids(800), chunk=400).chunks == (400, 400)


def test_a_full_context_ends_with_the_reason() -> None:
    _, model = llama(max_position_embeddings=24)
    run = run_of(model, random_ids(20))
    run.generate(10, SAMPLED)
    assert run.length == 24 and run.state().stop == "context_full"
    with pytest.raises(ContextFullError, match="24 positions"):
        run.step(SAMPLED)
    run.seek(run.tree.root)
    assert run.state().stop == ""


def test_generation_stops_at_the_end_of_text_unless_told_otherwise() -> None:
    _, model = llama()
    run = run_of(model, random_ids(8))
    run.generate(6, SAMPLED)
    ids = run.ids[8:]
    end = ids[2]
    model.tokenizer.eos_ids = (end,)
    try:
        run.seek(run.tree.root)
        run.generate(6, SAMPLED)
        assert run.ids[8:] == ids[: ids.index(end) + 1] and run.state().stop == "end_of_text"
        run.seek(run.tree.root)
        run.generate(6, SAMPLED, stop_at_end_of_text=False)
        assert run.ids[8:] == ids and run.state().stop == ""
    finally:
        model.tokenizer.eos_ids = ()


@pytest.mark.parametrize(("ids", "reason"), [([], "empty"), ([3] * 300, "300 tokens"), ([1, 61], "61"), ([-1], "-1")])
def test_prompts_that_cannot_be_run_are_refused(ids: list[int], reason: str) -> None:
    _, model = llama()
    with pytest.raises(PromptError, match=reason):
        run_of(model, ids)
    assert run_of(model, [3] * 300, truncate=True).length == 256


def test_places_that_do_not_exist_are_refused() -> None:
    _, model = llama()
    run = run_of(model, random_ids(8))
    for node in (0, 6, 8, -1):
        with pytest.raises(NoNodeError):
            run.seek(node)
    with pytest.raises(BadValueError):
        run.branch(7, 61, SAMPLED)
    with pytest.raises(PromptError):
        run.prefill([1])
    assert run.length == 8


def test_logits_that_are_no_numbers_stop_the_run_and_say_so() -> None:
    _, model = llama()
    run = run_of(model, random_ids(8))

    def spoil(tensor: torch.Tensor, _point: object) -> torch.Tensor:
        spoiled = tensor.clone()
        spoiled[:, 3] = torch.nan
        return spoiled

    with model.decoder.hooks({"logits": spoil}):
        run.step(SAMPLED)
    assert run.altered
    run.generate(3, SAMPLED)
    state = run.state()
    assert state.stop == "nan_logits" and state.altered and len(state.nodes) == 1
    with pytest.raises(sampling.BadLogitsError, match="1 of 61"):
        run.step(SAMPLED)
    run.seek(run.tree.root)
    assert run.state().stop == ""


def test_a_run_is_marked_altered_by_replacements_in_its_own_passes() -> None:
    _, model = llama()
    is_on = True

    def double(tensor: torch.Tensor, _point: object) -> torch.Tensor | None:
        return tensor * 2 if is_on else None

    with model.decoder.hooks({"layers.*.resid_post": double}):
        first = run_of(model, random_ids(9))
        is_on = False
        second = run_of(model, random_ids(9))
        assert first.altered and not second.altered
        assert not np.allclose(first.logits(first.current), second.logits(second.current), atol=1e-3)
        is_on = True
        second.step(SAMPLED)
        assert second.altered and second.state().altered
    assert not run_of(model, random_ids(9)).altered


def test_a_recorded_run_is_restored_as_it_was() -> None:
    _, model = llama()
    run = run_of(model, random_ids(8))
    run.generate(3, SAMPLED)
    run.branch(run.path[0], 5, SAMPLED)
    run.generate(2, replace(SAMPLED, repetition_penalty=1.3))
    run.seek(run.path[-2])
    state = run.state()
    again = Run(model, budget_bytes=1 << 30)
    heard: list[int] = []
    again.restore(run.prompt_ids, state.nodes, run.current, on_node=lambda node: heard.append(node.id))
    restored = again.state()
    assert [replace(node, ms=0.0) for node in restored.nodes] == [replace(node, ms=0.0) for node in state.nodes]
    assert restored.path == state.path and restored.text == state.text and heard == [node.id for node in state.nodes]
    assert all(np.array_equal(again.logits(node.id), run.logits(node.id)) for node in state.nodes)
    assert_same_rows(rows_of(again), rows_of(run))  # an autosave of tokens and draws gives the same pictures
    broken = Run(model, budget_bytes=1 << 30)
    with pytest.raises(BadValueError, match="recorded step"):
        broken.restore(run.prompt_ids, state.nodes[1:], run.current)


@pytest.mark.parametrize("draw", [1.0, -0.1, 1e9, float("nan")])
def test_a_recorded_draw_that_is_none_is_refused(draw: float) -> None:
    _, model = llama()
    run = run_of(model, random_ids(8))
    run.generate(2, SAMPLED)
    first, second = run.state().nodes
    with pytest.raises(BadValueError, match="draw of a recorded step"):
        Run(model, budget_bytes=1 << 30).restore(run.prompt_ids, [first, replace(second, draw=draw)], run.current)


def test_state_reports_new_nodes_once_and_true_bytes() -> None:
    _, model = llama()
    run = run_of(model, random_ids(8))
    assert run.state().nodes == ()
    run.generate(2, SAMPLED)
    state = run.state()
    assert [node.id for node in state.nodes] == [8, 9] and run.state().nodes == ()
    config = run.config
    assert state.memory.kv_used == 2 * config.n_layers * config.n_kv_heads * config.d_head * 10 * 4
    assert state.memory.kv_used <= state.memory.kv_allocated == run.cache.bytes_allocated()
    assert state.memory.rss > state.memory.activations > 0
    assert state.text.split() == [str(token) for token in run.ids]
    assert state.text.endswith(run.generated_text) and run.generated_text.split() == [str(t) for t in run.ids[8:]]


def test_frequencies_that_change_with_the_length_are_those_of_the_reference() -> None:
    scaling = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "original_max_position_embeddings": 16,
        "short_factor": [1.0, 1.1, 1.2, 1.3],
        "long_factor": [1.5, 2.0, 4.0, 6.0],
        "factor": 4.0,
    }
    judge, model = llama(max_position_embeddings=64, rope_scaling=scaling)
    for n in (12, 20):  # the switch is met while decoding, or lies inside the prompt, between two chunks
        ids = random_ids(n)
        run = run_of(model, ids, chunk=5)
        steps = [run.step(SAMPLED).token_id for _ in range(7)]
        expected = judge.run(ids, *[[token] for token in steps])
        np.testing.assert_allclose(run.logits(run.current), expected[-1].logits[-1].numpy(), atol=TOLERANCE)
        for layer in range(run.config.n_layers):
            q = torch.cat([trace.q[layer] for trace in expected], 1)
            torch.testing.assert_close(rows_of(run)[f"q {layer}"], q, atol=TOLERANCE, rtol=0)
            made = activations(run, layer, ["attn.rot_q"], 3, run.length)["attn.rot_q"]
            torch.testing.assert_close(made, q[:, 3:], atol=TOLERANCE, rtol=0)
