"""Watches the GUI thread: when it does not come round for 150 ms, the log says for how long and where it was."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback

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
                stack, since = self._stack(), beaten

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._gui)
        return "".join(traceback.format_stack(frame)) if frame is not None else "no stack"

    def _tell(self, seconds: float, stack: str) -> None:
        self.stalls += 1
        if self.stalls <= MAX_LOGGED:
            log.warning(
                "the window stood still for %.0f ms, here after %.0f:\n%s", seconds * 1000, STALL_SECONDS * 1000, stack
            )
