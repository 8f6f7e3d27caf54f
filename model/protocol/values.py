"""Values that both sides hold: sampler settings, what a model is, tokens, nodes of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from model.errors import BadValueError

SamplerStage = Literal["repetition_penalty", "temperature", "top_k", "top_p", "min_p"]
DEFAULT_ORDER: tuple[SamplerStage, ...] = ("repetition_penalty", "temperature", "top_k", "top_p", "min_p")
MAX_SEED = 2**64 - 1
NOT_FINITE = "NaN or infinite"
"""Every warning that numbers of the model are no numbers says so in these words; the window shows those in red."""


@dataclass(frozen=True, kw_only=True)
class SamplerSettings:
    """How logits become a token. Raises BadValueError naming the field.

    temperature 0 is greedy; top_k 0, top_p 1, min_p 0 and repetition_penalty 1 are off; top_p 0 keeps the first token.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.9
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 7
    order: tuple[SamplerStage, ...] = DEFAULT_ORDER

    def __post_init__(self) -> None:
        _check_range("temperature", self.temperature, 0.0, math.inf, "a finite number, 0 or more (0: greedy)")
        _check_range("top_p", self.top_p, 0.0, 1.0, "a number from 0 to 1 (1: off)")
        _check_range("min_p", self.min_p, 0.0, 1.0, "a number from 0 to 1 (0: off)")
        _check_range("repetition_penalty", self.repetition_penalty, 0.0, math.inf, "a finite number over 0 (1: off)")
        if self.repetition_penalty == 0:
            raise BadValueError("repetition_penalty", self.repetition_penalty, "a finite number over 0 (1: off)")
        if self.top_k < 0:
            raise BadValueError("top_k", self.top_k, "a whole number, 0 or more (0: off)")
        if not 0 <= self.seed <= MAX_SEED:
            raise BadValueError("seed", self.seed, "a whole number from 0 to 2^64 - 1")
        if sorted(self.order) != sorted(DEFAULT_ORDER):
            raise BadValueError("order", self.order, f"each of {', '.join(DEFAULT_ORDER)} once")

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is taken whatever the draw."""
        return self.temperature == 0


def _check_range(field: str, value: float, low: float, high: float, expected: str) -> None:
    if not (math.isfinite(value) and low <= value <= high):
        raise BadValueError(field, value, expected)


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What is loaded. Bytes are bytes; `parameters` counts a tied head once. `recorded`: it is not there itself, a run
    file tells of it."""

    name: str
    family: str
    source: str
    sha256: str
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    n_ctx: int
    dtype: str
    device: str
    parameters: int
    weight_bytes: int
    positions: Literal["rope", "learned", "alibi", "none"]
    attention_kind: Literal["MHA", "GQA", "MQA"]
    eos_ids: tuple[int, ...] = ()
    has_tokenizer: bool = True
    has_chat_template: bool = False
    recorded: bool = False
    warnings: tuple[str, ...] = ()


def bytes_kept(info: ModelInfo, tokens: int) -> int:
    """What a run keeps of so many positions beside the weights: keys, values, queries, residuals and one row of logits
    (not the routes of experts, which are small)."""
    itemsize = 4 if info.dtype == "float32" else 2
    numbers = 2 * info.n_layers * info.n_kv_heads * info.d_head + info.n_layers * info.n_heads * info.d_head
    numbers += (info.n_layers + 1) * info.d_model
    return numbers * itemsize * tokens + 4 * info.d_vocab


@dataclass(frozen=True, kw_only=True)
class Token:
    """One token of a text. `start`, `end`: the characters it covers. `piece`: as drawn (visible spaces, escaped
    controls, bytes as ⟨E4⟩). `part`: it holds only part of a character."""

    id: int
    piece: str
    start: int
    end: int
    special: bool = False
    part: bool = False


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A possible next token: `logit` raw, `p_raw` its softmax over the whole vocabulary, `p` after the sampler."""

    rank: int
    id: int
    piece: str
    logit: float
    p_raw: float
    p: float


@dataclass(frozen=True, kw_only=True)
class Node:
    """One decode step of the run tree: the token chosen, the distribution it came from, what it cost.

    `parent` is the node whose logits were sampled. Prompt tokens are nodes 0 … n_prompt - 1, never listed as `Node`s.
    `logprob`: natural log of the token's raw probability; `p`: its probability after the sampler (1 when greedy);
    `entropy`: of the raw distribution, nats; `draw` in [0, 1); `ms`: measured time of sampling plus the forward
    pass of the token, on CUDA by the device's clock; `forced`: chosen by hand (a branch), not by the draw.
    """

    id: int
    parent: int
    position: int
    token_id: int
    piece: str
    logprob: float
    p: float
    entropy: float
    draw: float
    ms: float
    settings: SamplerSettings
    forced: bool = False


@dataclass(frozen=True, kw_only=True)
class MemoryInfo:
    """Bytes: weights, KV cache used and allocated, stored activations besides K and V, the process."""

    weights: int
    kv_used: int
    kv_allocated: int
    activations: int
    rss: int
    peak_rss: int
    budget: int
    available: int


@dataclass(frozen=True, kw_only=True)
class RunState:
    """Where a run stands. `path`: decode node ids from the first generated token to the current one (the prompt's
    nodes go before them). `nodes`: every node that is new since the last state of this run. `dropped`: nodes whose
    activations were evicted (returning to them runs the model again). `stop`: why the last step ended early."""

    run_id: int
    n_prompt: int
    path: tuple[int, ...]
    current: int
    length: int
    n_ctx: int
    nodes: tuple[Node, ...]
    text: str
    memory: MemoryInfo
    prefill_ms: float
    altered: bool = False
    dropped: tuple[int, ...] = ()
    stop: Literal["", "end_of_text", "context_full", "cancelled", "nan_logits"] = ""
