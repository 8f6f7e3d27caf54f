"""Ten thousand steps and seeks with branches under a budget: nothing grows, nothing is lost."""

from __future__ import annotations

import gc
import os
import random
import threading
from pathlib import Path

import psutil
import pytest

from model.protocol.run_requests import Branch, GetDistribution, Prefill, Restore, Seek, Step
from model.protocol.values import SamplerSettings
from model.run import Run
from tests.model.tiny import made, random_ids

HOT = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0, seed=5)
BUDGET = 6 << 20
WARM, SETTLED_MB = 1500, 24


def open_files() -> set[str]:
    """This process's file descriptors by number, without the one that lists them."""
    names = os.listdir("/dev/fd")  # noqa: PTH208 - closed before they are looked at
    return {name for name in names if os.path.lexists(f"/dev/fd/{name}")}


def _walk(steps: int, *, check_every: int) -> None:
    model = made()
    run = Run(model, budget_bytes=BUDGET)
    run.prefill(random_ids(20))
    generator, process = random.Random(1), psutil.Process()
    tokens: dict[int, int] = {}
    before: tuple[int, set[int], set[str]] | None = None
    for number in range(steps):
        act = generator.random()
        nodes = list(run.nodes)
        if act < 0.70 and run.length < run.config.n_ctx:
            node = run.step(HOT)
            tokens[node.id] = node.token_id
        elif act < 0.9 and nodes:
            run.seek(generator.choice(nodes[-400:]))
        elif nodes:
            target = generator.choice(nodes[-400:])
            if run.tree.position(target) + 1 < run.config.n_ctx:
                node = run.branch(target, generator.randrange(run.config.d_vocab), HOT)
                tokens[node.id] = node.token_id
        if number % check_every == check_every - 1:
            assert {node.id: node.token_id for node in run.nodes.values()} == tokens  # no node is ever lost
            assert run.store.nbytes <= BUDGET
            assert run.length == run.n_prompt + len(run.path) == len(run.ids)
        if number == min(WARM, steps // 2):
            gc.collect()
            before = (process.memory_info().rss, {thread.id for thread in process.threads()}, open_files())
    gc.collect()
    assert before is not None
    grown = process.memory_info().rss - before[0]
    bookkeeping = 1200 * len(tokens)  # a node's record: a frozen dataclass of twelve fields, in the tree and here
    assert grown < (SETTLED_MB << 20) + bookkeeping, f"{grown / 1e6:.1f} MB more for {len(tokens)} nodes"
    # By name: what an earlier test left may end meanwhile, and would hide what is new.
    assert not {thread.id for thread in process.threads()} - before[1]
    assert not open_files() - before[2]
    assert threading.active_count() <= len(before[1])


def test_five_hundred_steps_and_seeks_with_branches() -> None:
    _walk(500, check_every=50)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_thousand_steps_and_seeks_with_branches() -> None:
    _walk(10_000, check_every=500)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_an_engine_asked_for_thousands_of_things_does_not_grow(tmp_path: Path) -> None:
    """Over frames: steps, seeks, branches, distributions, new prompts, restores; memory, threads, handles."""
    from model.protocol.engine_requests import OpenModel
    from tests.model.checkpoint import files
    from tests.model.test_faults import start

    generator = random.Random(2)
    with start() as engine:
        engine.result(engine.ask(OpenModel(source=str(files.folder(tmp_path / "tiny")), device="cpu")))
        process = psutil.Process(engine.process.pid)
        before: tuple[int, int, int] | None = None
        for number in range(300):
            engine.frames.clear()
            engine.result(engine.ask(Prefill(text=f"in the end {number % 7}")))
            state = engine.result(engine.ask(Step(n=6, settings=HOT, stop_at_end_of_text=False)))
            path = state["path"]
            for _ in range(10):
                node = generator.choice(path)
                engine.result(engine.ask(Seek(node=node)))
                engine.answer(engine.ask(GetDistribution(node=node, settings=HOT)))
            engine.result(engine.ask(Branch(node=path[2], token_id=generator.randrange(256), settings=HOT)))
            engine.result(engine.ask(Restore(ids=(1, 2, 3), text="", nodes=(), current=2)))
            if number == 60:
                before = (process.memory_info().rss, process.num_threads(), process.num_fds())
        assert before is not None
        assert process.memory_info().rss - before[0] < SETTLED_MB << 20
        assert (process.num_threads(), process.num_fds()) == before[1:]
        assert os.getpid() == process.ppid()
