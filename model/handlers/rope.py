"""Positions: rotary embedding of a query and key."""

from __future__ import annotations

from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.rope_requests import GetRope
from model.views.rope import rope_reply


@handles(GetRope)
def rope(context: EngineContext, message: GetRope, _job: Job) -> Answer:
    """How positions act on one score."""
    return rope_reply(context.need_run(), message)
