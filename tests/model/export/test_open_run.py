"""Opening run files through the engine: with the model, without it, with another, damaged, beside the request."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from model import process
from model.protocol.attention_requests import GetMatrix, HeadView
from model.protocol.engine_requests import CloseModel, OpenModel
from model.protocol.export_requests import ExportReply, ExportRun, FilePart, RunContents
from model.protocol.run_file_requests import (
    GetRunSizes,
    OpenRun,
    OpenRunReply,
    PeekRun,
    RunFileInfo,
    RunSizesReply,
)
from model.protocol.run_requests import (
    DistributionReply,
    GetDistribution,
    GetPromptStats,
    Prefill,
    PrefillReply,
    Seek,
    Step,
    Tokenize,
)
from model.protocol.values import ModelInfo, RunState, SamplerSettings
from model.protocol.wire import Request, read_value
from tests.model.checkpoint import files
from tests.model.engine_child import EngineChild

T = TypeVar("T")
HOT = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0, seed=3)
PROMPT = "in the end"
MATRIX = GetMatrix(view=HeadView(layer=1, head=2), height=64, width=64)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineChild]:
    root = Path(process.__file__).resolve().parents[1]
    command = [sys.executable, "-P", "-m", "model", "engine", "--threads", "1"]
    with EngineChild(command, PYTHONPATH=str(root), DECODERSCOPE_NICE="0") as engine:
        yield engine


def get(engine: EngineChild, message: Request, kind: type[T]) -> T:
    return read_value(engine.result(engine.ask(message)), kind)


def saved(engine: EngineChild, path: Path, contents: RunContents = "all", max_bytes: int = 0) -> Path:
    asked = engine.ask(ExportRun(contents=contents, max_bytes=max_bytes))
    reply = read_value(engine.result(asked), ExportReply)
    parts = engine.of(asked, "part")
    assert [read_value(frame.header["part"], FilePart).name for frame in parts] == ["run.dscope"] * len(parts)
    path.write_bytes(b"".join(frame.arrays["data"].tobytes() for frame in parts))
    assert path.stat().st_size == reply.files[0].size
    return path


@pytest.fixture
def run(engine: EngineChild, tiny: Path) -> RunState:
    """A run of four steps on the tiny model, and a branch it went back from."""
    engine.frames.clear()
    get(engine, OpenModel(source=str(tiny), device="cpu"), ModelInfo)
    prompt = get(engine, Prefill(text=PROMPT), PrefillReply)
    get(engine, Step(n=2, settings=SamplerSettings(temperature=0.0)), RunState)
    get(engine, Seek(node=prompt.state.n_prompt - 1), RunState)
    return get(engine, Step(n=4, settings=HOT, stop_at_end_of_text=False), RunState)


def pixels(engine: EngineChild) -> np.ndarray:
    return engine.answer(engine.ask(MATRIX)).arrays["values"]


def test_with_its_model_open_the_run_goes_on(engine: EngineChild, tiny: Path, run: RunState, tmp_path: Path) -> None:
    path, before = saved(engine, tmp_path / "a.dscope"), pixels(engine)
    get(engine, Prefill(text="other"), PrefillReply)
    seen = get(engine, PeekRun(path=str(path)), RunFileInfo)
    assert (seen.model, seen.contents, seen.n_prompt, seen.steps) == (tiny.name, "all", run.n_prompt, 6)
    assert seen.size == path.stat().st_size and seen.text == run.text and seen.source.endswith(tiny.name)
    opened = get(engine, OpenRun(path=str(path)), OpenRunReply)
    assert not (opened.recorded or opened.other or opened.model.recorded)
    assert (opened.prompt, opened.state.path, opened.state.text) == (PROMPT, run.path, run.text)
    assert [token.id for token in opened.tokens] and len(opened.tokens) == run.n_prompt
    assert len(opened.state.nodes) == 6
    assert np.array_equal(pixels(engine).view(np.uint32), before.view(np.uint32))
    assert get(engine, Step(settings=HOT, stop_at_end_of_text=False), RunState).length == run.length + 1


def test_without_its_model_the_run_is_looked_at(engine: EngineChild, run: RunState, tmp_path: Path) -> None:
    path, before = saved(engine, tmp_path / "a.dscope"), pixels(engine)
    stats = engine.answer(engine.ask(GetPromptStats())).arrays
    distribution = get(engine, GetDistribution(node=run.current, settings=HOT), DistributionReply)
    get(engine, CloseModel(), object)
    opened = get(engine, OpenRun(path=str(path)), OpenRunReply)
    assert opened.recorded and not opened.other and opened.model.recorded
    assert opened.state.text == run.text and opened.prompt == PROMPT
    assert np.array_equal(pixels(engine).view(np.uint32), before.view(np.uint32))
    assert get(engine, GetDistribution(node=run.current, settings=HOT), DistributionReply) == distribution
    assert get(engine, Seek(node=run.path[0]), RunState).length == run.n_prompt + 1
    assert get(engine, Seek(node=run.current), RunState).path == run.path
    other = next(node.id for node in opened.state.nodes if node.id not in run.path)
    refused: list[Request] = [Step(settings=HOT), Prefill(text="a"), Tokenize(text="a"), Seek(node=other)]
    for message in refused:
        error = engine.error(engine.ask(message))
        assert error["code"] == "recorded" and "Open" in error["message"], error
    assert get(engine, Seek(node=run.path[1]), RunState).path == run.path[:2]
    for contents in ("all", "attention"):
        recorded = engine.answer(engine.ask(GetPromptStats())).arrays
        assert all(np.array_equal(recorded[name], stats[name], equal_nan=name != "rank") for name in stats)
        get(engine, OpenRun(path=str(saved(engine, tmp_path / "b.dscope", contents))), OpenRunReply)
    again = saved(engine, tmp_path / "b.dscope")
    assert get(engine, OpenRun(path=str(again)), OpenRunReply).state.path == run.path[:2]


def test_another_model_gives_way_to_the_record(engine: EngineChild, run: RunState, tiny: Path, tmp_path: Path) -> None:
    path = saved(engine, tmp_path / "a.dscope", "attention")
    other = files.folder(tmp_path / "other", num_hidden_layers=1)
    get(engine, OpenModel(source=str(other), device="cpu"), ModelInfo)
    opened = get(engine, OpenRun(path=str(path)), OpenRunReply)
    assert opened.recorded and opened.other and opened.model.n_layers == 2
    assert get(engine, GetRunSizes(), RunSizesReply).all == -1
    assert saved(engine, tmp_path / "b.dscope").stat().st_size == pytest.approx(path.stat().st_size, rel=0.01)
    get(engine, OpenModel(source=str(tiny), device="cpu"), ModelInfo)
    assert not get(engine, OpenRun(path=str(path)), OpenRunReply).recorded
    assert get(engine, Step(settings=HOT, stop_at_end_of_text=False), RunState).length == run.length + 1


@pytest.mark.parametrize("contents", ["all", "attention"])
def test_the_same_model_in_another_dtype_gives_way_to_the_recorded_numbers(
    engine: EngineChild, tiny: Path, tmp_path: Path, contents: RunContents
) -> None:
    engine.frames.clear()
    get(engine, OpenModel(source=str(tiny), device="cpu", dtype="bfloat16"), ModelInfo)
    get(engine, Prefill(text=PROMPT), PrefillReply)
    run = get(engine, Step(n=3, settings=HOT, stop_at_end_of_text=False), RunState)
    path, before = saved(engine, tmp_path / "a.dscope", contents), pixels(engine)
    get(engine, OpenModel(source=str(tiny), device="cpu", dtype="float32"), ModelInfo)
    opened = get(engine, OpenRun(path=str(path)), OpenRunReply)
    assert opened.recorded and opened.other and opened.model.dtype == "bfloat16"
    assert opened.state.nodes == run.nodes
    assert np.array_equal(pixels(engine).view(np.uint32), before.view(np.uint32))
    get(engine, OpenModel(source=str(tiny), device="cpu", dtype="bfloat16"), ModelInfo)
    assert not get(engine, OpenRun(path=str(path)), OpenRunReply).recorded


def test_text_alone_needs_the_model(engine: EngineChild, run: RunState, tiny: Path, tmp_path: Path) -> None:
    path = saved(engine, tmp_path / "a.dscope", "text")
    get(engine, CloseModel(), object)
    assert engine.error(engine.ask(OpenRun(path=str(path))))["code"] == "run_needs_model"
    get(engine, OpenModel(source=str(tiny), device="cpu"), ModelInfo)
    opened = get(engine, OpenRun(path=str(path)), OpenRunReply)
    assert [node.token_id for node in opened.state.nodes] and opened.state.path == run.path


def test_sizes_are_those_of_the_files(engine: EngineChild, run: RunState, tmp_path: Path) -> None:
    sizes = get(engine, GetRunSizes(), RunSizesReply)
    kinds: tuple[RunContents, ...] = ("text", "attention", "all")
    for contents in kinds:
        size = saved(engine, tmp_path / contents, contents).stat().st_size
        assert 0 < size - getattr(sizes, contents) < 20_000
    assert saved(engine, tmp_path / "small", max_bytes=1).stat().st_size == (tmp_path / "text").stat().st_size


def test_a_file_may_come_beside_the_request(engine: EngineChild, run: RunState, tmp_path: Path) -> None:
    data = np.fromfile(saved(engine, tmp_path / "a.dscope"), dtype=np.uint8)
    get(engine, Prefill(text="other"), PrefillReply)
    opened = read_value(engine.result(engine.ask(OpenRun(), arrays={"data": data})), OpenRunReply)
    assert opened.state.path == run.path and not opened.recorded
    assert engine.error(engine.ask(OpenRun()))["code"] == "bad_value"


def test_what_is_no_run_keeps_the_run_there_is(engine: EngineChild, run: RunState, tmp_path: Path) -> None:
    path = saved(engine, tmp_path / "a.dscope")
    broken = tmp_path / "broken.dscope"
    broken.write_bytes(path.read_bytes()[:-9])
    for wrong in (broken, tmp_path, tmp_path / "none.dscope", tmp_path / "tiny"):
        error = engine.error(engine.ask(OpenRun(path=str(wrong))))
        assert error["code"] != "internal" and wrong.name in error["message"], error
    assert get(engine, Step(settings=HOT, stop_at_end_of_text=False), RunState).length == run.length + 1
