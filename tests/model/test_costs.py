"""Parameters and operations counted from the configuration, against the tensors and against torch's own counter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from model.attention_spec import AttentionSpec
from model.config import MoeSpec
from model.costs import active_parameters, attention_bytes, flops, kv_bytes_per_token, parameters_by_part
from model.transformer import Decoder
from model.views.model_card import model_card
from tests.model.tiny import made, random_ids, run_of

FIELDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "tied": {"tied_head": True, "head_bias": False},
    "biases": {"qkv_bias": True, "out_bias": True, "mlp_bias": True, "head_bias": True, "gated_mlp": False},
    "learned": {"positions": "learned", "rope": None, "n_positions_table": 300, "norm": "layer", "embed_norm": True},
    "norms": {"qk_norm": "head", "post_norm": True},
    "rows": {"qk_norm": "row", "pre_norm": False, "post_norm": True},
    "parallel": {"parallel_residual": True, "shared_norm": True, "norm": "layer"},
    "experts": {"moe": MoeSpec(n_experts=6, top_k=2, d_expert=24, layers=(1, 2))},
}


@pytest.mark.parametrize("name", FIELDS)
def test_parts_add_up_to_the_tensors(name: str) -> None:
    model = made(**FIELDS[name])
    parts = parameters_by_part(model.decoder.config)
    assert sum(parts.values()) == sum(weight.numel() for weight in model.decoder.parameters())
    of = {"attention": "self_attn", "experts": ".experts.", "router": "mlp.gate.weight", "embedding": "embed_tokens"}
    for part, pattern in of.items():
        counted = sum(w.numel() for path, w in model.decoder.named_parameters() if pattern in path)
        assert parts.get(part, 0) == counted, part


@pytest.mark.parametrize("name", FIELDS)
def test_operations_equal_those_that_torch_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made(**FIELDS[name])
    decoder, config = model.decoder, model.decoder.config
    pairs: list[int] = []

    def count(spec: AttentionSpec, q: torch.Tensor, k: torch.Tensor, _v: torch.Tensor, span: Any) -> torch.Tensor:
        pairs.append(int(spec.mask(span.positions(), torch.arange(k.shape[1])).sum()) * q.shape[0])
        return torch.zeros_like(q)

    monkeypatch.setattr("model.attention.attend", count)
    cache = decoder.new_cache()
    for ids in (random_ids(20), random_ids(1)):
        start = cache.length
        pairs.clear()
        with FlopCounterMode(display=False) as counter:
            decoder(torch.tensor(ids), cache)
        attention = 4 * config.d_head * sum(pairs)
        counted = counter.get_total_flops() + attention
        assert flops(config, start, cache.length) == counted


@pytest.mark.parametrize(("start", "stop"), [(0, 5), (0, 30), (3, 12), (20, 21), (6, 8)])
def test_pairs_of_a_sliding_window(start: int, stop: int) -> None:
    fields = {"layer_kinds": ("sliding", "full", "full"), "sliding_window": 7}
    windowed, full = made(**fields).decoder.config, made().decoder.config
    seen = sum(min(position + 1, 7) for position in range(start, stop))
    whole = sum(range(start + 1, stop + 1))
    per_pair = 4 * full.n_heads * full.d_head
    assert flops(full, start, stop) - flops(windowed, start, stop) == per_pair * (whole - seen)


def test_cache_bytes_are_those_of_the_cache() -> None:
    run = run_of(made(), random_ids(20))
    config = run.config
    assert kv_bytes_per_token(config, 4) * 20 == run.cache.bytes_used()
    assert kv_bytes_per_token(config, 4, n_kv_heads=1) * config.n_kv_heads == kv_bytes_per_token(config, 4)
    assert attention_bytes(config, 20, 4) == config.n_layers * config.n_heads * 20 * 20 * 4


def test_the_card_of_a_model_with_experts() -> None:
    model = made(**FIELDS["experts"])
    card = model_card(model, tokens=20)
    assert card.parameters == model.info.parameters and card.bytes_by_dtype["bfloat16"] == 2 * card.parameters
    idle = sum(w.numel() for path, w in model.decoder.named_parameters() if ".experts." in path) * 4 // 6
    assert card.active_parameters == active_parameters(model.decoder.config) == card.parameters - idle
    assert card.features.n_experts == 6 and card.features.expert_layers == (1, 2)
    assert card.features.rope is not None and card.features.rope.theta == 10_000
    assert card.kv_bytes_per_token_mha == 2 * card.kv_bytes_per_token == 4 * card.kv_bytes_per_token_mqa
    assert card.prefill_flops > 15 * card.decode_flops


def test_every_feature_of_a_plain_decoder_travels() -> None:
    card = model_card(made(layer_kinds=("sliding", "full", "sliding"), sliding_window=7))
    assert card.features.sliding_layers == (0, 2) and card.features.windows == (7,)
    assert isinstance(made().decoder, Decoder)
