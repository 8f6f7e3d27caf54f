"""Bytes: what this process holds, and how an amount is written."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def process_bytes() -> tuple[int, int]:
    """Resident memory of this process, now and at its highest."""
    info = psutil.Process().memory_info()
    if sys.platform == "win32":
        return int(info.rss), int(info.peak_wset)
    if (highest := _highest_on_linux()) is not None:
        return int(info.rss), max(int(info.rss), highest)
    import resource  # noqa: PLC0415 - exists on POSIX only

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(info.rss), max(int(info.rss), peak if sys.platform == "darwin" else peak * 1024)


def _highest_on_linux() -> int | None:
    """The kernel's own mark of this program: getrusage's also counts the process that started it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def amount(n_bytes: float) -> str:
    """1234567 → '1.23 MB'."""
    for unit in _UNITS:
        if n_bytes < 1000 or unit == _UNITS[-1]:
            return f"{n_bytes:.3g} {unit}" if unit != "bytes" else f"{n_bytes:.0f} bytes"
        n_bytes /= 1000
    raise AssertionError
