"""Requests about the logit lens: what each layer would say, and what each block adds to a token's logit."""

from __future__ import annotations

from dataclasses import dataclass

from model.protocol.values import Candidate
from model.protocol.wire import Request, request


@dataclass(frozen=True, kw_only=True)
class LensPart:
    """The residual stream before `layer` (n_layers: after the last) read by the model's head. `pieces`: the top tokens.
    Arrays: `ids` int32 (t,), `probs` float32 (t,) of the top tokens, `entropy` float32 (t,) nats."""

    layer: int
    pieces: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LensReply:
    """The positions that were read, and how many layers (L + 1)."""

    rows: tuple[int, int]
    layers: int
    run_id: int
    length: int


@request("lens.top", LensReply, lane="view", part=LensPart)
@dataclass(frozen=True, kw_only=True)
class GetLens(Request):
    """The top token of every layer at positions `rows` ((0, 0): the last 48; at most 256), one part a layer, the last
    layer first. `layers` (): all."""

    rows: tuple[int, int] = (0, 0)
    layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RankPathReply:
    """`token`: the token followed, as it stands after the last layer."""

    position: int
    token: Candidate
    run_id: int
    length: int


@request("lens.rank", RankPathReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetRankPath(Request):
    """A token's way through the layers at `position`. Arrays (L + 1,): `rank` int32 (0: first), `logprob` float32."""

    position: int
    token_id: int


@dataclass(frozen=True, kw_only=True)
class AttributionReply:
    """Where `logit` of `token` at `position` comes from, with the final norm's scale frozen: `embedding` (what entered
    layer 0), every block's additions (arrays), `bias` of norm and head, and `unexplained`, the rest (rounding; the soft
    cap on logits where the model has one)."""

    position: int
    token: Candidate
    logit: float
    embedding: float
    bias: float
    unexplained: float
    run_id: int
    length: int


@request("lens.attribution", AttributionReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetAttribution(Request):
    """Direct contributions to a token's logit. Arrays, float32 (L,): `attention`, `feed_forward`."""

    position: int
    token_id: int
