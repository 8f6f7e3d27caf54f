"""The prompt's way through the model: how many positions at a time, and what happens between two layers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import torch

from model.config import DecoderConfig
from model.device import Stopwatch
from model.errors import DecoderscopeError

YieldPoint = Callable[[], None]
"""Called between layers; serves other requests and raises CancelledError to stop."""

ProgressReport = Callable[[str, int, int, str], None]
LAYER_SECONDS = 0.1  # a layer of a prefill chunk may take this long, so that cancel and views are served in time
CHUNK_FLOPS = 1e10  # a layer's share of a chunk: 1,024 tokens of the default model, 70 ms of two cores
GPU_PART_MS = 250.0  # on a GPU nothing is served within a part: this is how long a cancel may wait
MIN_CHUNK, MAX_CHUNK, GPU_CHUNK = 16, 1024, 2048


class PromptError(DecoderscopeError):
    """A prompt that can't be prefilled."""

    code = "prompt"


class PromptTooLongError(PromptError):
    """A prompt that is longer than the context and may not be cut."""

    code = "prompt_too_long"


class ContextFullError(DecoderscopeError):
    """No position is left for another token."""

    code = "context_full"

    def __init__(self, n_ctx: int) -> None:
        super().__init__(
            f"The context is full: this model was made for {n_ctx:,} positions. Step back, or begin with less text."
        )


def chunk_for(config: DecoderConfig, device: torch.device) -> int:
    """Positions prefilled at a time, from the model's size alone, so that the same prompt always runs the same way."""
    if device.type != "cpu":
        return GPU_CHUNK
    attention = 2 * config.d_model * config.d_head * (config.n_heads + config.n_kv_heads)
    experts = config.moe.top_k if config.moe is not None else 1
    width = config.moe.d_expert if config.moe is not None else config.d_mlp
    feed_forward = (3 if config.gated_mlp else 2) * config.d_model * width * experts
    tokens = max(1, int(CHUNK_FLOPS / (2 * (attention + feed_forward))))
    return min(max(1 << (tokens.bit_length() - 1), MIN_CHUNK), MAX_CHUNK)


class Chunks:
    """The parts a prompt is run in: `size` positions at a time, halved when the layers of the last part were slow; on
    a GPU, which is given all of a part before it has run any of it, when the part was.

    `size` 0: chosen, and never under a quarter of that (a machine that is busy with other things would only get slower
    by smaller parts). A size given by hand stays as it is.
    """

    def __init__(self, config: DecoderConfig, device: torch.device, size: int) -> None:
        self.size = size if size > 0 else chunk_for(config, device)
        self._on_cpu = device.type == "cpu"
        self._least = size if size > 0 else max(self.size // 4, MIN_CHUNK)

    def after(self, watch: LayerWatch, part: Stopwatch) -> None:
        """Takes note of how long the layers of a part took. Waits for a GPU: what it has been given it runs to the end,
        so it is given no more than a part ahead of a cancel."""
        slow = watch.layer_seconds > LAYER_SECONDS if self._on_cpu else part.ms() > GPU_PART_MS
        if slow:
            self.size = max(self.size // 2, self._least)


@dataclass(kw_only=True)
class LayerWatch:
    """Between the layers of one forward pass: serves others, says how far it is, times the layers.

    `start`, `tokens`, `total`: which positions of the prompt are under way.
    """

    yield_point: YieldPoint | None = None
    progress: ProgressReport | None = None
    start: int = 0
    tokens: int = 1
    total: int = 1
    n_layers: int = 1
    _seconds: list[float] = field(default_factory=list)
    _since: float | None = None

    def at_layer(self, layer: int) -> None:
        """Called before each layer."""
        if self._since is not None:
            self._seconds.append(time.perf_counter() - self._since)
        self.report(layer)
        if self.yield_point is not None:
            self.yield_point()
        self._since = time.perf_counter()

    @property
    def layer_seconds(self) -> float:
        """What a layer took, the median of those timed."""
        return median(self._seconds) if self._seconds else 0.0

    def report(self, layer: int) -> None:
        """Progress in tokens, of which `layer` layers are done."""
        if self.progress is not None:
            self.progress("prefill", self.start + self.tokens * layer // self.n_layers, self.total, "tokens")


def checked(ids: Sequence[int], config: DecoderConfig, *, truncate: bool) -> list[int]:
    """The ids of a prompt that fits this model. Raises PromptError."""
    if not ids:
        raise PromptError("The prompt is empty: type at least one token.")
    if len(ids) > config.n_ctx and not truncate:
        raise PromptTooLongError(
            f"The prompt has {len(ids):,} tokens; this model takes {config.n_ctx:,}. Shorten it, or let it be cut."
        )
    for token in ids:
        if not 0 <= token < config.d_vocab:
            raise PromptError(f"The prompt holds the token id {token}; this model's go from 0 to {config.d_vocab - 1}.")
    return list(ids[: config.n_ctx])
