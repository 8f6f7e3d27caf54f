"""The lens: top tokens of every depth, a token's way up, what each part adds to it."""

from __future__ import annotations

from model.device import Stopwatch
from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.lens_requests import GetLens, GetLensPath, GetLensTerms, LensReply
from model.views.lens import lens_parts, path_reply, terms_reply


@handles(GetLens)
def lens(context: EngineContext, message: GetLens, job: Job) -> Answer:
    """A depth at a time."""
    run = context.need_run()
    watch = Stopwatch(run.device)
    for part, arrays in lens_parts(run, message, yield_point=job.yield_point):
        job.part(part, arrays)
    ms = watch.ms() - job.away_ms
    return LensReply(run_id=run.id, length=run.length, ms=ms), {}


@handles(GetLensPath)
def path(context: EngineContext, message: GetLensPath, job: Job) -> Answer:
    """A token's rank at every depth."""
    return path_reply(context.need_run(), message, yield_point=job.yield_point)


@handles(GetLensTerms)
def terms(context: EngineContext, message: GetLensTerms, job: Job) -> Answer:
    """A logit as a sum."""
    return terms_reply(context.need_run(), message, yield_point=job.yield_point)
