"""The checkpoint layout of gpt_neox, falcon and bloom: LayerNorms, a plain MLP, and q, k and v in one matrix by groups.

A group is the rows of its query heads, then one key head, then one value head. With as many groups as heads that is
q, k, v of every head in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Take, Target, TensorRule, rule, without_prefix
from model.families.llama_layout import head_rule

PARTS = "qkv"


@dataclass(frozen=True, kw_only=True)
class Names:
    """How a checkpoint calls its parts; `norms`: those of a layer, checkpoint name → ours."""

    prefix: str
    embed: str
    layers: str
    attention: str
    final_norm: str
    norms: Mapping[str, str]
    head: str = "lm_head.weight"
    embed_norm: str = ""


def fused_rules(config: DecoderConfig, names: Names) -> list[TensorRule]:
    """Every tensor of such a checkpoint."""
    d_model, d_mlp, width = config.d_model, config.d_mlp, config.n_heads * config.d_head
    prefix = names.prefix
    embed = rule(f"{prefix}{names.embed}.weight", (config.d_vocab, d_model), "embed_tokens.weight", prefix=prefix)
    found = [embed, head_rule(config, names.head)]
    norms = {names.final_norm: "norm"} | ({names.embed_norm: "embed_layernorm"} if config.embed_norm else {})
    for layer in range(config.n_layers):
        at, to = f"{names.layers}.{layer}", f"layers.{layer}"
        norms |= {f"{at}.{source}": f"{to}.{target}" for source, target in names.norms.items()}
        qkv = f"{prefix}{at}.{names.attention}.query_key_value"
        found += grouped_qkv_rules(qkv, f"{to}.self_attn", config, prefix=prefix)
        for source, target, shape, bias in (
            (f"{names.attention}.dense", "self_attn.o_proj", (d_model, width), config.out_bias),
            ("mlp.dense_h_to_4h", "mlp.up_proj", (d_mlp, d_model), config.mlp_bias),
            ("mlp.dense_4h_to_h", "mlp.down_proj", (d_model, d_mlp), config.mlp_bias),
        ):
            found.append(rule(f"{prefix}{at}.{source}.weight", shape, f"{to}.{target}.weight", prefix=prefix))
            if bias:
                found.append(rule(f"{prefix}{at}.{source}.bias", shape[:1], f"{to}.{target}.bias", prefix=prefix))
    for source, target in norms.items():
        for kind in ("weight", "bias"):
            found.append(rule(f"{prefix}{source}.{kind}", (d_model,), f"{target}.{kind}", prefix=prefix))
    return found


def fused_gguf_names(config: DecoderConfig, names: Names, norms: Mapping[str, str]) -> dict[str, str]:
    """GGUF tensor names → checkpoint names; `norms`: those of a layer, GGUF name → checkpoint name."""
    layer_names = {
        "attn_qkv": f"{names.attention}.query_key_value",
        "attn_output": f"{names.attention}.dense",
        "ffn_up": "mlp.dense_h_to_4h",
        "ffn_down": "mlp.dense_4h_to_h",
        **norms,
    }
    parts = {"token_embd": names.embed, "token_embd_norm": names.embed_norm, "output_norm": names.final_norm}
    for layer in range(config.n_layers):
        parts |= {f"blk.{layer}.{gguf}": f"{names.layers}.{layer}.{hf}" for gguf, hf in layer_names.items()}
    found = {"output.weight": names.head}
    for gguf, hf in parts.items():
        found |= {f"{gguf}.{kind}": f"{names.prefix}{hf}.{kind}" for kind in ("weight", "bias")}
    return found


def _take(part: str, n_groups: int, d_head: int) -> Take:
    def take(tensor: Tensor) -> Tensor:
        groups = tensor.reshape(n_groups, -1, d_head, *tensor.shape[1:])  # (K, H/K + 2, D, …)
        chosen = {"q": groups[:, :-2], "k": groups[:, -2], "v": groups[:, -1]}[part]
        return chosen.reshape(-1, *tensor.shape[1:])  # (H · D, …) or (K · D, …)

    return take


def grouped_qkv_rules(source: str, target: str, config: DecoderConfig, *, prefix: str) -> list[TensorRule]:
    """Rules for `source`.weight and, where the model has one, `source`.bias."""
    shapes: dict[str, tuple[int, ...]] = {"weight": (config.d_model,)} | ({"bias": ()} if config.qkv_bias else {})
    n_rows = (config.n_heads + 2 * config.n_kv_heads) * config.d_head
    return [
        TensorRule(
            source=f"{source}.{kind}",
            shape=(n_rows, *rest),
            targets=tuple(
                Target(name=f"{target}.{part}_proj.{kind}", take=_take(part, config.n_kv_heads, config.d_head))
                for part in PARTS
            ),
            aliases=without_prefix(f"{source}.{kind}", prefix),
        )
        for kind, rest in shapes.items()
    ]


def regroup_qkv(name: str, tensor: Tensor, config: DecoderConfig) -> Tensor:
    """`GGUFMap.fix`: llama.cpp's order of the fused matrix (all q, all k, all v) back to groups."""
    if ".query_key_value." not in name:
        return tensor
    n_groups, rest = config.n_kv_heads, tensor.shape[1:]
    n_q, n_kv = config.n_heads * config.d_head, n_groups * config.d_head
    q, k, v = torch.split(tensor, [n_q, n_kv, n_kv])
    groups = tensor.new_empty(n_groups, config.n_heads // n_groups + 2, config.d_head, *rest)  # (K, H/K + 2, D, …)
    groups[:, :-2] = q.reshape(n_groups, -1, config.d_head, *rest)  # (K, H/K, D, …)
    groups[:, -2] = k.reshape(n_groups, config.d_head, *rest)  # (K, D, …)
    groups[:, -1] = v.reshape(n_groups, config.d_head, *rest)  # (K, D, …)
    return groups.reshape(tensor.shape)  # ((H + 2K) · D, …)
