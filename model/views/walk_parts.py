"""The matrix behind an operation: the terms its result is the sum of, or its result at every position."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from model.colormaps import Levels
from model.errors import BadValueError, UnknownNameError
from model.prefill import ProgressReport
from model.protocol.framing import Array
from model.protocol.walk_requests import SHARES, GetWalkTensor, WalkTensorReply
from model.run import Run
from model.views.heat import shrink
from model.views.selection import YieldPoint, check_position, kv_head, no_yield
from model.views.walk_capture import HEADS_FIRST, block_of, capture, capture_rows
from model.views.walk_ops import Floats, as_floats

EXACT_CELLS = 65_536
KEPT = "walk.tensor"
MOST_KEPT = 1 << 25
"""Numbers of one matrix, kept while it is looked at (128 MiB)."""
TYPICAL, FAR = 0.99, 8.0
"""The share of values that the colours span, where the largest is so many times as large as those."""
RENAMED = {"attn.concat": "attn.z"}


def tensor_reply(
    run: Run,
    message: GetWalkTensor,
    *,
    yield_point: YieldPoint = no_yield,
    progress: ProgressReport | None = None,
) -> tuple[WalkTensorReply, dict[str, Array]]:
    """The answer to GetWalkTensor."""
    values, total, top = _whole(run, message, yield_point, progress)
    rows, cols = _clip(message.rows, values.shape[0]), _clip(message.cols, values.shape[1])
    part = values[slice(*rows), slice(*cols)]
    shown = shrink(part, max(message.height, 1), max(message.width, 1))
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    signed = message.op not in SHARES
    most = min(top, max(abs(low), abs(high))) if signed and message.what == "positions" else np.inf
    levels = Levels.spanning(max(low, -most), min(high, most), scale=message.scale, signed=signed)
    arrays: dict[str, Array] = {"pixels": levels.pixels(shown)}
    if shown.shape == part.shape and part.size <= EXACT_CELLS:
        arrays["values"] = np.ascontiguousarray(part)
    reply = WalkTensorReply(
        shape=(values.shape[0], values.shape[1]),
        rows=rows,
        cols=cols,
        pooled=shown.shape != part.shape,
        low=levels.low,
        high=levels.high,
        data_low=low,
        data_high=high,
        total=total,
        run_id=run.id,
        length=run.length,
    )
    return reply, arrays


def _clip(asked: tuple[int, int], count: int) -> tuple[int, int]:
    start, stop = max(asked[0], 0), min(asked[1], count)
    return (0, count) if asked == (0, 0) or start >= stop else (start, stop)


def _whole(
    run: Run, message: GetWalkTensor, yield_point: YieldPoint, progress: ProgressReport | None
) -> tuple[Floats, float, float]:
    """The whole matrix with `total` and `typical_top`, kept until another is asked for: zooming asks for its rectangles
    one after the other."""
    at = (message.place, message.op, message.what, message.position, message.layer, message.head, run.length,
          run.current)  # fmt: skip
    kept = run.derived.get(KEPT)
    if isinstance(kept, tuple) and kept[0] == at:
        return kept[1], kept[2], kept[3]
    check_position(run, "position", message.position)
    run.check_layer(message.layer)
    total = float("nan")
    if message.what == "parts":
        values, total = parts(run, message.op, message.layer, message.head, message.position)
    else:
        values = at_positions(run, message.op, message.layer, message.head, yield_point=yield_point, progress=progress)
    top = typical_top(values)
    run.derived[KEPT] = (at, values, total, top)
    return values, total, top


def typical_top(values: Floats) -> float:
    """The magnitude where the colours end: under it lie all values, or, where a few are far beyond the others, the
    share `TYPICAL` of them. The first token's stream holds numbers hundreds of times as large as all the rest."""
    sizes = np.abs(values[np.isfinite(values)])
    if not len(sizes):
        return float("inf")
    at = min(int(TYPICAL * len(sizes)), len(sizes) - 1)
    usual, largest = float(np.partition(sizes, at)[at]), float(sizes.max())
    return usual if 0 < usual * FAR < largest else largest


