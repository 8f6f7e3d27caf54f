"""Every head of a layer as a thumbnail, and measures of every head: what it attends to, how sharply, how far back."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.colormaps import Levels
from model.device import to_device, to_host
from model.prefill import ProgressReport
from model.protocol.attention_requests import GetGrid, MetricsReply, Stage
from model.protocol.framing import Array
from model.recompute import query_rows
from model.run import Run
from model.views.attention_pooled import (
    BLOCK_CELLS,
    KeyBlock,
    Picture,
    Workspace,
    block_values,
    hidden_by,
    keys_of,
    pool_cells,
    row_blocks,
)
from model.views.selection import SIGNED, Bins, Chosen, YieldPoint, no_yield

METRICS = ("entropy", "first", "previous", "self", "induction", "distance")


@torch.inference_mode()
def thumbnails(
    run: Run, layer: int, stage: Stage, size: int, *, yield_point: YieldPoint = no_yield
) -> NDArray[np.float32]:
    """Every head of `layer` over the whole path on at most `size`² pixels, (H, h, w) float32, NaN masked."""
    heads = _all_heads(run, layer, stage)
    bins = Bins(start=0, stop=run.length, pixels=max(size, 1))
    picture = Picture(run.config.n_heads, bins.n, bins.n, signed=heads.signed, device=run.device)
    work = Workspace.of(run)
    rows_at_once = max(1, BLOCK_CELLS // (run.length * run.config.n_heads))
    for block in row_blocks(bins, rows_at_once):
        yield_point()
        keys = keys_of(run, heads, bins, block.first, block.last)
        values = _layer_block(run, layer, stage, block.first, block.last, keys, work)  # (H, T, N)
        hidden = hidden_by(run.spec(layer), block.first, block.last, keys) if heads.masked else None
        top, low = pool_cells(values, hidden, keys, block, work, signed=heads.signed, lows=heads.signed)  # (H, n, p)
        picture.put(block, keys, hidden, top, low, work)
    return picture.values()


def _all_heads(run: Run, layer: int, stage: Stage) -> Chosen:
    run.check_layer(layer)
    return Chosen(layers=(layer,), heads=tuple(range(run.config.n_heads)), stage=stage, maximum=False)


def _layer_block(run: Run, layer: int, stage: Stage, first: int, last: int, keys: KeyBlock, work: Workspace) -> Tensor:
    q = query_rows(run, layer, first, last)
    return block_values(run.spec(layer), stage, q, run.k(layer), run.v(layer), first, keys, work)


def grid_layer(run: Run, message: GetGrid, layer: int, *, yield_point: YieldPoint = no_yield) -> dict[str, Array]:
    """One part of the answer to GetGrid: `pixels` uint8 (H, h, w), each head on its own levels."""
    values = thumbnails(run, layer, message.stage, message.size, yield_point=yield_point)
    signed = message.stage in SIGNED
    counted = values[:, :, 1:] if message.ignore_first and values.shape[2] > 1 else values
    pixels = np.empty(values.shape, np.uint8)
    for head, picture in enumerate(values):
        seen = counted[head][~np.isnan(counted[head])]
        low, high = (float(seen.min()), float(seen.max())) if seen.size else (math.nan, math.nan)
        pixels[head] = Levels.spanning(low, high, scale=message.scale, signed=signed).pixels(picture)
    return {"pixels": pixels}


@torch.inference_mode()
def head_metrics(run: Run, layer: int, *, yield_point: YieldPoint = no_yield) -> NDArray[np.float64]:
    """METRICS of every head of `layer` over the path, (6, H); NaN where there is nothing to measure.

    entropy: mean over rows, nats. first, self: mean weight on key 0, on the query itself. previous: on the key before,
    over rows from 1. induction: on keys right after earlier occurrences of the query's token, over the rows that have
    some (Olsson et al. 2022, arXiv:2209.11895). distance: mean of query minus key under the weights.
    """
    heads = _all_heads(run, layer, "weights")
    bins = Bins(start=0, stop=run.length, pixels=run.length)
    work = Workspace.of(run)
    ids = to_device(torch.tensor(run.ids), run.device)
    sums: list[Tensor] = []
    rows_at_once = max(1, BLOCK_CELLS // (run.length * run.config.n_heads))
    for first in range(0, run.length, rows_at_once):
        yield_point()
        last = min(first + rows_at_once, run.length)
        keys = keys_of(run, heads, bins, first, last)
        weights = _layer_block(run, layer, "weights", first, last, keys, work)  # (H, T, N)
        query = torch.arange(first, last, device=run.device)[:, None]  # (T, 1)
        key = keys.position.expand(last - first, -1)  # (T, N)
        after = _after_an_occurrence(ids, query, key)
        # how far back, and not where: the difference of two large sums would lose what a head close by has
        chances = torch.stack([key == 0, key == query - 1, key == query, after, query - key])  # (5, T, N)
        flat = weights.reshape(weights.shape[0], -1)  # (H, T · N)
        picked = flat @ chances.reshape(5, -1).float().T  # (H, 5)
        entropy = torch.special.entr(weights).sum((1, 2))  # (H,)
        sums.append(torch.cat([entropy[:, None], picked], 1).T)  # (6, H)
    repeats = count_repeats(run.ids)
    counts = np.array([run.length, run.length, run.length - 1, run.length, repeats, run.length], dtype=np.float64)
    totals = to_host(torch.stack(sums)).double().sum(0).numpy()  # float64 is not on every device
    means = totals / np.where(counts == 0, np.nan, counts)[:, None]
    return np.asarray(means)


def _after_an_occurrence(ids: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """(T, N) bool: the key follows an earlier occurrence of the query's token, and is not the query itself."""
    before = ids[(key - 1).clamp(min=0)]  # (1, N)
    return (before == ids[query]) & (key >= 1) & (key < query)


def count_repeats(ids: tuple[int, ...]) -> int:
    """Positions whose token came before, at least two positions ago: rows that induction can be measured on."""
    seen: set[int] = set()
    count = 0
    for position, token in enumerate(ids):
        if position >= 2:
            seen.add(ids[position - 2])
        count += token in seen
    return count


def metrics_reply(
    run: Run, *, yield_point: YieldPoint = no_yield, progress: ProgressReport | None = None
) -> tuple[MetricsReply, dict[str, Array]]:
    """The answer to GetMetrics: float32 (L, H) of each metric."""
    layers = []
    for layer in range(run.config.n_layers):
        if progress is not None:
            progress("measuring heads", layer, run.config.n_layers, "layers")
        layers.append(head_metrics(run, layer, yield_point=yield_point))
    stacked = np.stack(layers, 1).astype(np.float32)  # (6, L, H)
    reply = MetricsReply(names=METRICS, repeats=count_repeats(run.ids), run_id=run.id, length=run.length)
    return reply, dict(zip(METRICS, stacked, strict=True))


def grid_layers(run: Run, message: GetGrid) -> Iterator[int]:
    """The layers of a grid, in the order asked for. Raises BadValueError before the first."""
    for layer in message.layers:
        run.check_layer(layer)
    return iter(message.layers)
