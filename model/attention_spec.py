"""The arithmetic of one layer's attention as pure methods: scores, mask, weights, and what they mix.

Vaswani et al. 2017, arXiv:1706.03762, §3.2; grouped queries: Ainslie et al. 2023, arXiv:2305.13245.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from model.device import to_device


def alibi_slopes(n_heads: int) -> tuple[float, ...]:
    """ALiBi's slope of every head (Press et al. 2022, arXiv:2108.12409): 2^(-8h/n), n the next lower power of two;
    further heads take every other slope of twice as many."""
    power = 1 << (n_heads.bit_length() - 1)
    slopes = [2.0 ** (-8.0 * (head + 1) / power) for head in range(power)]
    slopes += [2.0 ** (-4.0 * (head + 1) / power) for head in range(0, 2 * (n_heads - power), 2)]
    return tuple(slopes)


@lru_cache(maxsize=16)
def _on_device(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    return to_device(torch.tensor(numbers, dtype=torch.float32), device)


def _products(a: Tensor, b: Tensor) -> Tensor:
    """a (K, A, B) times b (K, B, C) by KV head: (K, A, C). On a CPU one by one, batched products are far slower."""
    if a.device.type != "cpu":
        return torch.bmm(a, b)  # (K, A, C)
    out = a.new_empty(a.shape[0], a.shape[1], b.shape[2])
    for head in range(a.shape[0]):
        torch.mm(a[head], b[head], out=out[head])  # (A, C)
    return out


@dataclass(frozen=True, kw_only=True)
class AttentionSpec:
    """How one layer turns q and k into weights. q: (H, T, D), k: (K, S, D); head h reads KV head h // (H // K).

    Positions are absolute, int64. Everything is returned in float32. A key is visible to a query when it is not
    after it and, with a `window`, fewer than `window` positions before it. `softcap` c makes c·tanh(score / c).
    ALiBi adds slope · key position (a row's constant, slope · query position, falls out of the softmax).
    """

    n_heads: int
    n_kv_heads: int
    scale: float
    window: int | None = None
    softcap: float | None = None
    slopes: tuple[float, ...] | None = None
    bias_scale: float = 1.0
    bias_bfloat16: bool = False

    def raw(self, q: Tensor, k: Tensor) -> Tensor:
        """q·k of every query with every key, (H, T, S)."""
        n_queries, n_keys = q.shape[1], k.shape[1]
        grouped = q.float().reshape(self.n_kv_heads, -1, q.shape[2])  # (K, H/K · T, D)
        dots = _products(grouped, k.float().transpose(1, 2))  # (K, H/K · T, S)
        return dots.view(self.n_heads, n_queries, n_keys)  # (H, T, S)

    def bias(self, k_pos: Tensor) -> Tensor | None:
        """What ALiBi adds to every score of a key, (H, 1, S); None without ALiBi."""
        if self.slopes is None:
            return None
        slopes = _on_device(self.slopes, k_pos.device)[:, None]  # (H, 1)
        bias = (slopes.bfloat16() * k_pos).float() if self.bias_bfloat16 else slopes * k_pos  # (H, S)
        return (bias * self.bias_scale)[:, None]  # (H, 1, S)

    def scores(self, q: Tensor, k: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor:  # noqa: ARG002 (one signature)
        """Scaled, biased and capped, not yet masked: (H, T, S)."""
        return self.shape_(self.raw(q, k), k_pos)  # (H, T, S)

    def shape_(self, dots: Tensor, k_pos: Tensor) -> Tensor:
        """Scales, biases and caps what `raw` gives, (H, T, S), in place."""
        scores = dots.mul_(self.scale)
        bias = self.bias(k_pos)
        if bias is not None:
            scores += bias
        if self.softcap is not None:
            scores = scores.div_(self.softcap).tanh_().mul_(self.softcap)
        return scores

    def mask(self, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        """True where the key is visible to the query, (T, S) bool."""
        visible = q_pos[:, None] >= k_pos[None, :]  # (T, S)
        return visible if self.window is None else visible & (q_pos[:, None] - self.window < k_pos[None, :])

    def normalize(self, scores: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        """Softmax of scores (H, T, S) over the visible keys; invisible ones get exactly 0."""
        return self.normalize_(scores.to(torch.float32, copy=True), ~self.mask(q_pos, k_pos))  # (H, T, S)

    @staticmethod
    def normalize_(scores: Tensor, hidden: Tensor) -> Tensor:
        """`normalize` of float32 scores, which are changed. `hidden`: of the last keys, (T, s); those before are seen
        by every query."""
        scores[..., -hidden.shape[1] :].masked_fill_(hidden, -math.inf)
        return scores.softmax(-1)  # (H, T, S)

    def weights(self, q: Tensor, k: Tensor, q_pos: Tensor, k_pos: Tensor) -> Tensor:
        """The attention pattern, (H, T, S) float32; rows sum to 1."""
        return self.normalize(self.scores(q, k, q_pos, k_pos), q_pos, k_pos)

    def mix(self, weights: Tensor, v: Tensor) -> Tensor:
        """Values (K, S, D) averaged by weights (H, T, S): z, (H, T, D) in v's dtype."""
        n_queries, n_keys = weights.shape[1:]
        grouped = weights.float().reshape(self.n_kv_heads, -1, n_keys)  # (K, H/K · T, S)
        z = _products(grouped, v.float()).view(self.n_heads, n_queries, v.shape[2])  # (H, T, D)
        return z.to(v.dtype)
