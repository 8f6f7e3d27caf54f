"""GPT-2 (Radford et al. 2019): learned positions, one fused qkv, LayerNorm, plain GELU feed-forward, tied head.

Its checkpoints store linear maps transposed, (in, out), as "Conv1D".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import DecoderConfig
from model.families.base import Family, GGUFMap, Take, Target, TensorRule, rule, without_prefix
from model.families.gguf_layout import gguf_config
from model.families.llama_layout import head_rule
from model.families.reading import ConfigReader

PREFIX = "transformer."


def read_config(values: Mapping[str, Any]) -> DecoderConfig:
    """DecoderConfig of a GPT-2 config.json."""
    reader = ConfigReader(values)
    d_model = reader.size("d_model", "n_embd", "hidden_size")
    n_heads, _ = reader.heads(names=("n_head", "num_attention_heads"))
    n_ctx = reader.size("n_ctx", "n_positions", "max_position_embeddings", default=1024)
    reader.refuse("add_cross_attention", unless=False, why="false: a decoder on its own")
    return DecoderConfig(
        family="gpt2",
        d_vocab=reader.size("d_vocab", "vocab_size"),
        d_model=d_model,
        n_layers=reader.size("n_layers", "n_layer", "num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=n_heads,
        d_head=reader.head_size(d_model, n_heads, model_name="n_embd"),
        d_mlp=reader.size("d_mlp", "n_inner", default=4 * d_model),
        n_ctx=n_ctx,
        tied_head=reader.flag("tie_word_embeddings", default=True),
        positions="learned",
        n_positions_table=n_ctx,
        attn_scale=None if reader.flag("scale_attn_weights", default=True) else 1.0,
        attn_scale_by_depth=reader.flag("scale_attn_by_inverse_layer_idx", default=False),
        qkv_bias=True,
        out_bias=True,
        norm="layer",
        norm_eps=reader.number("layer_norm_epsilon", default=1e-5),
        activation=reader.activation("activation_function", default="gelu_new"),
        gated_mlp=False,
        mlp_bias=True,
    )


def _columns(begin: int, end: int) -> Take:
    def take(tensor: Tensor) -> Tensor:
        return tensor[:, begin:end].t() if tensor.ndim == 2 else tensor[begin:end]

    return take


def _conv_rules(source: str, targets: Mapping[str, int], d_in: int) -> list[TensorRule]:
    """Weight (d_in, out) and bias (out) whose columns are the targets, one after the other."""
    weights, biases, begin = [], [], 0
    for name, count in targets.items():
        take = _columns(begin, begin + count)
        weights.append(Target(name=f"{name}.weight", take=take))
        biases.append(Target(name=f"{name}.bias", take=take))
        begin += count
    both = (("weight", (d_in, begin), weights), ("bias", (begin,), biases))
    return [
        TensorRule(
            source=f"{source}.{kind}",
            shape=shape,
            targets=tuple(parts),
            aliases=without_prefix(f"{source}.{kind}", PREFIX),
        )
        for kind, shape, parts in both
    ]


def rules(config: DecoderConfig) -> list[TensorRule]:
    """Every tensor of a GPT-2 checkpoint."""
    d_model, width = config.d_model, config.n_heads * config.d_head
    tables = {"wte": ("embed_tokens", config.d_vocab), "wpe": ("embed_positions", config.n_positions_table)}
    found = [
        rule(f"{PREFIX}{source}.weight", (count, d_model), f"{target}.weight", prefix=PREFIX)
        for source, (target, count) in tables.items()
    ]
    found.append(head_rule(config))
    norms = {"ln_f": "norm"}
    for layer in range(config.n_layers):
        at, to = f"{PREFIX}h.{layer}", f"layers.{layer}"
        norms |= {f"h.{layer}.ln_1": f"{to}.input_layernorm", f"h.{layer}.ln_2": f"{to}.post_attention_layernorm"}
        qkv = {f"{to}.self_attn.{part}_proj": width for part in "qkv"}
        found += _conv_rules(f"{at}.attn.c_attn", qkv, d_model)
        found += _conv_rules(f"{at}.attn.c_proj", {f"{to}.self_attn.o_proj": d_model}, width)
        found += _conv_rules(f"{at}.mlp.c_fc", {f"{to}.mlp.up_proj": config.d_mlp}, d_model)
        found += _conv_rules(f"{at}.mlp.c_proj", {f"{to}.mlp.down_proj": d_model}, config.d_mlp)
    for source, target in norms.items():
        for kind in ("weight", "bias"):
            found.append(rule(f"{PREFIX}{source}.{kind}", (d_model,), f"{target}.{kind}", prefix=PREFIX))
    return found


GGUF_LAYER = {
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}


def gguf_to_config(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None, names: Collection[str] | None = None
) -> dict[str, Any]:
    """A GPT-2 config.json from GGUF metadata."""
    found = gguf_config(meta, names, tensors, arch="gpt2", model_type="gpt2", tied=True, norm="layer")
    found["n_inner"] = found.get("intermediate_size")
    return found


def gguf_names(config: DecoderConfig) -> dict[str, str]:
    """GGUF tensor names → checkpoint names."""
    names = {
        "token_embd.weight": f"{PREFIX}wte.weight",
        "position_embd.weight": f"{PREFIX}wpe.weight",
        "output.weight": "lm_head.weight",
    }
    parts = {f"blk.{i}.{gguf}": f"h.{i}.{hf}" for i in range(config.n_layers) for gguf, hf in GGUF_LAYER.items()}
    for gguf, hf in ({"output_norm": "ln_f"} | parts).items():
        names |= {f"{gguf}.{kind}": f"{PREFIX}{hf}.{kind}" for kind in ("weight", "bias")}
    return names


def gguf_fix(name: str, tensor: Tensor, config: DecoderConfig) -> Tensor:  # noqa: ARG001 (GGUFMap.fix's)
    """The converter transposes Conv1D weights to (out, in)."""
    return tensor.t() if name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")) else tensor


GPT2 = Family(
    name="gpt2",
    model_types=("gpt2",),
    read_config=read_config,
    rules=rules,
    ignored=("*.attn.bias", "*.attn.masked_bias"),
    gguf=GGUFMap(arch="gpt2", hf_config=gguf_to_config, names=gguf_names, fix=gguf_fix),
)
