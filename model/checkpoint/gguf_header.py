"""The header of a GGUF file, parsed with every count, length and offset bounded before it is believed.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian).
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from model.checkpoint import sniff
from model.checkpoint.errors import BadFileError
from model.checkpoint.paths import read_at
from model.checkpoint.tensors import Entry
from model.errors import shown

_CHUNK = 1 << 20
_HEADER_LIMIT = 256 << 20
_MAX_KEYS = 100_000
_MAX_TENSORS = 200_000
_MAX_NAME = 1024
_MAX_STRING = 16 << 20
_MAX_ARRAY = 16 << 20
_MAX_STRINGS = 2_000_000  # of all arrays together: a vocabulary and its merges
_MAX_DIMS = 4
_MAX_ALIGNMENT = 1 << 20
_MAX_SIZE = 1 << 48
_SMALLEST_KEY = 8 + 4 + 1
_SMALLEST_TENSOR = 8 + 4 + 8 + 4 + 8

_SCALARS: Mapping[int, str] = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "<u1", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
_BOOL, _STRING, _ARRAY = 7, 8, 9

BLOCKS: Mapping[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 40), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
"""GGML type number -> (name, numbers a block, bytes a block)."""

Value = bool | int | float | str | list[bool] | list[int] | list[float] | list[str]


@dataclass(frozen=True)
class GGUFHeader:
    """`meta`: every key with its value. `entries`: shapes in torch's order (rows first), `start` absolute."""

    path: Path
    version: int
    meta: Mapping[str, Value]
    entries: Mapping[str, Entry]
    file_bytes: int


def read_header(descriptor: int, path: Path) -> GGUFHeader:
    """The checked header of an open file, in bounded time and memory. BadFileError names the key or tensor."""
    size = sniff.require(descriptor, path, sniff.GGUF)
    return _Parser(descriptor, path, size).parse()


