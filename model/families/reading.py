"""Reading a config.json with ranges: every field is checked, and a bad one is named with what was expected."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from model.config import LIMITS, Activation, ConfigError, LayerKind
from model.rope import ROPE_KINDS, RopeSpec

ACTIVATION_NAMES: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu_squared",
}
T = TypeVar("T")


class ConfigReader:
    """Typed, ranged access to a config. The first of several spellings that is present and not null counts."""

    def __init__(self, values: Mapping[str, Any], where: str = "") -> None:
        self.values = values
        self.where = where

    def find(self, *names: str) -> tuple[str, Any]:
        """The first name with a value, and that value; the first name and None without any."""
        for name in names:
            if self.values.get(name) is not None:
                return self.where + name, self.values[name]
        return self.where + names[0], None

    def whole(self, *names: str, low: int = 1, high: int, default: int | None = None) -> int:
        """A whole number from low to high. Without a default the field is required."""
        name, value = self.find(*names)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ConfigError(name, value, f"a whole number from {low} to {high}")
        return value

    def size(self, limit: str, *names: str, default: int | None = None) -> int:
        """A whole number within the limits of one of DecoderConfig's sizes."""
        low, high = LIMITS[limit]
        return self.whole(*names, low=low, high=high, default=default)

    def maybe_whole(self, *names: str, low: int = 1, high: int = 1 << 31) -> int | None:
        """A whole number, or None where the field is absent or null."""
        return None if self.find(*names)[1] is None else self.whole(*names, low=low, high=high)

    def number(
        self, *names: str, default: float | None = None, low: float = 0.0, high: float = sys.float_info.max
    ) -> float:
        """A finite number above `low`, at most `high`. Without a default the field is required."""
        name, value = self.find(*names)
        if value is None and default is not None:
            return default
        # A whole number of any length is compared as it is: none is turned into a float that it is too large for.
        good = isinstance(value, int | float) and not isinstance(value, bool) and low < value <= high
        if not good:
            most = f", at most {high:g}" if high < sys.float_info.max else ""
            raise ConfigError(name, value, f"a finite number above {low:g}{most}")
        return float(value)

    def maybe_number(self, *names: str, low: float = 0.0) -> float | None:
        """A finite number above `low`, or None where the field is absent or null."""
        return None if self.find(*names)[1] is None else self.number(*names, low=low)

    def flag(self, *names: str, default: bool) -> bool:
        """true or false."""
        name, value = self.find(*names)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ConfigError(name, value, "true or false")
        return value

    def choice(self, *names: str, among: Mapping[str, T], default: str) -> T:
        """A word out of `among`, and what it stands for."""
        name, value = self.find(*names)
        value = default if value is None else value
        if not isinstance(value, str) or value not in among:
            raise ConfigError(name, value, f"one of {', '.join(among)}")
        return among[value]

    def activation(self, *names: str, default: str) -> Activation:
        """The feed-forward's activation, by Hugging Face's names."""
        return self.choice(*names, among=ACTIVATION_NAMES, default=default)

    def numbers(self, *names: str, count: int) -> tuple[float, ...]:
        """A list of `count` finite numbers above 0."""
        name, value = self.find(*names)
        good = isinstance(value, list) and len(value) == count
        if not good or not all(type(item) in (int, float) and 0 < item <= sys.float_info.max for item in value):
            raise ConfigError(name, value, f"a list of {count} finite numbers above 0")
        return tuple(float(item) for item in value)

    def section(self, *names: str) -> ConfigReader | None:
        """A nested object, or None where it is absent or null."""
        name, value = self.find(*names)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise ConfigError(name, value, "an object")
        return ConfigReader(value, f"{name}.")

    def heads(
        self, *kv_names: str, names: tuple[str, ...] = ("num_attention_heads",), kv_default: int | None = None
    ) -> tuple[int, int]:
        """Query heads and KV heads, the second a divisor of the first.

        A null means as many as query heads, and so does an absent one unless the family has a `kv_default`.
        """
        n_heads = self.size("n_heads", *names)
        absent = n_heads
        if kv_default is not None and not any(name in self.values for name in kv_names):
            absent = kv_default
        n_kv_heads = self.size("n_kv_heads", *kv_names, default=absent) if kv_names else n_heads
        if n_heads % n_kv_heads:
            name, value = self.find(*kv_names)
            raise ConfigError(name, value, f"a divisor of {names[0]} ({n_heads})")
        return n_heads, n_kv_heads

    def head_size(self, d_model: int, n_heads: int, *names: str, model_name: str = "hidden_size") -> int:
        """d_head as stated, or d_model / n_heads, which must then divide."""
        if names and self.find(*names)[1] is not None:
            return self.size("d_head", *names)
        if d_model % n_heads:
            raise ConfigError(model_name, d_model, f"a multiple of the number of attention heads ({n_heads})")
        return d_model // n_heads

    def refuse(self, name: str, *, unless: object, why: str) -> None:
        """Raise ConfigError where an optional field says something the core does not do."""
        found_name, value = self.find(name)
        if value is not None and value != unless:
            raise ConfigError(found_name, value, why)

    def layer_kinds(self, n_layers: int, default: tuple[LayerKind, ...] = ()) -> tuple[LayerKind, ...]:
        """`layer_types` in our words: one per layer."""
        words: dict[str, LayerKind] = {"full_attention": "full", "sliding_attention": "sliding"}
        name, value = self.find("layer_types")
        if value is None:
            return default
        good = isinstance(value, list) and len(value) == n_layers
        if not good or not all(isinstance(item, str) and item in words for item in value):
            raise ConfigError(name, value, f"a list of {n_layers} of {', '.join(words)}")
        return tuple(words[item] for item in value)


