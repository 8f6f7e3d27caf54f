"""Exact cells of attention: what a hover shows, what a table holds, what pooled pictures are checked against.

Rows are computed in blocks that begin at multiples of `BLOCK` whatever rectangle is asked for, so that the same cell
has the same bits however it is looked at (a matrix product's rounding depends on its shape).
"""

from __future__ import annotations

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
    blocks = []
    for begin in range(rows[0] // BLOCK * BLOCK, rows[1], BLOCK):
        yield_point()
        end = min(begin + BLOCK, run.length)
        values = _block(run, chosen, begin, end)[:, cols[0] : cols[1]]
        blocks.append(values[max(rows[0] - begin, 0) : rows[1] - begin].cpu().numpy())
    return np.concatenate(blocks)


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
    spec, n_rows = head.spec, head.q.shape[1]
    q_pos = torch.arange(begin, begin + n_rows, device=head.q.device)
    k_pos = torch.arange(n_keys, device=head.q.device)
    if stage == "raw":
        return spec.raw(head.q, head.k)[0], torch.ones(n_rows, n_keys, dtype=torch.bool, device=head.q.device)
    if stage in ("scores", "masked"):
        scores = spec.scores(head.q, head.k, q_pos, k_pos)[0]  # (T, S)
        return scores, torch.ones_like(scores, dtype=torch.bool) if stage == "scores" else spec.mask(q_pos, k_pos)
    first, last = visible_keys(spec, begin, begin + n_rows)
    weights = spec.weights(head.q, head.k[:, first:last], q_pos, k_pos[first:last])[0]  # (T, last - first)
    if stage == "weighted":
        weights *= head.v[0, first:last].float().norm(dim=-1)
    values = weights.new_zeros(n_rows, n_keys)
    values[:, first:last] = weights
    return values, spec.mask(q_pos, k_pos)


def visible_keys(spec: AttentionSpec, begin: int, end: int) -> tuple[int, int]:
    """The keys that any of the queries begin … end - 1 can see, half-open."""
    return 0 if spec.window is None else max(0, begin - spec.window + 1), end
