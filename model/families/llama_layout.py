"""The checkpoint layout most families share: Hugging Face's Llama names, one rule per tensor, by feature."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Take, Target, TensorRule, rule, without_prefix

# checkpoint name → our name, of a layer's norms
LLAMA_NORMS = {"input_layernorm": "input_layernorm", "post_attention_layernorm": "post_attention_layernorm"}
OUTPUT_NORMS = {
    "post_attention_layernorm": "attn_out_layernorm",
    "post_feedforward_layernorm": "mlp_out_layernorm",
}
SANDWICH_NORMS = OUTPUT_NORMS | {
    "input_layernorm": "input_layernorm",
    "pre_feedforward_layernorm": "post_attention_layernorm",
}
IGNORED = ("*.rotary_emb.inv_freq",)


def llama_rules(config: DecoderConfig, norms: Mapping[str, str] = LLAMA_NORMS) -> list[TensorRule]:
    """Rules of a whole decoder in Llama's names: embedding, layers, final norm, head."""
    rules = [
        rule("model.embed_tokens.weight", (config.d_vocab, config.d_model), "embed_tokens.weight"),
        rule("model.norm.weight", (config.d_model,), "norm.weight"),
        head_rule(config),
    ]
    for layer in range(config.n_layers):
        rules += attention_rules(config, layer) + norm_rules(config, layer, norms)
        if not config.has_experts(layer):
            rules += mlp_rules(config, layer)
    return rules


def head_rule(config: DecoderConfig, source: str = "lm_head.weight") -> TensorRule:
    """The output head; with a tied head a copy in the checkpoint is known and not needed."""
    shape = (config.d_vocab, config.d_model)
    targets = () if config.tied_head else (Target(name="lm_head.weight"),)
    return TensorRule(source=source, shape=shape, targets=targets, optional=config.tied_head)


def rows(begin: int, end: int) -> Take:
    """Takes rows begin … end - 1."""

    def take(tensor: Tensor) -> Tensor:
        return tensor[begin:end]

    return take


def split_rule(source: str, targets: Mapping[str, int], *width: int, prefix: str = "model.") -> TensorRule:
    """A rule for a tensor whose rows are several parameters one after the other (name → rows); `width` is the rest of
    its shape."""
    parts, begin = [], 0
    for name, count in targets.items():
        parts.append(Target(name=name, take=rows(begin, begin + count)))
        begin += count
    aliases = without_prefix(source, prefix)
    return TensorRule(source=source, shape=(begin, *width), targets=tuple(parts), aliases=aliases)


def linear_rules(source: str, target: str, d_out: int, d_in: int, *, bias: bool) -> list[TensorRule]:
    """Weight (d_out, d_in) and, where there is one, bias."""
    rules = [rule(f"{source}.weight", (d_out, d_in), f"{target}.weight")]
    if bias:
        rules.append(rule(f"{source}.bias", (d_out,), f"{target}.bias"))
    return rules


def attention_rules(config: DecoderConfig, layer: int) -> list[TensorRule]:
    """q, k, v, o and, where there are any, the norms of q and k."""
    at = f"layers.{layer}.self_attn"
    q_width, kv_width = config.n_heads * config.d_head, config.n_kv_heads * config.d_head
    rules = []
    for part, width in (("q", q_width), ("k", kv_width), ("v", kv_width)):
        name = f"{at}.{part}_proj"
        rules += linear_rules(f"model.{name}", name, width, config.d_model, bias=config.qkv_bias)
    name = f"{at}.o_proj"
    rules += linear_rules(f"model.{name}", name, config.d_model, q_width, bias=config.out_bias)
    if config.qk_norm != "none":
        per_row = config.qk_norm == "row"
        for part, width in (("q", q_width), ("k", kv_width)):
            name = f"{at}.{part}_norm.weight"
            rules.append(rule(f"model.{name}", (width if per_row else config.d_head,), name))
    return rules


def norm_rules(config: DecoderConfig, layer: int, norms: Mapping[str, str]) -> list[TensorRule]:
    """The norms of a layer (weights only: RMSNorm)."""
    return [
        rule(f"model.layers.{layer}.{source}.weight", (config.d_model,), f"layers.{layer}.{target}.weight")
        for source, target in norms.items()
    ]


def mlp_rules(config: DecoderConfig, layer: int) -> list[TensorRule]:
    """gate, up and down of a feed-forward without experts."""
    rules = []
    for part in ("gate_proj", "up_proj", "down_proj"):
        name = f"layers.{layer}.mlp.{part}"
        d_out, d_in = (config.d_model, config.d_mlp) if part == "down_proj" else (config.d_mlp, config.d_model)
        rules += linear_rules(f"model.{name}", name, d_out, d_in, bias=config.mlp_bias)
    return rules
