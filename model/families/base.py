"""What a family is: how to read its config.json, where its weights go, and how llama.cpp's converter wrote it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from model.config import DecoderConfig

Take = Callable[[Tensor], Tensor]


def as_is(tensor: Tensor) -> Tensor:
    """The tensor itself."""
    return tensor


def any_file(meta: Mapping[str, Any]) -> bool:  # noqa: ARG001 (GGUFMap.accepts's)
    """Every file of an architecture."""
    return True


@dataclass(frozen=True, kw_only=True)
class Target:
    """A parameter of the decoder and what of the source tensor it takes (a slice, a transpose)."""

    name: str
    take: Take = as_is


@dataclass(frozen=True, kw_only=True)
class TensorRule:
    """One checkpoint tensor: its name and shape, and the parameters made from it.

    `aliases` are other names the same tensor goes by. A rule without targets is a tensor known and not needed.
    """

    source: str
    shape: tuple[int, ...]
    targets: tuple[Target, ...]
    aliases: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class GGUFMap:
    """How llama.cpp's converter writes a family.

    `hf_config(meta, tensors, names)` makes a config.json from the file's metadata (keys as in the file, arrays as
    lists), the values of those `config_tensors` the file has, and the names of all its tensors.
    `names(config)` maps GGUF tensor names to those of the family's rules; `fix(name, tensor, config)` undoes what
    the converter did to the tensor with that (rule) name. `accepts(meta)` tells families of one architecture apart.
    `rules` stand in for the family's where the file's tensors are cut otherwise (stacked experts).
    """

    arch: str
    hf_config: Callable[..., dict[str, Any]]
    names: Callable[[DecoderConfig], dict[str, str]]
    fix: Callable[[str, Tensor, DecoderConfig], Tensor]
    accepts: Callable[[Mapping[str, Any]], bool] = any_file
    rules: Callable[[DecoderConfig], list[TensorRule]] | None = None
    config_tensors: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of decoders: data the core reads, never a name it branches on. `ignored` are fnmatch patterns."""

    name: str
    model_types: tuple[str, ...]
    read_config: Callable[[Mapping[str, Any]], DecoderConfig]
    rules: Callable[[DecoderConfig], list[TensorRule]]
    ignored: tuple[str, ...] = ()
    gguf: GGUFMap | None = None

    def gguf_rules(self, config: DecoderConfig) -> list[TensorRule]:
        """The rules for a GGUF file's tensors, by the names `gguf.names` gives them."""
        own = self.gguf.rules if self.gguf is not None else None
        return (own or self.rules)(config)


def rule(
    source: str,
    shape: Collection[int],
    target: str,
    take: Take = as_is,
    *,
    prefix: str = "model.",
    optional: bool = False,
) -> TensorRule:
    """A rule for one parameter. A source that starts with `prefix` may also be stored without it."""
    return TensorRule(
        source=source,
        shape=tuple(shape),
        targets=(Target(name=target, take=take),),
        aliases=without_prefix(source, prefix),
        optional=optional,
    )


def without_prefix(source: str, prefix: str) -> tuple[str, ...]:
    """The name a tensor has in a checkpoint of the bare model, without its head's prefix."""
    return (source.removeprefix(prefix),) if prefix and source.startswith(prefix) else ()
