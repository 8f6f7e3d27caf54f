"""Attention: the layer that runs `AttentionSpec`'s arithmetic, fast.

Vaswani et al. 2017, arXiv:1706.03762, §3.2; grouped queries: Ainslie et al. 2023, arXiv:2305.13245.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 (torch's own spelling)
from torch import Tensor, nn

from model.attention_spec import AttentionSpec
from model.hooks import HookPoint
from model.layers import Joined, Linear, Norm, multiplies_natively
from model.rope import RopeSpec, Rotation

if TYPE_CHECKING:
    from model.config import DecoderConfig
    from model.kv_cache import KVSource

BLOCK_SCORES = 1 << 22  # scores held at once on the explicit path (16 MiB in float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Span:
    """The new positions of one forward pass, start … start + length - 1, and what all layers share about them."""

    start: int
    length: int
    rope_length: int  # the sequence length that decides dynamic rotary frequencies
    device: torch.device
    _rotations: dict[RopeSpec, Rotation] = field(default_factory=dict)
    _masks: dict[tuple[int | None, torch.dtype], Tensor] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """One past the last new position."""
        return self.start + self.length

    def positions(self) -> Tensor:
        """The new positions, (T,) int64."""
        return torch.arange(self.start, self.end, device=self.device)

    def rotation(self, rope: RopeSpec) -> Rotation:
        """cos and sin for these positions, made once per pass."""
        if rope not in self._rotations:
            self._rotations[rope] = rope.rotation(self.positions(), length=self.rope_length)
        return self._rotations[rope]

    def first_key(self, window: int | None) -> int:
        """The earliest key any of these queries can see."""
        return 0 if window is None else max(0, self.start - window + 1)

    def additive_mask(self, spec: AttentionSpec, dtype: torch.dtype) -> Tensor:
        """0 where visible, -inf where not, (T, end - first_key), made once per pass and window."""
        key = (spec.window, dtype)
        if key not in self._masks:
            k_pos = torch.arange(self.first_key(spec.window), self.end, device=self.device)
            visible = spec.mask(self.positions(), k_pos)
            mask = torch.zeros(visible.shape, dtype=dtype, device=self.device)
            self._masks[key] = mask.masked_fill_(~visible, -math.inf)
        return self._masks[key]


def attend(spec: AttentionSpec, q: Tensor, k: Tensor, v: Tensor, span: Span) -> Tensor:
    """z (H, T, D) of queries (H, T, D) at the span's positions over keys and values (K, S, D) at 0 … S - 1."""
    visible = slice(span.first_key(spec.window), span.end)
    k, v = k[:, visible], v[:, visible]
    # what the fused kernels lack, or would round: a position's ALiBi bias has more digits than half precision
    if spec.softcap is not None or (spec.slopes is not None and (span.length > 1 or q.dtype != torch.float32)):
        return _attend_in_blocks(spec, q, k, v, span)
    if q.dtype == torch.float16 and q.device.type == "cpu" and not multiplies_natively(q.dtype):
        return _attend_fused(spec, q.float(), k.float(), v.float(), span).half()  # 2 to 4 times faster
    return _attend_fused(spec, q, k, v, span)


def _attend_fused(spec: AttentionSpec, q: Tensor, k: Tensor, v: Tensor, span: Span) -> Tensor:
    n_heads, n_queries, d_head = q.shape
    n_groups, n_keys = n_heads // spec.n_kv_heads, k.shape[1]
    if n_queries == 1:
        # one query sees every key kept: the heads of a group are the rows that read its keys together
        grouped = q.reshape(spec.n_kv_heads, 1, n_groups, d_head)  # (K, 1, H/K, D)
        bias = spec.bias(torch.arange(span.end - n_keys, span.end, device=q.device)) if spec.slopes else None
        if bias is not None:
            bias = bias.view(spec.n_kv_heads, 1, n_groups, n_keys)
        z = F.scaled_dot_product_attention(grouped, k[:, None], v[:, None], attn_mask=bias, scale=spec.scale)
        return z.reshape(n_heads, 1, d_head)  # (H, 1, D)
    causal = span.start == 0 and (spec.window is None or spec.window >= n_keys)
    # KV heads are the batch, the query heads of a group read the same keys through a stride of 0: nothing is copied
    z = F.scaled_dot_product_attention(
        q.reshape(spec.n_kv_heads, n_groups, n_queries, d_head),
        k[:, None].expand(-1, n_groups, -1, -1),
        v[:, None].expand(-1, n_groups, -1, -1),
        attn_mask=None if causal else span.additive_mask(spec, q.dtype),
        is_causal=causal,
        scale=spec.scale,
    )  # (K, H/K, T, D)
    return z.reshape(n_heads, n_queries, d_head)  # (H, T, D)


