"""The engine as the window sees it: one child process, requests that end exactly once, and what happened when it dies.

The only file that knows the process and the frames. The engine may be anything that speaks frames on its stdin and
stdout (`ssh gpu-box decoderscope engine`); by default it is `python -m model engine` of this very installation.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, QProcess, Qt, QTimer, Signal
from shiboken6 import isValid

from app.engine_child import child_environment, default_command, end_sentence
from app.health.stopped import is_stopped
from app.i18n import tr
from model.protocol.engine_requests import Hello, HelloReply
from model.protocol.errors import DecoderscopeError
from model.protocol.events import EVENTS, WeightsMapped
from model.protocol.export_requests import FilePart
from model.protocol.framing import Arrays, Frame, FrameDecoder, ProtocolError, encode_frame
from model.protocol.wire import (
    ErrorInfo,
    Place,
    Priority,
    Progress,
    Request,
    ack_frame,
    cancel_frame,
    read_place,
    read_value,
    request_frame,
)

LOST = "engine_lost"
LATER, REFUSED = object(), object()  # what a callback may return: a piece of a file is not written yet; it failed
SILENT_AFTER_MS = 2000
STOPPED_AFTER_MS = 10_000  # without a word, while something is asked: is its process stopped?
TURN_SECONDS = 0.001  # how long frames may be taken in before the window paints what came and its own events go first
READ_BYTES = 2**18
STDERR_BYTES = 2**16
ORDERLY_MS, TERMINATE_MS, KILL_MS = 300, 300, 1000

OnReply = Callable[[Any, Arrays], object]
OnPart = Callable[[Any, Arrays], object]
OnProgress = Callable[[Progress], object]
OnError = Callable[[ErrorInfo], object]


class EngineState(StrEnum):
    """Whether requests can be asked; `SILENT`: a cancel has gone unanswered for two seconds, or the engine's process is
    stopped and has said nothing for ten."""

    OFF = "off"
    STARTING = "starting"
    READY = "ready"
    SILENT = "silent"
    LOST = "lost"


@dataclass(frozen=True, kw_only=True)
class CrashInfo:
    """How an engine was lost: the sentence to show, its exit code and signal where known, the end of its stderr, when
    (seconds since the epoch)."""

    sentence: str
    exit_code: int | None
    signal: str
    stderr: str
    at: float


@dataclass(eq=False)
class Pending:
    """A request under way. `cancelling` is true from the moment `cancel` is called; `done` once it has ended."""

    id: int
    message: Request
    _client: EngineClient
    _callbacks: dict[str, Callable[..., object] | None]
    _owner: QObject | None
    cancelling: bool = False
    done: bool = False
    at: Place | None = None
    """Where the engine's run was when it made the answer that came last."""
    _cancelled_at: float = 0.0
    _acked: int = 0
    _asked_at: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds since it was asked."""
        return time.monotonic() - self._asked_at

    def cancel(self) -> None:
        """Asks for an early end, which comes as an error with code `cancelled`, or as the reply if that was faster."""
        if not (self.done or self.cancelling):
            self.cancelling, self._cancelled_at = True, time.monotonic()
            self._client._send_cancel(self)

    def ack(self) -> None:
        """Says that one more piece of a file was taken care of, where `on_part` returned LATER."""
        if not self.done:
            self._acked += 1
            self._client._write(ack_frame(self.id, self._acked - 1))


class EngineClient(QObject):
    """Starts the engine, asks it, and tells each answer to whoever asked, on the GUI thread."""

    stateChanged = Signal(object)  # EngineState
    busyChanged = Signal(bool)
    crashed = Signal(object)  # CrashInfo
    eventReceived = Signal(str, object)  # name and data (model/protocol/events.py)

    def __init__(self, parent: QObject | None = None, *, command: Sequence[str] | None = None) -> None:
        super().__init__(parent)
        self.state = EngineState.OFF
        self.message = ""
        self.hello: HelloReply | None = None
        self.crash: CrashInfo | None = None
        self._mapped: WeightsMapped | None = None
        self._command = list(command) if command else default_command()
        self._child: QProcess | None = None
        self._decoder = FrameDecoder()
        self._frames: deque[Frame] = deque()
        self._open: dict[int, Pending] = {}
        self._refused: deque[Pending] = deque()
        self._ids = itertools.count(1)
        self._stderr = bytearray()
        self._stream_error = ""
        self._ended = False  # the child is gone and what it wrote is still being taken in
        self._busy = False
        self._turn = self._timer(0, self._take_turn)
        self._silence = self._timer(SILENT_AFTER_MS, self._check_silence)
        self._unheard = self._timer(STOPPED_AFTER_MS, self._check_stopped)
        if (application := QCoreApplication.instance()) is not None:
            application.aboutToQuit.connect(self.close)

    @property
    def busy(self) -> bool:
        """Whether the model works: a request that is not a view is under way."""
        return self._busy

    @property
    def under_way(self) -> tuple[Pending, ...]:
        """What is asked and not answered, oldest first."""
        return tuple(self._open.values())

    @property
    def stderr(self) -> str:
        """The end of what the engine said on stderr."""
        return self._stderr.decode("utf-8", "replace")

    # --- the process ---

    def start(self, command: Sequence[str] | None = None) -> None:
        """Starts the engine, with another command from now on when one is given. Does nothing while one runs."""
        if command:
            self._command = list(command)
        if self._child is not None:
            return
        self._decoder, self._stream_error, self._ended = FrameDecoder(), "", False
        self._frames.clear()
        self._stderr.clear()
        self.hello = self.crash = self._mapped = None
        child = self._child = QProcess(self)
        child.setProcessEnvironment(child_environment())
        child.readyReadStandardOutput.connect(self._turn.start)
        child.readyReadStandardError.connect(self._take_stderr)
        child.errorOccurred.connect(self._on_process_error)
        child.finished.connect(self._on_finished)
        self._set_state(EngineState.STARTING, tr("Starting the engine …"))
        child.start(self._command[0], self._command[1:])
        self.request(Hello(), on_reply=self._on_hello, on_error=self._on_hello_error)

    def restart(self, command: Sequence[str] | None = None) -> None:
        """Ends the engine at once, however stuck it is, and starts a new one; `command`: see `start`, empty for this
        installation's own engine."""
        self._abandon(kill=True)
        self.start(command if command is None or command else default_command())

    def stop(self) -> None:
        """Ends the engine without waiting: asked by closing its stdin, then terminated, then killed."""
        self._abandon(kill=False)
        self._set_state(EngineState.OFF, "")

    def close(self) -> None:
        """Ends the engine and waits, a second at most: for the end of the program."""
        child = self._child
        if child is not None and isValid(child):
            self._forget(child)
            child.closeWriteChannel()
            if not child.waitForFinished(ORDERLY_MS):
                child.terminate()
                if not child.waitForFinished(TERMINATE_MS):
                    child.kill()
                    child.waitForFinished(KILL_MS)
        for leaving in self.findChildren(QProcess):
            leaving.kill()
            leaving.waitForFinished(KILL_MS)
        self._lose_requests(tr("The engine was stopped."))
        self._set_state(EngineState.OFF, "")

    # --- requests ---

    def request(
        self,
        message: Request,
        *,
        on_reply: OnReply | None = None,
        on_part: OnPart | None = None,
        on_progress: OnProgress | None = None,
        on_error: OnError | None = None,
        slot: str | None = None,
        priority: Priority = "interactive",
        arrays: Arrays | None = None,
        owner: QObject | None = None,
    ) -> Pending:
        """Asks the engine. Ends with exactly one call of `on_reply(reply, arrays)` or `on_error(info)`, always later
        than this call; none is made once `owner` (or the QObject whose method a callback is) has been destroyed.

        A newer request with the same `slot` replaces an older one that has not started (code `superseded`).
        Pieces of files are acknowledged when `on_part` returns; it may return LATER and `ack` once they are written.
        Without an engine the error code is `engine_lost`.
        """
        callbacks = {"result": on_reply, "part": on_part, "progress": on_progress, "error": on_error}
        pending = Pending(next(self._ids), message, self, callbacks, owner)
        if self._child is None:
            self._refused.append(pending)
            self._turn.start()
            return pending
        self._write(request_frame(pending.id, message, slot=slot, priority=priority, arrays=arrays))
        if not self._open:
            self._unheard.start()
        self._open[pending.id] = pending
        self._note_busy()
        return pending

    def _send_cancel(self, pending: Pending) -> None:
        if pending.id in self._open:
            self._write(cancel_frame(pending.id))
            if not self._silence.isActive():
                self._silence.start()

    def _write(self, frame: Frame) -> None:
        if self._child is not None and self._child.state() is not QProcess.ProcessState.NotRunning:
            self._child.write(encode_frame(frame))

    # --- what comes back ---

    def _take_turn(self) -> None:
        """Takes in what has come, for a few milliseconds; what is left waits for the next turn of the event loop."""
        for pending in list(self._refused):
            self._refused.remove(pending)
            self._end(pending, "error", ErrorInfo(code=LOST, message=tr("The engine is not running: start it again.")))
        child, until = self._child, time.monotonic() + TURN_SECONDS
        while child is not None and self._child is child:
            if self._frames:
                self._dispatch(self._frames.popleft())
            elif data := bytes(child.read(READ_BYTES).data()):
                self._unheard.start()  # whether more comes is asked ten seconds from now
                self._end_silence()
                self._decode(data)
            else:
                break
            if time.monotonic() > until:
                self._turn.start()
                return
        if self._ended and self._child is child and child is not None:
            self._lose(self._stream_error or end_sentence(_signal_name(child), child.exitCode(), self._mapped), child)

    def _decode(self, data: bytes) -> None:
        try:
            self._frames.extend(self._decoder.feed(data))
        except ProtocolError as error:
            assert self._child is not None
            self._child.kill()
            self._lose(tr("The engine cannot be understood. {why}", why=str(error)), self._child)

    def _dispatch(self, frame: Frame) -> None:
        header = frame.header
        try:
            if "event" in header:
                self._on_event(str(header["event"]), header.get("data"))
            elif header.get("id") is None and "error" in header:
                self._stream_error = read_value(header["error"], ErrorInfo).message
            elif (pending := self._open.get(header.get("id", 0))) is not None:
                self._answer(pending, frame)
        except DecoderscopeError:  # an event or stream error of another shape than ours
            self._report()

    def _answer(self, pending: Pending, frame: Frame) -> None:
        header, message = frame.header, pending.message
        pending.at = read_place(header.get("at"))
        try:
            if "result" in header:
                self._end(pending, "result", read_value(header["result"], message.reply), frame.arrays)
            elif "error" in header:
                self._end(pending, "error", read_value(header["error"], ErrorInfo))
            elif "progress" in header:
                self._call(pending, "progress", read_value(header["progress"], Progress))
            elif "part" in header and message.part is not None:
                self._on_part(pending, read_value(header["part"], message.part), frame)
        except DecoderscopeError as error:
            self._end(pending, "error", ErrorInfo.of(error))

    def _on_part(self, pending: Pending, part: object, frame: Frame) -> None:
        taken = self._call(pending, "part", part, frame.arrays)
        if not isinstance(part, FilePart):
            return
        if taken is REFUSED:
            pending.cancel()
        elif taken is not LATER:
            pending.ack()

    def _on_event(self, name: str, data: object) -> None:
        if name in EVENTS:
            value: object = read_value(data, EVENTS[name])
            if isinstance(value, WeightsMapped):
                self._mapped = value if value.path else None
            self.eventReceived.emit(name, value)

    def _end(self, pending: Pending, key: str, *values: object) -> None:
        pending.done = True
        self._open.pop(pending.id, None)
        self._end_silence()
        self._note_busy()
        self._call(pending, key, *values)
        pending._callbacks.clear()  # they may hold the one who asked

    def _call(self, pending: Pending, key: str, *values: object) -> object:
        """Calls back unless the one who asked is gone; returns what comes of it. An exception there is reported and
        ends nothing else; like the absence of an owner it gives REFUSED."""
        callback = pending._callbacks.get(key)
        if callback is None:
            return None
        owner = pending._owner if pending._owner is not None else getattr(callback, "__self__", None)
        if isinstance(owner, QObject) and not isValid(owner):
            return REFUSED
        try:
            return callback(*values)
        except Exception:  # noqa: BLE001 - as PySide6 does with a slot's exception
            self._report()
            return REFUSED

    @staticmethod
    def _report() -> None:
        sys.excepthook(*sys.exc_info())

    def _on_hello(self, reply: HelloReply, _arrays: Arrays) -> None:
        self.hello = reply
        self._set_state(EngineState.READY, "")

    def _on_hello_error(self, error: ErrorInfo) -> None:
        if error.code != LOST and self._child is not None:
            self._child.kill()
            self._lose(error.message, self._child)

    # --- how it ends ---

    def _take_stderr(self) -> None:
        if self._child is not None:
            self._stderr += self._child.readAllStandardError().data()
            del self._stderr[:-STDERR_BYTES]

    def _on_process_error(self, error: QProcess.ProcessError) -> None:
        child = self.sender()
        if error is QProcess.ProcessError.FailedToStart and isinstance(child, QProcess) and child is self._child:
            why = tr(
                "The engine could not be started: {why} ({command})",
                why=child.errorString(),
                command=" ".join(self._command),
            )
            QTimer.singleShot(0, lambda: self._lose(why, child) if child is self._child else None)

    def _on_finished(self) -> None:
        if self.sender() is self._child:
            self._take_stderr()
            self._ended = True
            self._turn.start()

    def _lose(self, sentence: str, child: QProcess) -> None:
        ended_by = _signal_name(child)
        finished = child.state() is QProcess.ProcessState.NotRunning and not ended_by
        crash = CrashInfo(
            sentence=sentence, exit_code=child.exitCode() if finished else None, signal=ended_by,
            stderr=self.stderr, at=time.time(),
        )  # fmt: skip
        self.crash = crash
        self._forget(child)
        self._set_state(EngineState.LOST, sentence)
        self._lose_requests(sentence)
        self.crashed.emit(crash)

    def _lose_requests(self, sentence: str) -> None:
        for pending in list(self._open.values()):
            self._end(pending, "error", ErrorInfo(code=LOST, message=sentence, details=self.stderr))

    def _abandon(self, *, kill: bool) -> None:
        child = self._child
        if child is None:
            return
        self._forget(child)
        if kill:
            child.kill()
        else:
            child.closeWriteChannel()
            QTimer.singleShot(ORDERLY_MS, child, child.terminate)
            QTimer.singleShot(ORDERLY_MS + TERMINATE_MS, child, child.kill)
        self._lose_requests(tr("The engine was stopped."))

    def _forget(self, child: QProcess) -> None:
        """From here on `child` is only waited for, so that it leaves no zombie."""
        self._child = None
        self._frames.clear()
        self._silence.stop()
        self._unheard.stop()
        for signal_ in (child.readyReadStandardOutput, child.readyReadStandardError, child.errorOccurred):
            signal_.disconnect()
        child.finished.disconnect()
        child.finished.connect(child.deleteLater)
        if child.state() is QProcess.ProcessState.NotRunning:
            child.deleteLater()

    # --- state ---

    def _set_state(self, state: EngineState, message: str) -> None:
        if (state, message) != (self.state, self.message):
            self.state, self.message = state, message
            self.stateChanged.emit(state)

    def _note_busy(self) -> None:
        busy = any(pending.message.lane == "model" for pending in self._open.values())
        if busy != self._busy:
            self._busy = busy
            self.busyChanged.emit(busy)

    def _overdue(self) -> bool:
        limit = time.monotonic() - SILENT_AFTER_MS / 1000 + 0.05
        return any(p.cancelling and p._cancelled_at <= limit for p in self._open.values())

    def _check_silence(self) -> None:
        if self._overdue():
            self._set_state(EngineState.SILENT, tr("The engine has not answered for two seconds."))
        elif any(pending.cancelling for pending in self._open.values()):
            self._silence.start()

    def _check_stopped(self) -> None:
        if self._child is None or self.hello is None or not self._open:
            return
        if is_stopped(self._child.processId()):
            seconds = STOPPED_AFTER_MS // 1000
            self._set_state(
                EngineState.SILENT,
                tr("The engine has not answered for {n} seconds: its process is stopped.", n=seconds),
            )
        self._unheard.start()

    def _end_silence(self) -> None:
        if self.state is EngineState.SILENT and not self._overdue():
            self._set_state(EngineState.READY if self.hello else EngineState.STARTING, "")

    def _timer(self, interval_ms: int, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setTimerType(Qt.TimerType.PreciseTimer)
        timer.setInterval(interval_ms)
        timer.timeout.connect(slot)
        return timer


def _signal_name(child: QProcess) -> str:
    """The signal that ended `child`; empty when none did. On Unix Qt gives its number as the exit code."""
    if child.exitStatus() is not QProcess.ExitStatus.CrashExit or child.state() is not QProcess.ProcessState.NotRunning:
        return ""
    with contextlib.suppress(ValueError):
        return signal.Signals(child.exitCode()).name
    return ""
