"""The decoder: embedding, blocks, head. One sequence, no batch dimension: (T, M) in, (T, M) out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 (torch's own spelling)
from torch import Tensor, nn

from model.attention import Attention, Span
from model.config import DecoderConfig
from model.errors import BadValueError
from model.hooks import HookPoint, Listener, Listening, listening
from model.kv_cache import GivenKV, KVCache, KVSource
from model.layers import Linear, Mlp, Norm, parameter, project, row_kernels
from model.moe import Experts


class Embedding(nn.Module):
    """A table of rows: (T,) indices → (T, M). Used for tokens and for learned positions."""

    def __init__(self, rows: int, d_model: int) -> None:
        super().__init__()
        self.weight = parameter(rows, d_model)

    def forward(self, ids: Tensor) -> Tensor:
        """(T,) → (T, M)."""
        return F.embedding(ids, self.weight)


class Block(nn.Module):
    """One layer: attention and feed-forward, each added to the residual stream, with norms where the model has them."""

    def __init__(self, config: DecoderConfig, layer: int) -> None:
        super().__init__()
        self.parallel, self.shared_norm = config.parallel_residual, config.shared_norm
        self.residual_scale, self.residual_from_norm = config.residual_scale, config.residual_from_norm
        self.self_attn = Attention(config, layer)
        self.mlp: Mlp | Experts = Experts(config, layer) if config.has_experts(layer) else Mlp(config, layer)
        if config.pre_norm:
            self.input_layernorm: Norm | None = Norm(config, config.d_model)
            self.post_attention_layernorm = None if self.shared_norm else Norm(config, config.d_model)
        else:
            self.input_layernorm = self.post_attention_layernorm = None
        self.attn_out_layernorm = Norm(config, config.d_model) if config.post_norm else None
        self.mlp_out_layernorm = Norm(config, config.d_model) if config.post_norm else None
        name = f"layers.{layer}"
        self.hook_resid_pre = HookPoint(f"{name}.resid_pre", "(T, M)")
        self.hook_attn_out = HookPoint(f"{name}.attn.out", "(T, M)")
        if not self.parallel:
            self.hook_resid_mid = HookPoint(f"{name}.resid_mid", "(T, M)")
        self.hook_mlp_out = HookPoint(f"{name}.mlp.out", "(T, M)")
        self.hook_resid_post = HookPoint(f"{name}.resid_post", "(T, M)")

    def forward(self, x: Tensor, kv: KVSource, span: Span) -> Tensor:
        """The residual stream before the layer (T, M) → after it (T, M)."""
        x = self.hook_resid_pre(x)
        normed = x if self.input_layernorm is None else self.input_layernorm(x)
        attn_out = self._leave(self.self_attn(normed, kv, span), self.attn_out_layernorm, self.hook_attn_out)
        if self.parallel:
            entered = normed if self.post_attention_layernorm is None else self.post_attention_layernorm(x)
            mlp_out = self._leave(self.mlp(entered), self.mlp_out_layernorm, self.hook_mlp_out)
            return self.hook_resid_post(x + attn_out + mlp_out)  # (T, M)
        x = self.hook_resid_mid((normed if self.residual_from_norm else x) + attn_out)  # (T, M)
        entered = x if self.post_attention_layernorm is None else self.post_attention_layernorm(x)
        mlp_out = self._leave(self.mlp(entered), self.mlp_out_layernorm, self.hook_mlp_out)
        return self.hook_resid_post((entered if self.residual_from_norm else x) + mlp_out)  # (T, M)

    def _leave(self, out: Tensor, norm: Norm | None, hook: HookPoint) -> Tensor:
        """What attention or MLP adds to the residual stream, (T, M)."""
        if norm is not None:
            out = norm(out)
        if self.residual_scale != 1.0:
            out = out * self.residual_scale
        return hook(out)


def _unguarded() -> None:
    """Weights that lie in this process' own memory."""


