"""The engine itself: who answers, what it runs on, what it holds."""

from __future__ import annotations

import logging
import os
import platform
import socket

import psutil
import torch

from model.checkpoint.memory import available_bytes
from model.errors import DecoderscopeError
from model.handler_registry import Answer, EngineContext, handles
from model.handlers.models import catalogue_entries
from model.jobs import Job
from model.memory import amount, process_bytes
from model.protocol.engine_requests import DeviceInfo, GetMemory, Hello, HelloReply, SetBudget
from model.protocol.values import MemoryInfo
from model.run import default_budget
from model.version import product_version

log = logging.getLogger(__name__)


class BudgetTooLargeError(DecoderscopeError):
    """A budget that the device's memory does not have."""

    code = "budget"

    def __init__(self, wanted: int, most: int) -> None:
        super().__init__(f"A budget of {amount(wanted)} can't be kept: {amount(most)} are free. Choose less, or 0.")


@handles(Hello)
def hello(_context: EngineContext, _message: Hello, _job: Job) -> Answer:
    """Versions, process, devices, models at hand."""
    reply = HelloReply(
        version=product_version(),
        torch=str(torch.__version__),
        pid=os.getpid(),
        host=socket.gethostname(),
        threads=torch.get_num_threads(),
        devices=devices(),
        catalogue=catalogue_entries(),
    )
    return reply, {}


@handles(GetMemory)
def memory(context: EngineContext, _message: GetMemory, _job: Job) -> Answer:
    """Bytes in use now, with or without a model and a run."""
    if context.run is not None:
        return context.run.memory(), {}
    rss, peak = process_bytes()
    info = context.model.info if context.model is not None else None
    reply = MemoryInfo(
        weights=info.weight_bytes if info is not None else 0,
        kv_used=0,
        kv_allocated=0,
        activations=0,
        rss=rss,
        peak_rss=peak,
        budget=0,
        available=available_bytes(torch.device(info.device if info is not None else "cpu")),
    )
    return reply, {}


@handles(SetBudget)
def set_budget(context: EngineContext, message: SetBudget, job: Job) -> Answer:
    """Bounds what is kept of runs. Nothing is dropped before room is needed."""
    device = torch.device(context.model.info.device if context.model is not None else "cpu")
    kept = context.run.store.nbytes if context.run is not None else 0
    most = available_bytes(device) + kept
    if not 0 <= message.bytes <= most:
        raise BudgetTooLargeError(message.bytes, most)
    context.budget_bytes = message.bytes or None
    if context.run is not None:
        context.run.store.budget = message.bytes or default_budget(device)
    return memory(context, GetMemory(), job)


def devices() -> tuple[DeviceInfo, ...]:
    """What torch can compute on here, the preferred first."""
    found = []
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        try:
            free, total = torch.cuda.mem_get_info(index)
            label = torch.cuda.get_device_name(index)
        except RuntimeError as error:  # a GPU in a bad state, or full to the last byte: the others still work
            log.warning("cuda:%d cannot be used: %s", index, error)
            continue
        found.append(DeviceInfo(name=f"cuda:{index}", label=label, total_bytes=total, free_bytes=free))
    ram = psutil.virtual_memory()
    if torch.backends.mps.is_available():
        found.append(DeviceInfo(name="mps", label="Apple GPU", total_bytes=ram.total, free_bytes=ram.available))
    label = platform.processor() or platform.machine()
    found.append(DeviceInfo(name="cpu", label=label, total_bytes=ram.total, free_bytes=ram.available))
    return tuple(found)
