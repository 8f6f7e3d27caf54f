"""Ways to get one feature of a family wrong, each a config or weights that differ in just that.

The tests show that a mutant's error is at least a hundred times the tolerance, so that the parity of the right one
means something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from model.config import DecoderConfig, LayerKind

State = dict[str, Tensor]
Mutant = Callable[[DecoderConfig, State], tuple[DecoderConfig, State]]


def changed(**fields: Any) -> Mutant:
    """A mutant with these fields replaced."""
    return lambda config, state: (replace(config, **fields), state)


def rope(**fields: Any) -> Mutant:
    """A mutant with these fields of its rotary frequencies replaced."""

    def mutate(config: DecoderConfig, state: State) -> tuple[DecoderConfig, State]:
        assert config.rope is not None
        return replace(config, rope=replace(config.rope, **fields)), state

    return mutate


def moe(**fields: Any) -> Mutant:
    """A mutant with these fields of its experts replaced."""

    def mutate(config: DecoderConfig, state: State) -> tuple[DecoderConfig, State]:
        assert config.moe is not None
        return replace(config, moe=replace(config.moe, **fields)), state

    return mutate


def interleaved(config: DecoderConfig, state: State) -> tuple[DecoderConfig, State]:
    """The pairs of each head side by side, as if its weights were llama.cpp's."""

    def wrong(name: str, tensor: Tensor) -> Tensor:
        if not any(f"self_attn.{part}_proj" in name for part in "qk"):
            return tensor
        assert config.rope is not None
        heads = tensor.reshape(-1, config.d_head, *tensor.shape[1:]).clone()  # (H, D, …)
        halves = heads[:, : config.rope.dim].chunk(2, 1)
        heads[:, : config.rope.dim] = torch.stack(halves, 2).flatten(1, 2)
        return heads.reshape(tensor.shape)

    return config, {name: wrong(name, tensor) for name, tensor in state.items()}


def shifted_positions(config: DecoderConfig, state: State) -> tuple[DecoderConfig, State]:
    """Learned positions one too early."""
    return config, state | {"embed_positions.weight": state["embed_positions.weight"].roll(1, 0)}


def swapped_layers(config: DecoderConfig, state: State) -> tuple[DecoderConfig, State]:
    """Full layers slide and sliding layers don't."""
    kinds: tuple[LayerKind, ...] = tuple("full" if kind == "sliding" else "sliding" for kind in config.layer_kinds)
    return replace(config, layer_kinds=kinds), state


def without(*parts: str, **fields: Any) -> Mutant:
    """A mutant with fields replaced, and without the parameters whose names hold one of `parts`."""

    def mutate(config: DecoderConfig, state: State) -> tuple[DecoderConfig, State]:
        kept = {name: tensor for name, tensor in state.items() if not any(part in name for part in parts)}
        return replace(config, **fields), kept

    return mutate


def renamed(names: Mapping[str, str], **fields: Any) -> Mutant:
    """A mutant with fields replaced, and with parameters under other names: every part of a name that is in `names`."""

    def mutate(config: DecoderConfig, state: State) -> tuple[DecoderConfig, State]:
        made = {".".join(names.get(part, part) for part in name.split(".")): tensor for name, tensor in state.items()}
        return replace(config, **fields), made

    return mutate


def swapped(first: str, second: str) -> Mutant:
    """A mutant with two kinds of parameters of every layer in each other's place."""
    return renamed({first: second, second: first})


def other_groups(config: DecoderConfig, state: State) -> tuple[DecoderConfig, State]:
    """Each group of query heads reads another group's keys and values."""

    def wrong(name: str, tensor: Tensor) -> Tensor:
        if not any(f"self_attn.{part}_proj" in name for part in "kv"):
            return tensor
        return tensor.reshape(config.n_kv_heads, -1, *tensor.shape[1:]).flip(0).reshape(tensor.shape)

    return config, {name: wrong(name, tensor) for name, tensor in state.items()}


def windows(window: int) -> dict[str, Mutant]:
    """A window one too narrow, one too wide, and none."""
    return {
        "window - 1": changed(sliding_window=window - 1),
        "window + 1": changed(sliding_window=window + 1),
        "no window": changed(layer_kinds=()),
    }