class Decoder(nn.Module):
    """A decoder-only transformer. Made without memory; assign weights with `load_state_dict(…, assign=True)`.

    Parameter names are Hugging Face's Llama names, plus `embed_positions.weight` (learned positions),
    `embed_layernorm` and, where a model norms what leaves attention or MLP, `attn_out_layernorm`, `mlp_out_layernorm`.
    """

    def __init__(self, config: DecoderConfig, *, check: Callable[[], None] = lambda: None) -> None:
        """`check` is called before each layer is made, which takes a while where there are many experts; may raise."""
        super().__init__()
        self.config = config
        self.guard: Callable[[], None] = _unguarded
        """Called before weights are read; raises where they can't be: those of a mapped file that was cut."""
        self.embed_tokens = Embedding(config.d_vocab, config.d_model)
        learned = config.positions == "learned"
        self.embed_positions = Embedding(config.n_positions_table, config.d_model) if learned else None
        self.embed_layernorm = Norm(config, config.d_model) if config.embed_norm else None
        self.layers = nn.ModuleList()
        for layer in range(config.n_layers):
            check()
            self.layers.append(Block(config, layer))
        self.norm = Norm(config, config.d_model)
        self.lm_head = None if config.tied_head else Linear(config.d_model, config.d_vocab, bias=config.head_bias)
        self.hook_embed = HookPoint("embed", "(T, M)")
        self.hook_final_norm = HookPoint("final_norm", "(T, M)")
        self.hook_logits = HookPoint("logits", "(T, V)")
        self.hook_points = {module.name: module for module in self.modules() if isinstance(module, HookPoint)}
        self.eval()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embed_tokens.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The weights' and activations' type."""
        return self.embed_tokens.weight.dtype

    def join_weights(self, after_layer: Callable[[], None] | None = None) -> None:
        """Lay q, k and v, and gate and up, side by side in memory: one product each; stack experts off the CPU. Call it
        once weights are read.

        `after_layer` is called when a layer's separate matrices have been freed.
        """
        for layer in self.layers:
            assert isinstance(layer, Block)
            layer.self_attn.qkv.join()
            if isinstance(layer.mlp, Mlp) and layer.mlp.gate_up is not None:
                layer.mlp.gate_up.join()
            if isinstance(layer.mlp, Experts):
                layer.mlp.join()
            if after_layer is not None:
                after_layer()

    def joined_names(self) -> dict[str, tuple[str, ...]]:
        """Name of a joint matrix → the parameters that are its rows, one after the other, for `join_weights`."""
        names = {}
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, Block)
            at = f"layers.{index}"
            names[f"{at}.self_attn.qkv.weight"] = tuple(f"{at}.self_attn.{part}_proj.weight" for part in "qkv")
            if isinstance(layer.mlp, Mlp) and layer.mlp.gate_up is not None:
                parts = ("gate", "up")
                names[f"{at}.mlp.gate_up.weight"] = tuple(f"{at}.mlp.{part}_proj.weight" for part in parts)
        return names

    def new_cache(self) -> KVCache:
        """An empty cache that fits this decoder."""
        return KVCache(self.config, self.device, self.dtype)

    def hooks(self, listeners: Mapping[str, Listener]) -> AbstractContextManager[Listening]:
        """Listen for a `with` block: name or pattern (`layers.*.attn.q`) → fn(tensor, point) → None or a replacement.

        Raises UnknownNameError for a name that fits no hook point of this model.
        """
        return listening(self.hook_points, listeners)

    @torch.inference_mode()
    def forward(
        self,
        ids: Tensor,
        cache: KVCache,
        *,
        logits: Literal["last", "all", "none"] = "last",
        at_layer: Callable[[int], None] | None = None,
        rope_length: int | None = None,
    ) -> Tensor:
        """Append ids (T,) int64 at positions cache.length … and return logits (1 | T | 0, V) float32.

        `at_layer(l)` is called before layer l and may raise: the cache is then as it was. `rope_length` is the
        length of the whole sequence a chunk belongs to (default: up to this chunk), which decides the frequencies
        of dynamic and longrope models.
        """
        span = self._span(cache.length, ids.shape[0], rope_length)
        with row_kernels(span.length, self.embed_tokens.weight):
            x = self.embed_ids(ids, span.start)  # (T, M)
            for index, layer in enumerate(self.layers):
                if at_layer is not None:
                    at_layer(index)
                x = layer(x, cache, span)  # (T, M)
            cache.advance(span.length)
            if logits == "none":
                return x.new_empty((0, self.config.d_vocab), dtype=torch.float32)
            return self.unembed(x if logits == "all" else x[-1:])  # (T | 1, V)

    @torch.inference_mode()
    def embed_ids(self, ids: Tensor, start: int) -> Tensor:
        """The residual stream that enters layer 0, (T, M), of ids (T,) at positions start …

        The hook point `embed` is the scaled token embedding, before learned positions and an embedding norm.
        """
        self.guard()
        x: Tensor = self.embed_tokens(ids)  # (T, M)
        if self.config.embed_scale != 1.0:
            x = x * torch.tensor(self.config.embed_scale, dtype=x.dtype).item()  # rounded to x's dtype first
        x = self.hook_embed(x)
        if self.embed_positions is not None:
            x = x + self.embed_positions(torch.arange(start, start + ids.shape[0], device=ids.device))  # (T, M)
        if self.embed_layernorm is not None:
            x = self.embed_layernorm(x)
        return x

    @torch.inference_mode()
    def unembed(self, resid: Tensor) -> Tensor:
        """The residual stream after the last layer (T, M) → logits (T, V) float32, through the final norm."""
        self.guard()
        normed = self.hook_final_norm(self.norm(resid))  # (T, M)
        head = self.embed_tokens.weight if self.lm_head is None else self.lm_head.weight
        bias = None if self.lm_head is None else self.lm_head.bias
        logits = project(normed, head, bias).float()  # (T, V)
        if self.config.logit_scale != 1.0:
            logits = logits * self.config.logit_scale
        if self.config.logit_softcap is not None:
            logits = (logits / self.config.logit_softcap).tanh() * self.config.logit_softcap
        return self.hook_logits(logits)

    @torch.inference_mode()
    def recompute_layer(
        self, layer: int, x: Tensor, k: Tensor, v: Tensor, start: int, *, rope_length: int | None = None
    ) -> Tensor:
        """Run block `layer` on a stored residual x (T, M) at positions start … against given keys and values.

        k, v: (K, S, D) with S ≥ start + T, as the cache holds them. Nothing is appended; hook points fire.
        """
        if not 0 <= layer < self.config.n_layers:
            raise BadValueError("layer", layer, f"0 to {self.config.n_layers - 1}")
        span = self._span(start, x.shape[0], rope_length)
        if k.shape[1] < span.end:
            raise BadValueError("keys given", k.shape[1], f"at least {span.end}, one per position")
        self.guard()
        with row_kernels(span.length, self.embed_tokens.weight):
            out: Tensor = self.layers[layer](x, GivenKV(k, v), span)  # (T, M)
        return out

    def _span(self, start: int, length: int, rope_length: int | None) -> Span:
        if length < 1:
            raise BadValueError("tokens in a forward pass", length, "at least 1")
        if start + length > self.config.n_ctx and self.config.positions == "learned":
            raise BadValueError("position", start + length - 1, f"0 to {self.config.n_ctx - 1}, this model's context")
        rope_length = max(rope_length or 0, start + length)
        return Span(start=start, length=length, rope_length=rope_length, device=self.device)
