"""Exact cells of attention: what a hover shows, what a table holds, what pooled pictures are checked against.

Rows are computed in blocks that begin at multiples of `BLOCK` whatever rectangle is asked for, so that the same cell
has the same bits however it is looked at (a matrix product's rounding depends on its shape).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.attention_spec import AttentionSpec
from model.device import to_host
from model.protocol.attention_requests import Stage
from model.run import Run
from model.views.selection import Chosen, HeadRows, YieldPoint, head_rows, no_yield

BLOCK = 64
PARALLEL_CELLS = BLOCK * 2_048
"""Cells of a head's block from which several threads are worth it."""
WEIGHTS: frozenset[Stage] = frozenset({"weights", "weighted"})
"""Stages of which keys that no row of a block sees need not be computed."""


@torch.inference_mode()
def exact(
    run: Run, chosen: Chosen, rows: tuple[int, int], cols: tuple[int, int], *, yield_point: YieldPoint = no_yield
) -> NDArray[np.float32]:
    """Values (t, s) float32 of rows × cols (half-open, within the path), NaN where masked."""
    made = np.empty((rows[1] - rows[0], cols[1] - cols[0]), dtype=np.float32)
    for begin, end, at in _blocks(run, rows, yield_point):
        values = _block(run, chosen, begin, end)[at, cols[0] : cols[1]]
        made[max(begin - rows[0], 0) : end - rows[0]] = to_host(values).numpy()
    return made


@torch.inference_mode()
def exact_heads(
    run: Run, chosen: Chosen, rows: tuple[int, int], *, yield_point: YieldPoint = no_yield
) -> NDArray[np.float32]:
    """`exact` of each chosen head of a layer on its own, over all keys: (H, t, S), the same bits."""
    made = torch.empty(chosen.count, rows[1] - rows[0], run.length)
    for begin, end, at in _blocks(run, rows, yield_point):
        heads = list(head_rows(run, chosen, (begin, end)))
        values, visible, seen = _seen_rows(heads, chosen.stage, begin, run.length)
        block = made[:, max(begin - rows[0], 0) : end - rows[0]]  # (H, t, S)
        with few_threads((end - begin) * run.length):
            if visible is not None:  # without a window, only keys of the block itself can be hidden from its rows
                edge = begin if heads[0].spec.window is None else 0
                values[..., edge:].masked_fill_(~visible[:, edge:], torch.nan)
            block[..., seen] = values[:, at]
            block[..., : seen.start] = torch.nan
            block[..., seen.stop :] = torch.nan
    return made.numpy()


def _blocks(run: Run, rows: tuple[int, int], yield_point: YieldPoint) -> Iterator[tuple[int, int, slice]]:
    """Where the blocks that hold `rows` begin and end, and which of their rows are wanted."""
    for begin in range(rows[0] // BLOCK * BLOCK, rows[1], BLOCK):
        yield_point()
        end = min(begin + BLOCK, run.length)
        yield begin, end, slice(max(rows[0] - begin, 0), rows[1] - begin)


def _block(run: Run, chosen: Chosen, begin: int, end: int) -> Tensor:
    """Rows begin … end - 1, every key: (T, S), NaN where masked."""
    n_keys = run.length
    total: Tensor | None = None
    visible: Tensor | None = None
    for head in head_rows(run, chosen, (begin, end)):
        values, seen = stage_rows(head, chosen.stage, begin, n_keys)
        visible = seen if visible is None else visible | seen
        if total is None:
            total = values
        elif chosen.maximum:
            torch.maximum(total, values, out=total)
        else:
            total += values
    assert total is not None
    assert visible is not None
    if not chosen.maximum and chosen.count > 1:
        total /= chosen.count
    return total.masked_fill_(~visible, torch.nan)


def stage_rows(head: HeadRows, stage: Stage, begin: int, n_keys: int) -> tuple[Tensor, Tensor]:
    """One head's rows at positions begin …, and which keys count: (T, S) float32 and (T, S) bool.

    Where a key doesn't count, weights are 0 and scores are those before the mask.
    """
    made, counts, seen = _seen_rows([head], stage, begin, n_keys)
    if counts is None:
        return made[0], torch.ones_like(made[0], dtype=torch.bool)
    values = made.new_zeros(made.shape[1], n_keys)
    values[:, seen] = made[0]
    visible = counts.new_zeros(made.shape[1], n_keys)
    visible[:, seen] = counts
    return values, visible


def _seen_rows(heads: Sequence[HeadRows], stage: Stage, begin: int, n_keys: int) -> tuple[Tensor, Tensor | None, slice]:
    """`stage_rows` of heads of a layer, (H, T, s) and (T, s), over the keys that need computing; no mask: all count."""
    n_rows = heads[0].q.shape[1]
    seen = slice(*visible_keys(heads[0].spec, begin, begin + n_rows)) if stage in WEIGHTS else slice(0, n_keys)
    with few_threads(n_rows * n_keys):
        return *_weighed(heads, stage, begin, seen), seen


def _weighed(heads: Sequence[HeadRows], stage: Stage, begin: int, seen: slice) -> tuple[Tensor, Tensor | None]:
    n_rows, device = heads[0].q.shape[1], heads[0].q.device
    dots = _dots(heads, seen)  # (H, T, s)
    if stage == "raw":
        return dots, None
    spec = heads[0].spec
    if spec.slopes is not None:
        spec = replace(spec, slopes=tuple(slope for head in heads for slope in head.spec.slopes or ()))
    q_pos = torch.arange(begin, begin + n_rows, device=device)
    k_pos = torch.arange(seen.start, seen.stop, device=device)
    scores = spec.shape_(dots, k_pos)
    if stage == "scores":
        return scores, None
    visible = spec.mask(q_pos, k_pos)
    if stage == "masked":
        return scores, visible
    edge = begin - seen.start if spec.window is None else 0  # without a window only the block's own keys can be hidden
    weights = spec.normalize_(scores, ~visible[:, edge:])
    if stage == "weighted":
        for index, head in enumerate(heads):
            weights[index] *= head.v[0, seen].float().norm(dim=-1)
    return weights, visible


@contextmanager
def few_threads(cells: int) -> Iterator[None]:
    """One thread for what takes microseconds: where other work keeps the cores busy, each of many short parallel loops
    would wait for a thread that does not run. By the size of one head's block alone, so that the same cell is made the
    same way."""
    threads = torch.get_num_threads()
    if cells > PARALLEL_CELLS or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _dots(heads: Sequence[HeadRows], keys: slice) -> Tensor:
    """q·k, (H, T, s), head by head: a product's rounding depends on its shape."""
    if len(heads) == 1 or heads[0].q.device.type != "cpu":
        return torch.cat([head.spec.raw(head.q, head.k[:, keys]) for head in heads])
    dots = torch.empty(len(heads), heads[0].q.shape[1], keys.stop - keys.start)
    for head, out in zip(heads, dots, strict=True):
        torch.mm(head.q[0].float(), head.k[0, keys].float().T, out=out)  # (T, s), as `raw` does it
    return dots


def visible_keys(spec: AttentionSpec, begin: int, end: int) -> tuple[int, int]:
    """The keys that any of the queries begin … end - 1 can see, half-open."""
    return 0 if spec.window is None else max(0, begin - spec.window + 1), end
