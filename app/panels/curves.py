"""Entropy and surprisal over the run, for the timeline's curve and the tints of the tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from app.session import Session


def curves(session: Session) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Entropy of the distribution before each position and surprisal of its token, nats: (length,) each, NaN where
    unknown."""
    entropy = np.full(session.length, np.nan, dtype=np.float32)
    surprisal = np.full(session.length, np.nan, dtype=np.float32)
    stats = session.prompt_stats
    if stats is not None:
        known = min(len(stats.entropy), session.n_prompt)
        entropy[1:known] = stats.entropy[: known - 1]
        surprisal[1:known] = -stats.logprob[1:known]
    for position, node in enumerate(session.path_nodes(), session.n_prompt):
        entropy[position], surprisal[position] = node.entropy, -node.logprob
    return entropy, surprisal
