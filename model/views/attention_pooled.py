"""Attention matrices of any size as pictures: the strongest cell of each pixel, in blocks of rows, in bounded memory.

Keys are gathered so that the b-th key of every pixel lies side by side: the extreme over a pixel is then one over a
leading axis, which costs a tenth of the product. A pixel's value is its maximum or, for signed stages, its value of
largest magnitude; a pixel without a visible cell is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.attention import AttentionSpec
from model.protocol.attention_requests import Stage
from model.recompute import query_rows
from model.run import Run
from model.views.attention_exact import visible_keys
from model.views.selection import SIGNED, Bins, Chosen, YieldPoint, head_spec, kv_head, no_yield

BLOCK_CELLS = 1 << 20
"""Scores held at a time (4 MiB in float32)."""


@dataclass(kw_only=True)
class Extremes:
    """The least and greatest visible cell met so far, those of key 0 left out with `rest`; NaN while there is none."""

    rest: bool = False
    low: float = math.nan
    high: float = math.nan

    def meet(self, low: float, high: float) -> None:
        """Takes in the extremes of some cells (infinite when there were none)."""
        if low <= high:
            self.low = low if math.isnan(self.low) else min(self.low, low)
            self.high = high if math.isnan(self.high) else max(self.high, high)

    def meet_array(self, values: NDArray[np.float32]) -> None:
        """Takes in cells, NaN where masked."""
        seen = values[~np.isnan(values)]
        if seen.size:
            self.meet(float(seen.min()), float(seen.max()))


@dataclass(frozen=True, kw_only=True, eq=False)
class KeyBlock:
    """The keys that a block of rows needs, in the order they are multiplied in: `position` (N,).

    First the cells of `pixels` (half-open, of `bins`), b-major, then keys outside the rectangle, over which weights are
    normalised all the same.
    """

    bins: Bins
    pixels: tuple[int, int]
    position: Tensor
    hidden: dict[int | None, Hidden] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Pixels across."""
        return self.pixels[1] - self.pixels[0]

    @property
    def n_inside(self) -> int:
        """Columns that are pixels' cells."""
        return self.bins.size * self.width

    @cached_property
    def extra(self) -> Tensor | None:
        """(p,) bool, where the last of a pixel's cells is one of its others again; None if nowhere."""
        extra = self.bins.extra[slice(*self.pixels)]
        return torch.from_numpy(extra).to(self.position.device) if extra.any() else None

    def cells(self, values: Tensor) -> Tensor:
        """Columns of pixels by cell and pixel: (…, N) → (…, size, p), a view."""
        return values[..., : self.n_inside].view(*values.shape[:-1], self.bins.size, self.width)

    def outside(self, values: Tensor) -> Tensor:
        """The other columns, (…, N - size · p), a view."""
        return values[..., self.n_inside :]


def key_block(bins: Bins, first: int, last: int, *, outside: bool, device: torch.device) -> KeyBlock:
    """The pixels that keys first … last - 1 lie on and, with `outside`, those keys that lie on none."""
    p0 = max(int(np.searchsorted(bins.edges, first, "right")) - 1, 0)
    p1 = max(min(int(np.searchsorted(bins.edges, last, "left")), bins.n), p0)
    parts = [bins.index[:, p0:p1].ravel()]
    if outside:
        parts += [np.arange(first, min(bins.start, last)), np.arange(max(bins.stop, first), last)]
    return KeyBlock(bins=bins, pixels=(p0, p1), position=torch.from_numpy(np.concatenate(parts)).to(device))


@dataclass(frozen=True, kw_only=True, eq=False)
class Hidden:
    """Which cells of a block the mask hides: everything not named here is visible to every row.

    `patches`: pixels (relative to the block's), the mask of their cells (T, size, w), and which of them have no visible
    cell (T, w). `outside`: (T, n) of the keys outside.
    """

    patches: tuple[tuple[slice, Tensor, Tensor], ...] = ()
    outside: Tensor | None = None

    def fill(self, keys: KeyBlock, values: Tensor, value: float) -> None:
        """Writes `value` into the hidden cells of values (…, T, N)."""
        cells = keys.cells(values)
        for at, mask, _ in self.patches:
            cells[..., at].masked_fill_(mask, value)
        if self.outside is not None:
            keys.outside(values).masked_fill_(self.outside, value)

    def fill_blind(self, pooled_values: Tensor, value: float) -> None:
        """Writes `value` into the pixels (…, T, p) that have no visible cell."""
        for at, _, blind in self.patches:
            pooled_values[..., at].masked_fill_(blind, value)


