"""Tensors of safetensors files, read with plain reads from the very descriptors whose headers were checked.

No mapping: a file truncated meanwhile is an error, not a killed process.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from model.checkpoint.errors import BadFileError
from model.checkpoint.paths import open_regular
from model.checkpoint.progress import CheckCancel
from model.checkpoint.safetensors_folder import INDEX, check_index
from model.checkpoint.safetensors_header import Header, read_header
from model.checkpoint.tensors import FLOAT_BYTES, Entry

DTYPES: Mapping[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_CHUNK = 16 << 20


def read_into(
    file: io.FileIO, path: Path, where: str, offset: int, buffer: memoryview, check_cancel: CheckCancel
) -> None:
    """Fills `buffer` from `offset`; BadFileError when the file ends first."""
    file.seek(offset)
    done = 0
    while done < len(buffer):
        check_cancel()
        count = file.readinto(buffer[done : done + _CHUNK])
        if not count:
            raise BadFileError(
                path, "truncated while it was read", where=where, found=f"{done} bytes",
                expected=f"{len(buffer)} bytes",
                remedy="Something changed the file; open it again once it is whole.",
            )  # fmt: skip
        done += count


class OpenFiles:
    """The descriptors of a checkpoint, and a check that nobody wrote to the files meanwhile."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._stack = contextlib.ExitStack()
        self.files: dict[Path, io.FileIO] = {}
        self._stamps: dict[Path, tuple[int, int]] = {}
        try:
            for path in paths:
                self.files[path] = self._stack.enter_context(io.FileIO(open_regular(path), "r"))
                self._stamps[path] = self._stamp(path)
        except BaseException:
            self.close()
            raise

    def _stamp(self, path: Path) -> tuple[int, int]:
        status = os.fstat(self.files[path].fileno())
        return status.st_size, status.st_mtime_ns

    @property
    def total_bytes(self) -> int:
        """Bytes of all files."""
        return sum(size for size, _ in self._stamps.values())

    def verify(self) -> None:
        """BadFileError if a file was written to since it was opened."""
        for path, stamp in self._stamps.items():
            if self._stamp(path) != stamp:
                raise BadFileError(path, "changed while it was read", remedy="Open it again once it is whole.")

    def close(self) -> None:
        """Closes every descriptor."""
        self._stack.close()


class SafetensorsSource:
    """One or more safetensors files as one set of tensors; BadFileError for a tensor in two files."""

    def __init__(self, paths: Sequence[Path], weight_map: Mapping[str, str] | None = None) -> None:
        self.files = OpenFiles(paths)
        try:
            self.headers = [read_header(file.fileno(), path) for path, file in self.files.files.items()]
            self._entries = self._join(self.headers)
            if weight_map is not None:
                held = {name: entry.path.name for name, entry in self._entries.items()}
                check_index(paths[0].parent / INDEX, weight_map, held)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _join(headers: Sequence[Header]) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for header in headers:
            for name, entry in header.entries.items():
                if name in entries:
                    raise BadFileError(header.path, f"this tensor is in {entries[name].path.name} too", where=name)
                entries[name] = entry
        return entries

    @property
    def entries(self) -> Mapping[str, Entry]:
        """Every tensor by its name."""
        return self._entries

    def is_float(self, name: str) -> bool:
        """Whether the tensor is of a floating-point type that torch computes with."""
        return self._entries[name].dtype in FLOAT_BYTES

    def read(self, name: str, check_cancel: CheckCancel) -> torch.Tensor:
        """The tensor in its stored dtype, in memory of its own."""
        entry = self._entries[name]
        return self._read(entry, entry.start, entry.shape, check_cancel)

    def read_rows(self, name: str, begin: int, end: int, check_cancel: CheckCancel) -> torch.Tensor:
        """Rows `begin` to `end` of the first dimension."""
        entry = self._entries[name]
        row = entry.nbytes // entry.shape[0]
        return self._read(entry, entry.start + begin * row, (end - begin, *entry.shape[1:]), check_cancel)

    def _read(self, entry: Entry, start: int, shape: tuple[int, ...], check_cancel: CheckCancel) -> torch.Tensor:
        tensor = torch.empty(shape, dtype=DTYPES[entry.dtype])
        if tensor.numel():
            buffer = tensor.view(-1).view(torch.uint8).numpy().data
            read_into(self.files.files[entry.path], entry.path, entry.name, start, buffer, check_cancel)
        return tensor

    def verify(self) -> None:
        """BadFileError if a file was written to since it was opened."""
        self.files.verify()

    def close(self) -> None:
        """Closes the files."""
        self.files.close()
