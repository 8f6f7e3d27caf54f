"""Bytes: what this process holds, and how an amount is written."""

from __future__ import annotations

import sys

import psutil

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def process_bytes() -> tuple[int, int]:
    """Resident memory of this process, now and at its highest."""
    info = psutil.Process().memory_info()
    if sys.platform == "win32":
        return int(info.rss), int(info.peak_wset)
    import resource  # noqa: PLC0415 - exists on POSIX only

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(info.rss), max(int(info.rss), peak if sys.platform == "darwin" else peak * 1024)


def amount(n_bytes: float) -> str:
    """1234567 → '1.23 MB'."""
    for unit in _UNITS:
        if n_bytes < 1000 or unit == _UNITS[-1]:
            return f"{n_bytes:.3g} {unit}" if unit != "bytes" else f"{n_bytes:.0f} bytes"
        n_bytes /= 1000
    raise AssertionError
