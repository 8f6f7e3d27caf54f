"""The engine's stream, lanes, cancels, backpressure, errors and ends, against a child process with fake handlers."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest

from model.protocol.attention_requests import GetGrid, GetMatrix, HeadView
from model.protocol.engine_requests import CloseModel, GetModel, Hello, OpenModel
from model.protocol.export_requests import ExportAttention
from model.protocol.framing import MAGIC, encode_frame
from model.protocol.run_requests import Prefill, Step, Tokenize
from model.protocol.values import SamplerSettings
from model.protocol.wire import request_frame
from tests import fake_engine
from tests.model.engine_child import EngineChild, alive

STEP = SamplerSettings()


def view(layer: int = 0, ms: int = 0) -> GetMatrix:
    return GetMatrix(view=HeadView(layer=layer, head=0), rows=(ms, 0), height=2, width=2)


@pytest.fixture
def engine() -> Iterator[EngineChild]:
    with EngineChild(fake_engine.command()) as child:
        yield child


def test_hello_waits_for_the_import_and_the_start_is_told_before(engine: EngineChild) -> None:
    del engine
    with EngineChild(fake_engine.command(), FAKE_ENGINE_LOAD_SECONDS="0.5") as slow:
        asked = slow.ask(Hello())
        started = slow.wait(lambda frame: frame.header.get("event") == "engine.starting")
        assert started.header["data"]["pid"] == slow.process.pid
        assert not slow.of(asked, "result")
        assert slow.result(asked)["pid"] == slow.process.pid


def test_a_start_that_fails_says_why() -> None:
    with EngineChild(fake_engine.command(), FAKE_ENGINE_BROKEN="1") as child:
        child.ask(Hello())
        failure = child.wait(lambda frame: "error" in frame.header)
        assert failure.header["id"] is None and failure.header["error"]["code"] == "start_failed"
        assert "no torch here" in failure.header["error"]["message"]
        assert child.ended(5) == 1


def test_what_is_printed_does_not_touch_the_stream(engine: EngineChild) -> None:
    assert engine.result(engine.ask(OpenModel(source="print")))["name"] == "fake"
    answer = engine.answer(engine.ask(OpenModel(source="input")))
    assert bytes(answer.arrays["read"]) == b"nothing"  # and what is read is not the stream
    assert engine.result(engine.ask(Hello()))["version"] == "fake"
    engine.close()
    assert engine.process.stderr is not None
    said = engine.process.stderr.read()
    assert b"a library says hello" in said and b"nor through Python" in said


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        ("refuse", "bad_value", "source is 'refuse'"),
        ("raise", "internal", "ZeroDivisionError: on purpose"),
        ("leave", "internal", "SystemExit"),
        ("fault", "device_failed", "Restart the engine"),
        ("allocate", "out_of_memory", "shorter prompt"),
        ("memory", "out_of_memory", "shorter prompt"),
        ("large", "protocol", "over the limit"),
        ("wrong", "internal", "answered with Empty"),
    ],
)
def test_an_error_ends_its_request_and_the_next_one_works(
    engine: EngineChild, source: str, code: str, words: str
) -> None:
    error = engine.error(engine.ask(OpenModel(source=source)))
    assert error["code"] == code and words in error["message"]
    assert ("Traceback" in error["details"]) == (code == "internal") and len(error["message"]) < 600
    assert engine.result(engine.ask(Hello()))["version"] == "fake"


def test_requests_nobody_understands_are_answered(engine: EngineChild) -> None:
    header = request_frame(50, Tokenize(text="a")).header
    for wrong in ({"method": "text.tokenise"}, {"params": {"text": 3}}, {"slot": 4}, {"priority": "now"}):
        frame = request_frame(50, Tokenize(text="a"))
        frame.header.update(header | wrong)
        engine.frames.clear()
        engine.write(encode_frame(frame))
        assert engine.error(50)["code"] in {"bad_request", "unknown_name"}
    assert engine.error(engine.ask(CloseModel()))["code"] == "internal"  # no handler in the fake
    assert engine.result(engine.ask(Tokenize(text="ab")))["text"] == "ab"


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<4sIQ", MAGIC, 2**31, 0),
        struct.pack("<4sIQ", MAGIC, 8, 0) + b'{"v":99}',
        struct.pack("<4sIQ", MAGIC, 7, 0) + b'{"v":1}',
        struct.pack("<4sIQ", MAGIC, 20, 0) + b'{"v":1,"cancel":"1"}',
    ],
)
def test_a_stream_that_cannot_be_understood_is_answered_and_ended(engine: EngineChild, data: bytes) -> None:
    busy = engine.ask(OpenModel(source="sleep"))
    engine.write(data)
    failure = engine.wait(lambda frame: "error" in frame.header and frame.header["id"] is None)
    assert failure.header["error"]["code"] == "protocol"
    assert engine.ended(3) == 2
    assert not engine.of(busy, "result")


@pytest.mark.parametrize("source", ["", "sleep"])
def test_the_end_of_the_stream_is_the_end_of_the_engine(engine: EngineChild, source: str) -> None:
    engine.result(engine.ask(Hello()))
    if source:
        engine.ask(OpenModel(source=source))
        time.sleep(0.1)
    engine.close()
    assert engine.ended(3) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux'")
@pytest.mark.parametrize("source", ["sleep", "hang"])
def test_no_engine_outlives_its_parent(source: str) -> None:
    ask = encode_frame(request_frame(1, OpenModel(source=source)))
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen({fake_engine.command()!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.read(16)\n"  # the starting event
        f"child.stdin.write({ask!r}); child.stdin.flush(); time.sleep(0.5)\n"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.kill()
    deadline = time.monotonic() + 3
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)


def test_the_engine_lets_the_window_go_first() -> None:
    with EngineChild(fake_engine.command(), FAKE_ENGINE_NICE="10") as nice:
        assert nice.result(nice.ask(GetModel(name="x")))["download_bytes"] == os.nice(0) + 10


def test_ctrl_c_is_the_windows_matter_and_sigterm_is_not(engine: EngineChild) -> None:
    engine.result(engine.ask(Hello()))
    engine.process.send_signal(signal.SIGINT)
    assert engine.result(engine.ask(Hello()))["version"] == "fake"
    engine.process.terminate()
    assert engine.ended(2) == -signal.SIGTERM


def test_a_queued_request_is_cancelled_at_once(engine: EngineChild) -> None:
    running, queued = engine.ask(Prefill(text="a", chunk=50)), engine.ask(Prefill(text="b", chunk=1))
    engine.cancel(queued)
    assert engine.error(queued)["code"] == "cancelled"
    assert not engine.of(running, "result")
    assert engine.result(running)["text"] == "a"
    engine.cancel(running)  # too late: nothing happens
    assert engine.result(engine.ask(Hello()))["version"] == "fake"


def test_a_running_request_is_cancelled_between_layers(engine: EngineChild) -> None:
    running = engine.ask(Prefill(text="a", chunk=3000))
    engine.wait(lambda frame: "progress" in frame.header)
    begun = time.monotonic()
    engine.cancel(running)
    assert engine.error(running)["code"] == "cancelled"
    assert time.monotonic() - begun < 0.2
    steps = engine.ask(Step(n=3000, settings=STEP))
    engine.wait(lambda frame: frame.header.get("id") == steps and "part" in frame.header)
    engine.cancel(steps)
    result = engine.result(steps)
    assert result["stop"] == "cancelled" and len(result["nodes"]) == len(engine.of(steps, "part"))
    assert result["nodes"][0]["logprob"] == "-inf"


def test_parts_come_in_order_and_progress_at_most_twenty_times_a_second(engine: EngineChild) -> None:
    steps = engine.ask(Step(n=5, settings=STEP))
    engine.result(steps)
    assert [frame.header["seq"] for frame in engine.of(steps, "part")] == [0, 1, 2, 3, 4]
    begun, counting = time.monotonic(), engine.ask(OpenModel(source="progress"))
    engine.result(counting)
    said = [frame.header["progress"]["done"] for frame in engine.of(counting, "progress")]
    assert said[0] == 0 and said == sorted(said)
    assert 2 <= len(said) <= 2 + 20 * (time.monotonic() - begun)


def test_views_are_served_while_the_model_works(engine: EngineChild) -> None:
    prefill = engine.ask(Prefill(text="a", chunk=100))
    engine.wait(lambda frame: "progress" in frame.header)
    background = engine.ask(view(1), priority="background")
    interactive = engine.ask(view(2))
    later = engine.ask(Hello())
    for request in (background, interactive, later):
        engine.answer(request)
    assert engine.order() == [interactive, background, prefill, later]
    assert engine.answer(interactive).arrays["pixels"].tolist() == [[2, 2], [2, 2]]


def test_pictures_nobody_waits_for_take_at_most_half_of_the_time(engine: EngineChild) -> None:
    prefill = engine.ask(Prefill(text="a", chunk=75))
    engine.wait(lambda frame: "progress" in frame.header)
    views = [engine.ask(view(ms=50), priority="background") for _ in range(100)]
    engine.result(prefill)
    served = sum(request in views for request in engine.order())
    assert 2 <= served <= 15  # 75 layers of 10 ms, the first 250 ms alone, leave room for 10 views of 50 ms


def test_a_newer_view_takes_the_place_of_one_that_has_not_started(engine: EngineChild) -> None:
    blocker = engine.ask(view(ms=300))
    dragged = [engine.ask(view(layer), slot="matrix") for layer in range(20)]
    other = engine.ask(view(5), slot="another")
    assert engine.answer(dragged[-1]).arrays["pixels"][0, 0] == 19
    assert all(engine.error(request)["code"] == "superseded" for request in dragged[:-1])
    assert engine.answer(other).arrays["pixels"][0, 0] == 5
    assert engine.result(blocker)["low"] == 0.0
    assert engine.result(blocker)["high"] == "nan"


def test_a_running_background_view_ends_when_it_is_replaced(engine: EngineChild) -> None:
    first = engine.ask(GetGrid(layers=tuple(range(3000))), slot="grid", priority="background")
    engine.wait(lambda frame: "part" in frame.header)
    second = engine.ask(GetGrid(layers=(1, 2)), slot="grid", priority="background")
    assert engine.error(first)["code"] == "superseded"
    assert engine.result(second)["size"] == 48


def test_a_background_view_makes_way_and_starts_again(engine: EngineChild) -> None:
    grid = engine.ask(GetGrid(layers=tuple(range(50))), priority="background")
    engine.wait(lambda frame: "part" in frame.header)
    matrix, model = engine.ask(view(3)), engine.ask(Prefill(text="a", chunk=1))
    engine.result(grid)
    assert engine.order() == [matrix, model, grid]
    layers = [frame.header["part"]["layer"] for frame in engine.of(grid, "part")]
    assert layers[-50:] == list(range(50)) and len(layers) > 50


def test_a_cancel_reaches_through_a_background_view(engine: EngineChild) -> None:
    prefill = engine.ask(Prefill(text="a", chunk=3000))
    engine.wait(lambda frame: "progress" in frame.header)
    grid = engine.ask(GetGrid(layers=tuple(range(100))), priority="background")
    engine.wait(lambda frame: frame.header.get("id") == grid)
    begun = time.monotonic()
    engine.cancel(prefill)
    assert engine.error(prefill)["code"] == "cancelled"
    assert time.monotonic() - begun < 0.2
    assert engine.result(grid)["size"] == 48


def test_tokens_do_not_wait_for_the_model(engine: EngineChild) -> None:
    engine.result(engine.ask(Hello()))
    prefill = engine.ask(OpenModel(source="sleep"))
    slow, fast = engine.ask(Tokenize(text="*" * 200)), engine.ask(Tokenize(text="\ud800\x00"))
    assert engine.result(fast)["text"] == "\ud800\x00"
    assert engine.order()[1:] == [slow, fast]
    assert not engine.of(prefill, "result")


def test_a_file_waits_for_its_reader_and_hears_a_cancel(engine: EngineChild) -> None:
    message = ExportAttention(view=HeadView(layer=0, head=0), dpi=20)
    export = engine.ask(message)
    while len(engine.of(export, "part")) < 8:
        assert engine.read()
    picture = engine.ask(view(1))
    engine.answer(picture)  # served while the file waits
    assert not engine.read(0.2)
    assert len(engine.of(export, "part")) == 8
    engine.cancel(export)
    assert engine.error(export)["code"] == "cancelled"
    export = engine.ask(message)
    acked = 0
    while not engine.of(export, "result"):
        for part in engine.of(export, "part")[acked:]:
            engine.ack(export, part.header["seq"])
            acked += 1
        assert engine.read()
    assert [part.header["part"]["offset"] for part in engine.of(export, "part")] == list(range(0, 20 * 1024, 1024))
    engine.ack(export, 3)  # too late: nothing happens
    assert engine.result(engine.ask(Hello()))["version"] == "fake"


def test_a_reader_that_stops_reading_stops_the_engine_and_not_its_cancels(engine: EngineChild) -> None:
    large = GetMatrix(view=HeadView(layer=0, head=0), height=4096, width=4096)
    asked = [engine.ask(large) for _ in range(12)]
    time.sleep(1.0)
    assert engine.process.pid and memory(engine.process.pid) < 400 * 2**20
    engine.cancel(asked[-1])
    for request in asked[:-1]:
        assert engine.answer(request).arrays["pixels"].shape == (4096, 4096)
        np.testing.assert_equal(engine.answer(request).arrays["pixels"].max(), 0)
        engine.frames = [frame for frame in engine.frames if "error" in frame.header]
    assert engine.error(asked[-1])["code"] == "cancelled"


def memory(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)
