"""The real engine as a child process on a tiny model: every request of the main job, over frames."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from model import process
from model.handler_registry import HANDLERS
from model.handlers.text import MAX_TOKENS
from model.protocol.attention_requests import (
    CellReply,
    GetCell,
    GetColumn,
    GetEntropy,
    GetGrid,
    GetMatrix,
    GetMetrics,
    GetRow,
    HeadView,
    MatrixReply,
)
from model.protocol.engine_requests import (
    CatalogueEntry,
    CloseModel,
    GetMemory,
    GetModel,
    Hello,
    HelloReply,
    LoadPlan,
    OpenModel,
    PlanModel,
    SetBudget,
)
from model.protocol.run_requests import (
    Branch,
    DistributionReply,
    ExpectedReply,
    GetDistribution,
    GetExpected,
    GetPromptStats,
    Prefill,
    PrefillReply,
    PromptStatsReply,
    Restore,
    Seek,
    Step,
    StepPart,
    Tokenize,
    TokenizeReply,
)
from model.protocol.token_run import TokenRun
from model.protocol.values import MemoryInfo, ModelInfo, RunState, SamplerSettings, Token
from model.protocol.wire import REQUESTS, Request, read_value
from tests.model.checkpoint import files
from tests.model.engine_child import EngineChild

T = TypeVar("T")
GREEDY = SamplerSettings(temperature=0.0)
HOT = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0, seed=3)
PROMPT = "in the end"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def child() -> Iterator[EngineChild]:
    root = Path(process.__file__).resolve().parents[1]
    command = [sys.executable, "-P", "-m", "model", "engine", "--threads", "1"]
    with EngineChild(command, PYTHONPATH=str(root), DECODERSCOPE_NICE="0") as engine:
        yield engine


@pytest.fixture
def engine(child: EngineChild, tiny: Path) -> EngineChild:
    """The engine with the tiny model open and no run."""
    child.frames.clear()
    get(child, OpenModel(source=str(tiny), device="cpu"), ModelInfo)
    return child


def get(engine: EngineChild, message: Request, kind: type[T]) -> T:
    assert message.reply is kind
    return read_value(engine.result(engine.ask(message)), kind)


def listed(engine: EngineChild, message: Tokenize) -> tuple[Token, ...]:
    """The tokens that an answer lists."""
    frame = engine.answer(engine.ask(message))
    return tuple(TokenRun.read(read_value(frame.header["result"], TokenizeReply).pieces, frame.arrays))


def arrays(engine: EngineChild, message: Request) -> Any:
    return engine.answer(engine.ask(message)).arrays


def test_every_request_has_exactly_one_handler() -> None:
    importlib.import_module("model.handlers")
    importlib.import_module("model.protocol")
    ours = {name: kind for name, kind in REQUESTS.items() if kind.__module__.startswith("model.protocol.")}
    assert {kind.method for kind in HANDLERS} == set(ours)


def test_hello_tells_who_answers(child: EngineChild) -> None:
    hello = get(child, Hello(), HelloReply)
    assert (hello.pid, hello.threads) == (child.process.pid, 1) and hello.torch.startswith("2.")
    assert hello.devices[-1].name == "cpu" and hello.devices[-1].total_bytes > hello.devices[-1].free_bytes > 0
    assert [entry.name for entry in hello.catalogue] == ["smollm2-135m-instruct"]


def test_without_a_model_or_a_run_requests_say_what_is_missing(child: EngineChild, tiny: Path) -> None:
    child.result(child.ask(CloseModel()))
    nothing: list[Request] = [Tokenize(text="a"), Prefill(text="a"), Step(settings=GREEDY)]
    for message in nothing:
        assert child.error(child.ask(message))["code"] == "no_model"
    assert get(child, GetMemory(), MemoryInfo).weights == 0
    get(child, OpenModel(source=str(tiny)), ModelInfo)
    early: list[Request] = [Step(settings=GREEDY), Seek(node=0), GetDistribution(node=0, settings=GREEDY)]
    for message in early:
        assert child.error(child.ask(message))["code"] == "no_run"
    assert get(child, GetMemory(), MemoryInfo).weights > 0


def test_a_plan_reads_no_weights_and_a_refusal_keeps_the_model(engine: EngineChild, tiny: Path, tmp_path: Path) -> None:
    plan = get(engine, PlanModel(source=str(tiny), dtype="bfloat16"), LoadPlan)
    assert plan.fits and plan.weight_bytes == 2 * plan.parameters and plan.family == "llama"
    run = get(engine, Prefill(text=PROMPT), PrefillReply)
    broken = files.folder(tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"PK\x03\x04")
    refusal = engine.error(engine.ask(OpenModel(source=str(broken))))
    assert refusal["code"] != "internal" and str(broken) in refusal["message"]
    state = get(engine, Step(settings=GREEDY), RunState)
    assert state.run_id == run.state.run_id and state.length == run.state.length + 1


def test_the_catalogue_model_is_got_without_the_network(child: EngineChild, default_model_path: Path) -> None:
    entry = get(child, GetModel(name=""), CatalogueEntry)
    assert entry.name == "smollm2-135m-instruct" and Path(entry.path).samefile(default_model_path)


def test_the_text_is_tokenised_as_it_is_typed(engine: EngineChild) -> None:
    text = "in the\nend \ud83d你"
    reply = get(engine, Tokenize(text=text), TokenizeReply)
    assert reply.text == text and reply.notice == ""
    tokens = listed(engine, Tokenize(text=text))
    assert [text[token.start : token.end] for token in tokens[:3]] == ["in", " the", "\n"]
    assert sum(token.part for token in tokens) >= 3
    assert listed(engine, Tokenize(text="")) == ()
    assert len(listed(engine, Tokenize(text="x " * 60_000))) == 120_000
    long = Tokenize(text="x " * (MAX_TOKENS // 2 + 8))
    assert len(listed(engine, long)) == MAX_TOKENS
    assert get(engine, long, TokenizeReply).count == MAX_TOKENS + 16


def test_a_chat_is_shown_and_prefilled_as_the_text_it_becomes(
    child: EngineChild, default_model_path: Path, tiny: Path
) -> None:
    get(child, OpenModel(source=str(default_model_path)), ModelInfo)
    shown = get(child, Tokenize(text="Hi\ud83d", chat=True), TokenizeReply)
    assert shown.notice == "" and shown.text.endswith("<|im_start|>user\nHi\ud83d<|im_end|>\n<|im_start|>assistant\n")
    tokens = listed(child, Tokenize(text="Hi\ud83d", chat=True))
    assert [token.piece for token in tokens if token.special][-3:] == [
        "<|im_start|>", "<|im_end|>", "<|im_start|>",
    ]  # fmt: skip
    prefill = get(child, Prefill(text="Hi\ud83d", chat=True), PrefillReply)
    assert prefill.text == shown.text and prefill.tokens == tokens
    bare = files.folder(tiny.parent / "no-template")
    (bare / "tokenizer_config.json").write_text("{}")
    get(child, OpenModel(source=str(bare)), ModelInfo)
    plain = get(child, Tokenize(text="Hi", chat=True), TokenizeReply)
    assert plain.text == "Hi" and "came without one" in plain.notice


def test_prefill_step_back_and_forth_and_branch(engine: EngineChild) -> None:
    prefill = get(engine, Prefill(text=PROMPT), PrefillReply)
    state, root = prefill.state, prefill.state.n_prompt - 1
    assert prefill.text == PROMPT and state.n_prompt == len(prefill.tokens) == state.length and state.prefill_ms > 0
    asked = engine.ask(Step(n=5, settings=HOT, stop_at_end_of_text=False))
    after = read_value(engine.result(asked), RunState)
    parts = [read_value(frame.header["part"], StepPart) for frame in engine.of(asked, "part")]
    assert [part.node for part in parts] == list(after.nodes) and len(after.nodes) == 5
    assert parts[-1].text == after.text and parts[-1].length == after.length == state.length + 5
    back = get(engine, Seek(node=after.path[1]), RunState)
    assert back.path == after.path[:2] and back.nodes == () and back.length == state.length + 2
    again = get(engine, Step(n=3, settings=HOT, stop_at_end_of_text=False), RunState)
    assert again.path == after.path and again.nodes == ()  # the same draws: gone to, not made
    other = get(engine, Branch(node=root, token_id=7, settings=HOT), RunState)
    assert other.length == state.length + 1 and other.nodes[0].forced and other.nodes[0].token_id == 7
    assert get(engine, Seek(node=after.path[-1]), RunState).text == after.text
    assert engine.error(engine.ask(Seek(node=999)))["code"] == "no_node"
    assert engine.error(engine.ask(Branch(node=root, token_id=10**6, settings=HOT)))["code"] == "bad_value"


def test_a_lost_run_is_made_again(engine: EngineChild, tiny: Path) -> None:
    prefill = get(engine, Prefill(text=PROMPT), PrefillReply)
    get(engine, Step(n=4, settings=HOT, stop_at_end_of_text=False), RunState)
    root = prefill.state.n_prompt - 1
    forced = get(engine, Branch(node=root, token_id=5, settings=HOT), RunState)
    current = get(engine, Step(n=2, settings=GREEDY, stop_at_end_of_text=False), RunState)
    ids = tuple(token.id for token in prefill.tokens)
    bare = get(engine, Restore(ids=ids, text=PROMPT, nodes=(), current=root), PrefillReply)
    assert bare.state.nodes == () and bare.tokens == prefill.tokens
    get(engine, OpenModel(source=str(tiny)), ModelInfo)
    first = get(engine, Prefill(text=PROMPT), PrefillReply)
    nodes = get(engine, Step(n=4, settings=HOT, stop_at_end_of_text=False), RunState).nodes
    nodes += tuple(forced.nodes) + tuple(current.nodes)
    made = get(engine, Restore(ids=ids, text=PROMPT, nodes=nodes, current=current.current), PrefillReply)
    assert made.state.run_id > first.state.run_id
    assert made.state.path == current.path and made.state.text == current.text
    same = [(n.id, n.parent, n.token_id, n.draw, n.settings, n.forced) for n in made.state.nodes]
    assert same == [(n.id, n.parent, n.token_id, n.draw, n.settings, n.forced) for n in nodes]


def test_a_prompt_too_long_is_refused_unless_it_may_be_cut(engine: EngineChild) -> None:
    text = "a" * 100
    assert engine.error(engine.ask(Prefill(text=text)))["code"] == "prompt_too_long"
    assert engine.error(engine.ask(Prefill(text="")))["code"] == "prompt"
    cut = get(engine, Prefill(text=text, truncate=True), PrefillReply)
    assert cut.state.length == cut.state.n_ctx == 64 == len(cut.tokens) and cut.text == "a" * 64
    full = get(engine, Step(settings=GREEDY), RunState)
    assert full.stop == "context_full" and full.nodes == ()
    ids = get(engine, Prefill(ids=(1, 2, 3)), PrefillReply)
    assert [token.id for token in ids.tokens] == [1, 2, 3]


def test_the_distribution_follows_the_sliders_without_the_model(engine: EngineChild) -> None:
    root = get(engine, Prefill(text=PROMPT), PrefillReply).state.n_prompt - 1
    asked = engine.ask(GetDistribution(node=root, settings=HOT, top=300, search="the"))
    reply, cdf = read_value(engine.result(asked), DistributionReply), engine.answer(asked).arrays["cdf"]
    assert len(reply.candidates) == reply.kept == cdf.size == 300
    assert np.cumsum([one.p for one in reply.candidates]) == pytest.approx(cdf, abs=1e-12)
    assert sum(one.p_raw for one in reply.candidates) == pytest.approx(1)
    assert [one.rank for one in reply.candidates] == list(range(300))
    assert reply.candidates == tuple(sorted(reply.candidates, key=lambda one: (-one.logit, one.id)))
    assert reply.would_pick.id == reply.candidates[int(np.searchsorted(cdf, reply.draw, side="right"))].id
    assert {one.piece for one in reply.found} == {"the", "·the"}
    step = get(engine, Step(settings=HOT, stop_at_end_of_text=False), RunState).nodes[0]
    assert (step.token_id, step.draw) == (reply.would_pick.id, reply.draw)
    outside = 0
    for seed in range(20):  # the token that the draw falls on is always among them, once
        asked_for = GetDistribution(node=root, settings=replace(HOT, seed=seed), top=20)
        few = get(engine, asked_for, DistributionReply)
        assert [one.rank for one in few.candidates[:20]] == list(range(20))
        assert few.candidates[20:] == ((few.would_pick,) if few.would_pick.rank >= 20 else ())
        outside += len(few.candidates) - 20
    assert 0 < outside < 20
    narrow = SamplerSettings(temperature=0.7, top_k=5, top_p=0.9, seed=3)
    reply = get(engine, GetDistribution(node=root, settings=narrow, search="17"), DistributionReply)
    assert [stage.kept for stage in reply.stages][:4] == [300, 300, 300, 5] and reply.kept <= 5
    assert reply.found[0].id == 17 and reply.draw == step.draw
    assert reply.entropy < reply.entropy_raw


def test_every_view_of_attention_answers(engine: EngineChild) -> None:
    n = get(engine, Prefill(text=PROMPT), PrefillReply).state.length
    view = HeadView(layer=1, head=2)
    answer = engine.answer(engine.ask(GetMatrix(view=view)))
    matrix = read_value(answer.header["result"], MatrixReply)
    values = answer.arrays["values"]
    assert matrix.length == n and values.shape == answer.arrays["pixels"].shape == (n, n)
    assert np.nansum(values, 1) == pytest.approx(np.ones(n), abs=1e-5)
    assert np.isnan(values[np.triu_indices(n, 1)]).all()
    row, column = arrays(engine, GetRow(view=view, query=n - 1)), arrays(engine, GetColumn(view=view, key=0))
    np.testing.assert_allclose(row["values"], values[-1], atol=1e-6)
    np.testing.assert_allclose(column["values"], values[:, 0], atol=1e-6)
    cell = get(engine, GetCell(view=view, query=n - 1, key=1), CellReply)
    assert cell.visible and cell.value == pytest.approx(float(values[-1, 1]), abs=1e-6)
    assert get(engine, GetCell(view=view, query=0, key=1), CellReply).value is None
    assert arrays(engine, GetEntropy(view=view))["entropy"].shape == (n,)
    grid = engine.ask(GetGrid(layers=(1, 0), size=4), priority="background")
    engine.result(grid)
    parts = engine.of(grid, "part")
    assert [part.header["part"]["layer"] for part in parts] == [1, 0]
    assert parts[0].arrays["pixels"].shape == (4, 4, 4)
    assert arrays(engine, GetMetrics())["entropy"].shape == (2, 4)
    assert engine.error(engine.ask(GetRow(view=view, query=n)))["code"] == "bad_value"


def test_what_was_expected_of_the_prompt(engine: EngineChild) -> None:
    n = get(engine, Prefill(text=PROMPT), PrefillReply).state.length
    asked = engine.ask(GetPromptStats(), priority="background")
    stats, per_token = read_value(engine.result(asked), PromptStatsReply), engine.answer(asked).arrays
    assert stats.complete and (stats.first, stats.last) == (0, n - 1)
    assert stats.mean_cross_entropy == pytest.approx(-per_token["logprob"][1:].mean(), rel=1e-5)
    expected = get(engine, GetExpected(position=2), ExpectedReply)
    assert expected.token.rank == per_token["rank"][2] and len(expected.top) == 10
    assert np.log(expected.token.p_raw) == pytest.approx(per_token["logprob"][2], abs=1e-5)
    get(engine, Prefill(ids=(1,)), PrefillReply)
    alone = get(engine, GetPromptStats(), PromptStatsReply)
    assert np.isnan(alone.perplexity) and alone.complete


def test_views_of_the_old_run_come_while_a_new_one_is_prefilled(child: EngineChild, default_model_path: Path) -> None:
    get(child, OpenModel(source=str(default_model_path)), ModelInfo)
    old = get(child, Prefill(text="Once upon a time"), PrefillReply)
    prefill = child.ask(Prefill(text="Once upon a time there was " * 50))
    child.wait(lambda frame: frame.header.get("id") == prefill)
    for layer in range(5):
        matrix = get(child, GetMatrix(view=HeadView(layer=layer, head=0)), MatrixReply)
        assert matrix.run_id == old.state.run_id and matrix.length == old.state.length
    assert not child.of(prefill, "result")
    alone = get(child, Prefill(text="Once upon a time there was " * 50), PrefillReply)
    while_viewed = read_value(child.result(prefill), PrefillReply)
    assert while_viewed.state.text == alone.state.text


def test_a_cancelled_prefill_leaves_the_old_run(engine: EngineChild, default_model_path: Path, tiny: Path) -> None:
    get(engine, OpenModel(source=str(default_model_path)), ModelInfo)
    old = get(engine, Prefill(text="Once upon a time"), PrefillReply)
    for delay in (0.3, 0.6, 0.9):
        asked = engine.ask(Prefill(text="Once upon a time there was " * 400))
        engine.wait(lambda frame, asked=asked: frame.header.get("id") == asked)  # type: ignore[misc]
        time.sleep(delay)
        begun = time.monotonic()
        engine.cancel(asked)
        assert engine.error(asked)["code"] == "cancelled"
        took = time.monotonic() - begun
        assert took < 0.5, took  # 0.2 s on a machine of its own; this one is shared
    steps = engine.ask(Step(n=500, settings=GREEDY, stop_at_end_of_text=False))
    engine.wait(lambda frame: frame.header.get("id") == steps and "part" in frame.header)
    engine.cancel(steps)
    state = read_value(engine.result(steps), RunState)
    assert state.stop == "cancelled" and state.run_id == old.state.run_id
    assert state.length == old.state.length + len(state.nodes) and 0 < len(state.nodes) < 500
    more = get(engine, Step(n=2, settings=GREEDY, stop_at_end_of_text=False), RunState)
    assert more.length == state.length + 2 and more.stop == ""


def test_a_budget_refuses_a_prompt_until_it_is_raised(engine: EngineChild) -> None:
    assert get(engine, SetBudget(bytes=1000), MemoryInfo).weights > 0
    try:
        error = engine.error(engine.ask(Prefill(text=PROMPT)))
        assert error["code"] == "budget" and "the budget is 1 kB" in error["message"]
        get(engine, SetBudget(bytes=1 << 30), MemoryInfo)
        assert get(engine, Prefill(text=PROMPT), PrefillReply).state.memory.budget == 1 << 30
        assert get(engine, SetBudget(bytes=1 << 29), MemoryInfo).budget == 1 << 29  # of the run that is open too
        error = engine.error(engine.ask(SetBudget(bytes=1 << 60)))
        assert error["code"] == "budget" and "are free" in error["message"]
    finally:
        assert get(engine, SetBudget(bytes=0), MemoryInfo).budget > 1 << 29
