"""What GGUF files of all architectures share: metadata keys → config.json, tensor names → Hugging Face's.

Source: the GGUF specification (ggml's docs/gguf.md) and the names in the `gguf` package.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor

from model.config import LIMITS, ConfigError, DecoderConfig, NormKind
from model.families.reading import ConfigReader

ROPE_FREQS = "rope_freqs.weight"
LONG_FACTORS, SHORT_FACTORS = "rope_factors_long.weight", "rope_factors_short.weight"
CONFIG_TENSORS = (ROPE_FREQS, LONG_FACTORS, SHORT_FACTORS)

_EPSILONS: Mapping[NormKind, tuple[str, ...]] = {
    "rms": ("rms_norm_eps",),
    "layer": ("layer_norm_epsilon", "layer_norm_eps"),
}
_SCALINGS = {kind: kind for kind in ("none", "linear", "yarn")}
_ALWAYS_HEARD = "attn_factor"
"""By llama.cpp, that is, whether positions are scaled or not."""
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
    tensors: Mapping[str, Tensor] | None = None,
    *,
    arch: str,
    model_type: str,
    tied: bool = False,
    whole_heads: bool = True,
    norm: NormKind = "rms",
) -> dict[str, Any]:
    """The config.json fields that GGUF metadata states for every architecture, with llama.cpp's own defaults.

    Whether the head is tied shows only in the tensors' names: no `output.weight` means tied. `tied` counts where the
    names are not given. `whole_heads`: all of a head is rotated. Raises ConfigError for what llama.cpp demands and is
    not there, and for what would make other numbers and is not heard: a part of a head where it should be the whole,
    attention to later tokens.
    """
    reader = ConfigReader(meta)

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
        "max_position_embeddings": reader.size("n_ctx", f"{arch}.context_length"),
        "sliding_window": key("attention.sliding_window"),
        "tie_word_embeddings": tied if names is None else "output.weight" not in names,
    }
    found = {name: value for name, value in fields.items() if value is not None}
    found["num_key_value_heads"] = meta.get(f"{arch}.attention.head_count_kv", found.get("num_attention_heads"))
    found["head_dim"] = reader.size("d_head", f"{arch}.attention.key_length", default=gguf_head_size(found))
    found["rope_theta"] = meta.get(f"{arch}.rope.freq_base", 10_000.0)
    found["rope_scaling"] = gguf_rope_scaling(meta, tensors or {}, arch=arch)
    epsilon = reader.number(f"{arch}.attention.layer_norm_{'rms_' if norm == 'rms' else ''}epsilon")
    found |= dict.fromkeys(_EPSILONS[norm], epsilon)
    reader.refuse(f"{arch}.attention.causal", unless=True, why="true: attention to earlier tokens only")
    if whole_heads:
        reader.refuse(
            f"{arch}.rope.dimension_count", unless=found["head_dim"], why=f"{found['head_dim']}, the size of a head"
        )
    return found


def gguf_head_size(found: Mapping[str, Any]) -> int:
    """hidden_size / num_attention_heads of what `gguf_config` found. Raises ConfigError."""
    reader = ConfigReader(found)
    return max(1, reader.size("d_model", "hidden_size") // reader.size("n_heads", "num_attention_heads"))


def gguf_layer_types(meta: Mapping[str, Any], found: Mapping[str, Any], *, arch: str, period: int) -> list[str]:
    """`layer_types` of an architecture whose every `period`-th layer is full unless the file says otherwise, by another
    period or layer by layer. Raises ConfigError."""
    n_layers = ConfigReader(found).size("n_layers", "num_hidden_layers")
    reader, name = ConfigReader(meta), f"{arch}.attention.sliding_window_pattern"
    slides = meta.get(name)
    if not isinstance(slides, list):
        every = reader.whole(name, high=LIMITS["n_layers"][1], default=period)
        slides = [(layer + 1) % every > 0 for layer in range(n_layers)]
    if len(slides) != n_layers or not all(isinstance(each, bool) for each in slides):
        raise ConfigError(name, slides, f"a period, or true or false for each of {n_layers} layers")
    reader.refuse(
        f"{arch}.rope.dimension_count_swa", unless=found["head_dim"], why=f"{found['head_dim']}, the size of a head"
    )
    return ["sliding_attention" if each else "full_attention" for each in slides]


def partial_for(meta: Mapping[str, Any], key: str, d_head: int) -> float:
    """The partial rotary factor whose whole part of `d_head` is exactly what `key` says. Raises ConfigError."""
    rotated = ConfigReader(meta).whole(key, high=LIMITS["d_head"][1], default=d_head)
    return min(1.0, (rotated + 0.5) / d_head)


def gguf_rope_scaling(meta: Mapping[str, Any], tensors: Mapping[str, Tensor], *, arch: str) -> dict[str, Any] | None:
    """`rope_scaling` from the metadata, or from the converter's table of one factor per pair (Llama 3's). A factor
    alone is a linear one, as llama.cpp reads it. Raises ConfigError for a kind or a number of it that is not known."""
    scaling = _stated_scaling(meta, arch)
    if ROPE_FREQS in tensors:
        if scaling is not None:
            raise ConfigError(f"{arch}.rope.scaling", scaling["rope_type"], f"none beside the table {ROPE_FREQS}")
        table = [float(value) for value in tensors[ROPE_FREQS].flatten()]
        # one set of factors at every length, cos and sin unscaled
        return {"rope_type": "longrope", "short_factor": table, "long_factor": table, "attention_factor": 1.0}
    return scaling


def _stated_scaling(meta: Mapping[str, Any], arch: str) -> dict[str, Any] | None:
    at = f"{arch}.rope.scaling"
    factor = meta.get(f"{at}.factor", meta.get(f"{arch}.rope.scale_linear"))  # the second: of files before 2023-11
    kind = ConfigReader(meta).choice(f"{at}.type", among=_SCALINGS, default="none" if factor is None else "linear")
    is_scaled = kind != "none" and not (kind == "linear" and factor == 0)
    for name, unscaled in _UNHEARD.items():
        if is_scaled or name == _ALWAYS_HEARD:
            ConfigReader(meta).refuse(f"{at}.{name}", unless=unscaled, why=f"{unscaled:g}: no other is known here")
    if not is_scaled:
        return None
    if factor is None:
        raise ConfigError(f"{at}.factor", factor, f"the factor of the {kind} scaling")
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