def hidden_by(spec: AttentionSpec, first: int, last: int, keys: KeyBlock) -> Hidden:
    """What the causal mask and the window hide from queries first … last - 1; made once a block and window."""
    if spec.window not in keys.hidden:
        keys.hidden[spec.window] = _hidden_by(spec, first, last, keys)
    return keys.hidden[spec.window]


def _hidden_by(spec: AttentionSpec, first: int, last: int, keys: KeyBlock) -> Hidden:
    p0, p1 = keys.pixels
    edges = keys.bins.edges
    seen_from, seen_to = p0, min(max(int(np.searchsorted(edges, first + 1, "right")) - 1, p0), p1)
    if spec.window is not None:
        seen_from = min(max(int(np.searchsorted(edges, last - 1 - spec.window, "right")), p0), p1)
    ranges = [(p0, p1)] if seen_from >= seen_to else [(p0, seen_from), (seen_to, p1)]
    q_pos = torch.arange(first, last, device=keys.position.device)
    by_cell = keys.cells(keys.position)  # (size, p)
    patches = []
    for begin, end in ranges:
        if begin < end:
            at = slice(begin - p0, end - p0)
            mask = ~spec.mask(q_pos, by_cell[:, at].reshape(-1))  # (T, size · w)
            mask = mask.view(last - first, keys.bins.size, -1)
            # Without a window, a pixel's first cell is the last to vanish.
            patches.append((at, mask, mask[:, 0] if spec.window is None else mask.all(1)))
    others = keys.outside(keys.position)
    outside = ~spec.mask(q_pos, others) if others.numel() else None  # (T, n)
    return Hidden(patches=tuple(patches), outside=outside)


@dataclass(kw_only=True, eq=False)
class Workspace:
    """Memory that is used again from block to block: fresh pages cost more than the arithmetic.

    Nothing in it outlives a yield point, where another view may want it.
    """

    device: torch.device
    _flat: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run) -> Workspace:
        """The run's own, kept from view to view."""
        work = run.derived.get("attention workspace")
        if not isinstance(work, Workspace):
            work = run.derived["attention workspace"] = Workspace(device=run.device)
        return work

    def take(self, name: str, *shape: int) -> Tensor:
        """An uninitialised float32 tensor of this shape, valid until the name is taken again."""
        size = math.prod(shape)
        if name not in self._flat or self._flat[name].numel() < size:
            self._flat[name] = torch.empty(size, device=self.device)
        return self._flat[name][:size].view(shape)


def block_values(
    spec: AttentionSpec, stage: Stage, q: Tensor, k: Tensor, v: Tensor, first: int, keys: KeyBlock, work: Workspace
) -> Tensor:
    """q (H, T, D) at positions first … with all k, v (K, S, D): values (H, T, N), in memory of `work`.

    Weights of hidden keys are 0; scores are those before the mask.
    """
    n_heads, n_rows, _ = q.shape
    groups, n_keys = n_heads // spec.n_kv_heads, keys.position.numel()
    grouped = q.float().reshape(spec.n_kv_heads, groups * n_rows, -1)  # (K, H/K · T, D)
    if stage != "raw" and spec.scale != 1.0:
        grouped = grouped * spec.scale
    gathered = work.take("keys", spec.n_kv_heads, n_keys, k.shape[2]) if k.dtype == torch.float32 else None
    gathered = torch.index_select(k, 1, keys.position, out=gathered).float()  # (K, N, D)
    scores = work.take("scores", spec.n_kv_heads, groups * n_rows, n_keys)
    for shared in range(spec.n_kv_heads):  # mm: the batched product is several times slower on a CPU
        torch.mm(grouped[shared], gathered[shared].T, out=scores[shared])  # (H/K · T, N)
    values = scores.view(n_heads, n_rows, n_keys)  # (H, T, N)
    if stage == "raw":
        return values
    bias = spec.bias(keys.position)
    if bias is not None:
        values += bias
    if spec.softcap is not None:
        values.div_(spec.softcap).tanh_().mul_(spec.softcap)
    if stage in SIGNED:
        return values
    hidden_by(spec, first, first + n_rows, keys).fill(keys, values, -math.inf)
    if keys.extra is not None:
        keys.cells(values)[..., -1, :].masked_fill_(keys.extra, -math.inf)  # so that it counts once in the sum
    weights = work.take("weights", n_heads, n_rows, n_keys)
    torch.softmax(values, -1, out=weights)
    if keys.extra is not None:
        cells = keys.cells(weights)
        cells[..., -1, :] = torch.where(keys.extra, cells[..., -2, :], cells[..., -1, :])
    if stage == "weighted":
        norms = v.float().norm(dim=-1)[:, keys.position]  # (K, N)
        weights.view(spec.n_kv_heads, groups, n_rows, n_keys).mul_(norms[:, None, None])
    return weights


