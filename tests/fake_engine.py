"""An engine without a model: the real server, with handlers that sleep, send, fail and die as a test asks.

Run as a program it serves its stdin and stdout. What a request does is written in its fields; see each handler.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from model.errors import BadValueError, CancelledError
from model.handler_registry import Answer, EngineContext, Handlers
from model.jobs import Job
from model.protocol.attention_requests import GetGrid, GetMatrix, GridPart, GridReply, MatrixReply
from model.protocol.engine_requests import CatalogueEntry, GetModel, Hello, HelloReply, OpenModel
from model.protocol.export_requests import ExportAttention, ExportReply, FileInfo, FilePart
from model.protocol.run_requests import Prefill, PrefillReply, Restore, Step, StepPart, Tokenize, TokenizeReply
from model.protocol.token_run import TokenRun
from model.protocol.values import MemoryInfo, ModelInfo, Node, RunState, Token
from model.protocol.wire import Empty, Request
from model.server import serve

LAYER_SECONDS = 0.01
MEMORY = MemoryInfo(
    weights=0, kv_used=0, kv_allocated=0, activations=0, rss=0, peak_rss=0, budget=0, available=0
)  # fmt: skip
INFO = ModelInfo(
    name="fake", family="llama", source="fake", sha256="", n_layers=2, n_heads=2, n_kv_heads=1, d_model=8, d_head=4,
    d_mlp=16, d_vocab=32, n_ctx=64, dtype="float32", device="cpu", parameters=1, weight_bytes=4, positions="rope",
    attention_kind="MQA",
)  # fmt: skip


def hello(_context: EngineContext, _message: Hello, _job: Job) -> Answer:
    reply = HelloReply(
        version="fake", torch="none", pid=os.getpid(), host="here", threads=1, devices=(), catalogue=()
    )  # fmt: skip
    return reply, {}


def open_model(_context: EngineContext, message: OpenModel, job: Job) -> Answer:
    """`source` names the act; any other opens the fake model."""
    act = ACTS.get(message.source)
    answer = act(job) if act is not None else None
    return answer or (INFO, {})


def _fail(_job: Job) -> Answer:
    raise ZeroDivisionError("on purpose" + ", at length" * 1_000)


def _refuse(_job: Job) -> Answer:
    raise BadValueError("source", "refuse", "something else")


def _run_out_of_memory(_job: Job) -> Answer:
    raise MemoryError


def _run_out_as_torch_says(_job: Job) -> Answer:
    raise RuntimeError("[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried")


def _leave(_job: Job) -> Answer:
    sys.exit("a library leaves")


def _fail_as_a_gpu(_job: Job) -> Answer:
    kind = type("AcceleratorError", (RuntimeError,), {})
    raise kind("CUDA error: device-side assert triggered\nmore lines")


def _print(_job: Job) -> None:
    print("a library says hello")  # as libraries do
    os.write(1, b"DSC1 and not through sys.stdout either\n" * 100)
    ctypes.CDLL(None).puts(b"nor through Python")
    ctypes.CDLL(None).fflush(None)


def _read_input(_job: Job) -> Answer:
    return INFO, {"read": np.frombuffer(sys.stdin.buffer.read() or b"nothing", dtype=np.uint8)}


def _hold_the_interpreter(_job: Job) -> None:
    ctypes.PyDLL(None).sleep(60)  # as a stuck native call can


def _sleep(_job: Job) -> None:
    time.sleep(60)


def _crash(_job: Job) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _exit(_job: Job) -> None:
    os._exit(7)


def _write_garbage(job: Job) -> None:
    os.write(job._host._writer._fd, b"Welcome to gpu-box\n")  # type: ignore[attr-defined]
    time.sleep(60)


def _answer_too_much(_job: Job) -> Answer:
    return INFO, {"large": np.zeros(65 * 2**20, dtype=np.uint8)}


def _answer_wrongly(_job: Job) -> Answer:
    return Empty(), {}


def _count(job: Job) -> None:
    for done in range(1000):
        job.progress("counting", done, 1000, "things")
        time.sleep(0.0005)


ACTS: dict[str, Callable[[Job], Answer | None]] = {
    "raise": _fail, "refuse": _refuse, "memory": _run_out_of_memory, "print": _print, "input": _read_input,
    "hang": _hold_the_interpreter, "sleep": _sleep, "die": _crash, "exit": _exit, "garbage": _write_garbage,
    "leave": _leave, "fault": _fail_as_a_gpu, "allocate": _run_out_as_torch_says, "large": _answer_too_much,
    "wrong": _answer_wrongly, "progress": _count,
}  # fmt: skip


def prefill(_context: EngineContext, message: Prefill, job: Job) -> Answer:
    """`chunk` layers of 10 ms, a yield point between them."""
    for layer in range(message.chunk):
        job.yield_point()
        job.progress("prefill", layer, message.chunk, "layers")
        time.sleep(LAYER_SECONDS)
    return PrefillReply(state=state((), message.text), tokens=tokens(message.text), text=message.text), {}


def restore(_context: EngineContext, message: Restore, _job: Job) -> Answer:
    """The run as it was handed over."""
    return PrefillReply(state=state(message.nodes, message.text), tokens=tokens(message.text), text=message.text), {}


def step(_context: EngineContext, message: Step, job: Job) -> Answer:
    """`n` tokens of 10 ms; a cancel ends early with what there is."""
    nodes: list[Node] = []
    try:
        for index in range(message.n):
            job.yield_point()
            time.sleep(LAYER_SECONDS)
            nodes.append(
                Node(
                    id=index + 1, parent=index, position=index + 1, token_id=1, piece="a", logprob=float("-inf"), p=1.0,
                    entropy=0.0, draw=0.5, ms=10.0, settings=message.settings,
                )
            )  # fmt: skip
            job.part(StepPart(node=nodes[-1], length=index + 2, text="a" * (index + 1)))
    except CancelledError:
        return state(tuple(nodes), stop="cancelled"), {}
    return state(tuple(nodes)), {}


def matrix(_context: EngineContext, message: GetMatrix, _job: Job) -> Answer:
    """Sleeps `rows[0]` ms; the picture is filled with the layer."""
    time.sleep(message.rows[0] / 1000)
    layer = 0 if message.view.layer == "all" else message.view.layer
    reply = MatrixReply(
        rows=message.rows, cols=message.cols, pooled=False, low=0.0, high=float("nan"), data_low=0.0, data_high=1.0,
        scale="linear", signed=False, boundary=0, run_id=1, length=4, ms=0.0,
    )  # fmt: skip
    return reply, {"pixels": np.full((message.height, message.width), layer, dtype=np.uint8)}


def grid(_context: EngineContext, message: GetGrid, job: Job) -> Answer:
    """10 ms a layer, a yield point between them."""
    for layer in message.layers:
        job.yield_point()
        time.sleep(LAYER_SECONDS)
        job.part(GridPart(layer=layer), {"pixels": np.full((2, 4, 4), layer, dtype=np.uint8)})
    return GridReply(run_id=1, length=4, size=message.size, ms=0.0), {}


def export(_context: EngineContext, message: ExportAttention, job: Job) -> Answer:
    """`dpi` parts of 1 KiB."""
    for index in range(message.dpi):
        part = FilePart(name="a.png", offset=index * 1024, last=index == message.dpi - 1)
        job.part(part, {"data": np.zeros(1024, dtype=np.uint8)})
    return ExportReply(files=(FileInfo(name="a.png", format="png", size=message.dpi * 1024, sha256=""),)), {}


def tokenize(_context: EngineContext, message: Tokenize, _job: Job) -> Answer:
    """Sleeps as many ms as the text has stars."""
    time.sleep(message.text.count("*") / 1000)
    found = tokens(message.text)
    run = TokenRun.of(found)
    return TokenizeReply(text=message.text, pieces=run.pieces, count=len(found)), run.arrays()


def get_model(_context: EngineContext, message: GetModel, _job: Job) -> Answer:
    """Tells the niceness of this process in `download_bytes`."""
    return CatalogueEntry(name=message.name, title="", licence="", download_bytes=os.nice(0)), {}


def tokens(text: str) -> tuple[Token, ...]:
    return tuple(Token(id=ord(character), piece=character, start=i, end=i + 1) for i, character in enumerate(text))


def state(nodes: tuple[Node, ...], text: str = "", stop: str = "") -> RunState:
    return RunState(
        run_id=1, n_prompt=1, path=tuple(node.id for node in nodes), current=len(nodes), length=len(nodes) + 1,
        n_ctx=64, nodes=nodes, text=text, memory=MEMORY, prefill_ms=1.0, stop=stop,  # type: ignore[arg-type]
    )  # fmt: skip


HANDLERS: Handlers = {
    Hello: hello, OpenModel: open_model, Prefill: prefill, Restore: restore, Step: step, GetMatrix: matrix,
    GetGrid: grid, ExportAttention: export, Tokenize: tokenize, GetModel: get_model,
}  # fmt: skip


def load() -> tuple[dict[type[Request], object], EngineContext]:
    """What the environment asks of the start: to take long, or to fail."""
    time.sleep(float(os.environ.get("FAKE_ENGINE_LOAD_SECONDS", "0")))
    if os.environ.get("FAKE_ENGINE_BROKEN"):
        raise ImportError("no torch here")
    return dict(HANDLERS), EngineContext()


def command() -> list[str]:
    """The command that starts this engine as a child."""
    root = Path(__file__).resolve().parent.parent
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from tests.fake_engine import main; main()"
    return [sys.executable, "-P", "-c", code]


def main() -> None:
    """Serves stdin and stdout."""
    sys.exit(serve(load=load, nice=int(os.environ.get("FAKE_ENGINE_NICE", "0"))))  # type: ignore[arg-type]
