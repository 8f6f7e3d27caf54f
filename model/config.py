"""What a decoder is made of: a frozen record of features. The core branches on these, never on a family's name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from model.attention_spec import AttentionSpec, alibi_slopes
from model.errors import BadValueError, DecoderscopeError
from model.rope import RopeSpec

Positions = Literal["rope", "learned", "alibi", "none"]
NormKind = Literal["rms", "layer"]
QKNorm = Literal["none", "head", "row"]
Activation = Literal["silu", "gelu", "gelu_tanh", "relu", "relu_squared"]
LayerKind = Literal["full", "sliding"]
AttentionKind = Literal["MHA", "GQA", "MQA"]

# Ranges wide enough for every published decoder, narrow enough that a damaged number allocates nothing.
LIMITS = {
    "d_vocab": (1, 4_000_000),
    "d_model": (1, 65_536),
    "n_layers": (1, 1_024),
    "n_heads": (1, 1_024),
    "n_kv_heads": (1, 1_024),
    "d_head": (1, 8_192),
    "d_mlp": (1, 1_048_576),
    "n_ctx": (1, 100_000_000),
    "n_experts": (1, 4_096),
    "d_expert": (1, 1_048_576),
    "n_positions_table": (0, 100_000_000),
    "sliding_window": (1, 1 << 31),
}
MAX_EXPERTS = 131_072
"""Of all layers together: each is a module of its own, and is made before a weight is read."""


class ConfigError(DecoderscopeError):
    """A model's configuration that can't be run: the field, what it holds, what it should, the way out."""

    code = "bad_config"

    def __init__(self, field: str, found: object, expected: str) -> None:
        self.field, self.found, self.expected = field, found, expected
        shown = repr(found)
        shown = shown if len(shown) <= 80 else shown[:77] + "…"
        super().__init__(
            f"The model's configuration says {field} is {shown}; expected {expected}. If that is a mistake, correct it "
            "in the model's files or get them again; a model that is made so can't be run here."
        )


def _whole(value: object, low: int, high: int) -> bool:
    """Whether it is a whole number (and no bool) from low to high."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