class _Parser:
    def __init__(self, descriptor: int, path: Path, size: int) -> None:
        self.descriptor, self.path, self.size = descriptor, path, size
        self.buffer = bytearray()
        self.at = 0
        self.strings = 0
        self.where = ""

    def fail(self, problem: str, found: object = None, expected: object = None, remedy: str = "") -> BadFileError:
        where = self.where or f"byte {self.at}"
        return BadFileError(self.path, problem, where=where, found=found, expected=expected, remedy=remedy)

    # --- bytes

    def need(self, count: int) -> int:
        """Makes the next `count` bytes present and returns where they begin in the buffer."""
        end = self.at + count
        if end > self.size:
            raise self.fail(
                f"truncated: {count:,} bytes are wanted where the file has {self.size - self.at:,} more",
                remedy="Check that the download is complete.",
            )
        if end > _HEADER_LIMIT:
            raise self.fail("the header is too large", expected=f"at most {_HEADER_LIMIT} bytes")
        while len(self.buffer) < end:
            wanted = min(max(end - len(self.buffer), _CHUNK), _HEADER_LIMIT)
            part = read_at(self.descriptor, wanted, len(self.buffer))
            if not part:
                raise self.fail("changed while it was read")
            self.buffer += part
        begin, self.at = self.at, end
        return begin

    def u32(self) -> int:
        return int.from_bytes(self.buffer[(begin := self.need(4)) : begin + 4], "little")

    def u64(self) -> int:
        return int.from_bytes(self.buffer[(begin := self.need(8)) : begin + 8], "little")

    def string(self, limit: int) -> str:
        length = self.u64()
        if length > limit:
            raise self.fail("text too long", f"{length} bytes", f"at most {limit}")
        begin = self.need(length)
        try:
            return self.buffer[begin : begin + length].decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail("text that is not UTF-8") from error

    # --- values

    def scalar(self, kind: int) -> bool | int | float:
        width = np.dtype(_SCALARS[kind]).itemsize
        begin = self.need(width)
        value = np.frombuffer(self.buffer, _SCALARS[kind], 1, begin)[0].item()
        return self.boolean(value) if kind == _BOOL else value

    def boolean(self, value: int) -> bool:
        if value not in {0, 1}:
            raise self.fail("a truth value is neither 0 nor 1", value)
        return bool(value)

    def value(self, kind: int) -> Value:
        if kind == _STRING:
            return self.string(_MAX_STRING)
        if kind == _ARRAY:
            return self.array()
        if kind not in _SCALARS:
            raise self.fail("unknown value type", kind, "0 to 12")
        return self.scalar(kind)

    def array(self) -> Value:
        kind, count = self.u32(), self.u64()
        if kind == _ARRAY:
            raise self.fail("an array inside an array, which no model uses", remedy="Convert the model again.")
        if kind != _STRING and kind not in _SCALARS:
            raise self.fail("unknown element type", kind, "0 to 12")
        width = 8 if kind == _STRING else np.dtype(_SCALARS[kind]).itemsize
        most = min(_MAX_ARRAY, (self.size - self.at) // width)
        if count > most:
            raise self.fail("an array longer than the file can hold", f"{count} elements", f"at most {most}")
        if kind == _STRING:
            self.strings += count
            if self.strings > _MAX_STRINGS:
                raise self.fail("too many texts in arrays", self.strings, f"at most {_MAX_STRINGS}")
            return self.string_array(count)
        begin = self.need(width * count)
        values = np.frombuffer(self.buffer, _SCALARS[kind], count, begin)
        if kind == _BOOL:
            return [self.boolean(value) for value in values.tolist()]
        result: list[int] | list[float] = values.tolist()
        return result

    def string_array(self, count: int) -> list[str]:
        # The hot loop of a vocabulary: no calls but `need` at chunk borders and on any doubt.
        result: list[str] = []
        unpack = struct.Struct("<Q").unpack_from
        for index in range(count):
            if self.at + 8 > len(self.buffer):
                self.need(8)
                self.at -= 8
            (length,) = unpack(self.buffer, self.at)
            if length > _MAX_STRING:
                raise self.fail(f"element {index} is too long", f"{length} bytes", f"at most {_MAX_STRING}")
            begin = self.need(8 + length) + 8
            try:
                result.append(self.buffer[begin : begin + length].decode("utf-8"))
            except UnicodeDecodeError as error:
                raise self.fail(f"element {index} is not UTF-8") from error
        return result

    # --- the file

    def parse(self) -> GGUFHeader:
        if self.size < 24:
            raise self.fail("truncated: there is no header", f"{self.size} bytes", "at least 24 bytes")
        if self.buffer[(begin := self.need(4)) : begin + 4] != b"GGUF":
            raise self.fail("not a GGUF file", bytes(self.buffer[:4]), b"GGUF", "Check the download.")
        version = self.check_version(self.u32())
        n_tensors, n_keys = self.u64(), self.u64()
        left = self.size - self.at
        if n_keys > min(_MAX_KEYS, left // _SMALLEST_KEY):
            raise self.fail("more keys than the file can hold", n_keys, min(_MAX_KEYS, left // _SMALLEST_KEY))
        if n_tensors > min(_MAX_TENSORS, left // _SMALLEST_TENSOR):
            most = min(_MAX_TENSORS, left // _SMALLEST_TENSOR)
            raise self.fail("more tensors than the file can hold", n_tensors, f"at most {most}")
        meta = self.metadata(n_keys)
        alignment = self.alignment(meta)
        infos = [self.tensor_info() for _ in range(n_tensors)]
        self.where = ""
        data_start = -(-self.at // alignment) * alignment
        return GGUFHeader(self.path, version, meta, self.place(infos, data_start, alignment), self.size)

    def check_version(self, version: int) -> int:
        if version in {2, 3}:
            return version
        swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
        if swapped in {1, 2, 3}:
            raise self.fail("a big-endian GGUF file", remedy="Convert it to little-endian (gguf_convert_endian).")
        raise self.fail(
            "unsupported GGUF version", version, "2 or 3", "Convert the model again with a current llama.cpp."
        )

    def metadata(self, count: int) -> dict[str, Value]:
        meta: dict[str, Value] = {}
        for index in range(count):
            self.where = f"key {index}"
            key = self.string(_MAX_NAME)
            self.where = key
            if key in meta:
                raise self.fail("this key appears twice")
            meta[key] = self.value(self.u32())
        self.where = ""
        return meta

    def alignment(self, meta: Mapping[str, Value]) -> int:
        value = meta.get("general.alignment", 32)
        good = isinstance(value, int) and 0 < value <= _MAX_ALIGNMENT and value & (value - 1) == 0
        if not good or not isinstance(value, int):
            self.where = "general.alignment"
            raise self.fail("bad alignment", value, f"a power of two up to {_MAX_ALIGNMENT}")
        return value

    def tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        self.where = "a tensor's name"
        name = self.string(_MAX_NAME)
        self.where = name
        n_dims = self.u32()
        if not 1 <= n_dims <= _MAX_DIMS:
            raise self.fail("bad number of dimensions", n_dims, "1 to 4")
        dims = tuple(self.u64() for _ in range(n_dims))
        if not all(1 <= size < _MAX_SIZE for size in dims):
            raise self.fail("bad dimension", list(dims), "sizes of 1 or more")
        return name, dims, self.u32(), self.u64()

    def place(
        self, infos: list[tuple[str, tuple[int, ...], int, int]], data_start: int, alignment: int
    ) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        for name, dims, kind, offset in infos:
            self.where = name
            if name in entries:
                raise self.fail("this tensor appears twice")
            if kind not in BLOCKS:
                raise self.fail("unknown tensor type", kind, "a GGML type", "Convert the model to Q8_0 or F16.")
            label, block, width = BLOCKS[kind]
            if dims[0] % block:
                raise self.fail(f"a row does not fill {label} blocks", f"{dims[0]} numbers", f"a multiple of {block}")
            elements = 1
            for size in dims:
                elements *= size
            nbytes = elements // block * width
            if offset % alignment:
                raise self.fail("unaligned offset", offset, f"a multiple of {alignment}")
            if data_start + offset + nbytes > self.size:
                raise self.fail(
                    "truncated: its data goes past the end of the file",
                    f"a file of {self.size} bytes", f"{data_start + offset + nbytes} bytes", "Download it again.",
                )  # fmt: skip
            entries[name] = Entry(
                name=name, dtype=label, shape=dims[::-1], path=self.path, start=data_start + offset, nbytes=nbytes
            )
        ordered = sorted(entries.values(), key=lambda entry: entry.start)
        for first, second in itertools.pairwise(ordered):
            if first.start + first.nbytes > second.start:
                self.where = second.name
                raise self.fail(f"its bytes overlap those of {shown(first.name)}")
        return entries
