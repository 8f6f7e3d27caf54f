"""One thing that a panel asked of the engine, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from shiboken6 import isValid

from app.i18n import tr
from app.notify import QUIET_CODES, TAKEN_BACK
from app.panels.veil import subject
from app.state.aside import TOLD_AFTER_MS
from app.state.lost_run import UNSERVED
from model.protocol.wire import ErrorInfo, Progress

if TYPE_CHECKING:
    from app.panels.base import OnReply, Panel
    from app.state.aside import Task
    from model.protocol.wire import Place, Priority, Request

ELSEWHERE = ErrorInfo(code="superseded", message="")
"""The answer is of another place of the run: steps and seeks overtake views in the engine."""


@dataclass(frozen=True, kw_only=True)
class Doing:
    """How a question is told while it takes its time. `title`: what it does. `parts`, `unit`: into how many parts the
    answer comes, where it does; `part`: the field that says which one it is. `on_stop`: what is to happen when a person
    stops it; otherwise the panel says so itself, with a way to try again."""

    title: str
    parts: int = 0
    part: str = ""
    unit: str = ""
    on_stop: Callable[[], object] | None = None


class Question:
    """`Panel.ask` says what the callbacks are told."""

    def __init__(
        self,
        panel: Panel,
        message: Request,
        number: int,
        slot: str,
        on_reply: OnReply,
        *,
        on_part: OnReply | None,
        on_progress: OnReply | None,
        on_error: OnReply | None,
        priority: Priority,
        says: bool,
        doing: Doing,
    ) -> None:
        session = panel.ctx.session
        self.panel, self.message, self.number, self.slot, self.says = panel, message, number, slot, says
        self.on_reply, self.on_part, self.on_progress, self.on_error = on_reply, on_part, on_progress, on_error
        self.priority, self.doing = priority, doing
        self._task: Task | None = None
        self._parts, self._stopped = set[object](), False
        self.place: Place = (session.run_id or 0, session.current_node)
        self.asked = (session.run_id, session.current_node, session.length, subject(message))
        self._pending: object = None

    def send(self) -> object:
        """Asks the engine; what it gives back can be cancelled."""
        panel = self.panel
        self._task = panel.ctx.session.aside.begin(self.doing.title, self._stop, after_ms=TOLD_AFTER_MS)
        self._tell_parts()
        self._pending = panel.ctx.engine.request(
            self.message,
            on_reply=self._last(self._replied),
            on_part=self._guarded(self._came) if self.on_part is not None else None,
            on_progress=self._guarded(self._far),
            on_error=self._last(self._went_wrong),
            slot=f"{panel.panel_id}.{self.slot}" if self.slot else None,
            priority=self.priority,
        )
        return self._pending

    # what comes

    def _replied(self, *args: Any) -> None:
        if self._is_of_its_place() or self._streams_on():
            self.panel._serve(self.slot, self.asked)
            self.on_reply(*args)
            if not self._is_of_its_place():  # right as far as it goes, and not all there is should the run come back
                self._tell(ELSEWHERE)
        elif self.slot or self.on_error is not None:
            self._went_wrong(ELSEWHERE)
        else:
            self.panel.ask(
                self.message, self.on_reply, on_part=self.on_part, on_progress=self.on_progress,
                on_error=self.on_error, priority=self.priority, says=self.says, doing=self.doing,
            )  # fmt: skip

    def _came(self, *args: Any) -> None:
        if self.doing.parts:
            self._parts.add(getattr(args[0], self.doing.part))  # one that made way begins again
            self._tell_parts()
        if self.on_part is not None and (self._is_of_its_place() or self._streams_on()):
            self.on_part(*args)

    def _tell_parts(self) -> None:
        doing, done = self.doing, len(self._parts)
        if self._task is not None and doing.parts:
            self._task.tell(Progress(what=doing.title, done=done, total=doing.parts, unit=doing.unit))

    def _far(self, progress: Progress) -> None:
        if self._task is not None:
            self._task.hear(progress)
        if self.on_progress is not None:
            self.on_progress(progress)

    def _stop(self) -> None:
        """A person does not want to wait for it."""
        self._stopped = True
        cancel = getattr(self._pending, "cancel", None)
        if cancel is not None:
            cancel()

    def _was_stopped(self, error: ErrorInfo) -> None:
        """It was stopped: nothing asks again by itself."""
        newest = self.panel._newest[self.slot] == self.number
        self._tell(error)
        if self.slot and not newest:
            return
        if self.doing.on_stop is not None:
            self.doing.on_stop()
            return
        words = tr("Stopped: {what}", what=self.doing.title)
        if self.slot and self.panel.needs:
            self.panel._fail(self.slot, ErrorInfo(code="stopped", message=words))
        else:
            self.panel.ctx.notify.say(words)

    def _went_wrong(self, error: ErrorInfo) -> None:
        if self._stopped and error.code == "cancelled":
            self._was_stopped(error)
            return
        panel, newest = self.panel, self.panel._newest[self.slot] == self.number
        session, views = panel.ctx.session, bool(self.slot) and not self.slot.startswith("cell")
        now = (session.run_id, session.current_node, session.length)
        if error.code in UNSERVED and views and panel._served.get(self.slot) != self.asked:
            panel.set_unserved(unserved=True)
        if error.code not in UNSERVED | QUIET_CODES and views and newest and not self.says and self.asked[:3] == now:
            panel._fail(self.slot, error)
        self._tell(error)
        if self.slot and error.code in TAKEN_BACK and newest:  # by nothing of its own
            panel.mark("view")

    def _tell(self, error: ErrorInfo) -> None:
        if self.on_error is not None:
            self.on_error(error)

    # where the run was

    def _is_of_its_place(self) -> bool:
        at = getattr(self._pending, "at", None)
        return at is None or at == self.place

    def _streams_on(self) -> bool:
        """Whether tokens are being added after its place: what is of a longer path is of its beginning too."""
        session, node = self.panel.ctx.session, self.place[1]
        adding = session.busy and session.phase in {"prefill", "decode"}
        return adding and (node < session.n_prompt or any(each.id == node for each in session.path_nodes()))

    # whom it may reach

    def _guarded(self, call: Callable[..., object]) -> Callable[..., None]:
        """`call` while the panel and the run are there."""

        def answer(*args: Any) -> None:
            if isValid(self.panel) and self.panel.ctx.session.run_id == self.asked[0]:
                call(*args)

        return answer

    def _last(self, call: Callable[..., object]) -> Callable[..., None]:
        """The same of what ends it, in its turn among what else is drawn."""

        def answer(*args: Any) -> None:
            if self._task is not None:
                self._task.end()
            if isValid(self.panel):
                self.panel._to_come.discard(self.number)
                self.panel._answered(self.number)
                self._guarded(call)(*args)

        def paced(*args: Any) -> None:
            self.panel._clock.pace(partial(answer, *args))

        return paced