@dataclass(frozen=True, kw_only=True)
class MoeSpec:
    """Experts in place of the MLP: `top_k` of `n_experts` (each `d_expert` wide) are run for a token.

    `layers`: the layers that have experts. `renormalize`: the chosen weights are divided by their sum.
    """

    n_experts: int
    top_k: int
    d_expert: int
    layers: tuple[int, ...]
    renormalize: bool = True


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """Every feature of a decoder-only transformer the core knows. Sizes in elements, positions in tokens."""

    family: str
    d_vocab: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_mlp: int
    n_ctx: int
    tied_head: bool

    # positions
    positions: Positions = "rope"
    rope: RopeSpec | None = None
    rope_sliding: RopeSpec | None = None  # sliding-window layers' own rotary base, where they have one
    n_positions_table: int = 0  # rows of the learned position table
    alibi_scaled: bool = False  # the ALiBi bias is multiplied by the attention scale too (falcon)
    alibi_bfloat16: bool = False  # the ALiBi bias is rounded to bfloat16 (falcon)

    # attention
    attn_scale: float | None = None  # None: d_head ** -0.5
    attn_scale_by_depth: bool = False  # the scale is divided by layer + 1 (some gpt2)
    attn_softcap: float | None = None
    sliding_window: int | None = None
    layer_kinds: tuple[LayerKind, ...] = ()  # empty: all full
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: QKNorm = "none"  # over each head, or over the whole row of heads

    # norms and the residual stream
    norm: NormKind = "rms"
    norm_eps: float = 1e-5
    norm_unit_offset: bool = False  # the stored weight is what is added to 1 (gemma)
    pre_norm: bool = True  # norms on what enters attention and MLP
    post_norm: bool = False  # norms on what leaves attention and MLP, before the residual sum
    parallel_residual: bool = False  # attention and MLP read the same stream and are added together
    shared_norm: bool = False  # … through one norm
    residual_from_norm: bool = False  # the residual sum starts from the normed stream (some bloom)
    embed_norm: bool = False  # a norm right after the embedding (bloom)
    embed_scale: float = 1.0
    residual_scale: float = 1.0  # multiplies what attention and MLP add

    # feed-forward
    activation: Activation = "silu"
    gated_mlp: bool = True
    mlp_bias: bool = False
    moe: MoeSpec | None = None

    # head
    head_bias: bool = False
    logit_scale: float = 1.0
    logit_softcap: float | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_words()
        self._check_positions()
        self._check_layers()

    def _check_numbers(self) -> None:
        values = {name: getattr(self, name) for name in LIMITS if hasattr(self, name)}
        if self.sliding_window is None:
            del values["sliding_window"]
        if self.moe is not None:
            values |= {"n_experts": self.moe.n_experts, "d_expert": self.moe.d_expert}
        for name, value in values.items():
            low, high = LIMITS[name]
            if not _whole(value, low, high):
                raise BadValueError(name, value, f"a whole number from {low} to {high}")
        if self.n_heads % self.n_kv_heads:
            raise BadValueError("n_kv_heads", self.n_kv_heads, f"a divisor of n_heads ({self.n_heads})")
        optional = ("attn_scale", "attn_softcap", "logit_softcap")
        stated = [name for name in optional if getattr(self, name) is not None]
        for name in ("norm_eps", "embed_scale", "residual_scale", "logit_scale", *stated):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise BadValueError(name, value, "a finite number above 0")

    def _check_words(self) -> None:
        for name, words in (
            ("positions", get_args(Positions)),
            ("norm", get_args(NormKind)),
            ("qk_norm", get_args(QKNorm)),
            ("activation", get_args(Activation)),
        ):
            if getattr(self, name) not in words:
                raise BadValueError(name, getattr(self, name), f"one of {', '.join(words)}")

    def _check_positions(self) -> None:
        if (self.rope is not None) != (self.positions == "rope"):
            raise BadValueError("rope", self.rope, "a RopeSpec exactly where positions is 'rope'")
        for rope in (self.rope, self.rope_sliding):
            if rope is not None and rope.dim > self.d_head:
                raise BadValueError("rotary dimensions", rope.dim, f"at most d_head ({self.d_head})")
        if self.positions == "learned" and self.n_positions_table < self.n_ctx:
            raise BadValueError("n_positions_table", self.n_positions_table, f"at least n_ctx ({self.n_ctx})")

    def _check_layers(self) -> None:
        if self.layer_kinds and len(self.layer_kinds) != self.n_layers:
            raise BadValueError("length of layer_kinds", len(self.layer_kinds), f"n_layers ({self.n_layers})")
        if not set(self.layer_kinds) <= set(get_args(LayerKind)):
            raise BadValueError("layer_kinds", self.layer_kinds, f"each one of {', '.join(get_args(LayerKind))}")
        if "sliding" in self.layer_kinds and self.sliding_window is None:
            raise BadValueError("sliding_window", self.sliding_window, "a whole number from 1")
        if not (self.pre_norm or self.post_norm):
            raise BadValueError("pre_norm", self.pre_norm, "a norm before or after attention and MLP")
        if self.shared_norm and not self.parallel_residual:
            raise BadValueError("shared_norm", self.shared_norm, "False without a parallel residual")
        if self.residual_from_norm and not self.pre_norm:
            raise BadValueError("residual_from_norm", True, "False without a norm before attention")
        if self.moe is not None:
            self._check_experts(self.moe)

    def _check_experts(self, moe: MoeSpec) -> None:
        if not _whole(moe.top_k, 1, moe.n_experts):
            raise BadValueError("top_k experts", moe.top_k, f"1 to n_experts ({moe.n_experts})")
        if not all(_whole(layer, 0, self.n_layers - 1) for layer in moe.layers):
            raise BadValueError("layers with experts", moe.layers, f"0 to {self.n_layers - 1}")
        if len(set(moe.layers)) < len(moe.layers):
            raise BadValueError("layers with experts", moe.layers, "each layer once")
        found = len(moe.layers) * moe.n_experts
        if found > MAX_EXPERTS:
            raise BadValueError("layers with experts × n_experts", found, f"at most {MAX_EXPERTS}")

    @property
    def attention_kind(self) -> AttentionKind:
        """How query heads share keys and values: every head its own, groups, or all one."""
        if self.n_kv_heads == self.n_heads:
            return "MHA"
        return "MQA" if self.n_kv_heads == 1 else "GQA"

    def scale(self, layer: int) -> float:
        """What q·k of `layer` is multiplied by."""
        scale = self.d_head**-0.5 if self.attn_scale is None else self.attn_scale
        return scale / (layer + 1) if self.attn_scale_by_depth else scale

    def layer_kind(self, layer: int) -> LayerKind:
        """Whether `layer` attends to everything before it or to a sliding window."""
        return self.layer_kinds[layer] if self.layer_kinds else "full"

    def window(self, layer: int) -> int | None:
        """How many keys, itself included, a query of `layer` may see; None: all before it."""
        return self.sliding_window if self.layer_kind(layer) == "sliding" else None

    def rope_of(self, layer: int) -> RopeSpec | None:
        """The rotary frequencies `layer` uses."""
        sliding = self.layer_kind(layer) == "sliding" and self.rope_sliding is not None
        return self.rope_sliding if sliding else self.rope

    def has_experts(self, layer: int) -> bool:
        """True where the layer's feed-forward is a set of experts."""
        return self.moe is not None and layer in self.moe.layers

    def attention(self, layer: int) -> AttentionSpec:
        """The arithmetic of `layer`'s attention, as the forward pass and every view use it."""
        return AttentionSpec(
            n_heads=self.n_heads,
            n_kv_heads=self.n_kv_heads,
            scale=self.scale(layer),
            window=self.window(layer),
            softcap=self.attn_softcap,
            slopes=alibi_slopes(self.n_heads) if self.positions == "alibi" else None,
            bias_scale=self.scale(layer) if self.alibi_scaled else 1.0,
            bias_bfloat16=self.alibi_bfloat16,
        )
