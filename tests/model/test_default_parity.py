"""The default model's numbers against transformers, which opens the same GGUF: logits, attention, q and k, text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from model.loading import LoadedModel, open_model
from model.protocol.attention_requests import HeadView
from model.protocol.values import SamplerSettings
from model.run import Run
from model.views.attention import matrix
from tests.model.reference import Reference

EXAMPLE = "The animal didn't cross the street because it was too tired"
GREEDY_TOKENS = 64
RELATIVE = 1e-3  # of the largest logit: float32 sums of 576 to 1,536 terms in another order, through 30 layers
CLOSE = 1e-3  # absolute, on q and k of size 1 to 30 and on probabilities


@pytest.fixture(scope="module")
def opened(default_model_path: Path) -> LoadedModel:
    assert default_model_path.exists()
    return open_model(dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def judge(default_model_path: Path) -> Reference:
    model = transformers.AutoModelForCausalLM.from_pretrained(
        default_model_path.parent, gguf_file=default_model_path.name, dtype=torch.float32, attn_implementation="eager"
    )
    return Reference(model=model.eval(), config={}, tensors={})


@pytest.fixture(scope="module")
def judged(judge: Reference, opened: LoadedModel) -> Any:
    return judge.run(opened.tokenizer.encode(EXAMPLE))[0]


@pytest.fixture(scope="module")
def run(opened: LoadedModel) -> Run:
    run = Run(opened)
    run.prefill(EXAMPLE)
    return run


def test_logits_of_every_position(run: Run, opened: LoadedModel, judged: Any) -> None:
    logits = opened.decoder(torch.tensor(run.prompt_ids), opened.decoder.new_cache(), logits="all")
    scale = judged.logits.abs().max()
    assert float((logits - judged.logits).abs().max() / scale) < RELATIVE
    kept = torch.from_numpy(run.logits(run.n_prompt - 1).copy())
    assert float((kept - judged.logits[-1]).abs().max() / scale) < RELATIVE


def test_rotated_queries_and_keys_of_every_layer(run: Run, judged: Any) -> None:
    for layer in range(run.decoder.config.n_layers):
        q = run.store.rows("q", layer)
        assert q is not None
        assert float((q - judged.q[layer]).abs().max()) < CLOSE, layer
        assert float((run.k(layer) - judged.k[layer]).abs().max()) < CLOSE, layer


def test_attention_of_every_head(run: Run, judged: Any) -> None:
    config = run.decoder.config
    for layer in range(config.n_layers):
        for head in range(config.n_heads):
            tile = matrix(run, HeadView(layer=layer, head=head))
            ours = np.nan_to_num(tile.values)
            assert float(np.abs(ours - judged.patterns[layer][head].numpy()).max()) < CLOSE, (layer, head)


def test_the_view_the_first_start_opens_with(run: Run) -> None:
    tile = matrix(run, HeadView(layer=13, head=8))
    assert [run.model.tokenizer.pieces(run.prompt_ids)[at] for at in (8, 1)] == ["·it", "·animal"]
    assert tile.values[8, 1] == pytest.approx(0.75, abs=1e-3)


def test_greedy_text_over_64_tokens(opened: LoadedModel, judge: Reference) -> None:
    run = Run(opened)
    run.prefill(EXAMPLE)
    greedy = SamplerSettings(temperature=0)
    for _ in range(GREEDY_TOKENS):
        run.step(greedy)
    with torch.inference_mode():
        theirs = judge.model.generate(
            torch.tensor([run.prompt_ids]), do_sample=False, max_new_tokens=GREEDY_TOKENS, min_new_tokens=GREEDY_TOKENS
        )
    assert list(run.ids) == theirs[0].tolist()
