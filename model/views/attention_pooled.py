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

from model.attention_spec import AttentionSpec
from model.device import to_device, to_host
from model.protocol.attention_requests import Stage
from model.recompute import query_rows
from model.run import Run
from model.views.attention_exact import visible_keys
from model.views.selection import SIGNED, Bins, Chosen, Reached, YieldPoint, head_spec, kv_head, no_yield

Extreme = Callable[..., Tensor]
"""torch.amax or torch.amin."""

BLOCK_CELLS = 1 << 21
"""Scores held at a time (8 MiB in float32)."""


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
    _gathered: list[tuple[Tensor, Tensor]] = field(default_factory=list)

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
        return to_device(torch.from_numpy(extra), self.position.device) if extra.any() else None

    def cells(self, values: Tensor) -> Tensor:
        """Columns of pixels by cell and pixel: (…, N) → (…, size, p), a view."""
        return values[..., : self.n_inside].view(*values.shape[:-1], self.bins.size, self.width)

    def gather(self, k: Tensor) -> Tensor:
        """Keys (K, S, D) in the order of `position`, (K, N, D) float32; those asked for last are kept."""
        if not self._gathered or not self._gathered[0][0].is_set_to(k):
            self._gathered[:] = [(k, torch.index_select(k, 1, self.position).float())]
        return self._gathered[0][1]

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
    return KeyBlock(bins=bins, pixels=(p0, p1), position=to_device(torch.from_numpy(np.concatenate(parts)), device))


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

    def blind(self, block: RowBlock) -> Iterator[tuple[slice, Tensor]]:
        """Columns of pixels, and which of their pixels (n, w) have no visible cell in the block's rows."""
        for columns, _, blind in self.patches:
            yield columns, block.all_of(blind)


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
    scale = spec.scale if stage != "raw" else 1.0
    scaled = torch.mul(q.float(), scale, out=work.take("queries", *q.shape)) if scale != 1.0 else q.float()
    grouped = scaled.reshape(spec.n_kv_heads, groups * n_rows, -1)  # (K, H/K · T, D)
    gathered = keys.gather(k)  # (K, N, D)
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
    weights = torch.softmax(values, -1, out=values)  # in place: half the memory to go through
    if keys.extra is not None:
        cells = keys.cells(weights)
        cells[..., -1, :] = torch.where(keys.extra, cells[..., -2, :], cells[..., -1, :])
    if stage == "weighted":
        norms = v.float().norm(dim=-1)[:, keys.position]  # (K, N)
        weights.view(spec.n_kv_heads, groups, n_rows, n_keys).mul_(norms[:, None, None])
    return weights


def pool_cells(
    values: Tensor, hidden: Hidden | None, keys: KeyBlock, block: RowBlock, work: Workspace, *, signed: bool, lows: bool
) -> tuple[Tensor, Tensor]:
    """The greatest and the least visible cell of every pixel, (…, n, p) each; where none is visible -inf (of one-signed
    values 0) and inf.

    Spoils `values` (…, T, N). Without `lows`, one-signed values give the greatest twice.
    """
    cells = keys.cells(values)
    if hidden is None:
        return block.pool(cells, torch.amax, work, "top"), block.pool(cells, torch.amin, work, "low")
    if signed:
        hidden.fill(keys, values, -math.inf)
    top = block.pool(cells, torch.amax, work, "top")  # hidden weights are 0, never above a visible one
    if not lows:
        return top, top
    hidden.fill(keys, values, math.inf)
    return top, block.pool(cells, torch.amin, work, "low")


def strongest(top: Tensor, low: Tensor, work: Workspace) -> Tensor:
    """Of the greatest and the least value, the one of larger magnitude, in memory of `work`; anything where there is
    none. Without a branch: `torch.where` on signs in no order takes four times longer."""
    size, sign = work.take("strongest", *top.shape), work.take("sign", *top.shape)
    torch.maximum(top, torch.neg(low, out=size), out=size)
    return torch.copysign(size, torch.add(top, low, out=sign), out=size)


class Picture:
    """Pixels (…, h, w) as they are pooled from blocks of rows: the strongest cell of each, NaN until one is visible."""

    def __init__(self, *shape: int, signed: bool, device: torch.device) -> None:
        self.signed = signed
        self._values = torch.full(shape, math.nan, device=device)

    def put(
        self, block: RowBlock, keys: KeyBlock, hidden: Hidden | None, top: Tensor, low: Tensor, work: Workspace
    ) -> None:
        """Takes in the pixels (…, n, p) that a block's cells give: all cells of its rows of pixels, or some of one."""
        values = strongest(top, low, work) if self.signed else top
        for columns, blind in hidden.blind(block) if hidden is not None else ():
            values[..., columns].masked_fill_(blind, math.nan)
        region = self._values[..., block.at, slice(*keys.pixels)]
        if not block.is_whole:  # another block may have met cells of the same pixels
            unseen, unmet = values.isnan(), region.isnan()
            met = torch.maximum(values.masked_fill(unseen, -math.inf), region.masked_fill(unmet, -math.inf))
            if self.signed:
                least = torch.minimum(values.masked_fill(unseen, math.inf), region.masked_fill(unmet, math.inf))
                met = strongest(met, least, work)
            values = met.masked_fill_(unseen & unmet, math.nan)
        region.copy_(values)

    def values(self) -> NDArray[np.float32]:
        """The strongest of each pixel, NaN where nothing is visible."""
        values: NDArray[np.float32] = to_host(self._values).numpy()
        return values


