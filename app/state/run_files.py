"""Run files in the window: one is opened with the model it was made with, or looked at as a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.i18n import tr
from app.state.under_way import Phase
from model.protocol.run_file_requests import OpenRun, OpenRunReply, PeekRun, RunFileInfo

if TYPE_CHECKING:
    from app.session import Session
    from model.protocol.framing import Array, Arrays
    from model.protocol.wire import ErrorInfo


@dataclass(frozen=True, kw_only=True, eq=False)
class WantedRun:
    """A run file to be opened: `path` on the engine's disk, or `data`, its bytes. `live`: its model is opened."""

    path: str
    data: Array | None = None
    live: bool = False

    @property
    def asked(self) -> tuple[str, Arrays | None]:
        """What a request says of it: the path, and the arrays beside it."""
        return ("", {"data": self.data}) if self.data is not None else (self.path, None)


class RunFiles(QObject):
    """`opened`: a file's run is the current one. `failed`: it could not be opened. `info`: what the file opened last
    says."""

    opened = Signal(object)  # OpenRunReply
    failed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._session = session
        self._waiting: WantedRun | None = None  # for its model
        self._wanted: WantedRun | None = None
        self._peeked: RunFileInfo | None = None
        self.info: RunFileInfo | None = None
        self._place: tuple[int | None, str, int] = (None, "", -1)
        session.desk.open_run = self.open
        session.desk.opened.connect(self._on_model)
        session.desk.refused.connect(self._on_refused)

    @property
    def place(self) -> tuple[str, int]:
        """The path of the current run's file and the node it was recorded at; ("", -1) where it is no file's."""
        run_id, path, node = self._place
        return (path, node) if run_id is not None and run_id == self._session.run_id else ("", -1)

    @property
    def recorded(self) -> bool:
        """Whether the current run is looked at without its model."""
        model = self._session.model
        return model is not None and model.recorded

    def open(self, path: str) -> None:
        """Opens the file at a path of the engine's."""
        self.open_wanted(WantedRun(path=path))

    def open_wanted(self, wanted: WantedRun) -> None:
        """Looks into the file first: what it holds, and of which model."""
        session = self._session
        if session.busy:
            session.notify.say(tr("Stop what is under way first."))
            return
        path, arrays = wanted.asked
        pending = session.engine.request(
            PeekRun(path=path),
            arrays=arrays,
            on_reply=lambda info, _arrays: self._on_peek(wanted, info),
            on_error=self._on_error,
        )
        session.under_way.begin(Phase.OPENING, tr("Opening the run"), pending)

    def go_on(self) -> None:
        """Opens the model of the run that is looked at, and goes on with it."""
        if self.info is not None and self._wanted is not None and not self._session.busy:
            self._open_model(self._wanted, self.info)

    def _on_peek(self, wanted: WantedRun, info: RunFileInfo) -> None:
        session = self._session
        session.under_way.end()
        self._peeked = info
        model = session.model
        there = model is not None and not model.recorded and (model.sha256, model.dtype) == (info.sha256, info.dtype)
        if not there and (wanted.live or info.contents == "text"):
            self._open_model(wanted, info)
        else:
            self._ask(wanted)

    def _open_model(self, wanted: WantedRun, info: RunFileInfo) -> None:
        self._waiting, self._peeked = wanted, info
        self._session.notify.say(tr("Opening {model}, with which the run was made", model=info.model))
        self._session.desk.open(info.source, dtype=info.dtype)  # in another its numbers would be others

    def _on_model(self, *_: object) -> None:
        """A model is there: the run that waits for it is opened."""
        wanted, self._waiting = self._waiting, None
        if wanted is not None:
            self._session.under_way.cancel()
            self._ask(wanted)

    def _on_refused(self) -> None:
        """Its model can't be opened: the run is looked at, where there is enough in the file for that."""
        wanted, self._waiting = self._waiting, None
        if wanted is not None and self._peeked is not None:
            self._ask(wanted) if self._peeked.contents != "text" else self.failed.emit()

    def _ask(self, wanted: WantedRun) -> None:
        session = self._session
        path, arrays = wanted.asked
        pending = session.engine.request(
            OpenRun(path=path),
            arrays=arrays,
            on_reply=lambda reply, _arrays: self._on_opened(wanted, reply),
            on_progress=session.under_way.on_progress,
            on_error=self._on_error,
        )
        session.under_way.begin(Phase.OPENING, tr("Opening the run"), pending)

    def _on_opened(self, wanted: WantedRun, reply: OpenRunReply) -> None:
        session = self._session
        self._wanted, self.info = wanted, self._peeked
        before = session.model
        self._place = (reply.state.run_id, wanted.path, reply.state.current)
        if reply.recorded:
            session.desk.adopt(reply.model, wanted.path)
        session.under_way.end()
        if wanted.data is None:
            session.settings.add_recent(wanted.path)
        session.take_run(reply)
        if reply.other and before is not None and before.sha256 == reply.model.sha256:
            words = tr(
                "This run was recorded in {there}: the model, which was open in {here}, was closed.",
                there=reply.model.dtype, here=before.dtype,
            )  # fmt: skip
            session.notify.say(words)
        elif reply.other:
            words = tr("Another model was open and was closed: this run was made with {model}.", model=reply.model.name)
            session.notify.say(words)
        self.opened.emit(reply)

    def _on_error(self, error: ErrorInfo) -> None:
        self._session.under_way.end()
        self._session.notify.engine_error(tr("The run was not opened"), error)
        if self._session.model is None and error.code != "engine_lost":
            self._session.desk.absent.emit("" if error.code == "cancelled" else error.message)
        self.failed.emit()
