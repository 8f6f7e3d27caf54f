"""The KV cache: bytes, contents, what it saves."""

from __future__ import annotations

from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.kv_requests import GetKv, GetKvContents, MeasureRecompute
from model.views.kv import kv_contents_reply, kv_reply, recompute_reply


@handles(GetKv)
def kv(context: EngineContext, _message: GetKv, _job: Job) -> Answer:
    """Bytes by position and layer."""
    return kv_reply(context.need_run())


@handles(GetKvContents)
def contents(context: EngineContext, message: GetKvContents, _job: Job) -> Answer:
    """K or V of a KV head as pixels."""
    return kv_contents_reply(context.need_run(), message)


@handles(MeasureRecompute)
def recompute(context: EngineContext, _message: MeasureRecompute, job: Job) -> Answer:
    """The path once more, without a cache."""
    return recompute_reply(context.need_run(), yield_point=job.yield_point, progress=job.progress), {}