def _attend_in_blocks(spec: AttentionSpec, q: Tensor, k: Tensor, v: Tensor, span: Span) -> Tensor:
    """The explicit formula in blocks of rows, so that memory grows with S and not with T · S."""
    k_pos = torch.arange(span.end - k.shape[1], span.end, device=q.device)
    q_pos = span.positions()
    rows = max(1, BLOCK_SCORES // (q.shape[0] * k.shape[1]))
    blocks = []
    for begin in range(0, q.shape[1], rows):
        at = slice(begin, begin + rows)
        weights = spec.weights(q[:, at], k, q_pos[at], k_pos)  # (H, rows, S)
        blocks.append(spec.mix(weights, v))
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, 1)  # (H, T, D)


class Attention(nn.Module):
    """One layer's attention. k and v of the new positions go to the cache, rotated as they are used."""

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.spec = config.attention(layer)
        self.rope = config.rope_of(layer)
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        q_width, kv_width = self.n_heads * self.d_head, self.n_kv_heads * self.d_head
        self.q_proj = Linear(config.d_model, q_width, bias=config.qkv_bias)
        self.k_proj = Linear(config.d_model, kv_width, bias=config.qkv_bias)
        self.v_proj = Linear(config.d_model, kv_width, bias=config.qkv_bias)
        self.qkv = Joined(self.q_proj, self.k_proj, self.v_proj)
        self.o_proj = Linear(q_width, config.d_model, bias=config.out_bias)
        self.norm_rows, self.norm_heads = config.qk_norm == "row", config.qk_norm == "head"
        if config.qk_norm != "none":
            self.q_norm = Norm(config, q_width if self.norm_rows else self.d_head)
            self.k_norm = Norm(config, kv_width if self.norm_rows else self.d_head)
        name = f"layers.{layer}.attn"
        self.hook_q = HookPoint(f"{name}.q", "(H, T, D)")
        self.hook_k = HookPoint(f"{name}.k", "(K, T, D)")
        self.hook_v = HookPoint(f"{name}.v", "(K, T, D)")
        self.hook_rot_q = HookPoint(f"{name}.rot_q", "(H, T, D)")
        self.hook_rot_k = HookPoint(f"{name}.rot_k", "(K, T, D)")
        self.hook_scores = HookPoint(f"{name}.scores", "(H, T, S)")
        self.hook_pattern = HookPoint(f"{name}.pattern", "(H, T, S)")
        self.hook_z = HookPoint(f"{name}.z", "(H, T, D)")
        self.hook_proj = HookPoint(f"{name}.proj", "(T, M)")

    def forward(self, x: Tensor, kv: KVSource, span: Span) -> Tensor:
        """(T, M) → (T, M), W_o's own output. Appends the new keys and values to `kv`."""
        q, k, v = self.project_qkv(x)
        q, k, v = self.hook_q(q), self.hook_k(k), self.hook_v(v)
        if self.rope is not None:
            rotation = span.rotation(self.rope)
            q, k = rotation.turn(q), rotation.turn(k)
        q, k = self.hook_rot_q(q), self.hook_rot_k(k)
        k, v = kv.append(self.layer, k, v)  # (K, S, D)
        z = attend(self.spec, q, k, v, span)  # (H, T, D)
        if self.hook_scores.listeners or self.hook_pattern.listeners:
            z = self._listen(q, k, v, z, span)
        z = self.hook_z(z)
        rows = z.transpose(0, 1).reshape(span.length, -1)  # (T, H · D)
        out: Tensor = self.hook_proj(self.o_proj(rows))  # (T, M)
        return out

    def project_qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q (H, T, D), k and v (K, T, D) of x (T, M), normed where the model does so, not yet rotated."""
        q, k, v = self.qkv(x)  # (T, H · D), (T, K · D) twice
        if self.norm_rows:
            q, k = self.q_norm(q), self.k_norm(k)
        q = q.view(-1, self.n_heads, self.d_head)  # (T, H, D)
        k = k.view(-1, self.n_kv_heads, self.d_head)  # (T, K, D)
        v = v.view(-1, self.n_kv_heads, self.d_head)  # (T, K, D)
        if self.norm_heads:
            q, k = self.q_norm(q), self.k_norm(k)
        return q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)  # (H, T, D), (K, T, D) twice

    def _listen(self, q: Tensor, k: Tensor, v: Tensor, z: Tensor, span: Span) -> Tensor:
        """Show scores and pattern beside the fused path; take the explicit path only where one was replaced."""
        q_pos, k_pos = span.positions(), torch.arange(span.end, device=q.device)
        k, v = k[:, : span.end], v[:, : span.end]
        scores = self.spec.scores(q, k, q_pos, k_pos)  # (H, T, S)
        heard = self.hook_scores(scores)
        pattern = self.spec.normalize(heard, q_pos, k_pos)  # (H, T, S)
        used = self.hook_pattern(pattern)
        if heard is scores and used is pattern:
            return z
        return self.spec.mix(used, v)  # (H, T, D)
