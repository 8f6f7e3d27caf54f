"""What of the session may change: what its `changed` signal carries."""

from __future__ import annotations

from enum import StrEnum


class Topic(StrEnum):
    """What may change."""

    ENGINE = "ENGINE"
    MODEL = "MODEL"
    PROMPT = "PROMPT"
    RUN = "RUN"
    NODE = "NODE"
    SAMPLER = "SAMPLER"
    DISTRIBUTION = "DISTRIBUTION"
    PROMPT_STATS = "PROMPT_STATS"
    MEMORY = "MEMORY"
    PROGRESS = "PROGRESS"
    SELF_CHECK = "SELF_CHECK"
