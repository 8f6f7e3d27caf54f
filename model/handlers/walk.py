"""The block walk: what one token goes through."""

from __future__ import annotations

from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.walk_requests import GetWalk, GetWalkTensor
from model.views.block_walk import walk_reply
from model.views.walk_parts import tensor_reply


@handles(GetWalk)
def walk(context: EngineContext, message: GetWalk, job: Job) -> Answer:
    """The operations of one place, with their results."""
    return walk_reply(context.need_run(), message, yield_point=job.yield_point)


@handles(GetWalkTensor)
def tensor(context: EngineContext, message: GetWalkTensor, job: Job) -> Answer:
    """The matrix behind an operation."""
    return tensor_reply(context.need_run(), message, yield_point=job.yield_point, progress=job.progress)
