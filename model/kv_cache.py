"""Keys and values of all positions so far, one pair of tensors per layer. Handed to the decoder, never hidden in it."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from model.config import DecoderConfig
from model.errors import BadValueError

FIRST_CAPACITY = 64  # tokens; small prompts allocate once


class KVSource(Protocol):
    """What a layer's attention needs: take the new keys and values, give all of them."""

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]: ...


class KVCache:
    """Preallocated keys and values of `length` tokens, grown by doubling.

    Keys are stored as attention reads them (after rotation). Sliding-window layers keep everything, so that any
    position can be looked at later. A forward pass appends to every layer and then calls `advance`; a pass that
    stops half-way leaves `length` as it was, so nothing has to be undone.
    """

    def __init__(self, config: DecoderConfig, device: torch.device | str, dtype: torch.dtype) -> None:
        self.config = config
        self.device = torch.device(device)
        self.dtype = dtype
        self.length = 0
        self._k = [self._empty(0) for _ in range(config.n_layers)]  # (K, capacity, D) each
        self._v = [self._empty(0) for _ in range(config.n_layers)]

    def _empty(self, capacity: int) -> Tensor:
        shape = (self.config.n_kv_heads, capacity, self.config.d_head)
        with torch.inference_mode(False):  # the forward pass grows the cache; its owner may write to it too
            return torch.empty(shape, dtype=self.dtype, device=self.device)

    @property
    def capacity(self) -> int:
        """Tokens every layer has room for."""
        return min(k.shape[1] for k in self._k)

    def ensure(self, tokens: int) -> None:
        """Make room for `tokens` tokens in all. Layers grow one at a time, so the peak is one layer above both."""
        for layer in range(self.config.n_layers):
            self._ensure_layer(layer, tokens)

    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` tokens in all and not one more, where a budget leaves no room for doubling."""
        for layer in range(self.config.n_layers):
            if tokens > self._k[layer].shape[1]:
                self._grow_layer(layer, tokens)

    def _ensure_layer(self, layer: int, tokens: int) -> None:
        held = self._k[layer].shape[1]
        if tokens > held:
            self._grow_layer(layer, max(tokens, 2 * held, FIRST_CAPACITY))

    def _grow_layer(self, layer: int, capacity: int) -> None:
        for store in (self._k, self._v):
            grown = self._empty(capacity)
            grown[:, : self.length] = store[layer][:, : self.length]
            store[layer] = grown

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write k and v (K, T, D) after the first `length` tokens; return views (K, length + T, D) of all."""
        end = self.length + k.shape[1]
        if end > self._k[layer].shape[1]:
            self._ensure_layer(layer, end)
        keys, values = self._k[layer], self._v[layer]
        keys[:, self.length : end] = k
        values[:, self.length : end] = v
        return keys[:, :end], values[:, :end]  # (K, S, D)

    def advance(self, tokens: int) -> None:
        """Count `tokens` appended tokens as part of the sequence."""
        if self.length + tokens > self.capacity:
            raise BadValueError("tokens to advance", tokens, f"at most {self.capacity - self.length}, as appended")
        self.length += tokens

    def truncate(self, tokens: int) -> None:
        """Forget all but the first `tokens` tokens. The memory stays."""
        if not 0 <= tokens <= self.length:
            raise BadValueError("tokens to keep", tokens, f"0 to {self.length}")
        self.length = tokens

    def k(self, layer: int) -> Tensor:
        """Keys in use, a view (K, S, D)."""
        return self._k[layer][:, : self.length]

    def v(self, layer: int) -> Tensor:
        """Values in use, a view (K, S, D)."""
        return self._v[layer][:, : self.length]

    def bytes_used(self, layer: int | None = None) -> int:
        """Bytes the tokens so far fill, of one layer or of all."""
        return self._bytes(self.length) * (self.config.n_layers if layer is None else 1)

    def bytes_allocated(self, layer: int | None = None) -> int:
        """Bytes set aside, of one layer or of all."""
        layers = range(self.config.n_layers) if layer is None else (layer,)
        return sum(self._k[index].nbytes + self._v[index].nbytes for index in layers)

    def bytes_served(self, layer: int | None = None) -> int:
        """Bytes a serving cache would need: sliding-window layers keep their window only."""
        layers = range(self.config.n_layers) if layer is None else (layer,)
        windows = (self.config.window(index) for index in layers)
        return sum(self._bytes(min(self.length, window or self.length)) for window in windows)

    def _bytes(self, tokens: int) -> int:
        return 2 * self.config.n_kv_heads * tokens * self.config.d_head * self.dtype.itemsize


class GivenKV:
    """Keys and values (K, S, D) of one layer that are already complete: `append` keeps them as they are."""

    def __init__(self, k: Tensor, v: Tensor) -> None:
        self._k, self._v = k, v

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002 (KVSource's)
        """Ignore the recomputed k and v; return the given ones."""
        return self._k, self._v
