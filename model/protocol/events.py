"""What the engine says unasked: name of the event → its data."""

from __future__ import annotations

from dataclasses import dataclass

from model.errors import shown


@dataclass(frozen=True, kw_only=True)
class EngineStarting:
    """Sent before torch is imported: the process is there and reads requests; `engine.hello` is answered when the
    import is done."""

    version: str
    pid: int
    host: str


@dataclass(frozen=True, kw_only=True)
class WeightsMapped:
    """Sent when a model is open: the file that its weights are mapped from, how long it is, and the machine whose file
    it is; all empty where none is. Should the engine end by SIGBUS, the other side can say why."""

    path: str = ""
    bytes: int = 0
    host: str = ""


EVENTS: dict[str, type] = {"engine.starting": EngineStarting, "weights.mapped": WeightsMapped}


def cut_words(path: str, *, found: int, expected: int) -> str:
    """What is said of a prepared copy that was cut, or written to, while the model was open; lengths in bytes."""
    what = "written to" if found == expected else "cut"
    sizes = "" if found == expected else f": {found:,} bytes, expected {expected:,}"
    return (
        f"{shown(path, 300)}: was {what} while the model was open{sizes}. "
        "Open the model again: its prepared copy is then made anew."
    )
