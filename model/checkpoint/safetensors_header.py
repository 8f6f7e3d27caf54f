"""The header of a safetensors file, checked before anything is allocated.

Format: 8 bytes little-endian header length, a JSON object, the data. https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint import sniff
from model.checkpoint.bounded_json import parse_object
from model.checkpoint.errors import BadFileError
from model.checkpoint.tensors import Entry

HEADER_LIMIT = 16 << 20  # about 150,000 tensors
_MAX_DIMS = 8
_MAX_SIZE = 1 << 48

DTYPE_BITS: Mapping[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "I32": 32, "U32": 32, "I64": 64, "U64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip


@dataclass(frozen=True)
class Header:
    """Tensors of one file in the order of their bytes, and its metadata."""

    path: Path
    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]
    file_bytes: int


def read_header(descriptor: int, path: Path) -> Header:
    """The checked header of an open file. BadFileError names the tensor, what was found and what was expected."""
    size = sniff.require(descriptor, path, sniff.SAFETENSORS)
    if size < 8:
        raise BadFileError(path, "truncated: there is no header", found=f"{size} bytes", expected="at least 8 bytes")
    os.lseek(descriptor, 0, os.SEEK_SET)
    length = int.from_bytes(os.read(descriptor, 8), "little")
    if length > size - 8:
        raise BadFileError(
            path,
            "truncated, or not a safetensors file: the header goes past the end",
            found=f"a header of {length} bytes",
            expected=f"at most {size - 8} bytes",
            remedy="Check that the download is complete and unchanged.",
        )
    if length > HEADER_LIMIT:
        raise BadFileError(
            path, "the header is too large", found=f"{length} bytes", expected=f"at most {HEADER_LIMIT} bytes"
        )
    raw = _read_exactly(descriptor, length)
    if len(raw) != length:
        raise BadFileError(path, "changed while it was read")
    fields = parse_object(raw, path, what="the header")
    metadata = _metadata(fields.pop("__metadata__", {}), path)
    entries = [_entry(name, field, path, 8 + length) for name, field in fields.items()]
    entries.sort(key=lambda entry: (entry.start, entry.nbytes))
    _check_layout(entries, path, 8 + length, size)
    return Header(path, {entry.name: entry for entry in entries}, metadata, size)


def _read_exactly(descriptor: int, length: int) -> bytes:
    parts, left = [], length
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _metadata(value: object, path: Path) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise BadFileError(path, "the metadata is not a map of texts", where="__metadata__")
    return value


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_SIZE


def _entry(name: str, field: object, path: Path, data_start: int) -> Entry:
    if not isinstance(field, dict) or set(field) != {"dtype", "shape", "data_offsets"}:
        raise BadFileError(path, "malformed entry", where=name, expected="dtype, shape and data_offsets")
    dtype, shape, offsets = field["dtype"], field["shape"], field["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise BadFileError(path, "unknown dtype", where=name, found=dtype, expected="F32, F16, BF16 or F64")
    if not isinstance(shape, list) or len(shape) > _MAX_DIMS or not all(_whole(size) for size in shape):
        raise BadFileError(path, "malformed shape", where=name, found=shape, expected="a list of up to 8 whole numbers")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(_whole(offset) for offset in offsets):
        raise BadFileError(path, "malformed data_offsets", where=name, found=offsets, expected="two whole numbers")
    begin, end = offsets
    if end < begin:
        raise BadFileError(path, "reversed data_offsets", where=name, found=offsets, expected="begin before end")
    entry = Entry(name=name, dtype=dtype, shape=tuple(shape), path=path, start=data_start + begin, nbytes=end - begin)
    bits = entry.elements * DTYPE_BITS[dtype]
    if bits != entry.nbytes * 8:
        raise BadFileError(
            path,
            f"{dtype} {list(shape)} does not fill its bytes",
            where=name,
            found=f"{entry.nbytes} bytes",
            expected=f"{-(-bits // 8)} bytes",
        )
    return entry


def _check_layout(entries: list[Entry], path: Path, data_start: int, size: int) -> None:
    position, before = data_start, "the header"
    for entry in entries:
        if entry.start != position:
            problem = "overlaps" if entry.start < position else "leaves a gap after"
            raise BadFileError(
                path,
                f"its bytes {problem} {before}",
                where=entry.name,
                found=f"start at {entry.start - data_start}",
                expected=f"start at {position - data_start}",
            )
        position, before = entry.start + entry.nbytes, f"those of {entry.name}"
    if position != size:
        problem = "truncated: tensors end past the file's end" if position > size else "bytes follow the last tensor"
        raise BadFileError(
            path,
            problem,
            where=entries[-1].name if entries else "",
            found=f"a file of {size} bytes",
            expected=f"{position} bytes",
            remedy="Download it again." if position > size else "",
        )
