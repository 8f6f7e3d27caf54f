"""The engine's place among the machine's processes: its streams, its priority, an end no later than its parent's."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import sys

import psutil

PR_SET_PDEATHSIG = 1  # Linux prctl(2)

log = logging.getLogger(__name__)


def private_streams(stdin_fd: int, stdout_fd: int) -> tuple[int, int]:
    """File descriptors for frames that no library can reach: what is printed goes to stderr, what is read is empty."""
    frames_in, frames_out = os.dup(stdin_fd), os.dup(stdout_fd)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, stdin_fd)
    os.close(null)
    os.dup2(2, stdout_fd)
    sys.stdout = sys.stderr
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - exists on Windows only

        for fd in (frames_in, frames_out):
            msvcrt.setmode(fd, os.O_BINARY)
    return frames_in, frames_out


def die_with_parent() -> None:
    """Has the kernel end this process with its parent, even inside a long computation (Linux), and leaves Ctrl-C, which
    a terminal sends to the whole group, to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def become_nice(increment: int) -> None:
    """Lowers this process's priority, so that the window always wins."""
    if increment <= 0:
        return
    try:
        if sys.platform == "win32":
            psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            os.nice(increment)
    except (OSError, psutil.Error) as error:
        log.warning("the engine keeps its priority: %s", error)


def wait_asleep() -> None:
    """Lets torch's threads sleep at a barrier instead of spinning; for OpenMP to read it, before torch is imported.

    Spinning saves a fifth of a decode step on an idle machine. On a busy one a niced engine spins away the time its own
    other threads need: steps of 50 ms took over a second.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def usable_cores() -> int:
    """Physical cores this process may run on, at least 1."""
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))