def llama_like(
    values: Mapping[str, Any],
    *,
    n_ctx: int,
    kv_default: int | None = None,
    d_head: int | None = None,
    norm_eps: float = 1e-6,
    theta: float = 10_000.0,
    tied: bool = False,
    activation: tuple[str, ...] = ("hidden_act",),
    activation_default: str = "silu",
) -> dict[str, Any]:
    """The DecoderConfig fields that every config in Llama's field names states; the rest are a family's defaults."""
    reader = ConfigReader(values)
    d_model = reader.size("d_model", "hidden_size")
    n_heads, n_kv_heads = reader.heads("num_key_value_heads", kv_default=kv_default)
    if d_head is None or reader.find("head_dim")[1] is not None:
        d_head = reader.head_size(d_model, n_heads, "head_dim")
    n_ctx = reader.size("n_ctx", "max_position_embeddings", default=n_ctx)
    return {
        "d_vocab": reader.size("d_vocab", "vocab_size"),
        "d_model": d_model,
        "n_layers": reader.size("n_layers", "num_hidden_layers"),
        "n_heads": n_heads,
        "n_kv_heads": n_kv_heads,
        "d_head": d_head,
        "d_mlp": reader.size("d_mlp", "intermediate_size"),
        "n_ctx": n_ctx,
        "tied_head": reader.flag("tie_word_embeddings", default=tied),
        "rope": read_rope(reader, d_head, n_ctx, theta=theta),
        "norm_eps": reader.number("rms_norm_eps", default=norm_eps),
        "activation": reader.activation(*activation, default=activation_default),
    }


def all_sliding(n_layers: int, window: int | None) -> dict[str, Any]:
    """Sliding-window fields of a family whose layers all slide (`window` positions) or, with None, none do."""
    return {"sliding_window": window, "layer_kinds": ("sliding",) * n_layers} if window is not None else {}


