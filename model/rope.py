"""Rotary position embedding (RoPE): which pair of numbers turns by which angle.

Su et al. 2021, arXiv:2104.09864, eq. 34: the pair (x_i, x_{i + R/2}) at position p turns by p · inv_freq[i],
inv_freq[i] = theta^(-2i/R). The layout is half-split everywhere (pair i is dimensions i and i + R/2, as in Hugging
Face weights); checkpoints with interleaved pairs are permuted when they are read. Angles are always float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import torch
from torch import Tensor

from model.device import to_device
from model.errors import BadValueError

RopeKind = Literal["default", "linear", "dynamic", "yarn", "llama3", "longrope"]
ROPE_KINDS: tuple[str, ...] = get_args(RopeKind)
MAX_DIM, MAX_CTX = 8_192, 100_000_000
"""No published model comes near; what is beyond fits no tensor of positions."""
MIN_FACTOR, MAX_FACTOR = 1e-9, 1e12
"""Of the base and of every factor: powers and logarithms of what lies between are finite."""


@dataclass(frozen=True, kw_only=True)
class RopeSpec:
    """One set of rotary frequencies: base, rotated width and how long contexts are reached.

    `dim` is R, the rotated dimensions of a head (even, the first R of d_head). `original_ctx` is the context of
    pre-training the scaling refers to; `attention_factor` multiplies cos and sin (so scores by its square).
    """

    theta: float
    dim: int
    kind: RopeKind = "default"
    factor: float = 1.0
    original_ctx: int = 0
    attention_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    short_factor: tuple[float, ...] = ()
    long_factor: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        factors = ("factor", "attention_factor", "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor")
        for name in ("theta", *factors):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise BadValueError(f"rope {name}", value, "a finite number above 0")
            if not MIN_FACTOR <= value <= MAX_FACTOR:
                raise BadValueError(f"rope {name}", value, f"a number from {MIN_FACTOR:g} to {MAX_FACTOR:g}")
        if not 2 <= self.dim <= MAX_DIM or self.dim % 2:
            raise BadValueError("rotary dimensions", self.dim, "an even number from 2 (RoPE turns pairs)")
        if self.kind not in ROPE_KINDS:
            raise BadValueError("rope type", self.kind, f"one of {', '.join(ROPE_KINDS)}")
        if self.kind in ("dynamic", "yarn", "llama3", "longrope") and self.original_ctx < 1:
            raise BadValueError("rope original context", self.original_ctx, "a whole number from 1")
        if not 0 <= self.original_ctx <= MAX_CTX:
            raise BadValueError("rope original context", self.original_ctx, f"a whole number from 0 to {MAX_CTX}")
        self._check_kind()

    def _check_kind(self) -> None:
        if self.kind == "dynamic" and self.dim < 4:
            raise BadValueError("rotary dimensions", self.dim, "at least 4 for dynamic scaling")
        if self.kind == "llama3" and not 0 < self.low_freq_factor < self.high_freq_factor < math.inf:
            found = (self.low_freq_factor, self.high_freq_factor)
            raise BadValueError("rope low and high frequency factors", found, "0 < low < high")
        if self.kind == "yarn" and (self.beta_slow > self.beta_fast or self.theta <= 1):
            raise BadValueError("rope beta_slow and beta_fast", (self.beta_slow, self.beta_fast), "slow at most fast")
        if self.kind == "longrope":
            for name, factors in (("short_factor", self.short_factor), ("long_factor", self.long_factor)):
                if len(factors) != self.dim // 2:
                    raise BadValueError(f"length of rope {name}", len(factors), f"{self.dim // 2}, one per pair")
                if not all(math.isfinite(value) and value > 0 for value in factors):
                    raise BadValueError(f"rope {name}", factors, "finite numbers above 0")

    @property
    def changes_with_length(self) -> bool:
        """True where the frequencies depend on how many tokens there are (dynamic, longrope)."""
        return self.kind in ("dynamic", "longrope")

    def inv_freq(self, length: int = 1) -> Tensor:
        """Radians per position of each pair, (R/2,) float32 on the CPU, for a sequence of `length` tokens."""
        return _inv_freq(self, self._regime(length), torch.device("cpu")).clone()

    def rotation(self, positions: Tensor, *, length: int) -> Rotation:
        """cos and sin of every pair's angle at `positions` (T,), for a sequence of `length` tokens in all."""
        inv_freq = _inv_freq(self, self._regime(length), positions.device)
        angles = positions.to(torch.float32)[:, None] * inv_freq  # (T, R/2)
        cos, sin = angles.cos(), angles.sin()
        if self.attention_factor != 1.0:
            cos, sin = cos * self.attention_factor, sin * self.attention_factor
        return Rotation(cos=torch.cat((cos, cos), -1), sin=torch.cat((-sin, sin), -1))  # (T, R) each

    def _regime(self, length: int) -> int:
        """The length that decides the frequencies: equal regimes have equal frequencies."""
        if self.kind == "dynamic":
            return max(length, self.original_ctx)
        if self.kind == "longrope":
            return int(length > self.original_ctx)
        return 0


