"""What needs a process of its own: peak memory, opening, and the engine while it prefills."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from model.protocol.attention_requests import GetMatrix, HeadView
from model.protocol.engine_requests import OpenModel
from model.protocol.run_requests import Prefill
from tests.bench.pairs import Outcome, clock, percentile, ratio
from tests.bench.subject import Subject
from tests.bench.table import Row
from tests.model.engine_child import EngineChild, ends

ROOT = Path(__file__).resolve().parents[2]
PAUSE_SECONDS = 0.05
PREFILL_SECONDS = 300.0
VIEW_PIXELS = 512
P95 = 0.95


def child(work: str, subject: Subject, *arguments: object) -> str:
    """What `tests.bench.child` prints about `work`."""
    command = [sys.executable, "-m", "tests.bench.child", work, subject.source, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def peak(work: str, tokens: Callable[[Subject], int]) -> Callable[[Subject, int], Outcome]:
    """The most memory that a process which does `work` held, above the model's weights."""

    def measure(subject: Subject, repeats: int) -> Outcome:
        told = [json.loads(child(work, subject, tokens(subject), subject.sizes.picture)) for _ in range(repeats)]
        values = [(one["peak"] - one["weights"]) / 1e9 for one in told]
        started = told[0]["started"] / 1e9
        note = f"of it {started:.2f} GB Python and torch; materialised: {told[0]['materialised'] / 1e9:.1f} GB"
        return Outcome.among(values, unit="GB", note=note)

    return measure


def opening(subject: Subject, pairs: int) -> Outcome:
    """Whole processes, from start to end."""
    return ratio(lambda: child("open", subject), lambda: child("floor", subject), pairs)


def view_latency(subject: Subject, rounds: int) -> Outcome:
    """A picture of one head, asked for all through a prefill, and the same rectangles once the engine is idle."""
    tokens = subject.sizes.whole
    during: list[float] = []
    idle: list[float] = []
    ratios = []
    with EngineChild([sys.executable, "-P", "-m", "model", "engine"]) as engine:
        info = engine.result(engine.ask(OpenModel(source=subject.source, device=subject.device, dtype="float32")))
        ids = tuple(index * 7919 % info["d_vocab"] for index in range(tokens))
        finish(engine, engine.ask(Prefill(ids=ids)))  # a run to look at until the next one has its first chunk
        for _ in range(rounds):
            asked, begun = engine.ask(Prefill(ids=ids)), time.monotonic()
            busy: list[tuple[int, float]] = []
            while not answered(engine, asked) and time.monotonic() - begun < PREFILL_SECONDS:
                reply, ms = look(engine, info, len(busy))
                busy.append((reply["length"], ms))
            calm = [look(engine, info, number, length)[1] for number, (length, _) in enumerate(busy)]
            ratios.append(percentile((ms for _, ms in busy), P95) / percentile(calm, P95))
            during += [ms for _, ms in busy]
            idle += calm
    made = Outcome.among(ratios, unit="ms", note=f"p95 of {len(during)} views each")
    return replace(made, ours=percentile(during, P95), theirs=percentile(idle, P95))


def answered(engine: EngineChild, request_id: int) -> bool:
    """Whether the end of a request has come in so far."""
    return any(frame.header.get("id") == request_id and ends(frame) for frame in engine.frames)


def finish(engine: EngineChild, request_id: int) -> None:
    """Waits for the end of a request that takes its time."""
    deadline = time.monotonic() + PREFILL_SECONDS
    while not answered(engine, request_id) and time.monotonic() < deadline:
        engine.read()
    engine.result(request_id)


def look(engine: EngineChild, info: dict[str, Any], number: int, length: int = 0) -> tuple[dict[str, Any], float]:
    """The `number`-th view, of the whole path or of its first `length` tokens, and how long it took, ms."""
    time.sleep(PAUSE_SECONDS)
    view = HeadView(layer=number % info["n_layers"], head=number % info["n_heads"])
    begun = time.perf_counter()
    asked = engine.ask(GetMatrix(view=view, rows=(0, length), cols=(0, length), height=VIEW_PIXELS, width=VIEW_PIXELS))
    return engine.result(asked), (time.perf_counter() - begun) * 1e3


def export(subject: Subject, pairs: int) -> Outcome:
    """From ids to files, both ways."""
    from tests.bench.exports import materialise, write_all

    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours", Path(folder) / "theirs.npz"
        tokens = subject.sizes.medium
        made = ratio(lambda: write_all(subject.run(tokens), ours), lambda: materialise(subject, tokens, theirs), pairs)
        run = subject.run(tokens)
        prefill = clock(lambda: subject.run(tokens))
        npz, pdf = clock(lambda: write_all(run, ours, ("npz",))), clock(lambda: write_all(run, ours, ("pdf",)))
    return replace(made, note=f"of it prefill {prefill:,.0f} ms, NPZ {npz:,.0f} ms, PDF {pdf:,.0f} ms")


ROWS = (
    Row(
        name="memory",
        on_gpu=False,
        what="peak memory above the weights: 4,096 tokens prefilled, every head drawn",
        over="",
        bound=1.5,
        unit="GB",
        measure=peak("look", lambda subject: subject.sizes.whole),
        pairs=1,
    ),
    Row(
        name="view-latency",
        what="p95 latency of a view during a prefill of 4,096 tokens",
        over="when idle",
        bound=3.0,
        measure=view_latency,
        pairs=1,
    ),
    Row(
        name="opening",
        on_gpu=False,
        what="opening the prepared default model, start to end of a process",
        over="a plain read of its file and `import torch`",
        bound=1.5,
        measure=opening,
    ),
    Row(
        name="export",
        on_gpu=False,
        what="all heads at 512 tokens, from ids to NPZ and a contact sheet in PDF",
        over="transformers eager with attentions, saved by numpy",
        bound=1.0,
        measure=export,
        pairs=3,
        why="a prefill takes more than half of what the reference needs in all; on top of it come a page with subset "
        "fonts and a file that is synced to disk before it takes its name, which the reference's is not",
        needs_reference=True,
    ),
    Row(
        name="export-memory",
        on_gpu=False,
        what="peak memory above the weights of that export",
        over="",
        bound=1.0,
        unit="GB",
        measure=peak("export", lambda subject: subject.sizes.medium),
        pairs=1,
    ),
)
