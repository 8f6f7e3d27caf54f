"""What GGUF files of all architectures share: metadata keys → config.json, tensor names → Hugging Face's.

Source: the GGUF specification (ggml's docs/gguf.md) and the names in the `gguf` package.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import LIMITS, ConfigError, DecoderConfig
from model.families.reading import ConfigReader

ROPE_FREQS = "rope_freqs.weight"
LONG_FACTORS, SHORT_FACTORS = "rope_factors_long.weight", "rope_factors_short.weight"
CONFIG_TENSORS = (ROPE_FREQS, LONG_FACTORS, SHORT_FACTORS)

_SCALINGS = {kind: kind for kind in ("none", "linear", "yarn")}
_UNHEARD = {"attn_factor": 1.0, "yarn_ext_factor": 1.0, "yarn_attn_factor": 1.0, "yarn_log_multiplier": 0.0}

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
QK_NORM_NAMES = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
OUTPUT_NORM_NAMES = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
SANDWICH_NAMES = OUTPUT_NORM_NAMES | {"ffn_norm": "pre_feedforward_layernorm"}
TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def gguf_config(
    meta: Mapping[str, Any],
    names: Collection[str] | None,
    *,
    arch: str,
    model_type: str,
    tied: bool = False,
    whole_heads: bool = True,
) -> dict[str, Any]:
    """The config.json fields that GGUF metadata states for every architecture; absent ones are left out.

    Whether the head is tied shows only in the tensors' names: no `output.weight` means tied. `tied` counts where the
    names are not given. `whole_heads`: all of a head is rotated. Raises ConfigError for what would make other numbers
    and is not heard: a part of a head where it should be the whole, attention to later tokens.
    """

    def key(name: str) -> Any:
        return meta.get(f"{arch}.{name}")

    tokens = meta.get("tokenizer.ggml.tokens")
    fields = {
        "model_type": model_type,
        "vocab_size": key("vocab_size") or (len(tokens) if isinstance(tokens, list | tuple) else 0) or None,
        "hidden_size": key("embedding_length"),
        "num_hidden_layers": key("block_count"),
        "intermediate_size": key("feed_forward_length"),
        "num_attention_heads": key("attention.head_count"),
        "num_key_value_heads": key("attention.head_count_kv"),
        "head_dim": key("attention.key_length"),
        "max_position_embeddings": key("context_length"),
        "rms_norm_eps": key("attention.layer_norm_rms_epsilon"),
        "rope_theta": key("rope.freq_base"),
        "sliding_window": key("attention.sliding_window"),
        "tie_word_embeddings": tied if names is None else "output.weight" not in names,
    }
    found = {name: value for name, value in fields.items() if value is not None}
    ConfigReader(meta).refuse(f"{arch}.attention.causal", unless=True, why="true: attention to earlier tokens only")
    rotated = f"{arch}.rope.dimension_count"
    if whole_heads and rotated in meta:
        d_head = ConfigReader(found).size("d_head", "head_dim", default=gguf_head_size(found))
        ConfigReader(meta).refuse(rotated, unless=d_head, why=f"{d_head}, the size of a head")
    return found


def gguf_head_size(found: Mapping[str, Any]) -> int:
    """hidden_size / num_attention_heads of what `gguf_config` found. Raises ConfigError."""
    reader = ConfigReader(found)
    return max(1, reader.size("d_model", "hidden_size") // reader.size("n_heads", "num_attention_heads"))


def partial_for(meta: Mapping[str, Any], key: str, d_head: int) -> float:
    """The partial rotary factor whose whole part of `d_head` is exactly what `key` says. Raises ConfigError."""
    rotated = ConfigReader(meta).whole(key, high=LIMITS["d_head"][1], default=d_head)
    return min(1.0, (rotated + 0.5) / d_head)


def gguf_rope_scaling(
    meta: Mapping[str, Any], tensors: Mapping[str, Tensor], *, arch: str, factors: bool = True
) -> dict[str, Any] | None:
    """`rope_scaling` from the metadata, or from the converter's table of one factor per pair (Llama 3's). A factor
    alone is a linear one, as llama.cpp reads it. Raises ConfigError for a kind or a number of it that is not known."""
    if factors and ROPE_FREQS in tensors:
        table = [float(value) for value in tensors[ROPE_FREQS].flatten()]
        # one set of factors at every length, cos and sin unscaled
        return {"rope_type": "longrope", "short_factor": table, "long_factor": table, "attention_factor": 1.0}
    at = f"{arch}.rope.scaling"
    factor = meta.get(f"{at}.factor", meta.get(f"{arch}.rope.scale_linear"))  # the second: of files before 2023-11
    kind = ConfigReader(meta).choice(f"{at}.type", among=_SCALINGS, default="none" if factor is None else "linear")
    if kind == "none" or (kind == "linear" and factor == 0):
        return None
    if factor is None:
        raise ConfigError(f"{at}.factor", factor, f"the factor of the {kind} scaling")
    for name, unscaled in _UNHEARD.items():
        ConfigReader(meta).refuse(f"{at}.{name}", unless=unscaled, why=f"{unscaled:g}: no other is known here")
    scaling = {
        "rope_type": kind,
        "factor": factor,
        "original_max_position_embeddings": meta.get(f"{at}.original_context_length"),
        "beta_fast": meta.get(f"{at}.yarn_beta_fast"),
        "beta_slow": meta.get(f"{at}.yarn_beta_slow"),
    }
    return {name: value for name, value in scaling.items() if value is not None}


def gguf_names(
    config: DecoderConfig, layer_names: Mapping[str, str] = LAYER_NAMES, top_names: Mapping[str, str] = TOP_NAMES
) -> dict[str, str]:
    """GGUF tensor names → rule names, weights and biases, of every layer and the top."""
    names = dict(top_names)
    for layer in range(config.n_layers):
        for gguf, hf in layer_names.items():
            for kind in ("weight", "bias"):
                names[f"blk.{layer}.{gguf}.{kind}"] = f"model.layers.{layer}.{hf}.{kind}"
    return names


def unpermute(tensor: Tensor, n_heads: int) -> Tensor:
    """Rows of q or k, (H · D, …), from the converter's interleaved pairs back to half-split ones."""
    pairs = tensor.reshape(n_heads, -1, 2, *tensor.shape[1:])  # (H, D/2, 2, …)
    return pairs.transpose(1, 2).reshape(tensor.shape)  # (H · D, …)


def unpermute_qk(name: str, tensor: Tensor, config: DecoderConfig) -> Tensor:
    """`GGUFMap.fix` of architectures whose q and k the converter permutes (llama)."""
    if ".q_proj." in name:
        return unpermute(tensor, config.n_heads)
    if ".k_proj." in name:
        return unpermute(tensor, config.n_kv_heads)
    return tensor


def unchanged(name: str, tensor: Tensor, config: DecoderConfig) -> Tensor:  # noqa: ARG001 (GGUFMap.fix's)
    """`GGUFMap.fix` of architectures written as they are."""
    return tensor
