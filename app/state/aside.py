"""What is under way beside the session's own work and can be stopped: an export, the drawing of all heads, any view
that takes its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app.i18n import tr

if TYPE_CHECKING:
    from model.protocol.wire import Progress

TOLD_AFTER_MS = 80
"""After so long a view is told, most being there sooner; the status bar itself waits until half a second is over."""


@dataclass(eq=False)
class Task:
    """One such thing: what it is in words, how to stop it, how far it is where that is known."""

    title: str
    cancel: Callable[[], object]
    _aside: Aside
    progress: Progress | None = None
    over: bool = False

    def tell(self, progress: Progress) -> None:
        """How far it is."""
        self.progress = progress
        if self in self._aside.tasks:
            self._aside.changed.emit()

    def hear(self, progress: Progress) -> None:
        """How far it is as the engine says, under the title a person knows."""
        self.tell(replace(progress, what=self.title, unit=tr(progress.unit)))

    def end(self) -> None:
        """It is over; said twice is said once."""
        self.over = True
        if self in self._aside.tasks:
            self._aside.tasks.remove(self)
            self._aside.changed.emit()


class Aside(QObject):
    """Any number of them; the newest that does not wait for its turn is the one that is told."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.tasks: list[Task] = []

    @property
    def newest(self) -> Task | None:
        """The one that was begun last of those that are known to go on: one that has not said how far it is, or of
        whose parts none is there, may wait for its turn."""
        going = [task for task in self.tasks if task.progress is not None and task.progress.done]
        untold = [task for task in self.tasks if task.progress is None]
        return next(reversed(going or untold or self.tasks), None)

    def begin(self, title: str, cancel: Callable[[], object], *, after_ms: int = 0) -> Task:
        """Something has begun; whoever began it ends it. What ends within `after_ms` is told nobody."""
        task = Task(title, cancel, self)
        if after_ms:
            QTimer.singleShot(after_ms, self, lambda: self._list(task))
        else:
            self._list(task)
        return task

    def _list(self, task: Task) -> None:
        if not task.over:
            self.tasks.append(task)
            self.changed.emit()
