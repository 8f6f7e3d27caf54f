"""Attention of any head over the active path: rectangles, cells, rows, columns, entropies.

All of it is recomputed from the q and k the model used, with its scale, mask, window, cap and bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from model.colormaps import Levels
from model.device import Stopwatch, to_host
from model.protocol.attention_requests import (
    CellReply,
    EntropyReply,
    GetCell,
    GetColumn,
    GetEntropy,
    GetMatrix,
    GetRow,
    HeadView,
    LineReply,
    MatrixReply,
)
from model.protocol.framing import Array
from model.run import Run
from model.views.attention_exact import exact
from model.views.attention_pooled import BLOCK_CELLS, Extremes, Workspace, combined, keys_of, pooled
from model.views.selection import Bins, Reached, YieldPoint, check_position, chosen, no_yield, span

EXACT_CELLS = 65_536
"""Rectangles up to this many cells, and no larger than the pixels asked for, come with exact values."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionTile:
    """rows × cols of a matrix. `values` (h, w) float32, NaN masked; `is_pooled`: a pixel stands for several cells.

    `low`, `high`: extremes of the visible cells, NaN where there is none; `rest_low`, `rest_high`: without key 0.
    """

    values: NDArray[np.float32]
    rows: tuple[int, int]
    cols: tuple[int, int]
    is_pooled: bool
    signed: bool
    low: float
    high: float
    rest_low: float
    rest_high: float


def matrix(
    run: Run,
    view: HeadView,
    *,
    rows: tuple[int, int] = (0, 0),
    cols: tuple[int, int] = (0, 0),
    pixels: tuple[int, int] = (512, 512),
    rest: bool = False,
    reached: Reached | None = None,
    yield_point: YieldPoint = no_yield,
) -> AttentionTile:
    """A rectangle on at most `pixels` = (height, width); exact where every cell has a pixel and there are few.

    Without `rest`, the extremes without key 0 are not looked for (NaN). `reached` is told now and then which row is
    next. Raises BadValueError.
    """
    heads = chosen(run, view)
    rows, cols = span(run, "rows", rows), span(run, "cols", cols)
    n_rows, n_cols = rows[1] - rows[0], cols[1] - cols[0]
    fits = n_rows <= pixels[0] and n_cols <= pixels[1]
    every, others = Extremes(), Extremes(rest=True)
    if fits and n_rows * n_cols <= EXACT_CELLS:
        values = exact(run, heads, rows, cols, yield_point=yield_point)
        every.meet_array(values)
        others.meet_array(values[:, 1:] if cols[0] == 0 else values)
    else:
        wanted = (every, others) if rest else (every,)
        values = pooled(run, heads, rows, cols, pixels, extremes=wanted, reached=reached, yield_point=yield_point)
    return AttentionTile(
        values=values,
        rows=rows,
        cols=cols,
        is_pooled=not fits,
        signed=heads.signed,
        low=every.low,
        high=every.high,
        rest_low=others.low,
        rest_high=others.high,
    )


def matrix_reply(
    run: Run, message: GetMatrix, *, yield_point: YieldPoint = no_yield
) -> tuple[MatrixReply, dict[str, Array]]:
    """The answer to GetMatrix: uint8 pixels, and exact values where there are few enough."""
    watch = Stopwatch(run.device)
    ignored = message.ignore_first
    tile = matrix(
        run,
        message.view,
        rows=message.rows,
        cols=message.cols,
        pixels=(max(message.height, 1), max(message.width, 1)),
        rest=ignored,
        yield_point=yield_point,
    )
    low, high = (tile.rest_low, tile.rest_high) if ignored else (tile.low, tile.high)
    fixed = message.fixed and message.view.stage == "weights"
    if message.levels is not None:
        low, high = message.levels
        levels = Levels(low=low, high=high, scale=message.scale, signed=tile.signed and not fixed)
    else:
        levels = Levels.spanning(low, high, scale=message.scale, signed=tile.signed, fixed=fixed)
    arrays: dict[str, Array] = {"pixels": levels.pixels(tile.values)}
    if not tile.is_pooled and tile.values.size <= EXACT_CELLS:
        arrays["values"] = tile.values
    reply = MatrixReply(
        rows=tile.rows,
        cols=tile.cols,
        pooled=tile.is_pooled,
        low=levels.low,
        high=levels.high,
        data_low=tile.low,
        data_high=tile.high,
        scale=message.scale,
        signed=tile.signed,
        boundary=run.n_prompt if run.n_prompt < run.length else 0,
        run_id=run.id,
        length=run.length,
        ms=watch.ms(),
    )
    return reply, arrays