@dataclass(frozen=True, kw_only=True)
class Rotation:
    """cos and sin of T positions, (T, R) float32; `sin` is (-sin, +sin), so that one product turns both halves."""

    cos: Tensor
    sin: Tensor

    def turn(self, x: Tensor) -> Tensor:
        """(…, T, D) with the first R dimensions of each row turned; computed in float32, returned in x's dtype."""
        width = self.cos.shape[-1]
        if width == x.shape[-1]:
            return _turn(x, self.cos, self.sin)
        return torch.cat((_turn(x[..., :width], self.cos, self.sin), x[..., width:]), -1)  # (…, T, D)


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    turned = x * cos  # (…, T, R)
    if x.shape[-2] == 1:
        turned.addcmul_(torch.cat((second, first), -1), sin)
    else:  # the same bits half by half, in a third of the time: no copy with the halves swapped
        half = first.shape[-1]
        turned[..., :half].addcmul_(second, sin[..., :half])
        turned[..., half:].addcmul_(first, sin[..., half:])
    return turned if turned.dtype == x.dtype else turned.to(x.dtype)


@lru_cache(maxsize=64)
def _inv_freq(spec: RopeSpec, regime: int, device: torch.device) -> Tensor:
    return to_device(_compute(spec, regime), device)  # computed on the CPU: the same numbers on every device


def _compute(spec: RopeSpec, regime: int) -> Tensor:
    theta = spec.theta
    exponents = torch.arange(0, spec.dim, 2, dtype=torch.float32) / spec.dim  # (R/2,)
    if spec.kind == "dynamic":
        # NTK-aware scaling with the length so far (Peng et al. 2023, arXiv:2309.00071, §3.3)
        stretch = spec.factor * regime / spec.original_ctx - (spec.factor - 1)
        theta = theta * stretch ** (spec.dim / (spec.dim - 2))
    inv_freq = 1.0 / theta**exponents
    if spec.kind == "linear":
        return inv_freq / spec.factor
    if spec.kind == "llama3":
        return _llama3(inv_freq, spec)
    if spec.kind == "yarn":
        return _yarn(inv_freq, spec)
    if spec.kind == "longrope":
        # Ding et al. 2024, arXiv:2402.13753: one factor per pair, another set past the original context
        return 1.0 / (torch.tensor(spec.long_factor if regime else spec.short_factor) * theta**exponents)
    return inv_freq


def _llama3(inv_freq: Tensor, spec: RopeSpec) -> Tensor:
    """Llama 3.1: long waves are slowed by `factor`, short ones kept, the band between interpolated."""
    turns = spec.original_ctx * inv_freq / (2 * math.pi)  # whole turns within the original context
    smooth = (turns - spec.low_freq_factor) / (spec.high_freq_factor - spec.low_freq_factor)
    smooth = smooth.clamp(0, 1)
    return (1 - smooth) * inv_freq / spec.factor + smooth * inv_freq


def _yarn(inv_freq: Tensor, spec: RopeSpec) -> Tensor:
    """YaRN (arXiv:2309.00071, §3.2): a ramp over pairs between interpolation and extrapolation."""

    def pair_with(turns: float) -> float:
        scale = math.log(spec.original_ctx / (turns * 2 * math.pi))
        return spec.dim * scale / (2 * math.log(spec.theta))

    low, high = pair_with(spec.beta_fast), pair_with(spec.beta_slow)
    if spec.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, spec.dim - 1)
    width = (high - low) or 0.001  # a ramp of no width is a step
    ramp = ((torch.arange(spec.dim // 2, dtype=torch.float32) - low) / width).clamp(0, 1)
    return inv_freq / spec.factor * ramp + inv_freq * (1 - ramp)
