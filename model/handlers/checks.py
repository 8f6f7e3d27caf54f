"""The self-check: the numbers of the run there is, proved against the model's own."""

from __future__ import annotations

from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.engine_requests import SelfCheck, SelfCheckReply
from model.views.self_check import self_check


@handles(SelfCheck)
def check(context: EngineContext, message: SelfCheck, job: Job) -> Answer:
    """Every check that the run allows, or the quick ones."""
    run = context.need_run()
    rows = self_check(run, quick=message.quick, yield_point=job.yield_point, progress=job.progress)
    return SelfCheckReply(rows=rows), {}
