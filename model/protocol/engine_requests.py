"""Requests about the engine itself and about models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.protocol.values import MemoryInfo, ModelInfo
from model.protocol.wire import Empty, Request, request

DType = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True, kw_only=True)
class DeviceInfo:
    """A device torch can use: `name` as given to `device=` ("cpu", "cuda:0"), a label, bytes in all and free."""

    name: str
    label: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """A model that can be fetched by name; `path` once it is on disk, else empty."""

    name: str
    title: str
    licence: str
    download_bytes: int
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class HelloReply:
    """Who answers: versions, process id, host, devices, models at hand."""

    version: str
    torch: str
    pid: int
    host: str
    threads: int
    devices: tuple[DeviceInfo, ...]
    catalogue: tuple[CatalogueEntry, ...]


@request("engine.hello", HelloReply)
@dataclass(frozen=True, kw_only=True)
class Hello(Request):
    """The first request."""


@request("engine.memory", MemoryInfo, lane="view")
@dataclass(frozen=True, kw_only=True)
class GetMemory(Request):
    """Bytes in use now."""


@request("engine.budget", MemoryInfo)
@dataclass(frozen=True, kw_only=True)
class SetBudget(Request):
    """How many `bytes` a run may keep besides the weights, the current run and those to come; 0: the engine's own
    choice. Refused (code `budget`) when the device has less."""

    bytes: int


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """What opening a model would take, before it is opened."""

    name: str
    family: str
    source: str
    parameters: int
    n_ctx: int
    device: str
    dtype: str
    weight_bytes: int
    file_bytes: int
    available_bytes: int
    fits: bool
    notes: tuple[str, ...] = ()


@request("model.plan", LoadPlan)
@dataclass(frozen=True, kw_only=True)
class PlanModel(Request):
    """Reads headers and configuration only. `source`: folder, .gguf file, hub id, catalogue name, "" = default."""

    source: str
    device: str = "auto"
    dtype: DType = "auto"


@request("model.open", ModelInfo)
@dataclass(frozen=True, kw_only=True)
class OpenModel(Request):
    """Opens a model; the previous one stays until the new one is whole. `threads` 0: the engine's choice."""

    source: str
    device: str = "auto"
    dtype: DType = "auto"
    threads: int = 0


@request("model.close", Empty)
@dataclass(frozen=True, kw_only=True)
class CloseModel(Request):
    """Frees the model and its run."""


@request("model.get", CatalogueEntry)
@dataclass(frozen=True, kw_only=True)
class GetModel(Request):
    """Fetches a catalogue model, with progress; uses the network."""

    name: str


@dataclass(frozen=True, kw_only=True)
class CheckRow:
    """One line of the self-check: what was compared, the largest error found, the bound, whether it holds."""

    name: str
    title: str
    error: float
    bound: float
    ok: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class SelfCheckReply:
    """The checks made, in order."""

    rows: tuple[CheckRow, ...]


@request("engine.self_check", SelfCheckReply, lane="view")
@dataclass(frozen=True, kw_only=True)
class SelfCheck(Request):
    """Proves the numbers of the current run against the model's own (recomputed rows · V · W_o = layer output …).
    `quick`: only what costs under a second on the stored run."""

    quick: bool = True
