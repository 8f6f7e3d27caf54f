"""Which function answers which request, and the state those functions share.

Apart from the handlers themselves, so that the server is up before torch is imported.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from model.errors import NoModelError, NoRunError
from model.jobs import Job
from model.protocol.framing import Array
from model.protocol.wire import Place, Request

if TYPE_CHECKING:
    from model.loading import LoadedModel
    from model.run import Run

Answer = tuple[object, Mapping[str, Array]]
"""A reply of the request's reply type, and the arrays that travel beside it."""


@dataclass
class EngineContext:
    """What the engine holds: one model at most, one run at most. Written on the compute thread only; the light
    thread takes what it needs once and works on that."""

    model: LoadedModel | None = None
    run: Run | None = None
    budget_bytes: int | None = None
    """What a run may keep besides the weights; None: the engine's own choice."""

    def need_model(self) -> LoadedModel:
        """The open model. Raises NoModelError."""
        if self.model is None:
            raise NoModelError
        return self.model

    def need_run(self) -> Run:
        """The run. Raises NoModelError or NoRunError."""
        self.need_model()
        if self.run is None:
            raise NoRunError
        return self.run

    @property
    def place(self) -> Place | None:
        """Where the run is; None without one."""
        return None if self.run is None else (self.run.id, self.run.current)

    def empty_caches(self) -> None:
        """Gives back what memory can be given back without losing the model or the run."""
        gc.collect()
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()


M = TypeVar("M", bound=Request)
Handler = Callable[[EngineContext, Any, Job], Answer]
Handlers = Mapping[type[Request], Handler]
HANDLERS: dict[type[Request], Handler] = {}


def handles(kind: type[M]) -> Callable[[Callable[[EngineContext, M, Job], Answer]], Handler]:
    """Registers the function that answers `kind`."""

    def register(handler: Callable[[EngineContext, M, Job], Answer]) -> Handler:
        if kind in HANDLERS:
            raise ValueError(f"{kind.method} has two handlers")
        HANDLERS[kind] = handler
        return handler

    return register
