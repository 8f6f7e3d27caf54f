"""The model as a whole."""

from __future__ import annotations

from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.card_requests import GetModelCard
from model.views.model_card import model_card


@handles(GetModelCard)
def card(context: EngineContext, message: GetModelCard, _job: Job) -> Answer:
    """Parts, parameters, costs."""
    tokens = message.tokens or (context.run.n_prompt if context.run is not None else 0)
    return model_card(context.need_model(), tokens=tokens if tokens > 0 else 1024), {}
