"""What opening a model takes: the device and dtype it will have, its bytes, and whether they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from model.checkpoint.errors import TooBigError
from model.config import DecoderConfig
from model.errors import BadValueError
from model.protocol.engine_requests import LoadPlan

DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
OVERHEAD = 1.03  # what loading needs beside the weights


@dataclass(frozen=True, kw_only=True)
class OpenPlan:
    """What opening a model would take. `bytes_by_dtype`: weights in memory by dtype; `weight_bytes`: as chosen."""

    name: str
    source: str
    config: DecoderConfig
    parameters: int
    bytes_by_dtype: Mapping[str, int]
    device: str
    dtype: str
    file_bytes: int
    available_bytes: int
    notes: tuple[str, ...]

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights as they will be loaded."""
        return self.bytes_by_dtype[self.dtype]

    @property
    def fits(self) -> bool:
        """Whether the weights fit into what is free on the device."""
        return self.weight_bytes * OVERHEAD <= self.available_bytes

    def require_fit(self) -> None:
        """TooBigError when they don't, with what would."""
        if self.fits:
            return
        smaller = [
            name for name, size in self.bytes_by_dtype.items() if size * OVERHEAD <= self.available_bytes and size
        ]
        ways = [f"{' or '.join(smaller)} would fit"] if smaller else []
        ways += (
            ["the cpu may have more room"] if self.device != "cpu" else ["close other programs or take a smaller model"]
        )
        raise TooBigError(
            f"{self.name} in {self.dtype}", needed=self.weight_bytes, available=self.available_bytes,
            device=self.device, remedy=f"{'; '.join(ways).capitalize()}.",
        )  # fmt: skip

    def reply(self) -> LoadPlan:
        """The plan as the protocol's value."""
        return LoadPlan(
            name=self.name,
            family=self.config.family,
            source=self.source,
            parameters=self.parameters,
            n_ctx=self.config.n_ctx,
            device=self.device,
            dtype=self.dtype,
            weight_bytes=self.weight_bytes,
            file_bytes=self.file_bytes,
            available_bytes=self.available_bytes,
            fits=self.fits,
            notes=self.notes,
        )


def select_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto": cuda, else mps, else cpu. BadValueError for one this machine lacks."""
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if name == "auto":
        return torch.device("cuda:0" if cuda else "mps" if mps else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise BadValueError("device", name, f"one of {', '.join(device_names())}") from error
    index = device.index or 0
    there = {"cpu": index == 0, "mps": mps and index == 0, "cuda": cuda and index < torch.cuda.device_count()}
    if not there.get(device.type, False):
        raise BadValueError("device", name, f"one of {', '.join(device_names())}")
    return torch.device("cuda", index) if device.type == "cuda" else torch.device(device.type)


def device_names() -> list[str]:
    """Devices of this machine, the preferred first; "auto" is always understood."""
    names = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return ["auto", *names, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def select_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype called `name`; "auto": float32 on a CPU, bfloat16 on CUDA, float16 on mps and older GPUs."""
    if name == "auto":
        if device.type == "cuda":
            return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
        return torch.float16 if device.type == "mps" else torch.float32
    if name not in DTYPES:
        raise BadValueError("dtype", name, f"auto or one of {', '.join(DTYPES)}")
    return DTYPES[name]


def dtype_name(dtype: torch.dtype) -> str:
    """torch.float32 as "float32"."""
    return str(dtype).removeprefix("torch.")
