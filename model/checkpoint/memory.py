"""How much memory there is for a model, by device, asked before anything is allocated."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import torch

_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
_CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


def available_bytes(device: torch.device) -> int:
    """Free bytes of the device's memory; for the CPU within the container's limit, if there is one."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    free = int(psutil.virtual_memory().available)
    limit, used = _number(_CGROUP_LIMIT), _number(_CGROUP_USED)
    return free if limit is None or used is None else max(0, min(free, limit - used))


def give_back() -> None:
    """Returns freed memory to the system: glibc keeps what lies between blocks that are in use."""
    if (trim := _trim()) is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (OSError, TypeError):  # not a C library that can be asked
        return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
