"""`decoderscope bench`: how fast this machine opens, prefills, decodes and draws attention with a model."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from model.cli.command import Command, ProgressLine, UsageError, add_model_options, whole

if TYPE_CHECKING:
    from model.loading import LoadedModel

PIXELS = 512
MIN_TOKENS = 2


@dataclass(frozen=True, kw_only=True)
class Measure:
    """The median of some repeats, the fastest and the slowest, all in ms; `note`: what that amounts to."""

    what: str
    median_ms: float
    fastest_ms: float
    slowest_ms: float
    note: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    add_model_options(parser)
    parser.add_argument(
        "--tokens", type=whole(MIN_TOKENS), default=512, metavar="N", help="length of the prompt (default: 512)"
    )
    parser.add_argument("--steps", type=whole(1), default=16, metavar="N", help="tokens decoded (default: 16)")
    parser.add_argument("--repeats", type=whole(1, 100), default=3, metavar="N", help="of everything (default: 3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(options: argparse.Namespace) -> int:
    """Measures and prints."""
    from model.loading import open_model  # noqa: PLC0415 - imports torch
    from model.threads import use_threads  # noqa: PLC0415

    use_threads(options.threads)
    progress = ProgressLine()

    def opening() -> LoadedModel:
        return open_model(options.model, device=options.device, dtype=options.dtype, progress=progress)

    try:
        model = opening()
        if model.info.n_ctx - options.steps < MIN_TOKENS:
            raise UsageError(
                f"--steps: {options.steps:,} steps after a prompt of {MIN_TOKENS} tokens or more do not fit; this "
                f"model takes {model.info.n_ctx:,} positions in all"
            )
        loads = timed(opening, options.repeats)
    finally:
        progress.clear()
    info = model.info
    rows = [measure("open the model", loads, f"{info.weight_bytes / 1e6:,.0f} MB"), *_measures(model, options)]
    if options.json:
        print(json.dumps({"model": info.name, "dtype": info.dtype, "device": info.device, **_as_json(rows)}))
        return 0
    print(f"{info.name} · {info.dtype} · {info.device} · median of {options.repeats} (fastest to slowest)")
    width = max(len(row.what) for row in rows)
    for row in rows:
        spread = f"({row.fastest_ms:,.1f} to {row.slowest_ms:,.1f})"
        print(f"{row.what:<{width}}  {row.median_ms:>10,.1f} ms  {spread:<24} {row.note}".rstrip())
    return 0


def _measures(model: LoadedModel, options: argparse.Namespace) -> list[Measure]:
    import torch  # noqa: PLC0415

    from model.protocol.attention_requests import GetGrid, HeadView  # noqa: PLC0415
    from model.protocol.values import SamplerSettings  # noqa: PLC0415
    from model.run import Run  # noqa: PLC0415
    from model.views.attention import matrix  # noqa: PLC0415
    from model.views.head_grid import grid_layer  # noqa: PLC0415

    info, repeats = model.info, options.repeats
    tokens = min(options.tokens, info.n_ctx - options.steps)
    ids = torch.randint(info.d_vocab, (tokens,), generator=torch.Generator().manual_seed(0)).tolist()

    def prefill() -> Run:
        made = Run(model)
        made.prefill(ids)
        return made

    prefill()  # the first pass allocates and warms up
    prefills = timed(prefill, repeats)
    made, root = prefill(), tokens - 1
    steps: list[float] = []
    for _ in range(repeats):
        made.seek(root)
        steps += [made.step(SamplerSettings(temperature=0.0)).ms for _ in range(options.steps)]

    def read_weights() -> float:
        return float(sum(weight.sum(dtype=torch.float32) for weight in model.decoder.parameters()))

    read_weights()
    reads = timed(read_weights, repeats)
    view = HeadView(layer=info.n_layers // 2, head=0)
    pictures = timed(lambda: matrix(made, view, pixels=(PIXELS, PIXELS)), repeats)
    grid = GetGrid(layers=tuple(range(info.n_layers)))
    grids = timed(lambda: [grid_layer(made, grid, layer) for layer in grid.layers], repeats)
    heads = info.n_layers * info.n_heads
    return [
        measure(f"prefill {tokens:,} tokens", prefills, f"{tokens / statistics.median(prefills) * 1e3:,.0f} tokens/s"),
        measure(f"decode a token at {tokens:,}", steps, f"{1e3 / statistics.median(steps):,.1f} tokens/s"),
        measure("read all weights once", reads, "no decode step can be faster"),
        measure(f"one head on {PIXELS}² pixels", pictures),
        measure(f"the grid of all {heads:,} heads", grids),
    ]


def timed(work: Callable[[], object], repeats: int) -> list[float]:
    """How long `work` takes, ms, `repeats` times."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append((time.perf_counter() - begun) * 1e3)
    return times


def measure(what: str, times: list[float], note: str = "") -> Measure:
    """Times of the same thing as one row."""
    return Measure(
        what=what, median_ms=statistics.median(times), fastest_ms=min(times), slowest_ms=max(times), note=note
    )


def _as_json(rows: list[Measure]) -> dict[str, object]:
    return {"measures": [asdict(row) for row in rows]}


COMMAND = Command(name="bench", help="measure how fast this machine is with a model", arguments=arguments, run=run)
