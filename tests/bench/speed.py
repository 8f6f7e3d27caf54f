"""Decode and prefill: against the reference, against our own engine that captures nothing, against memory."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from model.run import Run
from model.views.prompt_stats import prompt_stats
from tests.bench.pairs import Outcome, clock, ratio
from tests.bench.subject import GREEDY, Subject
from tests.bench.table import Row


def reference_prefill(model: Any, ids: Tensor, **options: Any) -> Any:
    """One pass of the reference over (T,) ids with a new cache, logits of the last position only."""
    return model(ids[None], use_cache=True, logits_to_keep=1, **options)


def decode_reference(subject: Subject, pairs: int) -> Outcome:
    run, model = subject.run(subject.sizes.long), subject.reference
    token = subject.tensor([7])
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        past = reference_prefill(model, subject.tensor(run.prompt_ids)).past_key_values

        def ours() -> None:
            run.step(GREEDY)

        def theirs() -> None:
            model(
                token[None], cache=past, use_cache=True, logits_to_keep=1, output_attentions=True,
                output_hidden_states=True,
            )  # fmt: skip

        return ratio(ours, theirs, pairs, warm_up=2)


def prefill_reference(subject: Subject, pairs: int) -> Outcome:
    model, ids = subject.reference, subject.tensor(subject.ids(subject.sizes.long))
    model.set_attn_implementation("sdpa")
    runs: list[Run] = []

    def ours() -> None:
        runs[:] = [subject.run(subject.sizes.long)]

    def theirs() -> None:
        with torch.inference_mode():
            reference_prefill(model, ids)

    made = ratio(ours, theirs, pairs)
    after = clock(lambda: prompt_stats(runs[0]))
    return replace(made, note=f"statistics of the prompt's positions afterwards: {after:,.0f} ms")


def decode_captured(subject: Subject, pairs: int) -> Outcome:
    run = subject.run(subject.sizes.long)
    cache, decoder = subject.bare_cache(run), run.decoder
    token = subject.tensor([7])
    return ratio(lambda: run.step(GREEDY), lambda: decoder(token, cache), pairs, warm_up=3)


def prefill_captured(subject: Subject, pairs: int) -> Outcome:
    run = subject.run(subject.sizes.long)
    ids, decoder = subject.tensor(run.prompt_ids), run.decoder

    def bare() -> None:
        cache = decoder.new_cache()
        cache.reserve(ids.shape[0])
        parts = torch.split(ids, list(run.chunks))
        for index, part in enumerate(parts):
            decoder(part, cache, logits="last" if index == len(parts) - 1 else "none")

    return ratio(lambda: subject.run(ids.shape[0]), bare, pairs)


def decode_floor(subject: Subject, pairs: int) -> Outcome:
    run = subject.run(subject.sizes.short)
    cache, token = subject.bare_cache(run), subject.tensor([7])
    read = weight_reader(run)

    def decode() -> None:
        cache.truncate(run.length)
        run.decoder(token, cache)

    return ratio(decode, read, pairs, warm_up=3)


def weight_reader(run: Run) -> Callable[[], object]:
    """Reads every weight once, by the fastest of two sums."""
    weights = _joined(run)

    def add() -> float:
        return sum(float(weight.sum()) for weight in weights)

    def largest() -> float:
        return max(float(weight.amax()) for weight in weights)

    times = {work: statistics.median(clock(work) for _ in range(3)) for work in (add, largest)}
    return min(times, key=lambda work: times[work])


def _joined(run: Run) -> list[Tensor]:
    """Every weight once, those that lie side by side in memory as the one row they are."""
    whole: dict[int, Tensor] = {}
    for weight in run.decoder.parameters():
        memory = weight.untyped_storage()
        whole[memory.data_ptr()] = torch.empty(0, dtype=weight.dtype).set_(memory)
    return list(whole.values())


def half_decode(dtype: str) -> Callable[[Subject, int], Outcome]:
    def measure(subject: Subject, pairs: int) -> Outcome:
        half, full = subject.run(subject.sizes.medium, dtype), subject.run(subject.sizes.medium)
        return ratio(lambda: half.step(GREEDY), lambda: full.step(GREEDY), pairs, warm_up=3)

    return measure


def half_prefill(dtype: str) -> Callable[[Subject, int], Outcome]:
    def measure(subject: Subject, pairs: int) -> Outcome:
        tokens = subject.sizes.medium
        return ratio(lambda: subject.run(tokens, dtype), lambda: subject.run(tokens), pairs)

    return measure


HALF_DECODE = (
    "one-row products alone take 0.57 of float32's time where it reads weights near the memory's own speed; attention, "
    "norms, hooks and sampling, 9 ms, take as long in any dtype"
)

ROWS = (
    Row(
        name="decode-reference",
        what="decode at 1,024 tokens, everything captured, float32",
        over="transformers eager with attentions and hidden states",
        bound=0.5,
        measure=decode_reference,
        pairs=15,
        needs_reference=True,
    ),
    Row(
        name="prefill-reference",
        what="prefill of 1,024 tokens, captured, float32",
        over="transformers SDPA capturing nothing",
        bound=1.0,
        measure=prefill_reference,
        needs_reference=True,
    ),
    Row(
        name="decode-captured",
        what="decode at 1,024 tokens, captured and sampled",
        over="our own decoder capturing nothing",
        bound=1.05,
        measure=decode_captured,
        pairs=60,
        why="choosing the token, 61 hooks and their rows take 2 ms, whatever the weights take",
    ),
    Row(
        name="prefill-captured",
        what="prefill of 1,024 tokens, captured",
        over="our own decoder capturing nothing",
        bound=1.10,
        measure=prefill_captured,
    ),
    Row(
        name="decode-floor",
        what="decode at 64 tokens, float32",
        over="reading all weights once",
        bound=2.0,
        measure=decode_floor,
        pairs=30,
    ),
    *(
        Row(
            name=f"{work}-{dtype}",
            what=f"{work} {'at' if work == 'decode' else 'of'} 512 tokens in {dtype}",
            over="the same in float32",
            bound=bound,
            measure=made(dtype),
            pairs=pairs,
            why=HALF_DECODE if work == "decode" else "",
        )
        for dtype in ("bfloat16", "float16")
        for work, bound, made, pairs in (("decode", 0.6, half_decode, 20), ("prefill", 1.3, half_prefill, 4))
    ),
)
