"""What the engine says unasked: name of the event → its data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EngineStarting:
    """Sent before torch is imported: the process is there and reads requests; `engine.hello` is answered when the
    import is done."""

    version: str
    pid: int
    host: str


EVENTS: dict[str, type] = {"engine.starting": EngineStarting}
