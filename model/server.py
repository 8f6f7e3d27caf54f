"""The engine: frames in on one side, frames out on the other, and one thread that touches the model.

Four threads: a reader (frames in, cancels, acks), a writer (frames out), a light one (tokenising, sampler previews)
and the calling thread, which computes. A view that arrives while a model request runs is served at that request's
yield points, on the same thread, so nothing about the model needs a lock.
"""

from __future__ import annotations

import faulthandler
import importlib
import logging
import os
import socket
import threading
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from model.checkpoint.errors import WeightsCutError
from model.errors import CancelledError, DecoderscopeError, LackingError, shown_ends
from model.frame_writer import FrameWriter
from model.handler_registry import HANDLERS, EngineContext, Handlers
from model.jobs import Job, PreemptedError, Scheduler
from model.process import become_nice, die_with_parent, private_streams
from model.protocol.events import EngineStarting
from model.protocol.framing import Frame, FrameDecoder, ProtocolError, brief, encode_frame
from model.protocol.wire import (
    ErrorInfo,
    SupersededError,
    error_frame,
    event_frame,
    read_request,
    reply_frame,
)
from model.version import product_version

READ_BYTES = 2**18
GRACE_SECONDS = 0.5
EXIT_STREAM_ENDED, EXIT_START_FAILED, EXIT_PROTOCOL, EXIT_WEIGHTS_CUT = 0, 1, 2, 3
BACKGROUND_AFTER_SECONDS = 0.25  # how long a model request runs before background views are served inside it
DEFAULT_NICE = 10

_OUT_OF_MEMORY = ("can't allocate memory", "backend out of memory", "CUDA error: out of memory")  # host, mps, cuda

log = logging.getLogger(__name__)


class OutOfMemoryError(DecoderscopeError):
    """Memory ran out while a request was served; what it had built is gone, everything else is whole."""

    code = "out_of_memory"

    def __init__(self, method: str, device: str) -> None:
        self.method, self.device = method, device
        super().__init__(
            f"Memory ran out on {device} during {method}. The model is still open: try a shorter prompt, a smaller "
            "dtype or another device, or close other programs."
        )


class DeviceFailedError(DecoderscopeError):
    """A GPU reported a fault; its context is of no use any more, and only a new process gets another one."""

    code = "device_failed"

    def __init__(self, method: str, device: str, reason: str) -> None:
        self.method, self.device, self.reason = method, device, reason
        first = reason.strip().splitlines()[0] if reason.strip() else "no reason given"
        super().__init__(f"{device} failed during {method} ({first}). Restart the engine; the run comes back.")


def serve(
    stdin_fd: int = 0,
    stdout_fd: int = 1,
    *,
    load: Callable[[], tuple[Handlers, EngineContext]] | None = None,
    nice: int = DEFAULT_NICE,
) -> int:
    """Answers frames from `stdin_fd` on `stdout_fd` until the stream ends; returns the exit code.

    From here on whatever is printed to file descriptor 1 goes to stderr. `load` imports the handlers (the real ones
    when None); it runs after the stream is open, so that the other side knows the engine is there.
    """
    faulthandler.enable()
    frames_in, frames_out = private_streams(stdin_fd, stdout_fd)
    die_with_parent()
    become_nice(nice)
    return Server(frames_in, frames_out, load or load_handlers).run()


def load_handlers(threads: int = 0) -> tuple[Handlers, EngineContext]:
    """The real handlers, which import torch; it computes on `threads` threads (0: one a physical core)."""
    importlib.import_module("model.handlers")
    importlib.import_module("model.threads").use_threads(threads)
    return HANDLERS, EngineContext()


