"""Exact cells of attention: what a hover shows, what a table holds, what pooled pictures are checked against.

Rows are computed in blocks that begin at multiples of `BLOCK` whatever rectangle is asked for, so that the same cell
has the same bits however it is looked at (a matrix product's rounding depends on its shape).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.attention import AttentionSpec
from model.protocol.attention_requests import Stage
from model.run import Run
from model.views.selection import Chosen, HeadRows, YieldPoint, head_rows, no_yield

BLOCK = 64


@torch.inference_mode()
def exact(
    run: Run, chosen: Chosen, rows: tuple[int, int], cols: tuple[int, int], *, yield_point: YieldPoint = no_yield
) -> NDArray[np.float32]:
    """Values (t, s) float32 of rows × cols (half-open, within the path), NaN where masked."""
    made = np.empty((rows[1] - rows[0], cols[1] - cols[0]), dtype=np.float32)
    for begin, end, at in _blocks(run, rows, yield_point):
        values = _block(run, chosen, begin, end)[at, cols[0] : cols[1]]
        made[max(begin - rows[0], 0) : end - rows[0]] = values.cpu().numpy()
    return made


@torch.inference_mode()
def exact_heads(
    run: Run, chosen: Chosen, rows: tuple[int, int], *, yield_point: YieldPoint = no_yield
) -> NDArray[np.float32]:
    """`exact` of each chosen head of a layer on its own, over all keys: (H, t, S), the same bits."""
    made = np.empty((chosen.count, rows[1] - rows[0], run.length), dtype=np.float32)
    for begin, end, at in _blocks(run, rows, yield_point):
        values, visible = _stage_rows(list(head_rows(run, chosen, (begin, end))), chosen.stage, begin, run.length)
        values.masked_fill_(~visible, torch.nan)
        made[:, max(begin - rows[0], 0) : end - rows[0]] = values[:, at].cpu().numpy()
    return made


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
    values, visible = _stage_rows([head], stage, begin, n_keys)
    return values[0], visible


def _stage_rows(heads: Sequence[HeadRows], stage: Stage, begin: int, n_keys: int) -> tuple[Tensor, Tensor]:
    """`stage_rows` of several heads of a layer: (H, T, S), the same bits as one by one, and (T, S) bool."""
    spec, n_rows, device = heads[0].spec, heads[0].q.shape[1], heads[0].q.device
    q_pos = torch.arange(begin, begin + n_rows, device=device)
    k_pos = torch.arange(n_keys, device=device)
    if stage == "raw":
        values = _stacked(head.spec.raw(head.q, head.k) for head in heads)  # (H, T, S)
        return values, torch.ones(n_rows, n_keys, dtype=torch.bool, device=device)
    if stage in ("scores", "masked"):
        values = _stacked(head.spec.scores(head.q, head.k, q_pos, k_pos) for head in heads)  # (H, T, S)
        visible = torch.ones_like(values[0], dtype=torch.bool) if stage == "scores" else spec.mask(q_pos, k_pos)
        return values, visible
    seen = slice(*visible_keys(spec, begin, begin + n_rows))
    scores = _stacked(head.spec.scores(head.q, head.k[:, seen], q_pos, k_pos[seen]) for head in heads)
    weights = spec.normalize(scores, q_pos, k_pos[seen])  # (H, T, last - first)
    if stage == "weighted":
        for index, head in enumerate(heads):
            weights[index] *= head.v[0, seen].float().norm(dim=-1)
    values = weights.new_zeros(len(heads), n_rows, n_keys)
    values[..., seen] = weights
    return values, spec.mask(q_pos, k_pos)


def _stacked(heads: Iterable[Tensor]) -> Tensor:
    """(1, T, S) of every head → (H, T, S). Products are made head by head: their rounding depends on their shape."""
    made = list(heads)
    return made[0] if len(made) == 1 else torch.cat(made)


def visible_keys(spec: AttentionSpec, begin: int, end: int) -> tuple[int, int]:
    """The keys that any of the queries begin … end - 1 can see, half-open."""
    return 0 if spec.window is None else max(0, begin - spec.window + 1), end
