"""A safetensors file written tensor by tensor to a stream, in bounded memory."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import torch
from torch import Tensor

from model.device import to_host

_CODES: dict[torch.dtype, str] = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_BLOCK = 16 * 2**20


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """A tensor to be written: its name, dtype and shape known beforehand; its values when their turn comes, in order,
    in blocks along one axis: (n, …) whose other axes are the tensor's last ones."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    blocks: Callable[[], Iterable[Tensor]]

    @classmethod
    def of(cls, name: str, tensor: Tensor) -> Piece:
        """One whose values are at hand."""
        return cls(name=name, dtype=tensor.dtype, shape=tuple(tensor.shape), blocks=lambda: (tensor,))

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * self.dtype.itemsize


def write_tensors(
    pieces: Sequence[Piece], out: IO[bytes], metadata: Mapping[str, str], *, check: Callable[[], None]
) -> None:
    """Writes the file; `check` is called between blocks and may raise. Format:
    https://github.com/huggingface/safetensors#format, the data aligned to 8 bytes."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    offset = 0
    for piece in pieces:
        header[piece.name] = {
            "dtype": _CODES[piece.dtype],
            "shape": list(piece.shape),
            "data_offsets": [offset, offset + piece.nbytes],
        }
        offset += piece.nbytes
    text = json.dumps(header, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    out.write(len(text).to_bytes(8, "little"))
    out.write(text)
    for piece in pieces:
        written = 0
        for block in piece.blocks():
            check()
            inner = tuple(block.shape[1:])
            if block.dtype != piece.dtype or inner != piece.shape[len(piece.shape) - len(inner) :]:
                raise ValueError(f"{piece.name} came as {block.dtype} {tuple(block.shape)}")
            data = to_host(block.detach()).contiguous().reshape(-1).view(torch.uint8).numpy()  # (bytes,)
            for start in range(0, data.size, _BLOCK):
                out.write(data[start : start + _BLOCK].data)
            written += data.size
        if written != piece.nbytes:
            raise ValueError(f"{piece.name} came with {written:,} bytes, expected {piece.nbytes:,}")
