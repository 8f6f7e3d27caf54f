"""What the model expected where the text is already there: prompt statistics, the distribution that foresaw a token."""

from __future__ import annotations

from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.run_requests import GetExpected, GetPromptStats
from model.views.prompt_stats import expected_reply, prompt_stats_reply


@handles(GetPromptStats)
def stats(context: EngineContext, _message: GetPromptStats, job: Job) -> Answer:
    """Of every prompt position; goes on where it was when a background request made way."""
    return prompt_stats_reply(context.need_run(), yield_point=job.yield_point, progress=job.progress)


@handles(GetExpected)
def expected(context: EngineContext, message: GetExpected, _job: Job) -> Answer:
    """At one position of the path."""
    return expected_reply(context.need_run(), message), {}
