"""What every panel is: a widget that redraws from shared state, at most once a frame and only when visible."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from PySide6.QtCore import QObject, QRect, Qt, QTimer, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget
from shiboken6 import isValid

from app.frame.pages import EmptyState
from app.frame.to_come import NOTHING, TO_COME, ToCome
from app.i18n import tr
from app.panels.in_sight import once_drawn
from app.panels.question import Doing, Question
from app.panels.veil import Veil
from app.state.lost_run import no_model

if TYPE_CHECKING:
    from PySide6.QtGui import QMoveEvent, QPaintEvent, QResizeEvent, QShowEvent

    from app.commands import Command
    from app.context import AppContext
    from app.export.panel_files import Table
    from app.session import Session
    from model.protocol.wire import ErrorInfo, Priority, Request

FRAME_MS, TURN_MS = 16, 7
BEHIND_MS = 250
Changes = frozenset[str]
Need = Literal["", "model", "run"]
OnReply = Callable[..., object]


class FrameClock(QObject):
    """One clock for all panels: what changed since the last frame comes together, at most 60 times a second; what it
    redraws, and what comes back from the engine, takes turns with the window's own events."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[Panel | Callable[[], None]] = deque()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self._tick)

    @classmethod
    def shared(cls, owner: QObject) -> FrameClock:
        """The clock of `owner`, made on first use; it lives as long as `owner` does."""
        found = owner.findChild(cls, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return found if isinstance(found, cls) else cls(owner)

    def request(self, panel: Panel) -> None:
        """Asks for a refresh of `panel` at the next frame."""
        if panel not in self._waiting:
            self._waiting.append(panel)
        if not self._timer.isActive():
            self._timer.start(FRAME_MS)

    def pace(self, call: Callable[[], None]) -> None:
        """Calls at once where nothing waits for its turn, else in its turn: what an answer of the engine draws."""
        if self._timer.isActive():
            self._waiting.append(call)
        else:
            self._timer.start(TURN_MS)
            call()

    def _tick(self) -> None:
        # One thing a turn: what all panels draw after a step would hold mouse and keys for two frames at a time.
        while self._waiting:
            turn = self._waiting.popleft()
            if isinstance(turn, Panel):
                if not isValid(turn) or not turn.due:
                    continue
                if self._waiting:
                    self._timer.start(TURN_MS)  # before it, so that whatever it raises stops nothing
                turn.flush()
            else:
                self._timer.start(TURN_MS)
                turn()
            return


class Panel(QWidget):
    """A dock's content. A subclass names itself, says what it watches, builds its widgets in `build` and redraws in
    `refresh`.

    `panel_id`: in saved layouts, never changed. `title`, `help_text`: English, translated where shown. `watches`:
    Topics of the session and field names of the selection. `area`: where the standard layout puts it. `needs`: what
    must be there for it to show anything; until then it says what is going on instead. `exports`: its picture and its
    tables can be written to files. `tables_first`: they are what it shows, more than any figure the engine has of it.
    """

    panel_id: ClassVar[str]
    title: ClassVar[str]
    help_text: ClassVar[str] = ""
    watches: ClassVar[frozenset[str]] = frozenset()
    area: ClassVar[str] = "bottom"
    needs: ClassVar[Need] = ""
    exports: ClassVar[bool] = False
    tables_first: ClassVar[bool] = False

    behindChanged = Signal(bool)
    """Whether what is drawn waits for an answer that is late: it may belong to what was chosen before."""

    def __init__(self, ctx: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.ctx = ctx
        self.setObjectName(f"panel-{self.panel_id}")
        self._pending: set[str] = set()
        self._ask_count, self._unanswered, self._to_come = 0, set[int](), set[int]()
        self._newest: dict[str, int] = {}
        self.behind = self.unserved = False
        self._served: dict[str, object] = {}
        self._failed: dict[str, ErrorInfo] = {}
        self._veil: Veil | None = None
        self._late = QTimer(self)
        self._late.setSingleShot(True)
        self._late.setInterval(BEHIND_MS)
        self._late.timeout.connect(lambda: self._set_behind(bool(self._unanswered)))
        self._clock = FrameClock.shared(ctx.session)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(12, 8, 12, 10)
        self.body.setSpacing(8)
        ctx.session.changed.connect(self._on_topic)
        ctx.selection.changed.connect(self._on_fields)
        ctx.theme.changed.connect(self._on_theme)
        try:
            self.build()
        except Exception:
            self.deleteLater()  # its connections would keep what there is of it
            raise
        self._empty: EmptyState | None = None
        self._pending |= {str(name) for name in self.watches}
        self._cover()

    # for subclasses

    def build(self) -> None:
        """Makes the widgets, in `self.body`."""

    def refresh(self, changes: Changes) -> None:
        """Redraws from the shared state; `changes` are the watched names that changed since the last call."""

    def make_ready(self) -> None:
        """Makes what the shared state asks for, in a turn of its own, before it takes another panel's place."""

    def carry(self, before: Self) -> None:
        """Takes over from the panel whose place it takes, in another language, what is in no shared state."""

    def commands(self) -> Iterable[Command]:
        """Commands of this panel; registered when it is docked."""
        return ()

    def tables(self, done: Callable[[list[Table]], None]) -> None:
        """Hands what is shown to `done` as named tables; at once, or when the engine has answered."""
        done([])

    def figure(self, formats: tuple[str, ...], theme: str, stem: str) -> Request | None:  # noqa: ARG002
        """The request (a FileRequest) that makes files of what is shown; None where the engine has none."""
        return None

    def least_width(self) -> int:
        """Px under which it is scrolled sideways, where all panels together have less room than they need."""
        return self.minimumSizeHint().width()

    def room_changed(self) -> None:
        """More or less of it may be seen, though its own size can be as before."""

    def line(self) -> str:
        """The command line that shows the same, for what is no export; empty where there is none."""
        return ""

    @contextmanager
    def as_picture(self) -> Iterator[str]:
        """The shape it has while its picture is taken; yields what is written over the picture, empty for nothing."""
        yield ""

    def export(self) -> None:
        """Asks how and where to write what is shown."""
        from app.export.exporter import Exporter  # noqa: PLC0415 - not before it is asked for

        once_drawn(self, lambda: Exporter.shared(self.ctx).open(self))

    def ask(
        self,
        message: Request,
        on_reply: OnReply,
        *,
        slot: str = "",
        on_part: OnReply | None = None,
        on_progress: OnReply | None = None,
        on_error: OnReply | None = None,
        priority: Priority = "interactive",
        says: bool = False,
        doing: Doing | None = None,
    ) -> object:
        """Asks the engine for something this panel shows. The answer is dropped when the panel is gone or the run
        has been replaced; a newer request in the same `slot` replaces one that has not started. One that is taken back
        otherwise is followed by a refresh, which asks again; so is an answer that was made when the run had gone
        elsewhere, for it is of that place (with neither slot nor `on_error` it is asked for again here). What can't be
        had leaves what is drawn only where that was an answer to the same, or the request is of no view: it has no
        slot, or is of a cell that the mouse is over. Why is written over the panel, unless `on_error` `says` it.
        `doing`: how it is told while it takes its time; by the panel's name where that is not said."""
        number = self._ask_count = self._newest[slot] = self._ask_count + 1
        question = Question(
            self, message, number, slot, on_reply, on_part=on_part, on_progress=on_progress, on_error=on_error,
            priority=priority, says=says,
            doing=doing or Doing(title=tr("Computing: {panel}", panel=tr(self.title))),
        )  # fmt: skip
        self._to_come.add(number)
        if priority == "interactive":
            self._unanswered.add(number)
            if not self._late.isActive():
                self._late.start()
        return question.send()

    # machinery

    def _serve(self, slot: str, asked: object) -> None:
        """An answer has come."""
        self._served[slot] = asked
        if self._failed.pop(slot, None) is not None:
            self._cover()

    def _fail(self, slot: str, error: ErrorInfo) -> None:
        """Something went wrong in the engine, of which only this panel hears. One that needs nothing of it to be there
        holds what a person writes, and is not covered."""
        if not self.needs:
            self.ctx.notify.warn(error.message)
            return
        self._failed[slot] = error
        self._cover()

    def _try_again(self) -> None:
        self._failed.clear()
        self._cover()
        self.mark(*(str(name) for name in self.watches))

    def mark(self, *names: str) -> None:
        """Notes that something this panel shows has changed; redrawn at the next frame it is visible."""
        self._pending.update(names)
        self.look_again()

    def set_unserved(self, *, unserved: bool) -> None:
        """Whether what is chosen could not be had, as no engine holds the run: nothing else may stand in its place."""
        if unserved != self.unserved:
            self.unserved = unserved
            self._cover()

    def seen(self) -> bool:
        """Whether any of it can be seen. A dock behind another tab counts as visible in Qt, moved out of the window."""
        return self.isVisible() and not self.visibleRegion().isEmpty()

    @property
    def settled(self) -> bool:
        """Whether all that changed is drawn and all that was asked for it has come."""
        return not self._pending and not self._to_come

    def look_again(self) -> None:
        """Redraws at the next frame what is noted; whoever brings the panel into sight calls it."""
        if self._pending and self.isVisible():
            self._clock.request(self)

    @property
    def due(self) -> bool:
        """Whether something is noted and can be seen."""
        return bool(self._pending) and self.seen()

    def flush(self) -> bool:
        """Redraws now what is noted, if the panel can be seen; whether it did."""
        if not self.due:
            return False
        changes = frozenset(self._pending)
        self._pending.clear()
        self.refresh(changes)
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        self.look_again()  # painted, so in sight: also where only what is around it has moved or grown

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.look_again()
        if self._empty is not None:  # when its neighbours have their places
            QTimer.singleShot(0, self, self._cover)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._empty is not None:
            self.place_empty()
        if self._veil is not None:
            self._veil.setGeometry(self.rect())
        self.look_again()

    def moveEvent(self, event: QMoveEvent) -> None:
        super().moveEvent(event)
        self.place_empty()

    def place_empty(self) -> None:
        """Lays the empty state over what is in sight of a scrolled panel: its words are in the middle of that."""
        if self._empty is None:
            return
        rect, holder, layout = self.rect().adjusted(0, 0, 0, -8), self.parentWidget(), self._empty.layout()
        if holder is not None:
            sight = rect & QRect(-self.pos(), holder.size())
            least = layout.minimumHeightForWidth(sight.width()) if layout is not None else 0
            sight.setHeight(max(sight.height(), least))
            rect = rect & sight
        self._empty.setGeometry(rect)

    def _cover(self) -> None:
        """Lays the empty state over the panel while what it needs is missing."""
        session = self.ctx.session
        missing = (self.needs == "run" and session.run is None) or (self.needs == "model" and session.model is None)
        failed = next(iter(self._failed.values()), None)
        if missing or (self.needs and self.unserved) or failed is not None:
            if self._empty is None:
                self._empty = EmptyState(self.ctx.theme, self)
                self.place_empty()
                self._empty.show()
                self._empty.raise_()
            if failed is not None and not missing and not self.unserved:
                icon = "info" if failed.code == "stopped" else "warning"  # a person did that
                self._empty.show_text(icon, failed.message, action=tr("Try again"), run=self._try_again)
            else:
                to_come = TO_COME.get(self.panel_id, NOTHING)
                show_waiting(self._empty, session, leads=self.leads(), to_come=to_come)
            self.place_empty()
        elif self._empty is not None:
            self._empty.hide()
            self._empty.deleteLater()
            self._empty = None
        drawn = bool(self.needs and self._served) and self._empty is None
        self._dim(dimmed=drawn and str(session.engine_status) == "lost")

    def leads(self) -> bool:
        """Whether it says what is under way: the panel in the middle; where that is out of sight, the largest seen."""
        if self.area == "center" or not self.window().isVisible():
            return self.area == "center"
        seen = [panel for panel in self.window().findChildren(Panel) if panel.needs and panel.seen()]
        if any(panel.area == "center" for panel in seen):
            return False
        return bool(seen) and max(seen, key=lambda panel: panel.width() * panel.height()) is self

    def _dim(self, *, dimmed: bool) -> None:
        """Lays the veil over what the engine has drawn, or takes it away."""
        if dimmed and self._veil is None:
            self._veil = Veil(self.ctx.theme, self)
            self._veil.setGeometry(self.rect())
            self._veil.show()
        elif not dimmed and self._veil is not None:
            self._veil.hide()
            self._veil.deleteLater()
            self._veil = None

    def _answered(self, number: int) -> None:
        self._unanswered.discard(number)
        if not self._unanswered:
            self._late.stop()
            self._set_behind(False)

    def _set_behind(self, behind: bool) -> None:
        if behind != self.behind:
            self.behind = behind
            self.behindChanged.emit(behind)

    def _on_topic(self, topic: str) -> None:
        if topic in {"MODEL", "RUN"}:
            self._failed.clear()
        if self.needs and topic in _WAITING_TOPICS:
            self.unserved = self.unserved and not (self.ctx.session.can_look and not self.ctx.session.busy)
            self._cover()
        if topic in self.watches:
            self.mark(str(topic))

    def _on_fields(self, fields: Changes) -> None:
        wanted = fields & self.watches
        if wanted:
            self.mark(*wanted)

    def _on_theme(self) -> None:
        self._cover()
        self.mark(*(str(name) for name in self.watches))
        self.update()


_WAITING_TOPICS = frozenset({"ENGINE", "MODEL", "RUN", "PROGRESS"})


def show_waiting(empty: EmptyState, session: Session, *, leads: bool = True, to_come: ToCome = NOTHING) -> None:
    """Says why there is nothing to show yet, and what a person can do about it. `leads`: with the sentence and the bar
    of what is under way, of which one in the window is enough; the others say quietly what is `to_come`."""
    status, progress = str(session.engine_status), session.progress
    if status in {"off", "starting"}:
        _show_busy(empty, tr("Starting the engine …"), -1, leads=leads, to_come=to_come)
    elif status == "lost":
        # Why is said once, over all panels; the way out is where it is missed, too.
        words = tr("Not read before the engine stopped.")
        empty.show_text("engine", words, action=tr("Restart the engine"), run=session.restart_engine)
    elif session.busy and session.phase in {"opening", "prefill"}:
        share = progress.done / progress.total if progress and progress.total else -1
        what = progress.what if progress and progress.what else session.progress_title
        _show_busy(empty, what, share, leads=leads, to_come=to_come)
    elif session.model is None:
        empty.show_text("folder", tr("No model is open."))
    elif not session.desk.loaded and session.run is None:
        empty.show_text("warning", no_model(), action=tr("Open it again"), run=session.desk.reopen)
    elif not session.lost.held:
        words = tr("The run on the screen is not in the engine: nothing more can be read from it.")
        empty.show_text("warning", words, action=tr("Bring it back"), run=session.lost.bring_back)
    else:
        empty.show_text("prompt", tr("Nothing has been prefilled yet."), action=tr("Prefill"), run=session.prefill)


def _show_busy(empty: EmptyState, what: str, share: float, *, leads: bool, to_come: ToCome) -> None:
    empty.setAccessibleDescription(what)
    if leads:
        empty.show_text("engine", what, share=share)
    else:
        empty.show_text(to_come.icon, "", hint=tr(to_come.words) if to_come.words else "")
