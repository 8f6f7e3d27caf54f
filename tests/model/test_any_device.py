"""Nothing assumes a CPU: the decoder, a run and every view on a device that is not one give the CPU's numbers, and a
decode step waits for it once. The device is made of the CPU (tests/model/pretend_device.py); a real GPU has tests of
its own, marked `cuda`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from model.handler_registry import HANDLERS, EngineContext
from model.loading import LoadedModel, open_model
from model.protocol.attention_requests import (
    GetCell,
    GetColumn,
    GetEntropy,
    GetGrid,
    GetMatrix,
    GetMetrics,
    GetRow,
    HeadView,
)
from model.protocol.engine_requests import SelfCheck
from model.protocol.feed_forward_requests import GetNeurons, GetNorms, GetRouter
from model.protocol.kv_requests import GetKv, GetKvContents, MeasureRecompute
from model.protocol.lens_requests import GetLens, GetLensPath, GetLensTerms
from model.protocol.rope_requests import GetRope
from model.protocol.run_requests import GetDistribution, GetExpected, GetPromptStats
from model.protocol.values import SamplerSettings
from model.protocol.walk_requests import GetWalk
from model.protocol.wire import Request
from model.run import Run
from model.transformer import Decoder
from tests.model import pretend_device
from tests.model.checkpoint import files
from tests.model.family_cases import CASES
from tests.model.reference import TOLERANCE, decoder_for, reference
from tests.model.tiny import loaded, random_ids, run_of

PROMPT = 24
GREEDY = SamplerSettings(temperature=0.0)
GIVEN_ANEW = {"phi3, longrope switching while it decodes": 1, "llama, dynamic scaling": 1}
"""Frequencies that change with the length reach the device when they do."""


def decoder_of(name: str) -> Decoder:
    case = CASES[name]
    judge = reference(case.reference, gain=case.gain, attention=case.attention, **case.fields)
    return decoder_for(judge.config, judge.tensors)


@pytest.mark.parametrize("name", CASES)
def test_the_decoder_gives_the_cpus_logits_and_a_step_reads_nothing_back(name: str) -> None:
    ids = torch.tensor(random_ids(PROMPT))
    here, there = decoder_of(name), decoder_of(name)
    here.join_weights()
    cache = here.new_cache()
    expected = torch.cat([here(ids, cache, logits="all"), here(ids[:1], cache)])
    with pretend_device.traffic() as traffic:
        pretend_device.move(there)
        there.join_weights()
        on_device, cache = ids.to(there.device), there.new_cache()
        whole = there(on_device, cache, logits="all")
        traffic.clear()
        step = there(on_device[:1], cache)
        assert (len(traffic.sent), traffic.fetched, traffic.waits) == (GIVEN_ANEW.get(name, 0), [], [])
        got = torch.cat([whole, step]).cpu()
    torch.testing.assert_close(got, expected, atol=2 * TOLERANCE, rtol=0)


RUNS = ("llama", "gpt2", "bloom, heads not a power of two", "gemma3_text", "mixtral, window")


def walked(model: LoadedModel, *, step: Callable[[Run], object] | None = None) -> Run:
    """A run with a prompt, steps, and a branch that was left again."""
    run = run_of(model, random_ids(PROMPT))
    run.generate(3, GREEDY, stop_at_end_of_text=False)
    if step is not None:
        step(run)
    first, last = run.path[0], run.path[-1]
    run.branch(first, 5, GREEDY)
    run.generate(2, GREEDY, stop_at_end_of_text=False)
    assert run.seek(last) == 0
    return run


@pytest.mark.parametrize("family", RUNS)
def test_a_step_sends_one_token_and_fetches_its_logits(family: str) -> None:
    with pretend_device.traffic() as traffic:
        decoder = decoder_of(family)
        pretend_device.move(decoder)
        decoder.join_weights()

        def step(run: Run) -> None:
            traffic.clear()
            run.step(GREEDY)
            assert (traffic.sent, traffic.fetched, traffic.waits) == ([(1,)], [(run.config.d_vocab,)], [])

        run = walked(loaded(decoder), step=step)
        assert run.resid(1).device == run.k(0).device == pretend_device.device()
        assert all(held.device.type == "cpu" for segment in run.store._segments for held in segment.tensors.values())
        assert all(isinstance(logits, np.ndarray) for logits in run.store.logits.values())


def requests(run: Run) -> list[Request]:
    """One of every view, of every kind of answer it has."""
    views = [HeadView(layer=1, head=2, stage=stage) for stage in ("raw", "scores", "masked", "weights", "weighted")]
    views += [HeadView(layer=1, head="mean"), HeadView(layer="all", head="max")]
    places = [("embed", "embedding"), ("block", "q"), ("head", "logits")]
    asked: list[Request] = [
        *(GetMatrix(view=view) for view in views),
        GetMatrix(view=views[0], height=9, width=7, ignore_first=True),
        GetMatrix(view=views[3], height=9, width=7, ignore_first=True, scale="sqrt"),
        GetCell(view=views[3], query=9, key=4),
        GetRow(view=views[3], query=9),
        GetColumn(view=views[3], key=4),
        GetEntropy(view=views[3]),
        GetGrid(layers=(0, 1), size=8),
        GetMetrics(),
        GetNeurons(layer=1, position=9),
        GetNorms(position=9),
        GetKv(),
        GetKvContents(layer=1, kv_head=0),
        GetKvContents(layer=1, kv_head=0, what="k_unrotated"),
        MeasureRecompute(),
        GetLens(positions=(2, 20), depths=(0, 2)),
        GetLensPath(position=9),
        GetLensTerms(position=9),
        GetDistribution(node=run.current, settings=GREEDY),
        GetPromptStats(),
        GetExpected(position=9),
        *(GetWalk(place=place, position=9, layer=1, head=1) for place, _ in places),  # type: ignore[arg-type]
        SelfCheck(),
    ]
    if run.config.moe is not None:
        asked.append(GetRouter(layer=1))
    if run.config.rope_of(1) is not None:
        asked.append(GetRope(layer=1, head=2, query=9, key=4))
    return asked


def answers(context: EngineContext, message: Request) -> list[Any]:
    """The reply and the arrays, parts included."""
    parts: list[Any] = []
    job = Mock(message=message, arrays={}, away_ms=0.0)
    job.part.side_effect = lambda part, arrays=None: parts.append((part, dict(arrays or {})))
    reply, arrays = HANDLERS[type(message)](context, message, job)
    return [*parts, (reply, dict(arrays))]


@pytest.mark.parametrize("family", RUNS)
def test_every_view_gives_the_cpus_numbers(family: str) -> None:
    importlib.import_module("model.handlers")
    model = loaded(decoder_of(family))
    model.decoder.join_weights()
    here = EngineContext(model=model, run=walked(model))
    assert here.run is not None
    expected = [answers(here, message) for message in requests(here.run)]
    with pretend_device.traffic():
        decoder = decoder_of(family)
        pretend_device.move(decoder)
        decoder.join_weights()
        model = loaded(decoder)
        there = EngineContext(model=model, run=walked(model))
        assert there.run is not None
        for message, wanted in zip(requests(there.run), expected, strict=True):
            got = answers(there, message)
            assert len(got) == len(wanted), message
            for (_, arrays), (_, wanted_arrays) in zip(got, wanted, strict=True):
                assert arrays.keys() == wanted_arrays.keys()
                for name, array in arrays.items():
                    loose = 1 if array.dtype == np.uint8 else 1e-3  # a colour may round to its neighbour
                    np.testing.assert_allclose(
                        array.astype(np.float64), wanted_arrays[name].astype(np.float64), atol=loose, rtol=1e-3,
                        err_msg=f"{type(message).__name__} {name}",
                    )  # fmt: skip


@pytest.mark.parametrize("form", ["folder", "gguf"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_is_opened_there_with_the_same_numbers(
    form: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = files.folder(tmp_path / "tiny") if form == "folder" else files.tiny_gguf(tmp_path / "tiny.gguf")
    here = open_model(made, device="cpu", dtype=dtype).decoder.state_dict()
    monkeypatch.setattr("model.loading.select_device", lambda name: pretend_device.device())
    monkeypatch.setattr("model.checkpoint.weights._STREAMED_NUMBERS", 1000)
    with pretend_device.traffic():
        model = open_model(made, device=pretend_device.NAME, dtype=dtype)
        assert model.info.device == "pretend:0"
        there = model.decoder.state_dict()
        assert there.keys() == here.keys()
        for name, tensor in there.items():
            assert tensor.device == pretend_device.device() and tensor.dtype == here[name].dtype
            assert torch.equal(tensor.cpu(), here[name])
