"""Activations that are not kept, made again by running one layer on its stored residual stream.

What a layer reads is all there: the residual before it, every key and value, the experts that were chosen. So block l
on `resid_pre[l]` gives `resid_pre[l + 1]` again, to rounding (a matrix product of many rows sums in another order than
one of a single row).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from model.hooks import HookPoint
from model.run import Run

RESID_POST = "resid_post"
BLOCK_ROWS = 512


@torch.inference_mode()
def activations(run: Run, layer: int, names: Sequence[str], start: int, stop: int) -> dict[str, Tensor]:
    """Activations of `layer` at positions start … stop - 1 by their hook names without `layers.{l}.`: "mlp.post"
    (T, F), "attn.z" (H, T, D), "resid_post" (T, M) …

    "attn.scores" and "attn.pattern" are of all keys up to the last position. Raises UnknownNameError.
    """
    run.check_layer(layer)
    seen: dict[str, list[Tensor]] = {name: [] for name in names}
    axes: dict[str, int] = {}

    def keep(name: str, rows: Tensor, point: HookPoint) -> None:
        axes[name] = point.shape.strip("()").split(", ").index("T")
        seen[name].append(rows)

    for begin, end in _spans(run, start, stop):
        k, v = run.k(layer)[:, :end], run.v(layer)[:, :end]
        listeners = {f"layers.{layer}.{name}": partial(keep, name) for name in names}
        with run.decoder.hooks(_routes(run, layer, begin, end)), run.decoder.hooks(listeners):
            run.decoder.recompute_layer(
                layer, run.resid(layer)[begin:end], k, v, begin, rope_length=run.rope_length(begin)
            )
    return {name: parts[0] if len(parts) == 1 else torch.cat(parts, axes[name]) for name, parts in seen.items()}


def _spans(run: Run, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Positions that were run under the same rotary frequencies: all, unless these change with the length."""
    ropes = (run.config.rope, run.config.rope_sliding)
    if not any(rope is not None and rope.changes_with_length for rope in ropes):
        yield start, stop
        return
    if start < run.n_prompt:
        yield start, min(stop, run.n_prompt)
    for position in range(max(start, run.n_prompt), stop):
        yield position, position + 1


def _routes(run: Run, layer: int, begin: int, end: int) -> dict[str, Callable[[Tensor, HookPoint], Tensor]]:
    """Listeners that put the experts chosen in the run in the place of those chosen now, which rounding may flip."""
    ids, weights = run.store.rows("expert_ids", layer), run.store.rows("expert_weights", layer)
    if ids is None or weights is None:
        return {}
    chosen, shares = ids[begin:end].long(), weights[begin:end]
    return {
        f"layers.{layer}.moe.ids": lambda _rows, _point: chosen,
        f"layers.{layer}.moe.weights": lambda _rows, _point: shares,
    }


def query_rows(run: Run, layer: int, start: int, stop: int) -> Tensor:
    """The q that positions start … stop - 1 used in `layer`, (H, T, D): as stored, or recomputed from the residuals
    where the budget dropped them."""
    run.check_layer(layer)
    stored = run.store.rows("q", layer)
    if stored is not None:
        return stored[:, start:stop]
    if start == stop:
        return run.resid(layer).new_empty(run.config.n_heads, 0, run.config.d_head)
    blocks = [
        activations(run, layer, ["attn.rot_q"], begin, min(begin + BLOCK_ROWS, stop))["attn.rot_q"]
        for begin in range(start, stop, BLOCK_ROWS)
    ]
    return torch.cat(blocks, 1)  # (H, T, D)


def unrotated_keys(run: Run, layer: int, start: int, stop: int) -> Tensor:
    """Keys of positions start … stop - 1 before rotary embedding turned them, (K, T, D), from the stored residuals.

    Whatever is asked for, the blocks begin at multiples of BLOCK_ROWS and are whole: products of other sizes round
    otherwise, and a position has the same numbers wherever it is shown, copied and exported.
    """
    first = start // BLOCK_ROWS * BLOCK_ROWS
    blocks = [
        activations(run, layer, ["attn.k"], begin, min(begin + BLOCK_ROWS, run.length))["attn.k"]
        for begin in range(first, stop, BLOCK_ROWS)
    ]
    return torch.cat(blocks, 1)[:, start - first : stop - first]


def queries(run: Run, layer: int) -> Tensor:
    """The q of every position of the path in `layer`, (H, length, D)."""
    return query_rows(run, layer, 0, run.length)
