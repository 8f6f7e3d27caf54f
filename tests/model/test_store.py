"""The activation store: what it holds, what it costs, what goes when the budget is reached."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch

from model.config import MoeSpec
from model.errors import CancelledError
from model.loading import LoadedModel
from model.memory import amount
from model.protocol.values import SamplerSettings
from model.recompute import activations, queries
from model.run import Run
from model.store import BudgetError, Buffer, NoLogitsError, cost_of
from tests.model.reference import TOLERANCE
from tests.model.tiny import llama, made, random_ids, run_of

SAMPLED = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0)


def held_tensors(run: Run) -> list[torch.Tensor]:
    """Every tensor of the store, found by walking the heap from it, not by its own sums."""
    tensors: list[torch.Tensor] = []
    seen: set[int] = set()
    queue: list[Any] = [run.store]
    while queue:
        item = queue.pop()
        if id(item) in seen or isinstance(item, type | torch.nn.Module) or item is run.config:
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            tensors.append(item)
        elif type(item).__module__.startswith(("model.", "builtins")):
            queue += gc.get_referents(item)
    return tensors


def test_bytes_are_those_of_the_allocation() -> None:
    _, model = llama()
    run = run_of(model, random_ids(50))
    run.generate(30, SAMPLED)  # past the first 64 rows: everything has grown
    run.seek(run.path[10])
    run.branch(run.current, 3, SAMPLED)  # twenty nodes are parked
    run.generate(3, SAMPLED)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in held_tensors(run)}
    logits = sum(array.nbytes for array in run.store.logits.values())
    assert run.store.nbytes == sum(storages.values()) + logits
    assert run.store.kv_allocated == run.cache.bytes_allocated() < run.store.nbytes
    assert len(run.store.logits) == 1 + len(run.nodes)


def test_growth_is_by_doubling_and_ends_at_the_context() -> None:
    _, model = llama(max_position_embeddings=150)
    run = run_of(model, random_ids(10))
    capacities = [run.store.capacity]
    run.generate(140, SAMPLED)
    while run.length < 150:
        run.generate(150, SAMPLED)
    capacities.append(run.store.capacity)
    assert capacities == [64, 150]
    assert run.cache.capacity == 150


def test_the_estimate_is_what_a_run_takes() -> None:
    _, model = llama()
    run = run_of(model, random_ids(64))
    cost = run.cost(64)
    assert cost == cost_of(run.config, 64, 4)
    used = run.store.nbytes / run.store.capacity * 64
    # Logits do not grow with the text, buffers do: the estimate is exact but for the logits' share of that scaling.
    assert abs(used - cost.total) <= cost.logits
    assert cost.kv == run.cache.bytes_used()
    assert cost.least == cost.total - 64 * run.config.n_layers * run.config.n_heads * run.config.d_head * 4


def test_other_branches_go_first_and_coming_back_runs_them_again() -> None:
    _, model = llama()
    run = run_of(model, random_ids(10))
    run.generate(20, SAMPLED)
    first = run.path
    rows = {layer: run.resid(layer).clone() for layer in range(4)}
    logits = {node: run.logits(node).copy() for node in first}
    run.store.budget = run.store.nbytes + 1000  # room for a step, not for parked rows
    run.branch(first[0], 3, SAMPLED)
    dropped = set(run.state().dropped)
    assert dropped == set(first[1:])
    assert all(run.store.keeps_queries(layer) for layer in range(3))
    with pytest.raises(NoLogitsError, match=str(first[1])):
        run.logits(first[1])
    reports: list[tuple[str, int, int, str]] = []
    again = run.seek(first[-1], progress=lambda *report: reports.append(report))
    assert again == 19 and reports[0] == ("running dropped steps again", 0, 19, "tokens")
    for layer, expected in rows.items():
        # The prompt was not run again, and decoding is the same arithmetic: no bit differs.
        assert torch.equal(run.resid(layer), expected)
    assert all(np.array_equal(run.logits(node), expected) for node, expected in logits.items())
    assert not dropped & set(run.state().dropped)


def test_cancelling_on_the_way_back_to_a_dropped_node_stops_at_a_whole_one() -> None:
    _, model = llama()
    run = run_of(model, random_ids(10))
    run.generate(8, SAMPLED)
    first = run.path
    run.store.budget = run.store.nbytes + 1000
    run.branch(first[0], 3, SAMPLED)
    calls = iter(range(1000))

    def cancel() -> None:
        if next(calls) == 3 * run.config.n_layers + 1:
            raise CancelledError

    with pytest.raises(CancelledError):
        run.seek(first[-1], yield_point=cancel)
    assert run.current == first[3] and run.length == 14
    assert run.seek(first[-1]) == 4


def test_queries_go_next_farthest_from_the_layer_in_view_and_are_recomputed() -> None:
    judge, model = llama(num_hidden_layers=4)
    ids = random_ids(60)
    whole = judge.run(ids)[0]
    cost = cost_of(model.decoder.config, 64, 4)
    one_layer = cost.queries // 4
    run = Run(model, budget_bytes=cost.total - one_layer - 1)
    run.store.focus = 1
    run.prefill(ids, chunk=16)
    assert [run.store.keeps_queries(layer) for layer in range(4)] == [True, True, False, False]
    for layer in range(4):
        torch.testing.assert_close(queries(run, layer), whole.q[layer], atol=TOLERANCE, rtol=0)
    assert run.store.nbytes <= run.store.budget
    run.step(SAMPLED)
    assert queries(run, 3).shape == (4, 61, 8)


def test_a_budget_too_small_is_refused_before_anything_is_allocated() -> None:
    _, model = llama()
    run = Run(model, budget_bytes=60_000)
    with pytest.raises(BudgetError, match=r"200 tokens needs .* kB .*budget is 60 kB"):
        run.prefill(random_ids(200))
    assert run.length == 0 and run.store.activation_bytes == 0
    run.prefill(random_ids(4))
    with pytest.raises(BudgetError):
        run.generate(200, SAMPLED)
    assert run.store.nbytes <= 60_000
    length = run.length
    run.seek(run.tree.root)
    run.seek(run.tree.next_id - 1)
    assert run.length == length > 4


@pytest.mark.parametrize("layer", range(3))
def test_a_block_on_its_stored_residual_gives_the_next_one(layer: int) -> None:
    _, model = llama()
    run = run_of(model, random_ids(20))
    run.generate(4, SAMPLED)
    again = activations(run, layer, ["resid_post", "attn.rot_q"], 0, run.length)
    torch.testing.assert_close(again["resid_post"], run.resid(layer + 1), atol=TOLERANCE, rtol=0)
    part = activations(run, layer, ["resid_post"], 7, 13)["resid_post"]
    torch.testing.assert_close(part, run.resid(layer + 1)[7:13], atol=TOLERANCE, rtol=0)
    stored = run.store.rows("q", layer)
    assert stored is not None
    torch.testing.assert_close(again["attn.rot_q"], stored, atol=TOLERANCE, rtol=0)


def test_experts_are_kept_so_that_recomputing_cannot_choose_others() -> None:
    model = made(moe=MoeSpec(n_experts=6, top_k=2, d_expert=24, layers=(1, 2)))
    run = run_of(model, random_ids(12))
    run.step(SAMPLED)
    seen: list[torch.Tensor] = []
    with model.decoder.hooks({"layers.1.moe.ids": lambda ids, _point: seen.append(ids)}):
        model.decoder(torch.tensor(run.ids), model.decoder.new_cache())
    kept = run.store.rows("expert_ids", 1)
    assert kept is not None and torch.equal(kept.long(), seen[0])
    with torch.inference_mode():
        kept[5] = torch.tensor([5, 4], dtype=torch.int16)  # as if the run had chosen these
    again = activations(run, 1, ["moe.ids", "resid_post"], 0, run.length)
    assert again["moe.ids"][5].tolist() == [5, 4]
    assert not run.altered
    rows = run.store.rows("expert_weights", 1)
    assert rows is not None and rows.shape == (13, 2)


def test_memory_that_runs_out_while_growing_leaves_a_usable_run(monkeypatch: pytest.MonkeyPatch) -> None:
    _, model = llama()
    run = run_of(model, random_ids(62))
    run.generate(2, SAMPLED)
    rows, ids = run.resid(2).clone(), run.ids
    grow, calls = Buffer.grow, iter(range(100))

    def fail(self: Buffer, capacity: int, used: int) -> None:
        if next(calls) == 3:
            raise torch.OutOfMemoryError
        grow(self, capacity, used)

    monkeypatch.setattr(Buffer, "grow", fail)
    while run.length < run.store.capacity:
        run.step(SAMPLED)
    length = run.length
    with pytest.raises(torch.OutOfMemoryError):
        run.step(SAMPLED)
    assert run.length == length and torch.equal(run.resid(2)[:64], rows) and run.ids[:64] == ids
    run.generate(3, SAMPLED)
    assert run.length == length + 3
    whole = run_of(model, list(run.ids))
    torch.testing.assert_close(run.resid(3), whole.resid(3), atol=TOLERANCE, rtol=0)


@pytest.mark.cuda
def test_rows_are_kept_on_the_device_and_parked_on_the_host() -> None:
    model = made()
    decoder = model.decoder.to("cuda")
    try:
        run = run_of(LoadedModel(decoder=decoder, tokenizer=model.tokenizer, info=model.info), random_ids(12))
        run.generate(5, SAMPLED)
        path, rows = run.path, run.resid(2).clone()
        assert rows.device.type == "cuda" and run.k(0).device.type == "cuda"
        run.branch(path[1], 3, SAMPLED)
        assert all(t.device.type == "cpu" for segment in run.store._segments for t in segment.tensors.values())
        assert run.seek(path[-1]) == 0
        assert torch.equal(run.resid(2), rows)
    finally:
        model.decoder.to("cpu")


def test_logits_are_read_only() -> None:
    _, model = llama()
    run = run_of(model, random_ids(5))
    with pytest.raises(ValueError, match="read-only"):
        run.logits(4)[0] = 1.0


def test_amounts_are_readable() -> None:
    assert [amount(n) for n in (0, 999, 1000, 1_234_567, 3e9, 5e15)] == [
        "0 bytes",
        "999 bytes",
        "1 kB",
        "1.23 MB",
        "3 GB",
        "5e+03 TB",
    ]
