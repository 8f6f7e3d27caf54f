"""An export from the engine to the disk: asks, writes what comes on a thread of its own, says how it ended."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal

from app.engine import LATER, REFUSED
from app.i18n import tr
from model.protocol.export_requests import ExportReply
from model.protocol.file_writing import FileWriteError, IncomingFiles
from model.protocol.wire import ErrorInfo

if TYPE_CHECKING:
    from app.engine import EngineClient, Pending
    from model.protocol.export_requests import FilePart
    from model.protocol.framing import Array, Arrays
    from model.protocol.wire import Place, Progress, Request

WAITING_PARTS = 32
"""Parts (1 MiB at most each) that may wait for the disk. The engine sends eight before it waits for acks, which it gets
once they are written; one that does not wait is stopped."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Piece:
    part: FilePart
    data: Array


class FileExport(QObject):
    """One export under way. Ends with exactly one of `finished` and `failed`; neither leaves half a file.

    `message` is any request whose parts are `FilePart`s and whose reply is an `ExportReply`; its files go into `folder`
    under names made safe. A cancelled export ends as `failed` with the code `cancelled`.
    """

    progressed = Signal(object)  # Progress
    finished = Signal(object)  # list[Path]
    failed = Signal(object)  # ErrorInfo
    _written = Signal()  # one part was taken care of; from the writing thread
    _refused = Signal()  # the disk takes no more; from the writing thread
    _settled = Signal(object)  # list[Path] or ErrorInfo; from the writing thread

    def __init__(
        self, engine: EngineClient, folder: Path, *, overwrite: bool, place: Place | None = None,
        parent: QObject | None = None,
    ) -> None:  # fmt: skip
        """`place`: where the run is that is exported; made of it anywhere else, it fails. None: wherever it is."""
        super().__init__(parent)
        self._engine, self._folder, self._overwrite, self._place = engine, folder, overwrite, place
        self._items: queue.SimpleQueue[_Piece | ExportReply | ErrorInfo] = queue.SimpleQueue()
        self._waiting = 0
        self._thread = threading.Thread(target=self._write_all, name="export files", daemon=True)
        self._pending: Pending | None = None
        self._closed = False
        self._written.connect(self._on_written, Qt.ConnectionType.QueuedConnection)
        self._refused.connect(self.cancel, Qt.ConnectionType.QueuedConnection)
        self._settled.connect(self._on_settled, Qt.ConnectionType.QueuedConnection)
        if (application := QCoreApplication.instance()) is not None:
            application.aboutToQuit.connect(self.close)  # else half a file might outlive the program

    @property
    def running(self) -> bool:
        """Between `start` and the end."""
        return self._thread.is_alive()

    def start(self, message: Request) -> None:
        """Asks the engine; once only."""
        self._thread.start()
        self._pending = self._engine.request(
            message,
            on_reply=self._on_reply,
            on_part=self._on_part,
            on_progress=self._on_progress,
            on_error=self._items.put,
            owner=self,
        )

    def cancel(self) -> None:
        """Asks for an early end."""
        if self._pending is not None:
            self._pending.cancel()

    def close(self) -> None:
        """Ends it and waits for the disk, without a signal: for the end of the program."""
        if self.running:
            self._closed = True
            self.cancel()
            self._items.put(ErrorInfo(code="cancelled", message=""))
            self._thread.join()

    def _on_part(self, part: FilePart, arrays: Arrays) -> object:
        if self._closed:
            return REFUSED
        if self._waiting >= WAITING_PARTS:
            self._items.put(ErrorInfo(code="broken_transfer", message=tr("The engine sends faster than it may.")))
            return REFUSED
        self._waiting += 1
        self._items.put(_Piece(part=part, data=arrays["data"]))
        return LATER

    def _on_written(self) -> None:
        self._waiting -= 1
        if self._pending is not None:
            self._pending.ack()

    def _on_reply(self, reply: ExportReply, _arrays: Arrays) -> None:
        at = getattr(self._pending, "at", None)
        moved = at is not None and self._place not in {None, at}
        words = tr("The run has moved on since this was asked: export it again.")
        self._items.put(ErrorInfo(code="run_moved", message=words) if moved else reply)

    def _on_progress(self, progress: Progress) -> None:
        self.progressed.emit(progress)

    def _on_settled(self, outcome: list[Path] | ErrorInfo) -> None:
        self._thread.join()
        if self._closed:
            return
        if isinstance(outcome, ErrorInfo):
            self.failed.emit(outcome)
        else:
            self.finished.emit(outcome)

    def _write_all(self) -> None:
        """The writing thread. The disk's refusal, where there is one, is what is told, whatever the engine says."""
        with IncomingFiles(self._folder, overwrite=self._overwrite) as files:
            outcome = self._write_into(files)
        if not self._closed:
            self._settled.emit(outcome)

    def _write_into(self, files: IncomingFiles) -> list[Path] | ErrorInfo:
        refusal: ErrorInfo | None = None
        while True:
            item = self._items.get()
            if isinstance(item, ErrorInfo):
                return refusal or item
            try:
                if isinstance(item, ExportReply):
                    return refusal or files.finish(item.files)
                if refusal is None:
                    files.add(item.part, item.data)
                self._written.emit()
            except FileWriteError as error:
                refusal = ErrorInfo.of(error)
                if isinstance(item, ExportReply):
                    return refusal
                self._refused.emit()
