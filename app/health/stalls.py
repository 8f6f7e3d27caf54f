"""Watches the GUI thread: when it does not come round for 150 ms, the log says for how long and where it was."""

from __future__ import annotations

import faulthandler
import logging
import re
import tempfile
import threading
import time

from PySide6.QtCore import QObject, Qt, QTimer

log = logging.getLogger("decoderscope.app")
STALL_SECONDS = 0.150
BEAT_MS = 40
LOOK_SECONDS = 0.04
MAX_LOGGED = 50
"""Stalls told in full; a machine that swaps would fill the log otherwise."""


class StallWatch(QObject):
    """A timer beats on the GUI thread and a thread of its own listens. Make and stop it on the GUI thread."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.stalls = 0
        self._gui = threading.get_ident()
        self._beaten = time.monotonic()
        self._over = threading.Event()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)
        self._timer.start(BEAT_MS)
        self._thread = threading.Thread(target=self._listen, name="stall watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it and waits for its thread."""
        self._timer.stop()
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        self._beaten = time.monotonic()

    def _listen(self) -> None:
        stack, since = "", 0.0
        while not self._over.wait(LOOK_SECONDS):
            beaten = self._beaten
            if stack and beaten != since:
                self._tell(beaten - since, stack)
                stack = ""
            if not stack and time.monotonic() - beaten > STALL_SECONDS + BEAT_MS / 1000:
                stack, since = stack_of(self._gui), beaten

    def _tell(self, seconds: float, stack: str) -> None:
        self.stalls += 1
        if self.stalls <= MAX_LOGGED:
            log.warning(
                "the window stood still for %.0f ms, here after %.0f:\n%s", seconds * 1000, STALL_SECONDS * 1000, stack
            )


def stack_of(thread: int) -> str:
    """Where a thread is now, most recent call first; `thread` is its `threading.get_ident()`.

    Not sys._current_frames(): whoever holds a frame of a paintEvent when that returns keeps its QPainter alive, and
    destroys it on the wrong thread. faulthandler reads the stack without holding any of it.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        stacks = file.read().split("\n\n")
    begin = re.compile(rf"(Current thread|Thread) 0x0*{thread:x}\b")
    return next((stack for stack in stacks if begin.match(stack.lstrip())), "no stack")
