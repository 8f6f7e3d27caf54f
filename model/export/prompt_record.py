"""What a run file says of the prompt's positions: how likely each token was, and what was expected after it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from model.errors import shown
from model.export.recorded import RecordedError
from model.export.under_way import Check
from model.run import Run
from model.views.prompt_stats import PromptStats, prompt_stats

PROMPT_BYTES = 64
"""Of a position in the JSON document, at most."""
_MOST = float(np.finfo(np.float32).max)
Numbers = tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class PromptRecord:
    """`PromptStats` of a whole prompt, one number a position: `logprob` and `entropy` in nats, null where there is no
    finite one, as the first token's logprob; `rank`, -1 of the first. Each float is the float32 itself."""

    logprob: Numbers
    entropy: Numbers
    rank: tuple[int, ...]

    @property
    def stats(self) -> PromptStats:
        """As the views have it."""
        logprob, entropy = (
            np.array([math.nan if value is None else value for value in numbers], dtype=np.float32)
            for numbers in (self.logprob, self.entropy)
        )
        rank = np.array(self.rank, dtype=np.int32)
        return PromptStats(logprob=logprob, entropy=entropy, rank=rank, done=len(rank))

    def trouble(self, n_prompt: int) -> str:
        """What contradicts a prompt of so many tokens, as a sentence; empty if nothing does."""
        for name in ("logprob", "entropy", "rank"):
            if (found := len(getattr(self, name))) != n_prompt:
                return (
                    f"prompt_stats.{name} has {found} numbers, expected one for each of the prompt's {n_prompt} tokens."
                )
            numbers = [value for value in getattr(self, name) if value is not None]
            if not all(abs(value) < _MOST for value in numbers):
                return f"prompt_stats.{name} has a number that is no float32."
        if not all(-1 <= rank < 1 << 31 for rank in self.rank):
            return f"prompt_stats.rank is {shown(self.rank)}, expected places from -1."
        return ""


def prompt_record(run: Run, check: Check) -> PromptRecord | None:
    """Of a run; computed where it was not looked at yet, None where that takes a model that is not there."""
    try:
        stats = prompt_stats(run, yield_point=check)
    except RecordedError:
        return None
    return PromptRecord(
        logprob=_numbers(stats.logprob), entropy=_numbers(stats.entropy), rank=tuple(stats.rank.tolist())
    )


def _numbers(values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Numbers:
    return tuple(value if math.isfinite(value) else None for value in values.tolist())
