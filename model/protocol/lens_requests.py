"""Requests of the lens: what the model would say if it stopped after a layer, and what each part adds to it.

A depth d counts residual streams: 0 is what enters layer 0, d is what leaves layer d - 1, L (all layers) is what the
model's own head reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.protocol.wire import Request, request


@dataclass(frozen=True, kw_only=True)
class LensPart:
    """One depth of the lens. `pieces`: of the top token at each position asked for. Arrays: `ids` int32 (T,), `p`
    float32 (T,) its probability, `entropy` float32 (T,) of the distribution in nats."""

    depth: int
    pieces: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LensReply:
    """The rectangle is whole."""

    run_id: int
    length: int
    ms: float


@request("lens.top", LensReply, lane="view", part=LensPart)
@dataclass(frozen=True, kw_only=True)
class GetLens(Request):
    """The logit lens at `positions` (half-open), one part a depth, in the order of `depths`: final norm and head on the
    residual stream there (nostalgebraist 2020)."""

    positions: tuple[int, int]
    depths: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class LensPathReply:
    """A token's way up at one position. `top_piece`: the likeliest token at the last depth."""

    position: int
    token_id: int
    piece: str
    top_id: int
    top_piece: str
    run_id: int


@request("lens.path", LensPathReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetLensPath(Request):
    """Rank, logit and probability of `token` (-1: the likeliest at the end) at every depth of `position`. Arrays,
    (L + 1,): `rank` int32 (0 = first, ties by id), `logit` float32, `p` float32."""

    position: int
    token: int = -1


LensSource = Literal["embed", "attn", "mlp", "bias", "rest"]
"""embed: what enters layer 0; attn, mlp: what a block's halves add; bias: of the final norm and the head; rest: what is
left to the model's own logit (rounding, a soft cap, a residual stream that restarts from a norm)."""


@dataclass(frozen=True, kw_only=True)
class LensTermsReply:
    """`logit`: the model's own of the token. embed + Σ attn + Σ mlp + bias + rest = logit, exactly in float64.
    `scale`: the final norm's frozen factor (1/rms or 1/σ of the last residual stream)."""

    position: int
    token_id: int
    piece: str
    logit: float
    embed: float
    bias: float
    rest: float
    scale: float
    run_id: int


@request("lens.terms", LensTermsReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetLensTerms(Request):
    """What each block's attention and MLP add to the logit of `token` (-1: the likeliest at the end) at `position`,
    with the final norm's scale frozen. Arrays: `attn`, `mlp` float64 (L,)."""

    position: int
    token: int = -1
