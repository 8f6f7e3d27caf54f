"""Requests about the feed-forward: strongest neurons, experts, norms by layer."""

from __future__ import annotations

from dataclasses import dataclass

from model.protocol.wire import Request, request


@dataclass(frozen=True, kw_only=True)
class NeuronsReply:
    """`neurons`: how many the token has (of a layer with experts, those of its experts together). `near_zero`: share
    of them whose output is under `threshold` of the largest; `near_zero_rows`: the same over all of `rows`. Recomputed
    from the residual stream."""

    layer: int
    position: int
    rows: tuple[int, int]
    neurons: int
    activation: str
    gated: bool
    near_zero: float
    near_zero_rows: float
    threshold: float
    has_experts: bool
    run_id: int
    length: int


@request("feed_forward.neurons", NeuronsReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetNeurons(Request):
    """The `top` strongest neurons of a layer for the token at `position`, by magnitude of their output, and the same
    neurons for the tokens `rows` ((0, 0): the 64 up to `position`).

    Arrays, strongest first: `ids` int32 (n,), `experts` int32 (n,) (layers with experts only), `pre` float32 (n,)
    before the activation function, `act` float32 (n,) after it, `up` float32 (n,) the factor beside it (gated only),
    `post` float32 (n,) the outcome; `heat` float32 (t, n): `post` of every token of rows (NaN: not sent to that
    expert); `all_pre`, `all_post`, `all_act` (the activation function of `all_pre`) float32 (neurons,); `curve_x`,
    `curve_y` float32 (m,): the activation function over the range of `all_pre`."""

    layer: int
    position: int
    top: int = 32
    rows: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True)
class RouterReply:
    """`parameters` of the model in all, `active_parameters` of one token's pass."""

    layer: int
    rows: tuple[int, int]
    n_experts: int
    experts_per_token: int
    parameters: int
    active_parameters: int
    run_id: int
    length: int


@request("feed_forward.router", RouterReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetRouter(Request):
    """Which experts the tokens `rows` went to in a layer that has them. Arrays: `probs` float32 (t, E) of the router,
    `chosen` int32 (t, k) as used in the run, best first, `weights` float32 (t, k), `load` int64 (E,) tokens sent."""

    layer: int
    rows: tuple[int, int] = (0, 0)


@dataclass(frozen=True, kw_only=True)
class NormsReply:
    """Euclidean norms at one position."""

    position: int
    run_id: int
    length: int


@request("feed_forward.norms", NormsReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetNorms(Request):
    """By layer, at `position`. Arrays, float32: `resid` (L + 1,) the stream before each layer and after the last,
    `attention`, `feed_forward` (L,) what each adds to it."""

    position: int
