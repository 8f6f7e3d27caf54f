"""The next token's distribution under any settings, from stored logits, on the light thread."""

from __future__ import annotations

import numpy as np

from model import sampling
from model.candidates import candidates
from model.handler_registry import Answer, EngineContext, handles
from model.jobs import Job
from model.protocol.run_requests import DistributionReply, GetDistribution
from model.protocol.values import Candidate
from model.vocabulary import Vocabulary

MAX_CDF, MAX_CANDIDATES, MAX_FOUND = 4096, 1000, 20
NOBODY = Candidate(rank=-1, id=-1, piece="", logit=float("nan"), p_raw=float("nan"), p=float("nan"))


@handles(GetDistribution)
def distribution(context: EngineContext, message: GetDistribution, _job: Job) -> Answer:
    """What `settings` make of a node's logits; without any distribution when those are NaN."""
    run = context.need_run()
    run.tree.check(message.node)
    order, settings, tokenizer = run.order(message.node), message.settings, run.model.tokenizer
    draw = run.draw(message.node, settings.seed)
    if order.bad or not order.n:
        empty = DistributionReply(
            node=message.node, candidates=(), stages=(), draw=draw, would_pick=NOBODY, entropy_raw=float("nan"),
            entropy=float("nan"), kept=0, nan_logits=order.bad or order.values.size,
        )  # fmt: skip
        return empty, {"cdf": np.empty(0), "cdf_tokens": np.empty(0, np.int64)}
    made = sampling.apply(order, settings, run.ids_before(message.node))
    place = sampling.place(made, draw)
    picked = int(made.ids(place + 1)[place])
    top = [int(token_id) for token_id in order.ids(min(max(message.top, 1), MAX_CANDIDATES))]
    found = Vocabulary.of(tokenizer).find(message.search, order, MAX_FOUND) if message.search else []
    reply = DistributionReply(
        node=message.node,
        candidates=candidates(made, tokenizer, top if picked in top else [*top, picked]),
        stages=made.stages,
        draw=draw,
        would_pick=candidates(made, tokenizer, [picked])[0],
        entropy_raw=order.entropy,
        entropy=made.entropy,
        kept=made.kept,
        found=candidates(made, tokenizer, found),
        place=place,
    )
    tokens = made.points(MAX_CDF, place)
    return reply, {"cdf": made.cdf()[tokens - 1], "cdf_tokens": tokens}