def pool_keys(
    values: Tensor, hidden: Hidden | None, keys: KeyBlock, *, signed: bool, lows: bool = True
) -> tuple[Tensor, Tensor]:
    """The greatest and the least visible cell of every pixel, (…, T, p) each; -inf and inf where none is visible.

    Spoils `values` (…, T, N). Without `lows`, one-signed values give the greatest twice.
    """
    cells = keys.cells(values)
    if hidden is None:
        return cells.amax(-2), cells.amin(-2)
    if signed:
        hidden.fill(keys, values, -math.inf)
    top = cells.amax(-2)
    hidden.fill_blind(top, -math.inf)  # hidden weights are 0, never above a visible one
    if not lows:
        return top, top
    hidden.fill(keys, values, math.inf)
    return top, cells.amin(-2)


def strongest(top: Tensor, low: Tensor) -> Tensor:
    """Of the greatest and the least value, the one of larger magnitude; -inf where there is none."""
    return torch.where(top + low < 0, low, top)  # -inf + inf is NaN, and that is not under 0


class Picture:
    """Pixels (…, h, w) as they are pooled from blocks of rows: the greatest and, of signed values, the least cell."""

    def __init__(self, *shape: int, signed: bool, device: torch.device) -> None:
        self.signed = signed
        self._top = torch.full(shape, -math.inf, device=device)
        self._low = torch.full(shape, math.inf, device=device) if signed else None

    def put(
        self, rows: Bins, at: slice, first: int, last: int, pixels: tuple[int, int], top: Tensor, low: Tensor
    ) -> None:
        """Takes in rows first … last - 1 of pooled keys (…, T, p): all cells of the rows of pixels `at`, or some of
        one of them."""
        region = self._top[..., at, slice(*pixels)]
        torch.maximum(region, _by_rows(top, rows, at, first, last, torch.amax), out=region)
        if self._low is not None:
            region = self._low[..., at, slice(*pixels)]
            torch.minimum(region, _by_rows(low, rows, at, first, last, torch.amin), out=region)

    def values(self) -> NDArray[np.float32]:
        """The strongest of each pixel, NaN where nothing is visible."""
        top = self._top if self._low is None else strongest(self._top, self._low)
        values: NDArray[np.float32] = top.masked_fill_(top == -math.inf, math.nan).cpu().numpy()
        return values


def _by_rows(
    values: Tensor, bins: Bins, at: slice, first: int, last: int, extreme: Callable[[Tensor, int], Tensor]
) -> Tensor:
    """(…, T, p) → (…, n, p), the extreme of each row of pixels."""
    if last - first < bins.edges[at.stop] - bins.edges[at.start]:
        return extreme(values, -2).unsqueeze(-2)
    if bins.size == 1:
        return values
    shape = (*values.shape[:-2], -1, bins.size, values.shape[-1])
    if not bins.extra[at].any():
        return extreme(values.view(shape), -2)
    index = torch.from_numpy(bins.index[:, at].T.ravel() - first).to(values.device)  # (n · size,)
    return extreme(values.index_select(-2, index).view(shape), -2)


def row_blocks(bins: Bins, rows_at_once: int) -> Iterator[tuple[slice, int, int]]:
    """Blocks of at most `rows_at_once` rows: whole rows of pixels, or parts of a single one. (pixels, first, last)."""
    if bins.size > rows_at_once:
        for pixel in range(bins.n):
            for first in range(int(bins.edges[pixel]), int(bins.edges[pixel + 1]), rows_at_once):
                last = min(first + rows_at_once, int(bins.edges[pixel + 1]))
                yield slice(pixel, pixel + 1), first, last
        return
    count = rows_at_once // bins.size
    for pixel in range(0, bins.n, count):
        end = min(pixel + count, bins.n)
        yield slice(pixel, end), int(bins.edges[pixel]), int(bins.edges[end])


