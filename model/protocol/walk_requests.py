"""Requests of the block walk: what one token goes through, operation by operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.protocol.attention_requests import Scale
from model.protocol.wire import Request, request

WalkPlace = Literal["embed", "block", "head"]
"""The way in (table to residual stream), one block, the way out (residual stream to probabilities)."""

WalkAxis = Literal["one", "dim", "head", "kv_head", "key", "neuron", "expert", "slot", "token", "position"]
"""What an index along an axis counts. "one": there is a single row. "slot": the experts chosen, best first."""

WalkWhat = Literal["parts", "positions"]
"""parts: the terms whose sum over rows or columns is the operation's result; positions: the result at every position of
the path."""

SHARES = frozenset({"attn.pattern", "moe.probs", "moe.weights", "head.softmax"})
"""Operations whose results are shares, never below zero. All others have a signed map, whatever the values."""


@dataclass(frozen=True, kw_only=True)
class WalkToken:
    """Something beside an operation, with its similarity, weight, logit or probability: a token by its
    id; of weights a key by its position; of experts an expert by its number."""

    id: int
    piece: str
    value: float


@dataclass(frozen=True, kw_only=True)
class WalkOp:
    """One operation on the token's way. `id` names it ("attn.norm", "mlp.post"), the window has the words for it;
    `formula` in Unicode, with this model's numbers. `letters`, `shape`: of the result for this token, as in
    "(H, D)". `rows`, `cols`: what the axes of its array count; `first_row`: the row of the selected head, -1 without.
    `low` … `norm`: over its finite values. `pooled`: its array is the strongest of several cells. `parts_rows`,
    `parts_cols`: axes of its terms, "one" where it has none. `recomputed`: not captured but computed beside by the
    formula. `at_positions`: its result at every position may be asked for. `note`: a number that explains it, in
    symbols. `tokens`: nearest tokens, keys read most, or likeliest ones."""

    id: str
    formula: str
    letters: str
    shape: tuple[int, ...]
    rows: WalkAxis
    cols: WalkAxis
    low: float
    high: float
    mean: float
    std: float
    norm: float
    first_row: int = -1
    pooled: bool = False
    parts_rows: WalkAxis = "one"
    parts_cols: WalkAxis = "one"
    recomputed: bool = False
    at_positions: bool = False
    note: str = ""
    tokens: tuple[WalkToken, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WalkReply:
    """The operations in order. `error`: largest difference between the walk's end and the row the run stored, over the
    largest magnitude of that row (NaN: nothing is stored to compare with); `bound`: what rounding explains."""

    place: WalkPlace
    position: int
    token_id: int
    layer: int
    head: int
    kv_head: int
    ops: tuple[WalkOp, ...]
    error: float
    bound: float
    run_id: int
    length: int
    ms: float


@request("walk.ops", WalkReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetWalk(Request):
    """The way of the token at `position` through `place`; `layer` and `head` choose the block and the head of its
    scores. Arrays: "0", "1", … float32 (rows, cols), one an operation, NaN where masked; at most 16,384 columns a row
    (`pooled`: the value of largest magnitude of several)."""

    place: WalkPlace
    position: int
    layer: int = 0
    head: int = 0


@dataclass(frozen=True, kw_only=True)
class WalkTensorReply:
    """`shape`: of the whole matrix; the rest as in MatrixReply. Of a result at every position the colours (`low`,
    `high`) end before values far beyond all others (up to `data_low`, `data_high`), which saturate. `total`: largest
    difference between the sum of the parts and the operation's result, over the result's largest magnitude (NaN for
    positions)."""

    shape: tuple[int, int]
    rows: tuple[int, int]
    cols: tuple[int, int]
    pooled: bool
    low: float
    high: float
    data_low: float
    data_high: float
    total: float
    run_id: int
    length: int


@request("walk.tensor", WalkTensorReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetWalkTensor(Request):
    """The matrix behind operation `op`: its parts, or its result at every position. `rows`, `cols` half-open, (0, 0)
    all; `height`, `width`: pixels at most. Arrays: `pixels` uint8 (h, w) by `scale`, 0 masked; unpooled and small
    enough also `values` float32 (h, w)."""

    place: WalkPlace
    op: str
    what: WalkWhat
    position: int
    layer: int = 0
    head: int = 0
    rows: tuple[int, int] = (0, 0)
    cols: tuple[int, int] = (0, 0)
    height: int = 512
    width: int = 512
    scale: Scale = "linear"
