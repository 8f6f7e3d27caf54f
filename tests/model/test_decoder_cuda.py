"""The decoder on a GPU: the same numbers as the reference on the CPU, the same laws, nothing that assumes a CPU."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from model.transformer import Decoder
from tests.model.family_cases import CASES
from tests.model.reference import TOLERANCE, decoder_for, reference

pytestmark = pytest.mark.cuda

PROMPT = torch.randint(61, (24,), generator=torch.Generator().manual_seed(1))


@pytest.fixture(params=CASES)
def pair(request: pytest.FixtureRequest) -> tuple[Decoder, Tensor]:
    """A decoder on the GPU and the reference's logits."""
    case = CASES[request.param]
    judge = reference(case.reference, gain=case.gain, attention=case.attention, **case.fields)
    decoder = decoder_for(judge.config, judge.tensors).to("cuda")
    decoder.join_weights()
    return decoder, judge.run(PROMPT.tolist())[0].logits


def test_logits_are_the_references(pair: tuple[Decoder, Tensor]) -> None:
    decoder, theirs = pair
    logits = decoder(PROMPT.cuda(), decoder.new_cache(), logits="all")
    assert logits.device.type == "cuda"
    torch.testing.assert_close(logits.cpu(), theirs, atol=2 * TOLERANCE, rtol=0)


def test_chunks_and_steps_give_the_whole(pair: tuple[Decoder, Tensor]) -> None:
    decoder, _ = pair
    ids, n = PROMPT.cuda(), len(PROMPT)
    whole = decoder(ids, decoder.new_cache(), logits="all")
    cache = decoder.new_cache()
    cuts = [0, 9, n - 2, n - 1, n]
    parts = [decoder(ids[a:b], cache, logits="all", rope_length=n) for a, b in itertools.pairwise(cuts)]
    torch.testing.assert_close(torch.cat(parts), whole, atol=2 * TOLERANCE, rtol=0)
    assert cache.k(0).device.type == "cuda"


def test_listening_changes_no_bit(pair: tuple[Decoder, Tensor]) -> None:
    decoder, _ = pair
    ids = PROMPT.cuda()
    alone = decoder(ids, decoder.new_cache(), logits="all")
    with decoder.hooks({"*": lambda tensor, point: None}):
        heard = decoder(ids, decoder.new_cache(), logits="all")
    assert torch.equal(alone, heard)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_runs_and_is_near(dtype: torch.dtype) -> None:
    case = CASES["llama"]
    judge = reference(case.reference, gain=case.gain, **case.fields)
    decoder = decoder_for(judge.config, judge.tensors).to("cuda", dtype)
    logits = decoder(PROMPT.cuda(), decoder.new_cache(), logits="all").cpu()
    theirs = judge.run(PROMPT.tolist())[0].logits
    # three layers of rounding to 8 or 11 bits, on logits of size 10
    assert (logits - theirs).abs().mean() < (0.5 if dtype == torch.bfloat16 else 0.1)
