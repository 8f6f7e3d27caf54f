"""Runs on tiny random models, for the tests of the run, the store and the views."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from model.config import DecoderConfig
from model.loading import LoadedModel
from model.protocol.values import ModelInfo
from model.rope import RopeSpec
from model.run import Run
from model.tokenizer import IdsTokenizer
from model.transformer import Decoder
from tests.model import reference

LLAMA: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}

OWN: dict[str, Any] = {
    "family": "own",
    "d_vocab": reference.D_VOCAB,
    "d_model": 32,
    "n_layers": 3,
    "n_heads": 4,
    "n_kv_heads": 2,
    "d_head": 8,
    "d_mlp": 48,
    "n_ctx": 256,
    "tied_head": False,
    "rope": RopeSpec(theta=10_000.0, dim=8),
}


def random_ids(n: int, seed: int = 0) -> list[int]:
    """Token ids below the tiny models' vocabulary."""
    return [int(token) for token in np.random.default_rng(seed).integers(0, reference.D_VOCAB, n)]


@lru_cache(maxsize=32)
def _decoder(name: str, fields: str) -> tuple[reference.Reference, Decoder]:
    judge = reference.reference(name, **json.loads(fields))
    return judge, reference.decoder_for(judge.config, judge.tensors)


def llama(**fields: Any) -> tuple[reference.Reference, LoadedModel]:
    """The reference and our loaded model of a tiny random Llama."""
    return model_of("Llama", **(LLAMA | fields))


def model_of(name: str, **fields: Any) -> tuple[reference.Reference, LoadedModel]:
    """The reference {name}ForCausalLM and our loaded model with the same weights."""
    torch.set_num_threads(1)
    judge, decoder = _decoder(name, json.dumps(fields, sort_keys=True))
    return judge, loaded(decoder)


def made(**fields: Any) -> LoadedModel:
    """A model of any configuration with random weights, for what needs no reference."""
    torch.set_num_threads(1)
    config = DecoderConfig(**(OWN | fields))
    decoder = Decoder(config)
    generator = torch.Generator().manual_seed(0)
    state = {}
    for name, weight in decoder.state_dict().items():
        values = torch.randn(weight.shape, generator=generator)
        if weight.ndim == 1:
            state[name] = values * 0.3 + (0.0 if name.endswith("bias") else 1.0)
        else:
            state[name] = values * (0.7 if name.startswith(("embed", "lm_head")) else 1.6 * weight.shape[1] ** -0.5)
    return loaded(reference.assemble(config, state))


def loaded(decoder: Decoder) -> LoadedModel:
    """A decoder as opening a model gives it, with ids for text."""
    config = decoder.config
    info = ModelInfo(
        name="tiny",
        family=config.family,
        source="tiny",
        sha256="",
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads,
        d_model=config.d_model,
        d_head=config.d_head,
        d_mlp=config.d_mlp,
        d_vocab=config.d_vocab,
        n_ctx=config.n_ctx,
        dtype=str(decoder.dtype).removeprefix("torch."),
        device=str(decoder.device),
        parameters=sum(weight.numel() for weight in decoder.parameters()),
        weight_bytes=sum(weight.nbytes for weight in decoder.parameters()),
        positions=config.positions,
        attention_kind=config.attention_kind,
        has_tokenizer=False,
    )
    tokenizer = IdsTokenizer(d_vocab=config.d_vocab)
    return LoadedModel(decoder=decoder, tokenizer=tokenizer, info=info)


def run_of(model: LoadedModel, ids: Sequence[int], **options: Any) -> Run:
    """A run on `ids`; `budget_bytes` bounds it, everything else goes to prefill."""
    run = Run(model, budget_bytes=options.pop("budget_bytes", 1 << 30))
    run.prefill(ids, **options)
    return run
