"""The model as a whole: its parts, their parameters, what a token costs."""

from __future__ import annotations

from model.config import DecoderConfig
from model.costs import active_parameters, flops, kv_bytes_per_token, parameters_by_part
from model.loading import LoadedModel
from model.protocol.card_requests import Features, ModelCardReply, Part, RopeFacts
from model.rope import RopeSpec

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def model_card(model: LoadedModel, *, tokens: int = 1024) -> ModelCardReply:
    """The answer to GetModelCard, for a prompt of `tokens`."""
    config, itemsize = model.decoder.config, model.decoder.dtype.itemsize
    parts = parameters_by_part(config)
    total = sum(parts.values())
    return ModelCardReply(
        parts=tuple(Part(name=name, parameters=count) for name, count in parts.items()),
        parameters=total,
        active_parameters=active_parameters(config),
        bytes_by_dtype={name: total * size for name, size in DTYPE_BYTES.items()},
        kv_bytes_per_token=kv_bytes_per_token(config, itemsize),
        kv_bytes_per_token_mha=kv_bytes_per_token(config, itemsize, n_kv_heads=config.n_heads),
        kv_bytes_per_token_mqa=kv_bytes_per_token(config, itemsize, n_kv_heads=1),
        prefill_tokens=tokens,
        prefill_flops=flops(config, 0, tokens),
        decode_flops=flops(config, tokens, tokens + 1),
        features=features(config),
    )


def features(config: DecoderConfig) -> Features:
    """The configuration in facts."""
    sliding = tuple(layer for layer in range(config.n_layers) if config.window(layer) is not None)
    windows = {window for layer in sliding if (window := config.window(layer)) is not None}
    return Features(
        attention_kind=config.attention_kind,
        scale=config.attention(0).scale,
        softcap=config.attn_softcap,
        logit_softcap=config.logit_softcap,
        windows=tuple(sorted(windows)),
        sliding_layers=sliding,
        qkv_bias=config.qkv_bias,
        qk_norm=config.qk_norm,
        positions=config.positions,
        rope=rope_facts(config.rope),
        rope_sliding=rope_facts(config.rope_sliding),
        norm=config.norm,
        norm_eps=config.norm_eps,
        pre_norm=config.pre_norm,
        post_norm=config.post_norm,
        parallel_residual=config.parallel_residual,
        activation=config.activation,
        gated_mlp=config.gated_mlp,
        tied_head=config.tied_head,
        n_experts=config.moe.n_experts if config.moe is not None else 0,
        experts_per_token=config.moe.top_k if config.moe is not None else 0,
        expert_layers=config.moe.layers if config.moe is not None else (),
    )


def rope_facts(rope: RopeSpec | None) -> RopeFacts | None:
    """A RopeSpec as it travels."""
    if rope is None:
        return None
    return RopeFacts(
        kind=rope.kind,
        theta=rope.theta,
        dim=rope.dim,
        factor=rope.factor,
        original_ctx=rope.original_ctx,
        attention_factor=rope.attention_factor,
    )