@torch.inference_mode()
def parts(run: Run, op: str, layer: int, head: int, position: int) -> tuple[Floats, float]:
    """The terms of an operation, (rows, cols) float32, and how far their sum is from its result, relative. Raises
    UnknownNameError for an operation without terms."""
    if op not in PARTS:
        raise UnknownNameError("operation with parts", op, PARTS)
    terms, over, result = PARTS[op](run, layer, head, position)
    summed, wanted = terms.cpu().double().sum(over), result.cpu().double()
    error = float((summed - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30))
    return as_floats(terms), error


def _scores(run: Run, layer: int, head: int, position: int, scale: float) -> tuple[Tensor, int, Tensor]:
    """q_d · k_jd of every key and dimension, (S, D); a key's row sums to its score."""
    spec = run.spec(layer)
    q = capture(run, layer, position)["attn.rot_q"][head, 0].float()  # (D,)
    k = run.k(layer)[kv_head(spec, head)].float()  # (S, D)
    return q * k * scale, 1, k @ q * scale  # (S, D), (S,)


def _mixed(run: Run, layer: int, head: int, position: int) -> tuple[Tensor, int, Tensor]:
    """w_j · v_jd of every visible key, (S, D); a column sums to z_d."""
    seen = capture(run, layer, position)
    weights = seen["attn.pattern"][head, 0]  # (S,)
    v = run.v(layer)[kv_head(run.spec(layer), head), : position + 1].float()  # (S, D)
    return weights[:, None] * v, 0, seen["attn.z"][head, 0]  # (S, D), (D,)


def _heads(run: Run, layer: int, _head: int, position: int) -> tuple[Tensor, int, Tensor]:
    """What each head's z becomes through its columns of W_o, (H, M); they sum to o (without its bias)."""
    seen, projection = capture(run, layer, position), block_of(run, layer).self_attn.o_proj
    z = seen["attn.z"][:, 0].float()  # (H, D)
    weight = projection.weight.float().view(run.config.d_model, *z.shape)  # (M, H, D)
    result = seen["attn.proj"][0].float()
    if projection.bias is not None:
        result = result - projection.bias.float()
    return torch.einsum("mhd,hd->hm", weight, z), 0, result  # (H, M), (M,)


Terms = Callable[[Run, int, int, int], tuple[Tensor, int, Tensor]]
PARTS: dict[str, Terms] = {
    "attn.dots": lambda run, layer, head, position: _scores(run, layer, head, position, 1.0),
    "attn.scaled": lambda run, layer, head, position: _scores(run, layer, head, position, run.spec(layer).scale),
    "attn.z": _mixed,
    "attn.proj": _heads,
}


@torch.inference_mode()
def at_positions(
    run: Run,
    op: str,
    layer: int,
    head: int,
    *,
    yield_point: YieldPoint = no_yield,
    progress: ProgressReport | None = None,
) -> Floats:
    """An operation's result at every position, (T, width) float32; of the head's row where there are heads. Raises
    UnknownNameError."""
    name = RENAMED.get(op, op)
    width = run.config.d_mlp if name.startswith("mlp.p") or name == "mlp.up" else run.config.d_model
    if run.length * width > MOST_KEPT:
        raise BadValueError("numbers of all positions", run.length * width, f"at most {MOST_KEPT:,}: a shorter text")
    rows = capture_rows(run, layer, name, 0, run.length, yield_point=yield_point, progress=progress)
    if name in HEADS_FIRST:
        shared = kv_head(run.spec(layer), head)
        rows = rows[:, head if name in ("attn.q", "attn.rot_q", "attn.z") else shared]  # (T, D)
    return as_floats(rows.flatten(1))  # (T, width)