@dataclass(frozen=True, kw_only=True)
class RowBlock:
    """Rows first … last - 1: all cells of the rows of pixels `at` (of `bins`), or some cells of a single one."""

    bins: Bins
    at: slice
    first: int
    last: int

    @property
    def is_whole(self) -> bool:
        """Whether no other block has cells of these pixels."""
        return bool(self.last - self.first == self.bins.edges[self.at.stop] - self.bins.edges[self.at.start])

    def pool(self, cells: Tensor, extreme: Extreme, work: Workspace, name: str) -> Tensor:
        """(…, T, size, p) → (…, n, p), the extreme of each pixel, in memory of `work` called `name`."""
        n, (size, width) = self.at.stop - self.at.start, cells.shape[-2:]
        if self.is_whole and self.bins.extra[self.at].any():  # rows that count twice
            by_row = extreme(cells, -2, out=work.take(f"{name} by row", *cells.shape[:-2], width))  # (…, T, p)
            cells = by_row.index_select(-2, self.rows_of(by_row.device))[..., None, :]  # (…, n · rows, 1, p)
            size = 1
        by_pixel = cells.view(*cells.shape[:-3], n, -1, size, width)  # (…, n, rows, size, p)
        return extreme(by_pixel, (-3, -2), out=work.take(name, *cells.shape[:-3], n, width))

    def rows_of(self, device: torch.device) -> Tensor:
        """The rows of each row of pixels, all of one after the other, counted from `first`: (n · size,)."""
        return to_device(torch.from_numpy(self.bins.index[:, self.at].T.ravel() - self.first), device)

    def all_of(self, rows: Tensor) -> Tensor:
        """(T, w) bool → (n, w), which pixels have it in all of their rows."""
        n = self.at.stop - self.at.start
        if self.is_whole and self.bins.extra[self.at].any():
            rows = rows[self.rows_of(rows.device)]  # (n · size, w)
        return rows.view(n, -1, rows.shape[1]).all(1)


def row_blocks(bins: Bins, rows_at_once: int) -> Iterator[RowBlock]:
    """Blocks of at most `rows_at_once` rows, whole rows of pixels where one has no more."""
    if bins.size > rows_at_once:
        for pixel in range(bins.n):
            for first in range(int(bins.edges[pixel]), int(bins.edges[pixel + 1]), rows_at_once):
                last = min(first + rows_at_once, int(bins.edges[pixel + 1]))
                yield RowBlock(bins=bins, at=slice(pixel, pixel + 1), first=first, last=last)
        return
    count = rows_at_once // bins.size
    for pixel in range(0, bins.n, count):
        end = min(pixel + count, bins.n)
        yield RowBlock(bins=bins, at=slice(pixel, end), first=int(bins.edges[pixel]), last=int(bins.edges[end]))


@torch.inference_mode()
def pooled(
    run: Run,
    chosen: Chosen,
    rows: tuple[int, int],
    cols: tuple[int, int],
    pixels: tuple[int, int],
    *,
    extremes: Sequence[Extremes] = (),
    reached: Reached | None = None,
    yield_point: YieldPoint = no_yield,
) -> NDArray[np.float32]:
    """rows × cols on at most `pixels` = (height, width): (h, w) float32, NaN masked. `extremes` meet every cell;
    `reached` is told which row is next."""
    row_bins = Bins(start=rows[0], stop=rows[1], pixels=pixels[0])
    col_bins = Bins(start=cols[0], stop=cols[1], pixels=pixels[1])
    picture = Picture(row_bins.n, col_bins.n, signed=chosen.signed, device=run.device)
    work = Workspace.of(run)
    needed = run.length if chosen.masked else cols[1] - cols[0]
    rows_at_once = max(1, BLOCK_CELLS // (needed * len(chosen.heads)))
    keys: KeyBlock | None = None
    for block in row_blocks(row_bins, rows_at_once):
        if reached is not None:
            reached(block.first)
        yield_point()
        if keys is None or chosen.masked:  # before the mask, every row needs the same keys
            keys = keys_of(run, chosen, col_bins, block.first, block.last)
        if not keys.width:
            continue
        values = combined(run, chosen, block.first, block.last, keys, work)  # (T, N)
        hidden = hidden_by(widest(run, chosen), block.first, block.last, keys) if chosen.masked else None
        first_pixel = keys.cells(values)[..., 0]
        if any(each.rest for each in extremes):
            first_pixel = first_pixel.clone()  # before its hidden cells are overwritten
        top, low = pool_cells(values, hidden, keys, block, work, signed=chosen.signed, lows=True)  # (n, p) twice
        for each in extremes:
            _meet(each, top, low, first_pixel, hidden, keys)
        picture.put(block, keys, hidden, top, low, work)
    return picture.values()


def _meet(
    extremes: Extremes, top: Tensor, low: Tensor, first_pixel: Tensor, hidden: Hidden | None, keys: KeyBlock
) -> None:
    """Pixels (n, p) and, where key 0 must be left out, the cells (T, size) of the pixel it is on."""
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