def cell_reply(run: Run, message: GetCell) -> CellReply:
    """The exact value of one cell."""
    check_position(run, "query", message.query)
    check_position(run, "key", message.key)
    rows, cols = (message.query, message.query + 1), (message.key, message.key + 1)
    value = float(exact(run, chosen(run, message.view), rows, cols)[0, 0])
    visible = not math.isnan(value)
    return CellReply(query=message.query, key=message.key, value=value if visible else None, visible=visible)


def row_reply(run: Run, message: GetRow) -> tuple[LineReply, dict[str, Array]]:
    """What one query reads: `values` (S,), their sum, and the entropy of its weights with and without the scale."""
    check_position(run, "query", message.query)
    rows = (message.query, message.query + 1)
    heads = chosen(run, message.view)
    values = exact(run, heads, rows, (0, run.length))[0]
    scaled, unscaled = (entropies(run, message.view, rows=rows, unscaled=choice)[0] for choice in (False, True))
    reply = LineReply(
        index=message.query,
        total=float(np.nansum(values, dtype=np.float64)),
        entropy=float(scaled),
        entropy_unscaled=float(unscaled),
    )
    return reply, {"values": values}


def column_reply(
    run: Run, message: GetColumn, *, yield_point: YieldPoint = no_yield
) -> tuple[LineReply, dict[str, Array]]:
    """Who reads one key: `values` (T,) and their sum."""
    check_position(run, "key", message.key)
    cols = (message.key, message.key + 1)
    values = exact(run, chosen(run, message.view), (0, run.length), cols, yield_point=yield_point)[:, 0]
    return LineReply(index=message.key, total=float(np.nansum(values, dtype=np.float64))), {"values": values}


def entropy_reply(
    run: Run, message: GetEntropy, *, yield_point: YieldPoint = no_yield
) -> tuple[EntropyReply, dict[str, Array]]:
    """The entropy of every row, with and without the scale."""
    scaled = entropies(run, message.view, yield_point=yield_point)
    unscaled = entropies(run, message.view, unscaled=True, yield_point=yield_point)
    return EntropyReply(mean=float(scaled.mean())), {"entropy": scaled, "entropy_unscaled": unscaled}


@torch.inference_mode()
def entropies(
    run: Run,
    view: HeadView,
    *,
    rows: tuple[int, int] = (0, 0),
    unscaled: bool = False,
    yield_point: YieldPoint = no_yield,
) -> NDArray[np.float32]:
    """Entropy (t,) in nats of each row's weights, whatever the view's stage; of a mean or maximum over heads, scaled to
    sum to 1. `unscaled`: as if q·k were not multiplied by the attention scale."""
    heads = chosen(run, replace(view, stage="weights"))
    first, stop = span(run, "rows", rows)
    bins = Bins(start=0, stop=run.length, pixels=run.length)
    work = Workspace.of(run)
    at_once = max(1, BLOCK_CELLS // (run.length * len(heads.heads)))
    blocks = []
    for begin in range(first, stop, at_once):
        yield_point()
        end = min(begin + at_once, stop)
        keys = keys_of(run, heads, bins, begin, end)
        weights = combined(run, heads, begin, end, keys, work, unscaled=unscaled)  # (T, N)
        shares = weights / weights.sum(-1, keepdim=True)
        blocks.append(torch.special.entr(shares).sum(-1))  # (T,)
    entropy: NDArray[np.float32] = to_host(torch.cat(blocks)).numpy()
    return entropy
