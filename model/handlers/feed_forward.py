"""The feed-forward of a layer: neurons, experts, norms."""

from __future__ import annotations

from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.feed_forward_requests import GetNeurons, GetNorms, GetRouter
from model.views.feed_forward import neurons_reply, norms_reply, router_reply


@handles(GetNeurons)
def neurons(context: EngineContext, message: GetNeurons, _job: Job) -> Answer:
    """The strongest neurons of a token."""
    return neurons_reply(context.need_run(), message)


@handles(GetRouter)
def router(context: EngineContext, message: GetRouter, _job: Job) -> Answer:
    """Which experts tokens were sent to."""
    return router_reply(context.need_run(), message)


@handles(GetNorms)
def norms(context: EngineContext, message: GetNorms, job: Job) -> Answer:
    """How much each layer adds."""
    return norms_reply(context.need_run(), message, yield_point=job.yield_point)
