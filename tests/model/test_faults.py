"""Faults given to the real engine on a tiny model: files that change under it, memory that ends, streams that lie,
signals at every stage. What it answers, that it goes on or ends, and that nothing outlives it."""

from __future__ import annotations

import os
import random
import signal
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from model import process
from model.handlers.text import MAX_TOKENS
from model.protocol.attention_requests import HeadView
from model.protocol.engine_requests import Hello, OpenModel
from model.protocol.export_requests import ExportAttention
from model.protocol.framing import MAGIC, encode_frame
from model.protocol.run_requests import Prefill, Restore, Step, Tokenize
from model.protocol.values import Node, SamplerSettings
from model.protocol.wire import Request, read_value, request_frame
from model.server import EXIT_WEIGHTS_CUT
from tests.model.checkpoint import files
from tests.model.engine_child import EngineChild, alive

ROOT = Path(process.__file__).resolve().parents[1]
COMMAND = [sys.executable, "-P", "-m", "model", "engine", "--threads", "1"]
HOT = SamplerSettings(temperature=1.5, top_k=0, top_p=1.0, seed=3)
ON = Step(n=3, settings=HOT, stop_at_end_of_text=False)
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and /proc are Linux'")


def start(command: list[str] | None = None) -> EngineChild:
    return EngineChild(command or COMMAND, PYTHONPATH=str(ROOT), DECODERSCOPE_NICE="0")


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Slow enough that a signal can come in the middle."""
    return files.folder(
        tmp_path_factory.mktemp("big"), num_hidden_layers=24, max_position_embeddings=4096, hidden_size=64
    )


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineChild]:
    with start() as child:
        child.result(child.ask(OpenModel(source=str(files.folder(tmp_path / "tiny")), device="cpu")))
        yield child


def run(engine: EngineChild) -> list[int]:
    """A prompt and three tokens; their ids."""
    engine.result(engine.ask(Prefill(text="in the end")))
    return [node["token_id"] for node in engine.result(engine.ask(ON))["nodes"]]


# --- a model's files change while it is open


def _truncate(path: Path) -> None:
    os.truncate(path, 1000)


def _delete(path: Path) -> None:
    path.unlink()


def _garble(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))


@pytest.mark.parametrize("change", [_truncate, _delete, _garble])
def test_a_model_whose_files_change_goes_on_and_opening_it_again_is_refused(
    engine: EngineChild, tmp_path: Path, change: object
) -> None:
    before = run(engine)
    change(tmp_path / "tiny" / "model.safetensors")  # type: ignore[operator]
    assert run(engine) == before
    refusal = engine.error(engine.ask(OpenModel(source=str(tmp_path / "tiny"), device="cpu")))
    assert refusal["code"] in {"bad_file", "unsupported"} and str(tmp_path) in refusal["message"]
    assert run(engine) == before  # the model that was open still is


def test_a_prepared_copy_that_is_damaged_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(cache))
    source = files.tiny_gguf(tmp_path / "tiny.gguf")
    with start() as first:
        first.result(first.ask(OpenModel(source=str(source), device="cpu")))
        before = run(first)
        [weights] = [path for path in cache.rglob("*") if path.is_file() and path.stat().st_size > 50_000]
        os.truncate(weights, 100)  # mapped: to read on would end the process by SIGBUS
        refusal = first.error(first.ask(Prefill(text="in the end")))
        assert (
            refusal["code"] == "weights_cut"
            and "100 bytes" in refusal["message"]
            and str(weights) in refusal["message"]
        )
        assert first.ended(20) == EXIT_WEIGHTS_CUT
    with start() as second:
        second.result(second.ask(OpenModel(source=str(source), device="cpu")))
        assert run(second) == before


# --- memory ends


@linux
def test_with_little_memory_a_prompt_is_refused_or_the_engine_ends_and_the_next_one_restores(big: Path) -> None:
    with start() as first:
        first.result(first.ask(OpenModel(source=str(big), device="cpu")))
        prefill = first.result(first.ask(Prefill(text="in the end")))
        state = first.result(first.ask(ON))
        import resource

        used = psutil.Process(first.process.pid).memory_info().vms
        resource.prlimit(first.process.pid, resource.RLIMIT_AS, (used + (8 << 20), used + (8 << 20)))
        asked = first.ask(Prefill(text="word " * 800))
        try:
            error = first.error(asked)
        except (AssertionError, OSError):  # the kernel or a library ended it: the window restarts it
            assert first.ended(20) != 0
        else:
            assert error["code"] == "out_of_memory" and "shorter prompt" in error["message"]
            assert len(first.result(first.ask(ON))["path"]) == 6  # the old run is whole and goes on
    nodes = tuple(read_value(node, Node) for node in state["nodes"])
    with start() as second:
        second.result(second.ask(OpenModel(source=str(big), device="cpu")))
        ids = tuple(token["id"] for token in prefill["tokens"])
        back = second.result(second.ask(Restore(ids=ids, text=prefill["text"], nodes=nodes, current=state["current"])))
        assert back["state"]["path"] == state["path"] and back["state"]["text"] == state["text"]


# --- signals at every stage

STAGES: dict[str, list[Request]] = {
    "loading": [],
    "idle": [],
    "prefill": [Prefill(text="word " * 500, chunk=16)],
    "decode": [Step(n=4000, settings=HOT, stop_at_end_of_text=False)],
    "export": [ExportAttention(view=HeadView(layer=0, head=0), formats=("png",), dpi=600)],
    "queue": [Prefill(text="word " * 500, chunk=16), Prefill(text="b"), Tokenize(text="c" * 10_000)],
}


@linux
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_at_any_stage_ends_the_engine_and_leaves_no_process(
    big: Path, stage: str, number: signal.Signals
) -> None:
    with start() as engine:
        engine.result(engine.ask(Hello()))
        opening = engine.ask(OpenModel(source=str(big), device="cpu"))
        if stage != "loading":
            engine.result(opening)
            engine.result(engine.ask(Prefill(text="in the end")))
        for message in STAGES[stage]:
            engine.ask(message)
        if stage in {"prefill", "decode"}:
            kind = "progress" if stage == "prefill" else "part"
            engine.wait(lambda frame: kind in frame.header and frame.header["id"] > 3)
        helpers = psutil.Process(engine.process.pid).children(recursive=True)
        os.kill(engine.process.pid, number)
        assert engine.ended(10) == -number
        psutil.wait_procs(helpers, timeout=5)
        assert not [helper for helper in helpers if alive(helper.pid)]
        if number is signal.SIGSEGV:
            assert engine.process.stderr is not None
            assert b"Segmentation fault" in engine.process.stderr.read()  # faulthandler's words, for the report


# --- streams that lie


def _cut(frame: bytes) -> bytes:
    return frame[: len(frame) // 2]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\0" * 64, 2),
        (struct.pack("<4sIQ", MAGIC, 16 << 20, 1 << 62), 2),
        (struct.pack("<4sIQ", MAGIC, 7, 64) + b'{"v":1}' + b"\xff" * 64, 2),
        (struct.pack("<4sIQ", MAGIC, 9, 0) + b'{"v":999}', 2),
        (_cut(encode_frame(request_frame(9, Tokenize(text="a")))), 0),  # the end of the stream in the middle of a frame
    ],
    ids=["garbage", "oversized", "bad blob", "newer", "cut"],
)
def test_the_real_engine_ends_a_stream_it_cannot_understand(engine: EngineChild, data: bytes, code: int) -> None:
    helpers = psutil.Process(engine.process.pid).children(recursive=True)
    engine.write(data)
    if code == 0:
        engine.close()
    assert engine.ended(10) == code
    assert not [helper for helper in helpers if alive(helper.pid)]


def test_a_fault_in_the_reader_itself_ends_the_engine_instead_of_leaving_it_deaf() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests import fake_engine\nimport model.server\n"
        "def fail(frame): raise ValueError('nobody thought of this')\n"
        "model.server.read_request = fail\nfake_engine.main()"
    )
    with EngineChild([sys.executable, "-P", "-c", code]) as engine:
        engine.ask(Hello())
        failure = engine.wait(lambda frame: "error" in frame.header and frame.header["id"] is None)
        assert "nobody thought of this" in failure.header["error"]["message"]
        assert engine.ended(5) == 2


def test_requests_of_every_wrong_shape_are_answered_and_the_engine_goes_on(engine: EngineChild) -> None:
    """Fields of hostile values: each request is answered once, and the run is as it was."""
    before = run(engine)
    hostile = ["\ud800", -1, 2**64, 1e308, None, [], {}, "x" * 10_000, [[[]]] * 100, True]
    generator = random.Random(3)
    ids = []
    for number in range(1000, 1200):
        header = request_frame(number, generator.choice([ON, Prefill(text="a"), Tokenize(text="b"), Hello()])).header
        fields = header["params"] or {"x": 0}
        fields[generator.choice(list(fields))] = generator.choice(hostile)
        frame = request_frame(number, Hello())
        frame.header.update(
            header | {"method": generator.choice([header["method"], "run.stp", "sampling.distribution"])}
        )
        engine.write(encode_frame(frame))
        ids.append(number)
    for number in ids:
        engine.answer(number)
    assert run(engine) == before


# --- the engine and the network


@linux
def test_the_engine_opens_no_port_and_no_connection(engine: EngineChild) -> None:
    run(engine)
    child = psutil.Process(engine.process.pid)
    for found in (child, *child.children(recursive=True)):
        assert found.net_connections(kind="inet") == []
        held = [str(name.readlink()) for name in Path(f"/proc/{found.pid}/fd").iterdir()]
        assert not [name for name in held if name.startswith("socket:")]


# --- prompts


def test_a_megabyte_is_tokenised_refused_and_cut_when_asked(engine: EngineChild) -> None:
    text = "word 日本 \U0001f468\u200d\U0001f469\u200d\U0001f467 " * (1_000_000 // 30)
    assert 900_000 < len(text.encode()) < 1_300_000
    frame = engine.answer(engine.ask(Tokenize(text=text)))
    assert frame.header["result"]["count"] > MAX_TOKENS == len(frame.arrays["kind"])  # counted whole, listed as drawn
    refusal = engine.error(engine.ask(Prefill(text=text)))
    assert refusal["code"] == "prompt_too_long" and "64" in refusal["message"]
    cut = engine.result(engine.ask(Prefill(text=text, truncate=True)))
    assert cut["state"]["n_prompt"] == 64 == len(cut["tokens"])
    end = engine.result(engine.ask(ON))
    assert end["stop"] == "context_full" and end["nodes"] == []
    assert run(engine)


def test_two_engines_share_a_cache_without_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    source = files.tiny_gguf(tmp_path / "tiny.gguf")
    with start() as one, start() as other:
        asked = [(child, child.ask(OpenModel(source=str(source), device="cpu"))) for child in (one, other)]
        for child, number in asked:
            child.result(number)
        assert run(one) == run(other)
    assert not list((tmp_path / "cache").rglob("*.partial"))
