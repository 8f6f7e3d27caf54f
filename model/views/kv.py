"""The KV cache: bytes measured beside the formula, what it saves, and what is in it."""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.colormaps import Levels
from model.costs import attention_bytes, bytes_read, flops, kv_bytes_per_token
from model.device import Stopwatch, to_device, to_host
from model.errors import BadValueError
from model.prefill import ProgressReport
from model.protocol.framing import Array
from model.protocol.kv_requests import GetKvContents, KvContentsReply, KvReply, KvWhat, PhaseCost, RecomputeReply
from model.recompute import unrotated_keys
from model.run import Run
from model.views.heat import shrink
from model.views.selection import YieldPoint, no_yield, span


def kv_reply(run: Run) -> tuple[KvReply, dict[str, Array]]:
    """The answer to GetKv."""
    config, cache, itemsize = run.config, run.cache, run.cache.dtype.itemsize
    length, layers = run.length, range(config.n_layers)
    per_token = kv_bytes_per_token(config, itemsize)
    kept = run.cost(1)
    left = max(0, run.store.budget - run.store.nbytes) + (run.store.capacity - length) * (kept.total - kept.logits)
    reply = KvReply(
        length=length,
        n_prompt=run.n_prompt,
        n_ctx=config.n_ctx,
        used=cache.bytes_used(),
        allocated=cache.bytes_allocated(),
        served=cache.bytes_served(),
        formula=per_token * length,
        bytes_per_token=per_token,
        bytes_per_token_mha=kv_bytes_per_token(config, itemsize, n_kv_heads=config.n_heads),
        bytes_per_token_mqa=kv_bytes_per_token(config, itemsize, n_kv_heads=1),
        run_bytes_per_token=kept.total,
        tokens_left_context=max(0, config.n_ctx - length),
        tokens_left_memory=left // kept.total,
        weights_read=bytes_read(config, itemsize),
        step_flops=flops(config, length, length + 1),
        recompute_flops=flops(config, 0, length + 1),
        weights_matrix_bytes=attention_bytes(config, length, itemsize),
        prefill=_prefill_cost(run),
        decode=_decode_cost(run),
    )
    arrays: dict[str, Array] = {
        "used": np.array([cache.bytes_used(layer) for layer in layers], np.int64),
        "allocated": np.array([cache.bytes_allocated(layer) for layer in layers], np.int64),
        "served": np.array([cache.bytes_served(layer) for layer in layers], np.int64),
        "windows": np.array([config.window(layer) or 0 for layer in layers], np.int64),
        "grown_at": np.array([at for at, _ in run.store.allocations], np.int64),
        "grown_to": np.array([to for _, to in run.store.allocations], np.int64),
        "chunk_ends": np.cumsum(run.chunks, dtype=np.int64),
    }
    return reply, arrays


def _prefill_cost(run: Run) -> PhaseCost:
    itemsize = run.cache.dtype.itemsize
    ends = np.cumsum(run.chunks).tolist()
    read = len(ends) * bytes_read(run.config, itemsize) + sum(ends) * kv_bytes_per_token(run.config, itemsize)
    return PhaseCost(tokens=run.n_prompt, ms=run.prefill_ms, flops=flops(run.config, 0, run.n_prompt), bytes_read=read)


def _decode_cost(run: Run) -> PhaseCost:
    times = [run.nodes[node].ms for node in run.path]
    if not times:
        return PhaseCost(tokens=0, ms=0.0, flops=0, bytes_read=0)
    itemsize, middle = run.cache.dtype.itemsize, run.n_prompt + len(times) // 2
    return PhaseCost(
        tokens=1,
        ms=statistics.median(times),
        flops=flops(run.config, middle, middle + 1),
        bytes_read=bytes_read(run.config, itemsize) + (middle + 1) * kv_bytes_per_token(run.config, itemsize),
    )


@torch.inference_mode()
def recompute_reply(
    run: Run, *, yield_point: YieldPoint = no_yield, progress: ProgressReport | None = None
) -> RecomputeReply:
    """The answer to MeasureRecompute: the last token of the path by the whole path, then by a cached step."""
    ids = to_device(torch.tensor(run.ids), run.device)
    cache, length = run.decoder.new_cache(), run.length
    away = 0.0

    def at_layer(layer: int) -> None:
        nonlocal away
        left = time.perf_counter()
        yield_point()
        if progress is not None:
            progress("recomputing without a cache", layer, run.config.n_layers, "layers")
        away += (time.perf_counter() - left) * 1e3

    cache.reserve(length + 1)
    watch = Stopwatch(run.device)
    run.decoder(ids, cache, at_layer=at_layer)
    whole = watch.ms() - away
    cache.truncate(length - 1)
    watch = Stopwatch(run.device)
    run.decoder(ids[-1:], cache)
    step = watch.ms()
    return RecomputeReply(
        tokens=length,
        ms=whole,
        cached_ms=step,
        flops=flops(run.config, 0, length),
        cached_flops=flops(run.config, length - 1, length),
    )


@torch.inference_mode()
def kv_contents(run: Run, layer: int, kv_head: int, what: KvWhat, rows: tuple[int, int]) -> NDArray[np.float32]:
    """K or V of one KV head at positions `rows`, (t, D) float32; before rotation it is recomputed."""
    run.check_layer(layer)
    if not 0 <= kv_head < run.config.n_kv_heads:
        raise BadValueError("kv_head", kv_head, f"0 to {run.config.n_kv_heads - 1}")
    if what == "k_unrotated" and run.config.rope_of(layer) is not None:
        kept = unrotated_keys(run, layer, *rows)[kv_head]  # (t, D)
    else:
        source: Tensor = run.v(layer) if what == "v" else run.k(layer)
        kept = source[kv_head, slice(*rows)]  # (t, D)
    contents: NDArray[np.float32] = to_host(kept.float()).numpy()
    return contents


def kv_contents_reply(run: Run, message: GetKvContents) -> tuple[KvContentsReply, dict[str, Array]]:
    """The answer to GetKvContents."""
    rows = span(run, "rows", message.rows)
    values = kv_contents(run, message.layer, message.kv_head, message.what, rows)
    shown = shrink(values, message.height, message.width)
    low, high = float(values.min()), float(values.max())
    top = message.top if message.top > 0 else max(-low, high)
    levels = Levels.spanning(-top, top, scale=message.scale, signed=True)
    arrays: dict[str, Array] = {"pixels": levels.pixels(shown)}
    if shown.shape == values.shape:
        arrays["values"] = values
    reply = KvContentsReply(
        rows=rows,
        dims=(0, values.shape[1]),
        pooled=shown.shape != values.shape,
        low=levels.low,
        high=levels.high,
        data_low=low,
        data_high=high,
        recomputed=message.what == "k_unrotated" and run.config.rope_of(message.layer) is not None,
        boundary=run.n_prompt if run.n_prompt < run.length else 0,
        run_id=run.id,
        length=run.length,
    )
    return reply, arrays
