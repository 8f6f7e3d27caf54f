"""Which heads a view combines, which positions it covers, and which cells share a pixel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from model.attention_spec import AttentionSpec
from model.errors import BadValueError
from model.protocol.attention_requests import HeadView, Stage
from model.recompute import query_rows
from model.run import Run

YieldPoint = Callable[[], None]
Reached = Callable[[int], None]
SIGNED: frozenset[Stage] = frozenset({"raw", "scores", "masked"})
UNMASKED: frozenset[Stage] = frozenset({"raw", "scores"})
"""Stages before the mask: every key has a value for every query."""


def no_yield() -> None:
    """Nobody else waits."""


def span(run: Run, name: str, asked: tuple[int, int]) -> tuple[int, int]:
    """A half-open range of positions clipped to the path; (0, 0) is all of it. Raises BadValueError when empty."""
    if asked == (0, 0):
        return 0, run.length
    start, stop = max(asked[0], 0), min(asked[1], run.length)
    if start >= stop:
        raise BadValueError(name, asked, f"a range within 0 to {run.length}")
    return start, stop


def check_position(run: Run, name: str, position: int) -> None:
    """Raises BadValueError for a position that is not on the path."""
    if not 0 <= position < run.length:
        raise BadValueError(name, position, f"0 to {run.length - 1}")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The heads of a view: of each of `layers`, all of `heads`; more than one are combined by their mean or maximum."""

    layers: tuple[int, ...]
    heads: tuple[int, ...]
    stage: Stage
    maximum: bool

    @property
    def single(self) -> bool:
        """Whether it is one head's own matrix."""
        return len(self.layers) == 1 and len(self.heads) == 1

    @property
    def count(self) -> int:
        """How many heads are combined."""
        return len(self.layers) * len(self.heads)

    @property
    def signed(self) -> bool:
        """Whether values may be negative."""
        return self.stage in SIGNED

    @property
    def masked(self) -> bool:
        """Whether keys after the query (or out of the window) have no value."""
        return self.stage not in UNMASKED


def chosen(run: Run, view: HeadView) -> Chosen:
    """The heads `view` names. Raises BadValueError."""
    config = run.config
    if view.layer == "all":
        if isinstance(view.head, int):
            raise BadValueError("head", view.head, '"mean" or "max" over the heads of all layers')
        layers = tuple(range(config.n_layers))
    else:
        run.check_layer(view.layer)
        layers = (view.layer,)
        run.store.focus = view.layer  # its queries are the last that a budget drops
    if isinstance(view.head, int):
        if not 0 <= view.head < config.n_heads:
            raise BadValueError("head", view.head, f"0 to {config.n_heads - 1}")
        heads: tuple[int, ...] = (view.head,)
    else:
        heads = tuple(range(config.n_heads))
    return Chosen(layers=layers, heads=heads, stage=view.stage, maximum=view.head == "max")


@dataclass(frozen=True, kw_only=True)
class HeadRows:
    """What one head's rows are computed from: spec of that head alone, q (1, T, D) of some rows, all k, v (1, S, D)."""

    spec: AttentionSpec
    q: Tensor
    k: Tensor
    v: Tensor


def head_rows(run: Run, chosen_heads: Chosen, rows: tuple[int, int]) -> Iterator[HeadRows]:
    """Every chosen head, one after the other."""
    for layer in chosen_heads.layers:
        spec, q = run.spec(layer), query_rows(run, layer, *rows)
        k, v = run.k(layer), run.v(layer)
        for head in chosen_heads.heads:
            shared = kv_head(spec, head)
            yield HeadRows(
                spec=head_spec(spec, head), q=q[head, None], k=k[shared, None], v=v[shared, None]
            )  # (1, T, D), (1, S, D) twice


def kv_head(spec: AttentionSpec, head: int) -> int:
    """The KV head that `head` reads."""
    return head // (spec.n_heads // spec.n_kv_heads)


@lru_cache(maxsize=4096)  # asked for with every block of rows
def head_spec(spec: AttentionSpec, head: int) -> AttentionSpec:
    """The arithmetic of one head alone."""
    slopes = None if spec.slopes is None else (spec.slopes[head],)
    return replace(spec, n_heads=1, n_kv_heads=1, slopes=slopes)


@dataclass(frozen=True, kw_only=True)
class Bins:
    """Cells start … stop - 1 on at most `pixels` pixels: cell i lies on pixel floor((i - start) · n / cells).

    Every pixel has `size` or `size` - 1 cells. `index` (size, n): the cells of each pixel, b-th cell of all pixels in
    row b, so that the extreme over a pixel is one over the first axis; where a pixel has one fewer, its last cell
    comes twice, and `extra` (n,) is True.
    """

    start: int
    stop: int
    pixels: int

    @property
    def n(self) -> int:
        """Pixels used."""
        return max(1, min(self.pixels, self.stop - self.start))

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """First cell of every pixel, and the end: (n + 1,)."""
        cells = self.stop - self.start
        edges: NDArray[np.int64] = self.start + -(-np.arange(self.n + 1) * cells // self.n)
        return edges

    @property
    def size(self) -> int:
        """Cells of the largest pixel."""
        return -(-(self.stop - self.start) // self.n)

    @cached_property
    def index(self) -> NDArray[np.int64]:
        """(size, n) cells by pixel."""
        index: NDArray[np.int64] = np.minimum(self.edges[:-1] + np.arange(self.size)[:, None], self.edges[1:] - 1)
        return index

    @cached_property
    def extra(self) -> NDArray[np.bool_]:
        """(n,) whether the pixel's last row of `index` repeats a cell."""
        return np.diff(self.edges) < self.size
