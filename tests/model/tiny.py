"""Runs on tiny random models, for the tests of the run, the store and the views."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from model.protocol.values import ModelInfo
from model.run import Run
from model.tokenizer import IdsTokenizer
from model.transformer import Decoder
from tests.model import reference

if TYPE_CHECKING:
    from model.loading import LoadedModel

LLAMA: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}


def random_ids(n: int, seed: int = 0) -> list[int]:
    """Token ids below the tiny models' vocabulary."""
    return [int(token) for token in np.random.default_rng(seed).integers(0, reference.D_VOCAB, n)]


@lru_cache(maxsize=32)
def _decoder(name: str, fields: tuple[tuple[str, Any], ...]) -> tuple[reference.Reference, Decoder]:
    judge = reference.reference(name, **dict(fields))
    return judge, reference.decoder_for(judge.config, judge.tensors)


def llama(**fields: Any) -> tuple[reference.Reference, LoadedModel]:
    """The reference and our loaded model of a tiny random Llama."""
    return model_of("Llama", **(LLAMA | fields))


def model_of(name: str, **fields: Any) -> tuple[reference.Reference, LoadedModel]:
    """The reference {name}ForCausalLM and our loaded model with the same weights."""
    torch.set_num_threads(1)
    judge, decoder = _decoder(name, tuple(sorted(fields.items())))
    return judge, loaded(decoder)


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
    return cast("LoadedModel", SimpleNamespace(decoder=decoder, tokenizer=tokenizer, info=info, warnings=()))


def run_of(model: LoadedModel, ids: Sequence[int], **options: Any) -> Run:
    """A run on `ids`; `budget_bytes` bounds it, everything else goes to prefill."""
    run = Run(model, budget_bytes=options.pop("budget_bytes", 1 << 30))
    run.prefill(ids, **options)
    return run
