"""What is measured about a run beside running it: prompt statistics, memory, the proof of the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app.i18n import tr
from app.state.aside import TOLD_AFTER_MS
from model.protocol.engine_requests import GetMemory, SelfCheck, SelfCheckReply
from model.protocol.run_requests import GetPromptStats, PromptStatsReply
from model.protocol.values import MemoryInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.engine import EngineClient, Pending
    from app.state.aside import Aside, Task
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Request


@dataclass(frozen=True, kw_only=True)
class PromptStats:
    """What the model expected of the prompt. Arrays over its tokens: see GetPromptStats."""

    reply: PromptStatsReply
    logprob: Any
    entropy: Any
    rank: Any


class RunFacts(QObject):
    """Asked in the background, after what the person waits for. `stats_failed`, `check_failed`: the engine could not
    say, or was not to; nothing more is under way. `stats_stopped`: a person stopped it."""

    memoryChanged = Signal()
    promptStatsChanged = Signal()
    selfCheckChanged = Signal()

    def __init__(self, engine: EngineClient, aside: Aside, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine, self._aside = engine, aside
        self._run_id: int | None = None
        self.memory: MemoryInfo | None = None
        self.prompt_stats: PromptStats | None = None
        self.self_check: SelfCheckReply | None = None
        self.stats_failed = self.check_failed = self.stats_stopped = False

    def set_memory(self, memory: MemoryInfo) -> None:
        """Memory as a run's state reports it."""
        self.memory = memory
        self.memoryChanged.emit()

    def forget(self) -> None:
        """There is no run, or another model."""
        self._run_id = None
        self.prompt_stats = self.self_check = None
        self.stats_failed = self.check_failed = self.stats_stopped = False
        self.promptStatsChanged.emit()
        self.selfCheckChanged.emit()

    def new_run(self, run_id: int) -> None:
        """Asks for what is to be known of a new run."""
        self.forget()
        self._run_id = run_id
        self.measure_prompt()
        self.check()

    def measure_prompt(self) -> None:
        """What the model expected of the prompt; goes on where it was stopped."""
        run_id = self._run_id
        self.stats_failed = self.stats_stopped = False

        def done(reply: PromptStatsReply, arrays: Arrays) -> None:
            if self._run_id == run_id:
                self.prompt_stats = PromptStats(
                    reply=reply, logprob=arrays["logprob"], entropy=arrays["entropy"], rank=arrays["rank"]
                )
                self.promptStatsChanged.emit()

        def failed(error: ErrorInfo) -> None:
            if self._run_id == run_id and (stopped() or error.code not in _GIVEN_UP):
                self.stats_failed, self.stats_stopped = True, stopped()
                self.promptStatsChanged.emit()

        stopped = self._ask(GetPromptStats(), done, failed, slot="session.stats", title=tr("Measuring the prompt"))

    def check(self, *, quick: bool = True) -> None:
        """Proves the numbers of the current run against the model's own."""
        run_id = self._run_id

        def done(reply: SelfCheckReply, _arrays: Arrays) -> None:
            if self._run_id == run_id:
                self.self_check, self.check_failed = reply, False
                self.selfCheckChanged.emit()

        def failed(error: ErrorInfo) -> None:
            if self._run_id == run_id and (stopped() or error.code not in _GIVEN_UP):
                self.check_failed = True
                self.selfCheckChanged.emit()

        stopped = self._ask(SelfCheck(quick=quick), done, failed, slot="session.check", title=tr("Self-check"))

    def take_check(self, reply: SelfCheckReply) -> None:
        """A proof of the current run that somebody else asked for."""
        self.self_check, self.check_failed = reply, False
        self.selfCheckChanged.emit()

    def measure(self) -> None:
        """Measures memory now."""
        self._engine.request(
            GetMemory(), on_reply=lambda reply, _arrays: self.set_memory(reply), on_error=_quiet, slot="session.memory"
        )

    def _ask(
        self,
        message: Request,
        done: Callable[[Any, Arrays], None],
        failed: Callable[[ErrorInfo], None],
        *,
        slot: str,
        title: str,
    ) -> Callable[[], bool]:
        """Asks in the background, and tells it while it takes its time; gives what says whether a person stopped it."""
        stopped = False

        def stop() -> None:
            nonlocal stopped
            stopped = True
            pending.cancel()

        def replied(reply: Any, arrays: Arrays) -> None:
            task.end()
            done(reply, arrays)

        def went_wrong(error: ErrorInfo) -> None:
            task.end()
            failed(error)

        task: Task = self._aside.begin(title, stop, after_ms=TOLD_AFTER_MS)
        pending: Pending = self._engine.request(
            message, on_reply=replied, on_error=went_wrong, slot=slot, priority="background",
            on_progress=task.hear,
        )  # fmt: skip
        return lambda: stopped


_GIVEN_UP = frozenset({"cancelled", "superseded"})


def _quiet(error: ErrorInfo) -> None:
    """What could not be measured leaves what was known."""
    del error
