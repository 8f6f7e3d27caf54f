"""Whether another process stands still because somebody stopped it (a signal, a debugger)."""

from __future__ import annotations

from pathlib import Path

STOPPED = (b"T", b"t")  # by a signal; by a tracer (man 5 proc)


def is_stopped(pid: int) -> bool:
    """True for a stopped process of this machine; False too where that can't be told, as outside Linux."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return line.rpartition(b")")[2].strip().startswith(STOPPED)
