"""Requests about the KV cache: its bytes, what it saves, what is in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.protocol.attention_requests import Scale
from model.protocol.wire import Request, request

KvWhat = Literal["k", "k_unrotated", "v"]
"""k: as attention reads it; k_unrotated: before rotary embedding (recomputed; equal to k without any)."""


@dataclass(frozen=True, kw_only=True)
class PhaseCost:
    """What a phase took: tokens, measured wall time, operations by formula, bytes of weights, keys and values read by
    formula. Rates and arithmetic intensity are their quotients."""

    tokens: int
    ms: float
    flops: int
    bytes_read: int


@dataclass(frozen=True, kw_only=True)
class KvReply:
    """Bytes, measured: `used`, `allocated`; `served`: what a serving cache would keep (sliding windows only).
    `formula`: 2·L·K·D·N·bytes. Per token: as it is, and with one KV head a query head (MHA) or one in all (MQA).
    `run_bytes_per_token`: everything this run keeps of a token; `tokens_left_memory` of the budget at that rate,
    `tokens_left_context` of the context. `weights_read`: bytes of weights that the next step reads beside the cache.
    `step_flops`, `recompute_flops`: the next token with the cache, and without one. `weights_matrix_bytes`: the N × N
    weights of all heads, never materialised. `decode` is the median step of the path (tokens 0: none yet)."""

    length: int
    n_prompt: int
    n_ctx: int
    used: int
    allocated: int
    served: int
    formula: int
    bytes_per_token: int
    bytes_per_token_mha: int
    bytes_per_token_mqa: int
    run_bytes_per_token: int
    tokens_left_context: int
    tokens_left_memory: int
    weights_read: int
    step_flops: int
    recompute_flops: int
    weights_matrix_bytes: int
    prefill: PhaseCost
    decode: PhaseCost


@request("kv.bytes", KvReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetKv(Request):
    """The cache of the current path. Arrays: `used`, `allocated`, `served` int64 (L,) bytes by layer, `windows` int64
    (L,) sliding window (0: none); `grown_at`, `grown_to` int64 (n,): from which length how much was allocated;
    `chunk_ends` int64 (c,): the length after each chunk of the prefill."""


@dataclass(frozen=True, kw_only=True)
class RecomputeReply:
    """The last token of the path computed from the whole text without a cache, and by one cached step, both measured
    now."""

    tokens: int
    ms: float
    cached_ms: float
    flops: int
    cached_flops: int


@request("kv.recompute", RecomputeReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class MeasureRecompute(Request):
    """Runs the path once more from nothing, only to measure what the cache saves."""


@dataclass(frozen=True, kw_only=True)
class KvContentsReply:
    """Positions `rows` × dimensions `dims` of K or V. `low` = -`high`: values of pixels 1 and 255. `data_low`,
    `data_high`: extremes. `recomputed`: made again from the residual stream, not read from the cache."""

    rows: tuple[int, int]
    dims: tuple[int, int]
    pooled: bool
    low: float
    high: float
    data_low: float
    data_high: float
    recomputed: bool
    boundary: int
    run_id: int
    length: int


@request("kv.contents", KvContentsReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetKvContents(Request):
    """A KV head's rows, signed. `rows` half-open, (0, 0): all. Arrays: `pixels` uint8 (h, w), each the value of largest
    magnitude under it; when not pooled also `values` float32 (h, w)."""

    layer: int
    kv_head: int
    what: KvWhat = "k"
    rows: tuple[int, int] = (0, 0)
    height: int = 512
    width: int = 512
    scale: Scale = "linear"
    top: float = 0.0
