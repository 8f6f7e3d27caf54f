"""An engine as a child process, spoken to in frames: what the window does, without a window."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import psutil

from model.protocol.framing import Arrays, Frame, FrameDecoder, encode_frame
from model.protocol.wire import Priority, Request, ack_frame, cancel_frame, request_frame

SECONDS = 30.0


class EngineChild:
    """Starts `command`; every wait ends after 30 s with a failed test."""

    def __init__(self, command: list[str], **environment: str) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | environment,
        )
        self.frames: list[Frame] = []
        self._decoder = FrameDecoder()
        self._ids = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):  # a pipe with a frame that was never read
                assert stream is not None
                stream.close()

    def ask(
        self,
        message: Request,
        *,
        slot: str | None = None,
        priority: Priority = "interactive",
        arrays: Arrays | None = None,
    ) -> int:
        """Sends a request; returns its id."""
        self._ids += 1
        self.write(encode_frame(request_frame(self._ids, message, slot=slot, priority=priority, arrays=arrays)))
        return self._ids

    def cancel(self, request_id: int) -> None:
        self.write(encode_frame(cancel_frame(request_id)))

    def ack(self, request_id: int, seq: int) -> None:
        self.write(encode_frame(ack_frame(request_id, seq)))

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def close(self) -> None:
        """Closes the engine's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def read(self, seconds: float = SECONDS) -> bool:
        """Takes in what the engine writes next; False at its end or after `seconds`."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                return False
        data = os.read(self.process.stdout.fileno(), 2**20)
        self.frames += self._decoder.feed(data)
        return bool(data)

    def wait(self, found: Callable[[Frame], bool]) -> Frame:
        """The first frame, old or new, that `found` accepts."""
        deadline, seen = time.monotonic() + SECONDS, 0
        while True:
            for frame in self.frames[seen:]:
                if found(frame):
                    return frame
            seen = len(self.frames)
            if time.monotonic() > deadline or not self.read():
                raise AssertionError(f"never came; the last were {[str(f.header)[:300] for f in self.frames[-5:]]}")

    def answer(self, request_id: int) -> Frame:
        """The reply or error that ended a request."""
        return self.wait(lambda frame: frame.header.get("id") == request_id and ends(frame))

    def result(self, request_id: int) -> dict[str, Any]:
        header = self.answer(request_id).header
        assert "result" in header, header
        result: dict[str, Any] = header["result"]
        return result

    def error(self, request_id: int) -> dict[str, Any]:
        header = self.answer(request_id).header
        assert "error" in header, header
        error: dict[str, Any] = header["error"]
        return error

    def of(self, request_id: int, key: str) -> list[Frame]:
        """Frames of a request that hold `key` and have come so far."""
        return [frame for frame in self.frames if frame.header.get("id") == request_id and key in frame.header]

    def order(self) -> list[int]:
        """Ids in the order in which they were answered."""
        return [frame.header["id"] for frame in self.frames if ends(frame)]

    def ended(self, seconds: float) -> int:
        """The exit code, which must come within `seconds`."""
        return self.process.wait(seconds)


def ends(frame: Frame) -> bool:
    return "result" in frame.header or "error" in frame.header


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
