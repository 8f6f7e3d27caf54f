"""Requests about the model as a whole: what it is made of, what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.protocol.wire import Request, request


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the model ("embedding", "attention", "feed_forward", "experts", "router", "norms", "positions", "head")
    and its parameters."""

    name: str
    parameters: int


@dataclass(frozen=True, kw_only=True)
class RopeFacts:
    """Rotary embedding as the model has it: `dim` of a head's dimensions are turned, in pairs `layout`."""

    kind: str
    theta: float
    dim: int
    factor: float
    original_ctx: int
    attention_factor: float
    layout: Literal["half-split"] = "half-split"


@dataclass(frozen=True, kw_only=True)
class Features:
    """The configuration in facts; the window makes sentences of them. `windows`: distinct sliding windows, in layers
    `sliding_layers`. `n_experts` 0: none."""

    attention_kind: Literal["MHA", "GQA", "MQA"]
    scale: float
    softcap: float | None
    logit_softcap: float | None
    windows: tuple[int, ...]
    sliding_layers: tuple[int, ...]
    qkv_bias: bool
    qk_norm: Literal["none", "head", "row"]
    positions: Literal["rope", "learned", "alibi", "none"]
    rope: RopeFacts | None
    rope_sliding: RopeFacts | None
    norm: Literal["rms", "layer"]
    norm_eps: float
    pre_norm: bool
    post_norm: bool
    parallel_residual: bool
    activation: str
    gated_mlp: bool
    tied_head: bool
    n_experts: int
    experts_per_token: int
    expert_layers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ModelCardReply:
    """Parameters and costs. `active_parameters`: what one token's pass reads. `bytes_by_dtype`: of the weights.
    `kv_bytes_per_token` in the loaded dtype, and as MHA and MQA would have it. `prefill_flops` of `prefill_tokens`
    tokens, `decode_flops` of the token after them."""

    parts: tuple[Part, ...]
    parameters: int
    active_parameters: int
    bytes_by_dtype: dict[str, int]
    kv_bytes_per_token: int
    kv_bytes_per_token_mha: int
    kv_bytes_per_token_mqa: int
    prefill_tokens: int
    prefill_flops: int
    decode_flops: int
    features: Features


@request("model.card", ModelCardReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetModelCard(Request):
    """The model's parts and costs; FLOPs for a prompt of `tokens` (0: the run's, or 1,024 without one)."""

    tokens: int = 0
