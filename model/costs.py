"""What a decoder costs, from its configuration: parameters by part, bytes of the KV cache, floating point operations.

A multiplication and an addition are two operations. Norms, rotations, softmax and activations are left out: they are
well under a hundredth of the products.
"""

from __future__ import annotations

from model.config import DecoderConfig


def parameters_by_part(config: DecoderConfig) -> dict[str, int]:
    """Parameters of each part of the model; a tied head counts nothing of its own."""
    m, d = config.d_model, config.d_head
    q, kv = config.n_heads * d, config.n_kv_heads * d
    attention = _attention_matrices(config) + (q + 2 * kv) * config.qkv_bias + m * config.out_bias
    if config.qk_norm != "none":
        attention += ((q + kv) if config.qk_norm == "row" else 2 * d) * _norm_width(config)
    n_dense = config.n_layers - _expert_layers(config)
    parts = {
        "embedding": config.d_vocab * m,
        "positions": config.n_positions_table * m,
        "attention": config.n_layers * attention,
        "feed_forward": n_dense * (_mlp_matrices(config, config.d_mlp) + _mlp_biases(config, config.d_mlp)),
        "norms": _norms(config),
        "head": 0 if config.tied_head else (m + config.head_bias) * config.d_vocab,
    }
    if config.moe is not None:
        width = config.moe.d_expert
        expert = _mlp_matrices(config, width) + _mlp_biases(config, width)
        parts["router"] = _expert_layers(config) * m * config.moe.n_experts
        parts["experts"] = _expert_layers(config) * config.moe.n_experts * expert
    return {name: count for name, count in parts.items() if count}


def active_parameters(config: DecoderConfig) -> int:
    """Parameters that one token's pass reads: of the experts only those it is sent to."""
    parts = parameters_by_part(config)
    total = sum(parts.values())
    if config.moe is not None:
        total -= parts["experts"] - parts["experts"] * config.moe.top_k // config.moe.n_experts
    return total


def bytes_read(config: DecoderConfig, itemsize: int) -> int:
    """Bytes of weights that a pass over one token reads: all it is multiplied with, one row of each table it is only
    looked up in."""
    parts = parameters_by_part(config)
    looked_up = parts.get("positions", 0) + (0 if config.tied_head else parts["embedding"])
    rows = bool(parts.get("positions")) + (not config.tied_head)
    return (active_parameters(config) - looked_up + rows * config.d_model) * itemsize


def kv_bytes_per_token(config: DecoderConfig, itemsize: int, *, n_kv_heads: int | None = None) -> int:
    """2 · L · K · D · bytes; `n_kv_heads`: as if the model had so many (all heads: MHA, one: MQA)."""
    heads = config.n_kv_heads if n_kv_heads is None else n_kv_heads
    return 2 * config.n_layers * heads * config.d_head * itemsize


def flops(config: DecoderConfig, start: int, stop: int, *, logits: int = 1) -> int:
    """Operations of a forward pass over positions start … stop - 1 with all before them cached, and `logits` rows."""
    tokens = stop - start
    products = 2 * tokens * _layer_weights(config)
    attention = 4 * config.n_heads * config.d_head * sum(_pairs(config, layer, start, stop) for layer in
                                                         range(config.n_layers))  # fmt: skip
    return products + attention + 2 * logits * config.d_model * config.d_vocab


def attention_bytes(config: DecoderConfig, length: int, itemsize: int) -> int:
    """Bytes that every head's whole N × N matrix of weights would take, were it ever written down."""
    return config.n_layers * config.n_heads * length * length * itemsize


def _pairs(config: DecoderConfig, layer: int, start: int, stop: int) -> int:
    """How many (query, visible key) pairs a layer computes."""
    window = config.window(layer)
    if window is None or stop <= window:
        return (start + 1 + stop) * (stop - start) // 2
    growing = max(0, min(stop, window) - start)
    return sum(range(start + 1, start + 1 + growing)) + (stop - start - growing) * window


def _layer_weights(config: DecoderConfig) -> int:
    """Weights that a token is multiplied with in all layers together."""
    n_dense = config.n_layers - _expert_layers(config)
    weights = config.n_layers * _attention_matrices(config) + n_dense * _mlp_matrices(config, config.d_mlp)
    if config.moe is not None:
        per_layer = config.d_model * config.moe.n_experts
        per_layer += config.moe.top_k * _mlp_matrices(config, config.moe.d_expert)
        weights += _expert_layers(config) * per_layer
    return weights


def _expert_layers(config: DecoderConfig) -> int:
    return len(config.moe.layers) if config.moe is not None else 0


def _attention_matrices(config: DecoderConfig) -> int:
    return 2 * config.d_model * config.d_head * (config.n_heads + config.n_kv_heads)


def _mlp_matrices(config: DecoderConfig, width: int) -> int:
    return (3 if config.gated_mlp else 2) * config.d_model * width


def _mlp_biases(config: DecoderConfig, width: int) -> int:
    return ((2 if config.gated_mlp else 1) * width + config.d_model) * config.mlp_bias


def _norm_width(config: DecoderConfig) -> int:
    return 1 if config.norm == "rms" else 2


def _norms(config: DecoderConfig) -> int:
    per_layer = (1 if config.shared_norm else 2) * config.pre_norm + 2 * config.post_norm
    count = config.n_layers * per_layer + 1 + config.embed_norm
    return count * config.d_model * _norm_width(config)
