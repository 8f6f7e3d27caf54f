"""Decoder-only language models, opened, run step by step and looked into: the engine, the command line, a library.

    import model

    run = model.open_model().prefill("The animal didn't cross the street because it was too tired")
    run.step(7, temperature=0)
    weights = run.attention(layer=13, head=8)  # (T, S) float32
    run.figure(layer=13, head=8).save("it.pdf")

See model/notebook.py. Importing the package loads nothing; the names below load torch when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from model.notebook import Figure, Model, Session, open_model, open_run
    from model.protocol.values import SamplerSettings

__all__ = ["Figure", "Model", "SamplerSettings", "Session", "open_model", "open_run"]

_HOMES = dict.fromkeys(__all__, "model.notebook") | {"SamplerSettings": "model.protocol.values"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