def qwen_sliding(reader: ConfigReader, n_layers: int) -> dict[str, Any]:
    """Sliding-window fields of Qwen: only with `use_sliding_window`, from layer `max_window_layers` on."""
    if not reader.flag("use_sliding_window", default=False):
        return {}
    window = ConfigReader({"sliding_window": 4096, **reader.values}).maybe_whole("sliding_window")
    if window is None:
        return {}
    first = reader.whole("max_window_layers", low=0, high=1 << 31, default=28)
    kinds: tuple[LayerKind, ...] = tuple("sliding" if layer >= first else "full" for layer in range(n_layers))
    return {"sliding_window": window, "layer_kinds": reader.layer_kinds(n_layers, kinds)}


def read_rope(
    reader: ConfigReader,
    d_head: int,
    n_ctx: int,
    *,
    theta: float = 10_000.0,
    partial: float = 1.0,
    partial_names: tuple[str, ...] = ("partial_rotary_factor",),
    section: ConfigReader | None = None,
) -> RopeSpec:
    """Rotary frequencies from the old spelling (`rope_theta`, `rope_scaling`) or the new (`rope_parameters`).

    `theta` and `partial` are the family's defaults. `section` gives the scaling's object where it is not at the
    usual place (one per kind of layer).
    """
    scaling = section or reader.section("rope_scaling", "rope_parameters") or ConfigReader({})
    top_theta = reader.number("rope_theta", "rotary_emb_base", default=theta)
    base = scaling.number("rope_theta", default=top_theta)
    top_partial = reader.number(*partial_names, default=partial, high=1.0)
    dim = int(d_head * scaling.number("partial_rotary_factor", default=top_partial, high=1.0))
    if dim % 2 or not 2 <= dim <= d_head:
        raise ConfigError("the rotated part of a head", dim, f"an even number from 2 to {d_head}, RoPE turns pairs")
    kinds = {kind: kind for kind in ROPE_KINDS} | {"su": "longrope"}
    kind = scaling.choice("rope_type", "type", among=kinds, default="default")
    if kind == "default":
        return RopeSpec(theta=base, dim=dim)
    if kind == "linear":
        return RopeSpec(theta=base, dim=dim, kind="linear", factor=scaling.number("factor"))
    if kind == "dynamic":
        return RopeSpec(theta=base, dim=dim, kind="dynamic", factor=scaling.number("factor"), original_ctx=n_ctx)
    name = "original_max_position_embeddings"
    inner_ctx = scaling.size("n_ctx", name, default=n_ctx)
    original_ctx = reader.size("n_ctx", name, default=inner_ctx)
    if kind == "llama3":
        return RopeSpec(
            theta=base,
            dim=dim,
            kind="llama3",
            factor=scaling.number("factor"),
            original_ctx=original_ctx,
            low_freq_factor=scaling.number("low_freq_factor"),
            high_freq_factor=scaling.number("high_freq_factor"),
        )
    factor = scaling.number("factor", default=n_ctx / original_ctx)
    if kind == "yarn":
        return RopeSpec(
            theta=base,
            dim=dim,
            kind="yarn",
            factor=factor,
            original_ctx=original_ctx,
            attention_factor=scaling.number("attention_factor", default=_yarn_attention(scaling, factor)),
            beta_fast=scaling.number("beta_fast", default=32.0),
            beta_slow=scaling.number("beta_slow", default=1.0),
            truncate=scaling.flag("truncate", default=True),
        )
    stretch = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(max(original_ctx, 2)))
    return RopeSpec(
        theta=base,
        dim=dim,
        kind="longrope",
        factor=factor,
        original_ctx=original_ctx,
        attention_factor=scaling.number("attention_factor", default=stretch),
        short_factor=scaling.numbers("short_factor", count=dim // 2),
        long_factor=scaling.numbers("long_factor", count=dim // 2),
    )


def _yarn_attention(scaling: ConfigReader, factor: float) -> float:
    """YaRN's temperature (arXiv:2309.00071, eq. 22), with DeepSeek's `mscale` variants."""

    def temperature(mscale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1.0

    mscale, all_dim = scaling.maybe_number("mscale", low=-1.0), scaling.maybe_number("mscale_all_dim", low=-1.0)
    return temperature(mscale) / temperature(all_dim) if mscale and all_dim else temperature(1.0)