@torch.inference_mode()
def pooled(
    run: Run,
    chosen: Chosen,
    rows: tuple[int, int],
    cols: tuple[int, int],
    pixels: tuple[int, int],
    *,
    extremes: Sequence[Extremes] = (),
    yield_point: YieldPoint = no_yield,
) -> NDArray[np.float32]:
    """rows × cols on at most `pixels` = (height, width): (h, w) float32, NaN masked. `extremes` meet every cell."""
    row_bins = Bins(start=rows[0], stop=rows[1], pixels=pixels[0])
    col_bins = Bins(start=cols[0], stop=cols[1], pixels=pixels[1])
    picture = Picture(row_bins.n, col_bins.n, signed=chosen.signed, device=run.device)
    work = Workspace.of(run)
    needed = run.length if chosen.masked else cols[1] - cols[0]
    rows_at_once = max(1, BLOCK_CELLS // (needed * len(chosen.heads)))
    for at, first, last in row_blocks(row_bins, rows_at_once):
        yield_point()
        keys = keys_of(run, chosen, col_bins, first, last)
        if not keys.width:
            continue
        values = combined(run, chosen, first, last, keys, work)  # (T, N)
        hidden = hidden_by(widest(run, chosen), first, last, keys) if chosen.masked else None
        first_pixel = keys.cells(values)[..., 0]
        if extremes:
            first_pixel = first_pixel.clone()  # before its hidden cells are overwritten
        top, low = pool_keys(values, hidden, keys, signed=chosen.signed)  # (T, p) twice
        for each in extremes:
            _meet(each, top, low, first_pixel, hidden, keys)
        picture.put(row_bins, at, first, last, keys.pixels, top, low)
    return picture.values()


def _meet(
    extremes: Extremes, top: Tensor, low: Tensor, first_pixel: Tensor, hidden: Hidden | None, keys: KeyBlock
) -> None:
    """Pixels (T, p) and, where key 0 must be left out, the cells (T, size) of the pixel it is on."""
    if not (extremes.rest and keys.bins.start == 0 and keys.pixels[0] == 0):
        extremes.meet(float(low.amin()), float(top.amax()))
        return
    if top.shape[1] > 1:
        extremes.meet(float(low[:, 1:].amin()), float(top[:, 1:].amax()))
    left_out = (keys.cells(keys.position)[:, 0] == 0).expand(first_pixel.shape)  # (T, size)
    for at, mask, _ in hidden.patches if hidden is not None else ():
        if at.start == 0:
            left_out = left_out | mask[..., 0]
    low_end = first_pixel.masked_fill(left_out, math.inf).amin()
    extremes.meet(float(low_end), float(first_pixel.masked_fill(left_out, -math.inf).amax()))


def widest(run: Run, chosen: Chosen) -> AttentionSpec:
    """The chosen layer that sees farthest back: what it hides is hidden in all."""
    specs = [run.spec(layer) for layer in chosen.layers]
    return max(specs, key=lambda spec: math.inf if spec.window is None else spec.window)


def keys_of(run: Run, chosen: Chosen, bins: Bins, first: int, last: int) -> KeyBlock:
    """The keys that queries first … last - 1 need so that the cells of `bins` can be computed."""
    if not chosen.masked:
        return key_block(bins, bins.start, bins.stop, outside=False, device=run.device)
    low, high = visible_keys(widest(run, chosen), first, last)
    return key_block(bins, low, high, outside=not chosen.signed, device=run.device)


def combined(
    run: Run, chosen: Chosen, first: int, last: int, keys: KeyBlock, work: Workspace, *, unscaled: bool = False
) -> Tensor:
    """Rows first … last - 1 of one head (T, N), or of the mean or maximum over several.

    `unscaled`: as if q·k were not multiplied by the attention scale.
    """
    total: Tensor | None = None
    for layer in chosen.layers:
        spec, q = run.spec(layer), query_rows(run, layer, first, last)
        k, v = run.k(layer), run.v(layer)
        spec = replace(spec, scale=1.0) if unscaled else spec
        if len(chosen.heads) == 1:
            head = chosen.heads[0]
            shared = kv_head(spec, head)
            spec, q, k, v = head_spec(spec, head), q[head, None], k[shared, None], v[shared, None]
        values = block_values(spec, chosen.stage, q, k, v, first, keys, work)
        over_heads = values[0] if len(values) == 1 else values.amax(0) if chosen.maximum else values.sum(0)  # (T, N)
        if total is None:
            total = over_heads.clone() if len(chosen.layers) > 1 and len(values) == 1 else over_heads
        elif chosen.maximum:
            total = torch.maximum(total, over_heads)
        else:
            total.add_(over_heads)
    assert total is not None
    return total if chosen.maximum or chosen.single else total.div_(chosen.count)
