"""What is measured about a run beside running it: prompt statistics, memory, the proof of the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from model.protocol.engine_requests import GetMemory, SelfCheck, SelfCheckReply
from model.protocol.run_requests import GetPromptStats, PromptStatsReply
from model.protocol.values import MemoryInfo

if TYPE_CHECKING:
    from app.engine import EngineClient
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo


@dataclass(frozen=True, kw_only=True)
class PromptStats:
    """What the model expected of the prompt. Arrays over its tokens: see GetPromptStats."""

    reply: PromptStatsReply
    logprob: Any
    entropy: Any
    rank: Any


class RunFacts(QObject):
    """Asked in the background, after what the person waits for. `stats_failed`, `check_failed`: the engine could not
    say; nothing more is under way."""

    memoryChanged = Signal()
    promptStatsChanged = Signal()
    selfCheckChanged = Signal()

    def __init__(self, engine: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._run_id: int | None = None
        self.memory: MemoryInfo | None = None
        self.prompt_stats: PromptStats | None = None
        self.self_check: SelfCheckReply | None = None
        self.stats_failed = self.check_failed = False

    def set_memory(self, memory: MemoryInfo) -> None:
        """Memory as a run's state reports it."""
        self.memory = memory
        self.memoryChanged.emit()

    def forget(self) -> None:
        """There is no run, or another model."""
        self._run_id = None
        self.prompt_stats = self.self_check = None
        self.stats_failed = self.check_failed = False
        self.promptStatsChanged.emit()
        self.selfCheckChanged.emit()

    def new_run(self, run_id: int) -> None:
        """Asks for what is to be known of a new run."""
        self.forget()
        self._run_id = run_id

        def done(reply: PromptStatsReply, arrays: Arrays) -> None:
            if self._run_id == run_id:
                self.prompt_stats = PromptStats(
                    reply=reply, logprob=arrays["logprob"], entropy=arrays["entropy"], rank=arrays["rank"]
                )
                self.promptStatsChanged.emit()

        def failed(error: ErrorInfo) -> None:
            if self._run_id == run_id and error.code not in _GIVEN_UP:
                self.stats_failed = True
                self.promptStatsChanged.emit()

        self._engine.request(
            GetPromptStats(), on_reply=done, on_error=failed, slot="session.stats", priority="background"
        )
        self.check()

    def check(self, *, quick: bool = True) -> None:
        """Proves the numbers of the current run against the model's own."""
        run_id = self._run_id

        def done(reply: SelfCheckReply, _arrays: Arrays) -> None:
            if self._run_id == run_id:
                self.self_check, self.check_failed = reply, False
                self.selfCheckChanged.emit()

        def failed(error: ErrorInfo) -> None:
            if self._run_id == run_id and error.code not in _GIVEN_UP:
                self.check_failed = True
                self.selfCheckChanged.emit()

        self._engine.request(
            SelfCheck(quick=quick), on_reply=done, on_error=failed, slot="session.check", priority="background"
        )

    def take_check(self, reply: SelfCheckReply) -> None:
        """A proof of the current run that somebody else asked for."""
        self.self_check, self.check_failed = reply, False
        self.selfCheckChanged.emit()

    def measure(self) -> None:
        """Measures memory now."""
        self._engine.request(
            GetMemory(), on_reply=lambda reply, _arrays: self.set_memory(reply), on_error=_quiet, slot="session.memory"
        )


_GIVEN_UP = frozenset({"cancelled", "superseded"})


def _quiet(error: ErrorInfo) -> None:
    """What could not be measured leaves what was known."""
    del error
