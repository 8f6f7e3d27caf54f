"""To a device and back: what a GPU needs so that nothing waits for it but who wants its numbers.

A GPU runs behind the program that feeds it. A copy it can make beside its work reads or writes pinned host memory; an
ordinary one stops the program until all before it is done, as does every value read in Python.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch import Tensor

PIECE_BYTES = 32 << 20
"""Of a large tensor, what is pinned at a time: the next piece is read while the last one is on its way."""


def _pins(device: torch.device) -> bool:
    return device.type == "cuda"


def wait(device: torch.device) -> None:
    """Until what was given to the device is done; nothing on a CPU."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
    elif device.type == "mps":
        torch.mps.synchronize()


def to_device(tensor: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """A host tensor on `device` (itself where it is there already), as `dtype` (default: its own)."""
    if not _pins(device) or tensor.device == device:
        return tensor.to(device=device, dtype=dtype)
    there = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
    for source, target in zip(_pieces(tensor.contiguous()), _pieces(there), strict=True):
        target.copy_(source.pin_memory(), non_blocking=True)  # torch keeps a pinned block until its copy is through
    return there.to(dtype) if dtype is not None else there


def _pieces(tensor: Tensor) -> Iterator[Tensor]:
    flat = tensor.view(-1)
    return iter(torch.split(flat, max(1, PIECE_BYTES // tensor.dtype.itemsize)))


def to_host(tensor: Tensor) -> Tensor:
    """A tensor on the CPU (itself where it is there). For what is sent on or computed with: what stays is `kept`."""
    return all_to_host(tensor)[0]


def all_to_host(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Each on the CPU, after one wait for all of them."""
    home, devices = [], set()
    for tensor in tensors:
        if not _pins(tensor.device):
            home.append(tensor.cpu())
            continue
        pinned = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        home.append(pinned.copy_(tensor, non_blocking=True))
        devices.add(tensor.device)
    for device in devices:
        wait(device)
    return tuple(home)


def kept(tensor: Tensor) -> Tensor:
    """A tensor on the CPU, in memory that is not pinned, of which there is little; itself where it is there."""
    home = to_host(tensor)
    return home.clone() if _pins(tensor.device) else home


class Stopwatch:
    """Milliseconds of what a device is given from here on: by its own clock on CUDA, by ours elsewhere."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._begun = self._event() if device.type == "cuda" else None
        self._started = time.perf_counter()

    def _event(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event

    def ms(self) -> float:
        """Until now, all of it done: waits for the device."""
        if self._begun is None:
            wait(self._device)
            return (time.perf_counter() - self._started) * 1e3
        ended = self._event()
        ended.synchronize()
        return float(self._begun.elapsed_time(ended))
