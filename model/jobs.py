"""Requests under way: what a handler may ask of the engine while it works, and the queues requests wait in."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Literal, Protocol

from model.errors import CancelledError
from model.protocol.export_requests import FilePart
from model.protocol.framing import Arrays, Frame
from model.protocol.wire import Asked, Lane, Place, Priority, Progress, Request, event_frame, part_frame, progress_frame

PROGRESS_SECONDS = 0.05
MAX_UNACKED_PARTS = 8


class PreemptedError(CancelledError):
    """A background view makes way for a request that came later and matters more; it starts anew afterwards."""

    code = "preempted"


class Host(Protocol):
    """What a job needs of its engine."""

    def send(self, frame: Frame) -> None:
        """Queues a frame for the other side, waiting while too many bytes are under way."""

    @property
    def congested(self) -> bool:
        """Whether `send` would wait."""

    def serve_others(self, job: Job) -> None:
        """Serves requests that may be served inside `job`."""

    def wait_in(self, job: Job, until: Callable[[], bool]) -> None:
        """Sleeps until `until`, a stop, or a request that may be served inside `job`."""


class Job:
    """One request, as its handler sees it."""

    def __init__(self, asked: Asked, host: Host) -> None:
        self.id = asked.id
        self.message: Request = asked.message
        self.arrays: Arrays = asked.arrays
        self.slot = asked.slot
        self.priority: Priority = asked.priority
        self.lane: Lane = asked.message.lane
        self.makes_files = asked.message.part is FilePart
        self.at: Place | None = None  # where the run is that a view is answered of: it stays there meanwhile
        self.arrival = 0
        self.stop: Literal["", "cancelled", "superseded"] = ""
        self.acked = 0
        self.away_ms = 0.0  # spent serving others at yield points: not part of any time this request measures
        self._host = host
        self._seq = 0
        self._last_progress = ("", False, 0.0)

    @property
    def background(self) -> bool:
        """Whether interactive requests go before this one."""
        return self.priority == "background"

    @property
    def restartable(self) -> bool:
        """Views are pure, so one that nobody waits for may be thrown away half-way and started again."""
        return self.lane == "view" and self.background and not self.makes_files

    def check_cancel(self) -> None:
        """Raises CancelledError once the request is given up. Costs next to nothing."""
        if self.stop:
            raise CancelledError

    def yield_point(self) -> None:
        """Call where the state is whole: serves waiting views inside this request. Raises CancelledError."""
        self.check_cancel()
        self._host.serve_others(self)
        self.check_cancel()

    def progress(self, what: str, done: int, total: int, unit: str) -> None:
        """Says how far this is, at most 20 times a second; `total` 0 when it is unknown."""
        now, ended = time.monotonic(), 0 < total <= done
        last_what, last_ended, last_time = self._last_progress
        if (what, ended) == (last_what, last_ended) and (ended or now - last_time < PROGRESS_SECONDS):
            return
        if not self._host.congested:
            self._last_progress = (what, ended, now)
            self._host.send(progress_frame(self.id, Progress(what=what, done=done, total=total, unit=unit)))

    def event(self, name: str, data: object) -> None:
        """Says what the other side should know (model/protocol/events.py)."""
        self._host.send(event_frame(name, data))

    def part(self, part: object, arrays: Arrays | None = None) -> None:
        """Sends a piece of the answer. A piece of a file waits while 8 earlier ones are not written yet, serving
        views meanwhile, and raises CancelledError."""
        if self.makes_files:
            self.check_cancel()
            while self._seq - self.acked >= MAX_UNACKED_PARTS:
                self._host.wait_in(self, lambda: self._seq - self.acked < MAX_UNACKED_PARTS)
                self.yield_point()
        self._host.send(part_frame(self.id, self._seq, part, arrays, at=self.at))
        self._seq += 1


class Scheduler:
    """Queued and running requests of all lanes. Every method may be called from any thread and none blocks, but for
    `next_job` and `wait`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queued: list[Job] = []
        self._running: dict[int, Job] = {}
        self._arrivals = itertools.count()
        self._closed = False

    def knows(self, job_id: int) -> bool:
        """Whether a request with this id is queued or running."""
        with self._changed:
            return job_id in self._running or any(job.id == job_id for job in self._queued)

    def add(self, job: Job) -> list[Job]:
        """Queues `job`; returns the queued requests it supersedes. A running background view of the same slot is
        told to stop; an interactive one finishes, so that a dragged slider shows every picture it can."""
        with self._changed:
            job.arrival = next(self._arrivals)
            superseded = [other for other in self._queued if job.slot is not None and other.slot == job.slot]
            self._queued = [other for other in self._queued if other not in superseded] + [job]
            for other in self._running.values():
                if job.slot is not None and other.slot == job.slot and other.restartable:
                    other.stop = other.stop or "superseded"
            self._changed.notify_all()
            return superseded

    def put_back(self, job: Job) -> bool:
        """Queues a preempted job in its old place. False when it is not wanted any more (`job.stop` says why)."""
        with self._changed:
            self._running.pop(job.id, None)
            if self._closed:
                job.stop = job.stop or "cancelled"
            elif job.slot is not None and any(other.slot == job.slot for other in self._queued):
                job.stop = job.stop or "superseded"
            if not job.stop:
                self._queued.append(job)
            return not job.stop

    def cancel(self, job_id: int) -> Job | None:
        """Removes and returns a queued request; tells a running one to stop."""
        with self._changed:
            for job in self._queued:
                if job.id == job_id:
                    self._queued.remove(job)
                    job.stop = "cancelled"
                    return job
            if job_id in self._running:
                self._running[job_id].stop = "cancelled"
                self._changed.notify_all()
            return None

    def ack(self, job_id: int) -> None:
        """One more part of a running request was taken care of."""
        with self._changed:
            if job_id in self._running:
                self._running[job_id].acked += 1
                self._changed.notify_all()

    def done(self, job: Job) -> None:
        """Forgets a running job."""
        with self._changed:
            self._running.pop(job.id, None)

    def next_job(self, lanes: tuple[Lane, ...]) -> Job | None:
        """Waits for the next request of `lanes`: interactive first, then by arrival. None once closed."""
        with self._changed:
            while True:
                if self._closed:
                    return None
                if (job := self._first(lanes, background=True)) is not None:
                    return self._start(job)
                self._changed.wait()

    def take_view(self, *, background: bool) -> Job | None:
        """The next waiting view, if any; background ones only when asked for."""
        if not self._queued:  # read without the lock: this runs between all layers
            return None
        with self._changed:
            job = self._first(("view",), background=background)
            return self._start(job) if job is not None else None

    def waiting(self, lane: Lane) -> bool:
        """Whether an interactive request of `lane` waits."""
        return any(job.lane == lane and not job.background for job in tuple(self._queued))

    def wait(self, until: Callable[[], bool]) -> None:
        """Sleeps until `until`, which is asked again after every change, or the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or until())

    def close(self) -> None:
        """Tells everything to stop; nothing starts any more."""
        with self._changed:
            self._closed = True
            for job in (*self._queued, *self._running.values()):
                job.stop = job.stop or "cancelled"
            self._queued.clear()
            self._changed.notify_all()

    def _first(self, lanes: tuple[Lane, ...], *, background: bool) -> Job | None:
        fit = (job for job in self._queued if job.lane in lanes and (background or not job.background))
        return min(fit, key=lambda job: (job.background, job.arrival), default=None)

    def _start(self, job: Job) -> Job:
        self._queued.remove(job)
        self._running[job.id] = job
        return job
