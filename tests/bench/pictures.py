"""Pictures of attention against the bare products, and a slider's move against one softmax and one sort."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from statistics import median
from typing import get_args
from unittest.mock import Mock

import numpy as np
import torch
from torch import Tensor

from model import sampling
from model.handler_registry import EngineContext
from model.handlers.sampling import distribution
from model.protocol.attention_requests import GetGrid, HeadView, Stage
from model.protocol.run_requests import GetDistribution
from model.protocol.values import SamplerSettings
from model.recompute import queries
from model.run import Run
from model.tokenizer import IdsTokenizer
from model.views.attention import matrix
from model.views.head_grid import grid_layer
from tests.bench.pairs import Outcome, clock, ratio
from tests.bench.subject import SEED, Subject
from tests.bench.table import Row

THUMBNAIL = 64


def heads_of(run: Run, layer: int) -> Iterator[tuple[Tensor, Tensor]]:
    """q (T, D) and the transposed k (D, S) of every head."""
    q, k = queries(run, layer), run.k(layer)
    group = q.shape[0] // k.shape[0]
    return ((q[head], k[head // group].T) for head in range(q.shape[0]))


def head(stage: Stage) -> Callable[[Subject, int], Outcome]:
    def measure(subject: Subject, pairs: int) -> Outcome:
        run, pixels = subject.whole, (subject.sizes.picture, subject.sizes.picture)
        layer = run.config.n_layers // 2
        view = HeadView(layer=layer, head=0, stage=stage)
        q, k = next(heads_of(run, layer))
        out = torch.empty(run.length, run.length, device=run.device)

        def bare() -> None:
            with torch.inference_mode():
                torch.mm(q, k, out=out)

        return ratio(lambda: matrix(run, view, pixels=pixels), bare, pairs, warm_up=2)

    return measure


def grid(subject: Subject, pairs: int) -> Outcome:
    run = subject.run(subject.sizes.long)
    out = torch.empty(run.length, run.length, device=run.device)

    def bare() -> None:
        with torch.inference_mode():
            for layer in range(run.config.n_layers):
                for q, k in heads_of(run, layer):
                    torch.mm(q, k, out=out)

    return ratio(lambda: draw_grid(run), bare, pairs)


def draw_grid(run: Run) -> list[float]:
    """Every layer's thumbnails; how long each took, ms."""
    message = GetGrid(layers=tuple(range(run.config.n_layers)), size=THUMBNAIL)
    return [clock(lambda at=layer: grid_layer(run, message, at)) for layer in message.layers]  # type: ignore[misc]


def grid_first(subject: Subject, repeats: int) -> Outcome:
    run = subject.run(subject.sizes.long)
    draw_grid(run)
    times = [draw_grid(run) for _ in range(repeats)]
    return Outcome.of([layers[0] for layers in times], [sum(layers) for layers in times])


def sampler_preview(subject: Subject, pairs: int) -> Outcome:
    """The engine's own answer to a moved slider, every move with settings of its own."""
    size = subject.sizes.vocabulary
    logits = np.random.default_rng(SEED).normal(0, 3, size).astype(np.float32)
    order = sampling.order_of(logits)
    run = Mock(**{"order.return_value": order, "draw.return_value": 0.7, "ids_before.return_value": ()})
    run.model.tokenizer = IdsTokenizer(d_vocab=size)
    context = EngineContext(model=run.model, run=run)
    values = torch.from_numpy(logits)
    moves = cycle(slider_moves())

    def ours() -> None:
        distribution(context, GetDistribution(node=0, settings=next(moves)), Mock())

    def theirs() -> None:
        values.softmax(-1)
        values.sort(descending=True)

    made = ratio(ours, theirs, pairs, warm_up=3)
    numpy_sort = median(clock(lambda: np.argsort(-logits)) for _ in range(5))
    return replace(made, note=f"numpy sorts in {numpy_sort:.2g} ms")


def slider_moves() -> list[SamplerSettings]:
    """A temperature slider on its way with the usual filters on, then one of top-p without."""
    hotter = [SamplerSettings(temperature=0.4 + step / 20, top_k=50, top_p=0.95) for step in range(20)]
    return hotter + [SamplerSettings(temperature=0.8, top_p=0.5 + step / 50) for step in range(20)]


ROWS = (
    *(
        Row(
            name=f"head-{stage}",
            what=f"one head of 4,096 × 4,096 to 1,024² pixels, {stage}",
            over="the bare q·kᵀ product",
            bound=1.5,
            measure=head(stage),
            pairs=15,
        )
        for stage in get_args(Stage)
    ),
    Row(
        name="grid",
        what="grid of all heads at 1,024 tokens",
        over="the bare q·kᵀ products",
        bound=2.0,
        measure=grid,
        pairs=7,
    ),
    Row(
        name="grid-first",
        what="first layer of that grid",
        over="the whole of it",
        bound=1 / 20,
        measure=grid_first,
        pairs=7,
    ),
    Row(
        name="sampler-preview",
        on_gpu=False,
        what="slider move at 151,936 tokens",
        over="one softmax and one full sort",
        bound=0.3,
        measure=sampler_preview,
        pairs=60,
    ),
)
