"""What the session is doing right now: its phase, the request a Stop would end, how far it is."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.i18n import tr

if TYPE_CHECKING:
    from app.engine import Pending
    from model.protocol.values import RunState
    from model.protocol.wire import Progress


def stop_words(state: RunState) -> str:
    """Why the last step ended early, in words; empty when it did not."""
    words = {
        "end_of_text": tr("End of text."),
        "context_full": tr("The context is full: {n} tokens is all this model can see.", n=f"{state.n_ctx:,}"),
        "cancelled": tr("Stopped."),
        "nan_logits": tr("The model's logits are not numbers (NaN): sampling stopped."),
    }
    return words.get(state.stop, "")


class Phase(StrEnum):
    """What the session is doing."""

    IDLE = "idle"
    OPENING = "opening"
    PREFILL = "prefill"
    DECODE = "decode"
    READY = "ready"


class UnderWay(QObject):
    """One thing at a time. `resting` is the phase when nothing is under way."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.phase = self.resting = Phase.IDLE
        self.title = ""
        self.progress: Progress | None = None
        self.to_end = False
        """Whether it goes on until it can't: nothing can follow it."""
        self._pending: Pending | None = None

    @property
    def busy(self) -> bool:
        """Whether a request that Stop would end is under way."""
        return self._pending is not None

    def begin(self, phase: Phase, title: str, pending: Pending, *, to_end: bool = False) -> None:
        """Something was asked. `title` says what, in words; empty for what is too short to be told."""
        self.phase, self.title, self._pending, self.to_end = phase, title, pending, to_end
        self.changed.emit()

    def on_progress(self, progress: Progress) -> None:
        """How far it is."""
        self.progress = progress
        self.changed.emit()

    def end(self) -> None:
        """It is over."""
        self.phase, self.title, self.progress, self._pending = self.resting, "", None, None
        self.to_end = False
        self.changed.emit()

    def cancel(self) -> bool:
        """Asks for its end; says whether there was something to end."""
        if self._pending is None:
            return False
        self._pending.cancel()
        return True
