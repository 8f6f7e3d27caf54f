"""Requests about attention: matrices, rows, columns, cells, the grid of heads, metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.protocol.wire import Request, request

Stage = Literal["raw", "scores", "masked", "weights", "weighted"]
"""raw q·kᵀ; scores q·kᵀ·scale (soft cap and bias in); masked: scores where visible; weights: softmax; weighted:
weights × ‖v‖."""

Scale = Literal["linear", "sqrt", "log"]
Head = int | Literal["mean", "max"]
LayerChoice = int | Literal["all"]

MASKED = 0
"""Pixel value of a masked cell; 1 … 255 span `low` … `high` on the asked scale."""


@dataclass(frozen=True, kw_only=True)
class HeadView:
    """Which matrix: a layer (or "all"), a head (or mean/max over heads), a stage."""

    layer: LayerChoice
    head: Head
    stage: Stage = "weights"


@dataclass(frozen=True, kw_only=True)
class MatrixReply:
    """`rows`, `cols`: the rectangle drawn; `pooled`: a pixel is the maximum (for signed stages the value of largest
    magnitude) of several cells. `low`, `high`: values of pixels 1 and 255; `data_low`, `data_high`: extremes of the
    visible cells. `boundary`: first decode position, 0 if none."""

    rows: tuple[int, int]
    cols: tuple[int, int]
    pooled: bool
    low: float
    high: float
    data_low: float
    data_high: float
    scale: Scale
    signed: bool
    boundary: int
    run_id: int
    length: int
    ms: float


@request("attention.matrix", MatrixReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetMatrix(Request):
    """A rectangle of a head's matrix over the current path, recomputed from the q and k that were used.
    `rows`/`cols` half-open, clipped to the length; (0, 0) means all. `height`, `width`: pixels at most.
    `fixed`: levels 0 … 1 for weights instead of the data's own. `ignore_first`: leave key 0 out of the levels and
    draw it saturated. `levels`: (low, high) to draw with, instead of those, so that parts of a matrix match its whole.
    Arrays: `pixels` uint8 (h, w); when not pooled and h·w ≤ 65,536 also `values` float32 (h, w) exact, NaN where
    masked."""

    view: HeadView
    rows: tuple[int, int] = (0, 0)
    cols: tuple[int, int] = (0, 0)
    height: int = 512
    width: int = 512
    scale: Scale = "linear"
    fixed: bool = False
    ignore_first: bool = False
    levels: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class CellReply:
    """One exact value; `visible` False where the mask hides the key from the query (value is then NaN → None)."""

    query: int
    key: int
    value: float | None
    visible: bool


@request("attention.cell", CellReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetCell(Request):
    """The exact value of a cell."""

    view: HeadView
    query: int
    key: int


@dataclass(frozen=True, kw_only=True)
class LineReply:
    """A row or column: `total` is the sum of its visible values, `entropy` (rows, nats) of its weights, and
    `entropy_unscaled` the same without 1/√d."""

    index: int
    total: float
    entropy: float = 0.0
    entropy_unscaled: float = 0.0


@request("attention.row", LineReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetRow(Request):
    """What one query reads. Arrays: `values` float32 (S,), NaN where masked."""

    view: HeadView
    query: int


@request("attention.column", LineReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetColumn(Request):
    """Who reads one key. Arrays: `values` float32 (T,), NaN where masked."""

    view: HeadView
    key: int


@dataclass(frozen=True, kw_only=True)
class EntropyReply:
    """Entropy in nats of each row of a head's weights."""

    mean: float


@request("attention.entropy", EntropyReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetEntropy(Request):
    """Arrays: `entropy` float32 (T,) of the weights, `entropy_unscaled` float32 (T,) without 1/√d."""

    view: HeadView


@dataclass(frozen=True, kw_only=True)
class GridPart:
    """One layer of the grid of heads. Arrays: `pixels` uint8 (H, h, w)."""

    layer: int


@dataclass(frozen=True, kw_only=True)
class GridReply:
    """The grid is whole: which run, its length, pixels on a side at most."""

    run_id: int
    length: int
    size: int
    ms: float


@request("attention.grid", GridReply, lane="view", part=GridPart)
@dataclass(frozen=True, kw_only=True)
class GetGrid(Request):
    """Every head of `layers` (in that order) as a thumbnail of `size`² pixels at most, one part a layer. Levels are
    each matrix's own 0 … maximum."""

    layers: tuple[int, ...]
    stage: Stage = "weights"
    size: int = 48
    scale: Scale = "sqrt"
    ignore_first: bool = False


@dataclass(frozen=True, kw_only=True)
class MetricsReply:
    """Which metrics came and, for induction, how many repeated tokens of the path it rests on."""

    names: tuple[str, ...]
    repeats: int
    run_id: int
    length: int


@request("attention.metrics", MetricsReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetMetrics(Request):
    """Per-head measures over the current path. Arrays, float32 (L, H) each: `entropy` (mean nats), `first`,
    `previous`, `self` (mean share of weight), `induction` (mean weight on the token after an earlier occurrence;
    NaN without repeats), `distance` (mean tokens back)."""
