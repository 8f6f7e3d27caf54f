"""What can be done about an error besides reading it: the buttons of a refusal, and what they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.amounts import size
from app.i18n import tr
from app.notify import Trouble, WayOut
from model.protocol.engine_requests import SetBudget
from model.protocol.values import MemoryInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.session import Session
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo

BUDGET_CEILING = 0.8  # of the memory that is free or kept by the run


class Remedies:
    """The ways out a session offers."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, error: ErrorInfo, again: Callable[[], object] | None = None) -> tuple[WayOut, ...]:
        """Buttons for an error; `again` does once more what it ended."""
        model = self._session.model
        if error.code == "prompt_too_long":
            return (self.cut(),)
        if error.code == "budget" and again is not None:
            return self._more_budget(again)
        if error.code == "out_of_memory" and model is not None and model.device != "cpu":
            return (WayOut(label=tr("Open the model on the CPU"), run=self._open_on_cpu),)
        return ()

    def cut(self) -> WayOut:
        """Prefills as much of the prompt as the context holds."""
        return WayOut(label=tr("Cut the prompt to the context"), run=lambda: self._session.prefill(truncate=True))

    def refuse_long(self, tokens: int, n_ctx: int) -> None:
        """Says, before anything runs, that the prompt is longer than the context, and offers to cut it."""
        text = tr(
            "The prompt has {n} tokens; this model was made for {all}. Shorten it by {excess}, or let it be cut.",
            n=f"{tokens:,}", all=f"{n_ctx:,}", excess=f"{tokens - n_ctx:,}",
        )  # fmt: skip
        self._session.notify.fail(Trouble(title=tr("The prompt is too long"), message=text, ways_out=(self.cut(),)))

    def use_budget(self, budget: int, then: Callable[[], object] | None = None) -> None:
        """How many bytes a run may keep besides the weights, 0 for the engine's choice; `then` once it is so."""
        session = self._session

        def done(memory: MemoryInfo, _arrays: Arrays) -> None:
            session.settings.update(budget_bytes=budget)
            session.facts.set_memory(memory)
            if then is not None:
                then()

        def refused(error: ErrorInfo) -> None:
            session.notify.engine_error(tr("The budget was not changed"), error)

        session.engine.request(SetBudget(bytes=budget), on_reply=done, on_error=refused)

    def use_kept_budget(self) -> None:
        """Tells an engine that starts the budget of the preferences; what does not fit any more is its own choice."""
        if budget := self._session.settings.values.budget_bytes:
            self._session.engine.request(SetBudget(bytes=budget), on_error=lambda _error: None)

    def _more_budget(self, again: Callable[[], object]) -> tuple[WayOut, ...]:
        memory = self._session.memory
        if memory is None:
            return ()
        most = int(BUDGET_CEILING * (memory.available + memory.kv_allocated + memory.activations))
        if most <= memory.budget:
            return ()
        label = tr("Raise the budget to {size} and go on", size=size(most))
        return (WayOut(label=label, run=lambda: self.use_budget(most, again)),)

    def _open_on_cpu(self) -> None:
        self._session.settings.update(device="cpu")
        self._session.open_model(self._session.source)