class Server:
    """One stream's worth of engine; see `serve`."""

    def __init__(self, frames_in: int, frames_out: int, load: Callable[[], tuple[Handlers, EngineContext]]) -> None:
        self._in = frames_in
        self._writer = FrameWriter(frames_out)
        self._load = load
        self._handlers: Handlers = {}
        self._context = EngineContext()
        self._scheduler = Scheduler()
        self._compute_thread = threading.get_ident()
        self._stack: list[Job] = []  # jobs begun on the compute thread, the innermost last
        self._background_rests_until = 0.0
        self._exit_code = EXIT_STREAM_ENDED

    def run(self) -> int:
        """Serves until the stream ends."""
        starting = EngineStarting(version=product_version(), pid=os.getpid(), host=socket.gethostname())
        self.send(event_frame("engine.starting", starting))
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        try:
            self._handlers, self._context = self._load()
        except Exception as error:
            log.exception("the engine cannot start")
            message = f"The engine cannot start: {type(error).__name__}: {error}"
            self.send(
                error_frame(None, ErrorInfo(code="start_failed", message=message, details=traceback.format_exc()))
            )
            self._writer.close(GRACE_SECONDS)
            return EXIT_START_FAILED
        threading.Thread(target=self._serve_light, name="light", daemon=True).start()
        while (job := self._scheduler.next_job(("model", "view"))) is not None:
            self._background_rests_until = time.monotonic() + BACKGROUND_AFTER_SECONDS
            self._serve(job)
        self._writer.close(GRACE_SECONDS)
        return self._exit_code

    # --- what jobs ask for (model/jobs.py: Host) ---

    def send(self, frame: Frame) -> None:
        """Queues a frame, waiting while too many bytes are under way."""
        self._writer.put(encode_frame(frame))

    @property
    def congested(self) -> bool:
        """Whether `send` would wait."""
        return self._writer.congested

    def serve_others(self, job: Job) -> None:
        """Serves the views that may be served inside `job`. Raises PreemptedError when `job` should make way."""
        if threading.get_ident() != self._compute_thread:
            return
        self._require_weights()
        if job.restartable and self._should_make_way():
            raise PreemptedError
        while self._can_nest(job):
            other = self._scheduler.take_view(background=job.lane == "model" and self._background_may_run())
            if other is None:
                return
            begun = time.monotonic()
            self._serve(other)
            now = time.monotonic()
            job.away_ms += (now - begun) * 1e3
            if other.background:  # at most half of a model request's time goes to pictures nobody waits for
                self._background_rests_until = now + (now - begun)

    def wait_in(self, job: Job, until: Callable[[], bool]) -> None:
        """Sleeps until `until`, a stop, or a view that may be served inside `job`."""
        self._scheduler.wait(lambda: until() or bool(job.stop) or self._scheduler.waiting("view"))

    @staticmethod
    def _can_nest(job: Job) -> bool:
        return job.lane == "model" or job.background or job.makes_files

    def _background_may_run(self) -> bool:
        return time.monotonic() >= self._background_rests_until

    def _should_make_way(self) -> bool:
        below = self._stack[:-1]
        return any(job.stop for job in below) or (not below and self._scheduler.waiting("model"))

    # --- the compute and light threads ---

    def _serve_light(self) -> None:
        while (job := self._scheduler.next_job(("light",))) is not None:
            self._serve(job)

    def _serve(self, job: Job) -> None:
        on_stack = job.lane != "light"
        if on_stack:
            self._stack.append(job)
        try:
            answer, failure = self._answer(job)
        finally:
            if on_stack:
                self._stack.pop()
        if answer is None and failure is None and self._scheduler.put_back(job):
            return
        self._scheduler.done(job)
        if isinstance(failure, OutOfMemoryError):
            self._context.empty_caches()  # here, where no traceback holds the tensors any more
        if answer is not None:
            self._writer.put(answer)
        else:
            self._send_error(job, failure or CancelledError())

    def _answer(self, job: Job) -> tuple[bytes | None, DecoderscopeError | ErrorInfo | None]:
        """The encoded reply, or what went wrong; neither when the job was preempted."""
        method = job.message.method
        try:
            job.check_cancel()
            self._require_weights()
            job.at = self._context.place if job.lane == "view" else None
            result, arrays = self._handlers[type(job.message)](self._context, job.message, job)
            if not isinstance(result, job.message.reply):
                raise TypeError(f"{method} was answered with {type(result).__name__}")
            return encode_frame(reply_frame(job.id, result, arrays, at=job.at)), None
        except PreemptedError:
            return None, None
        except DecoderscopeError as error:
            if isinstance(error, WeightsCutError):
                self._give_up(ErrorInfo.of(error))
            return None, ErrorInfo.of(error) if not isinstance(error, OutOfMemoryError) else error
        except BaseException as error:  # Rust panics and a library's sys.exit are BaseExceptions
            if is_out_of_memory(error):
                return None, OutOfMemoryError(method, self._device())
            log.exception("%s failed", method)
            if (lacking := LackingError.of(error)) is not None:
                return None, lacking
            if type(error).__name__ == "AcceleratorError":
                return None, DeviceFailedError(method, self._device(), str(error))
            reason = f"{type(error).__name__}: {shown_ends(str(error), 400)}"  # of a library, as long as it likes
            return None, ErrorInfo(
                code="internal",
                message=f"Something went wrong inside the engine during {method}: {reason}",
                details=traceback.format_exc(),
            )

    def _require_weights(self) -> None:
        if self._context.model is not None:
            self._context.model.require_weights()

    def _give_up(self, why: ErrorInfo) -> None:
        """The weights are gone from under the model: touching them would end this process without a word."""
        log.error("%s", why.message)
        self._exit_code = EXIT_WEIGHTS_CUT
        self._writer.put(encode_frame(error_frame(None, why)), wait=False)
        self._scheduler.close()

    def _send_error(self, job: Job, failure: DecoderscopeError | ErrorInfo) -> None:
        if job.stop == "superseded":
            failure = SupersededError()
        elif job.stop == "cancelled" and self._exit_code != EXIT_WEIGHTS_CUT:
            failure = CancelledError()
        info = failure if isinstance(failure, ErrorInfo) else ErrorInfo.of(failure)
        self._writer.put(encode_frame(error_frame(job.id, info)), wait=False)

    def _device(self) -> str:
        return self._context.model.info.device if self._context.model is not None else "this machine"

    # --- the reader thread ---

    def _read(self) -> None:
        decoder = FrameDecoder()
        try:
            while data := os.read(self._in, READ_BYTES):
                for frame in decoder.feed(data):
                    self._dispatch(frame)
        except ProtocolError as error:
            self._exit_code = EXIT_PROTOCOL
            self._writer.put(encode_frame(error_frame(None, ErrorInfo.of(error))), wait=False)
        except OSError:
            log.exception("the stream from the other side broke")
        except Exception as error:  # a reader that dies unheard would leave an engine that never answers
            log.exception("a frame could not be taken in")
            self._exit_code = EXIT_PROTOCOL
            info = ErrorInfo(code="internal", message=f"A frame could not be taken in: {error}")
            self._writer.put(encode_frame(error_frame(None, info)), wait=False)
        self._end()

    def _end(self) -> NoReturn:
        """The other side is gone or cannot be understood: stop what runs, and go even if it does not stop."""
        self._scheduler.close()
        self._writer.release()
        time.sleep(GRACE_SECONDS)
        os._exit(self._exit_code)

    def _dispatch(self, frame: Frame) -> None:
        if "cancel" in frame.header:
            if (queued := self._scheduler.cancel(_whole(frame, "cancel"))) is not None:
                self._send_error(queued, CancelledError())
            return
        if "ack" in frame.header:
            self._scheduler.ack(_whole(frame, "ack"))
            return
        try:
            asked = read_request(frame)
        except ProtocolError:
            raise
        except DecoderscopeError as error:
            info = ErrorInfo.of(error)
            self._writer.put(encode_frame(error_frame(_whole(frame, "id"), info)), wait=False)
            return
        if self._scheduler.knows(asked.id):
            raise ProtocolError(f"Request id {asked.id} was used again before its answer.")
        for superseded in self._scheduler.add(Job(asked, self)):
            superseded.stop = "superseded"
            self._send_error(superseded, SupersededError())


def _whole(frame: Frame, key: str) -> int:
    value = frame.header[key]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ProtocolError(f"{key} is {brief(value)}, expected the whole number of a request.")
    return value


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` says that an allocation failed, on the host or a GPU (torch has no common class for it)."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY))
    )
