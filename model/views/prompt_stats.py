"""What the model expected at every prompt position, from the final residual stream, in blocks of rows.

Computed after the prefill and only when somebody looks: the head over a long prompt costs a good part of the prefill.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.candidates import candidates
from model.device import all_to_host, kept, to_device, to_host
from model.errors import BadValueError
from model.prefill import ProgressReport
from model.protocol.framing import Array
from model.protocol.run_requests import ExpectedReply, GetExpected, PromptStatsReply
from model.protocol.values import SamplerSettings
from model.run import Run
from model.sampling import Order, apply, order_of
from model.views.selection import YieldPoint, no_yield

BLOCK_LOGITS = 1 << 22
"""Logits held at a time (16 MiB in float32)."""

TOP = 10
KEPT = "prompt_stats"
"""What the statistics are called among what a run keeps for its views."""
PLAIN = SamplerSettings(temperature=1.0, top_k=0, top_p=1.0)


@dataclass(kw_only=True, eq=False)
class PromptStats:
    """Statistics of the first `done` prompt positions; the rest is not filled in yet.

    `logprob` (T,): natural log of the probability of token t given those before, NaN at 0. `rank` (T,): its place among
    all tokens, -1 at 0. `entropy` (T,): nats, of the distribution after position t.
    """

    logprob: NDArray[np.float32]
    entropy: NDArray[np.float32]
    rank: NDArray[np.int32]
    done: int = 0

    @classmethod
    def empty(cls, n: int) -> PromptStats:
        """Nothing known of `n` positions."""
        return cls(
            logprob=np.full(n, np.nan, np.float32),
            entropy=np.full(n, np.nan, np.float32),
            rank=np.full(n, -1, np.int32),
        )

    @property
    def mean_cross_entropy(self) -> float:
        """Mean of -logprob over the positions that are known, from 1 on; NaN without any."""
        known = self.logprob[1 : self.done].astype(np.float64)
        return float(-known.mean()) if known.size else math.nan


@torch.inference_mode()
def prompt_stats(
    run: Run, *, yield_point: YieldPoint = no_yield, progress: ProgressReport | None = None
) -> PromptStats:
    """The statistics of the whole prompt. What a yield point interrupts is kept with the run and gone on with later."""
    stats = run.derived.get(KEPT)
    if not isinstance(stats, PromptStats) or len(stats.logprob) != run.n_prompt:
        stats = run.derived[KEPT] = PromptStats.empty(run.n_prompt)
    if stats.done == run.n_prompt:
        return stats
    ids = to_device(torch.tensor(run.prompt_ids), run.device)
    resid = run.resid(run.config.n_layers)
    at_once = max(1, BLOCK_LOGITS // run.config.d_vocab)
    while stats.done < run.n_prompt:
        if progress is not None:
            progress("prompt statistics", stats.done, run.n_prompt, "tokens")
        yield_point()
        first, last = stats.done, min(stats.done + at_once, run.n_prompt)
        logits = run.decoder.unembed(resid[first:last])  # (T, V)
        log_p = logits.log_softmax(-1)  # (T, V)
        entropy = _entropy(log_p)
        n_next = min(last + 1, run.n_prompt) - (first + 1)  # the last position foresees no prompt token
        if n_next > 0:
            targets = ids[first + 1 : first + 1 + n_next]  # (n,)
            entropy, own, ranks = all_to_host(entropy, _of(log_p[:n_next], targets), _ranks(logits[:n_next], targets))
            stats.logprob[first + 1 : first + 1 + n_next] = own.numpy()
            stats.rank[first + 1 : first + 1 + n_next] = ranks.numpy()
        stats.entropy[first:last] = to_host(entropy).numpy()
        stats.done = last
    return stats


def _entropy(log_p: Tensor) -> Tensor:
    """-Σ p log p of each row (T, V) → (T,), where p = 0 counts nothing."""
    p = log_p.exp()
    return -(p * log_p.masked_fill(p == 0, 0.0)).sum(-1)


def _of(rows: Tensor, ids: Tensor) -> Tensor:
    return rows.gather(1, ids[:, None])[:, 0]


def _ranks(logits: Tensor, ids: Tensor) -> Tensor:
    """How many tokens come before `ids` (n,) in rows (n, V): those of larger logit, and of the same and smaller id."""
    own = _of(logits, ids)[:, None]  # (n, 1)
    tied = (logits == own) & (torch.arange(logits.shape[1], device=logits.device) < ids[:, None])  # (n, V)
    return ((logits > own) | tied).sum(-1)


def prompt_stats_reply(
    run: Run, *, yield_point: YieldPoint = no_yield, progress: ProgressReport | None = None
) -> tuple[PromptStatsReply, dict[str, Array]]:
    """The answer to GetPromptStats."""
    stats = prompt_stats(run, yield_point=yield_point, progress=progress)
    mean = stats.mean_cross_entropy
    reply = PromptStatsReply(
        first=0,
        last=stats.done - 1,
        mean_cross_entropy=mean,
        perplexity=math.exp(mean) if mean < 700 else math.inf if mean >= 700 else math.nan,
        complete=stats.done == run.n_prompt,
    )
    return reply, {"logprob": stats.logprob, "entropy": stats.entropy, "rank": stats.rank}


@torch.inference_mode()
def order_after(run: Run, position: int) -> Order:
    """The candidates of the token after `position` of the path: of stored logits, or of the head run on the residual
    stream there."""
    node = position if position < run.n_prompt else run.path[position - run.n_prompt]
    if node in run.store.logits:
        return run.order(node)
    logits = run.decoder.unembed(run.resid(run.config.n_layers)[position : position + 1])  # (1, V)
    return order_of(kept(logits[0]).numpy())


def expected_reply(run: Run, message: GetExpected) -> ExpectedReply:
    """The answer to GetExpected. `p` is after the settings of the step that made the token, raw for prompt tokens."""
    position = message.position
    if not 1 <= position < run.length:
        raise BadValueError("position", position, f"1 to {run.length - 1}")
    order = order_after(run, position - 1)
    settings = PLAIN
    if position >= run.n_prompt:
        settings = run.nodes[run.path[position - run.n_prompt]].settings
    made = apply(order, settings, run.ids[:position])
    tokenizer = run.model.tokenizer
    return ExpectedReply(
        position=position,
        token=candidates(made, tokenizer, [run.ids[position]])[0],
        top=candidates(made, tokenizer, order.ids(TOP)),
        entropy=order.entropy,
    )
