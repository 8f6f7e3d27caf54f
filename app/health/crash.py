"""What happens to errors nobody caught: a log file, a line for the person, and a stack on a hard crash."""

from __future__ import annotations

import faulthandler
import logging
import logging.handlers
import os
import signal
import sys
import threading
import time
import traceback
from io import TextIOWrapper
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO

from PySide6.QtCore import QMessageLogContext, QSocketNotifier, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from app.health.report import CRASH_LOG
from app.i18n import tr
from app.notify import Notifier, Trouble
from app.settings import log_folder
from app.small_files import open_regular

log = logging.getLogger("decoderscope.app")
MAX_LOG_BYTES = 2**20
QUIET_SECONDS = 30.0
"""How long the same error from the same line is not told again."""
_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}
_HARMLESS = ("propagateSizeHints", "QFont::setPixelSize", "XDG_RUNTIME_DIR")


def install(notify: Notifier) -> None:
    """Log file, excepthook, Qt's messages, faulthandler."""
    stream = _open_log()
    faulthandler.enable(file=stream or sys.stderr, all_threads=True)
    told: dict[tuple[object, ...], float] = {}

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            QApplication.quit()
            return
        details = "".join(traceback.format_exception(kind, error, trace))
        last = traceback.extract_tb(trace)[-1:]
        key, now = (kind, *((frame.filename, frame.lineno) for frame in last)), time.monotonic()
        if now - told.get(key, -QUIET_SECONDS) < QUIET_SECONDS:  # an error in painting comes sixty times a second
            return
        told[key] = now
        notify.fail(
            Trouble(
                title=tr("Something in the window went wrong"),
                message=tr(
                    "{error}. Nothing is lost; if it comes again, please report it with the details.",
                    error=str(error) or kind.__name__,
                ),
                details=details,
            )
        )

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        log.error("in a thread", exc_info=arguments.exc_value)

    sys.excepthook = hook
    threading.excepthook = thread_hook
    qInstallMessageHandler(_on_qt_message)


class LogFile(logging.handlers.RotatingFileHandler):
    """Never waits for what is no file under the log's name: OSError."""

    def _open(self) -> TextIOWrapper:
        return _appended(Path(self.baseFilename))


def _appended(path: Path) -> TextIOWrapper:
    """A file to go on with, which is made where there is none; names that are not UTF-8 are escaped in it."""
    descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")


def _open_log() -> IO[str] | None:
    """The log file's stream for faulthandler; None without one. A log that can't be opened goes to stderr."""
    log.setLevel(logging.INFO)
    path: Path = log_folder() / "decoderscope.log"
    handler: logging.Handler
    refused: OSError | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = LogFile(path, maxBytes=MAX_LOG_BYTES, backupCount=2, encoding="utf-8")
    except OSError as error:
        handler, refused = logging.StreamHandler(), error
    stream: IO[str] | None = None
    try:
        stream = _appended(path.with_name(CRASH_LOG))
    except OSError as error:
        refused = refused or error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    if refused is not None:
        log.warning("%s can't be written: %s", refused.filename or path.parent, refused.strerror)
    return stream


def _on_qt_message(kind: QtMsgType, context: QMessageLogContext, message: str | None) -> None:
    if not any(word in (message or "") for word in _HARMLESS):
        log.log(_LEVELS.get(kind, logging.WARNING), "Qt: %s (%s:%s)", message, context.file, context.line)


def quit_on_signals(application: QApplication) -> None:
    """SIGINT, SIGTERM and, unless it is ignored (nohup), SIGHUP close the window as a person would."""
    import socket  # noqa: PLC0415 - only where signals are handled

    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    notifier = QSocketNotifier(near.fileno(), QSocketNotifier.Type.Read, application)

    def wake() -> None:
        if near.recv(64):
            application.closeAllWindows()
            application.quit()

    def note(_number: int, _frame: FrameType | None) -> None:
        """Python runs this when the interpreter next does; the byte written to the socket wakes Qt's loop for it."""

    notifier.activated.connect(wake)
    signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, note)

    # A slot that is a bound method keeps its object only weakly, and a collected socket would read as a signal.
    def close() -> None:
        near.close()
        far.close()

    notifier.destroyed.connect(close)
