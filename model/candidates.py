"""Tokens as candidates: what they are, where they stand, how likely they are before and after the sampler."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from model.protocol.values import Candidate
from model.sampling import Distribution
from model.tokenizer import Tokenizer


def candidates(made: Distribution, tokenizer: Tokenizer, ids: Iterable[int]) -> tuple[Candidate, ...]:
    """Each of `ids` under the distribution `made`."""
    wanted = np.fromiter(ids, np.int64)
    raw = np.exp(made.raw.log_probabilities(wanted))
    final = made.probabilities(wanted)
    return tuple(
        Candidate(
            rank=made.raw.rank(token_id),
            id=token_id,
            piece=tokenizer.piece(token_id),
            logit=float(made.raw.values[token_id]),
            p_raw=float(raw[index]),
            p=float(final[index]),
        )
        for index, token_id in enumerate(wanted.tolist())
    )
