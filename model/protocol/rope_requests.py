"""Requests about positions: rotary embedding from a run's own q and k, and its alternatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.protocol.card_requests import RopeFacts
from model.protocol.wire import Request, request


@dataclass(frozen=True, kw_only=True)
class RopeReply:
    """How positions act on one score. `raw`: this q·k as the model used it; `scale`: what it is multiplied by; `rest`:
    the part of `raw` from dimensions that aren't rotated. `shift_error`: by how much q·k changes, measured, when both
    positions move by `shift`, over ‖q‖·‖k‖. `curves`: names of the rows of `curve_scores`: "model" first, what-ifs
    (other scalings and bases on the same q and k), "none" (no position at all). Without RoPE (`positions`) only what is
    named there is filled in: `slope` of the head for ALiBi."""

    positions: Literal["rope", "learned", "alibi", "none"]
    layer: int
    head: int
    kv_head: int
    query: int
    key: int
    raw: float
    scale: float
    rest: float
    shift: int
    shift_error: float
    facts: RopeFacts | None
    frequencies_length: int
    curves: tuple[str, ...]
    slope: float
    run_id: int
    length: int


@request("rope.score", RopeReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetRope(Request):
    """One query and key of a head. `distances`: points of the curves, from 0 to the text's length (or further),
    and one more for the distance there is.

    Arrays with RoPE, float32, P pairs: `q_before`, `q_after`, `k_before`, `k_after` (P, 2) each pair's plane before and
    after rotation; `inv_freq` (P,) radians a position, `wavelength` (P,) positions a turn, `q_angle`, `k_angle` (P,)
    radians; `contribution` (P,) of each pair to `raw` (their sum and `rest` is `raw`); `distance` (n,), `curve_scores`
    (c, n): scaled score of the same q and k at that distance; `sinusoidal` (n,): the fixed encoding's similarity of two
    positions at that distance (1 at 0). ALiBi: `distance`, `bias` (n,) against distance 0. Learned: `similarity` (S,)
    cosine of the query's row of the position table with every position's, `sinusoidal` (S,) the fixed encoding's."""

    layer: int
    head: int
    query: int
    key: int
    distances: int = 256
    reach: int = 0
