"""The logit lens."""

from __future__ import annotations

from model.handlers.registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.lens_requests import GetAttribution, GetLens, GetRankPath
from model.views.lens import attribution_reply, lens_layers, lens_part, lens_reply, lens_rows, rank_path_reply


@handles(GetLens)
def lens(context: EngineContext, message: GetLens, job: Job) -> Answer:
    """Every layer's top tokens, a layer at a time."""
    run = context.need_run()
    rows = lens_rows(run, message)
    for layer in lens_layers(run, message):
        job.yield_point()
        job.part(*lens_part(run, layer, rows))
    return lens_reply(run, message), {}


@handles(GetRankPath)
def rank_path(context: EngineContext, message: GetRankPath, job: Job) -> Answer:
    """A token's rank after each layer."""
    return rank_path_reply(context.need_run(), message, yield_point=job.yield_point)


@handles(GetAttribution)
def attribution(context: EngineContext, message: GetAttribution, job: Job) -> Answer:
    """What each block adds to a token's logit."""
    return attribution_reply(context.need_run(), message, yield_point=job.yield_point)
