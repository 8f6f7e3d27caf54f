"""Frames on a byte stream: one JSON object and, where arrays travel, one safetensors blob after it.

Layout of a frame, little endian: magic `DSC1`, uint32 header bytes, uint64 blob bytes, header (UTF-8 JSON object),
blob (safetensors, may be empty). Both sides share this file; it imports neither torch nor Qt.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from model.errors import DecoderscopeError

PROTOCOL_VERSION = 1
MAGIC = b"DSC1"
MAX_HEADER_BYTES = 16 * 2**20
MAX_BLOB_BYTES = 64 * 2**20
CHUNK_BYTES = 2**20  # largest piece of a streamed file
SHOWN_BYTES = 60  # of what came instead of a frame
SHOWN_CHARACTERS = 80
_PREFIX = struct.Struct("<4sIQ")

Array = NDArray[Any]
Arrays = Mapping[str, Array]


class ProtocolError(DecoderscopeError):
    """The stream cannot be understood; after one of these nothing later on it can be trusted."""

    code = "protocol"


def brief(value: object) -> str:
    """A value from the other side, fit for a message: escaped, and cut where it is long."""
    text = ascii(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + " …"


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One message: a JSON-compatible header and named arrays."""

    header: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)


def encode_frame(frame: Frame) -> bytes:
    """The bytes of one frame. Raises ProtocolError when it is over the size limits both sides keep."""
    header = _encode_header(frame.header)
    blob = (
        save_arrays({name: np.ascontiguousarray(value) for name, value in frame.arrays.items()})
        if frame.arrays
        else b""
    )
    return pack_frame(header, blob)


def pack_frame(header: bytes, blob: bytes = b"") -> bytes:
    """The same of parts that are bytes already."""
    _check_sizes(len(header), len(blob))
    return b"".join((_PREFIX.pack(MAGIC, len(header), len(blob)), header, blob))


def unpack_frame(data: bytes) -> bytes:
    """The header's bytes of the one frame without arrays that `data` is. Raises ProtocolError where it is not that."""
    if len(data) >= _PREFIX.size:
        magic, header_bytes, blob_bytes = _PREFIX.unpack_from(data)
        if magic == MAGIC and blob_bytes == 0 and header_bytes == len(data) - _PREFIX.size:
            _check_sizes(header_bytes, blob_bytes)
            return data[_PREFIX.size :]
    raise ProtocolError("These bytes are not one frame.")


class FrameDecoder:
    """Turns pieces of a byte stream, cut anywhere, into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Bytes held back because their frame is not whole yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by `data`. Raises ProtocolError at the first byte that cannot belong to a frame."""
        self._buffer += data
        frames: list[Frame] = []
        start = 0
        self._check_magic(start)
        while len(self._buffer) - start >= _PREFIX.size:
            _magic, header_bytes, blob_bytes = _PREFIX.unpack_from(self._buffer, start)
            _check_sizes(header_bytes, blob_bytes)
            end = start + _PREFIX.size + header_bytes + blob_bytes
            if len(self._buffer) < end:
                break
            body = start + _PREFIX.size
            frames.append(
                _decode(bytes(self._buffer[body : body + header_bytes]), bytes(self._buffer[body + header_bytes : end]))
            )
            start = end
            self._check_magic(start)
        del self._buffer[:start]
        return frames

    def _check_magic(self, start: int) -> None:
        if self._buffer[start : start + len(MAGIC)] != MAGIC[: len(self._buffer) - start]:
            found = bytes(self._buffer[start : start + SHOWN_BYTES])
            raise ProtocolError(f"The stream holds {found!r} where a frame should begin with {MAGIC!r}.")


def _check_sizes(header_bytes: int, blob_bytes: int) -> None:
    if header_bytes > MAX_HEADER_BYTES or blob_bytes > MAX_BLOB_BYTES:
        raise ProtocolError(
            f"A frame of {header_bytes:,} + {blob_bytes:,} bytes is over the limit of "
            f"{MAX_HEADER_BYTES:,} + {MAX_BLOB_BYTES:,}."
        )


def _encode_header(header: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(header)
    except UnicodeEncodeError:  # half of a surrogate pair, as typed or pasted text may hold; msgspec writes UTF-8 only
        return json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")


def _decode_header(header: bytes) -> object:
    try:
        return msgspec.json.decode(header)
    except msgspec.DecodeError:
        if b"\\ud" not in header:
            raise
        return json.loads(header, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _decode(header: bytes, blob: bytes) -> Frame:
    try:
        value = _decode_header(header)
        arrays = load_arrays(blob) if blob else {}
    except (msgspec.DecodeError, SafetensorError, RecursionError, UnicodeDecodeError, KeyError, ValueError) as error:
        raise ProtocolError(f"A frame cannot be read: {brief(str(error))}") from error
    if not isinstance(value, dict):
        raise ProtocolError(f"A frame's header is {type(value).__name__}, expected a JSON object.")
    version = value.get("v")
    if version != PROTOCOL_VERSION:
        raise ProtocolError(
            f"The other side speaks protocol version {brief(version)}, this side {PROTOCOL_VERSION}: install the same "
            "version of decoderscope on both."
        )
    return Frame(header=value, arrays=arrays)
