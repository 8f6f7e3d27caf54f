"""Frames on their way out: a bounded queue and the thread that empties it."""

from __future__ import annotations

import os
import threading
from collections import deque

MAX_QUEUED_BYTES = 32 * 2**20


class FrameWriter:
    """Writes whole frames in order. Callers wait while more than 32 MiB are under way (backpressure)."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._closing = self._released = self._broken = False
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)
        self._thread.start()

    @property
    def congested(self) -> bool:
        """Whether `put` would wait."""
        return self._bytes > MAX_QUEUED_BYTES

    def put(self, data: bytes, *, wait: bool = True) -> None:
        """Queues one frame; with `wait`, first waits for room."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: not self.congested or self._released or self._broken)
            if not self._broken:
                self._queue.append(data)
                self._bytes += len(data)
                self._changed.notify_all()

    def release(self) -> None:
        """Lets every waiting caller go on: nothing more will be read on the other side."""
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def close(self, timeout: float) -> None:
        """Waits at most `timeout` seconds for what is queued to be written."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return
                data = self._queue.popleft()
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError:  # the reader's end of file says the same and ends the engine
                with self._changed:
                    self._broken = True
                    self._queue.clear()
                    self._bytes = 0
                    self._changed.notify_all()
                return
            with self._changed:
                self._bytes -= len(data)
                self._changed.notify_all()
