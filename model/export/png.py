"""PNG files (ISO/IEC 15948), compressed band by band, so that a large picture can be given up half-way: matplotlib has
Pillow compress all of it in a few calls that take seconds."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from model.export.under_way import Check

BAND_BYTES = 2**20
LEVEL = 6
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RGBA, _UP = 6, 2
_INCH = 0.0254
"""Metres."""


def encode(rgba: NDArray[np.uint8], *, dpi: float, texts: Mapping[str, str], check: Check) -> bytes:
    """(h, w, 4) uint8, straight alpha → the file. `texts`: its keywords and their texts; `check` is asked often."""
    high, wide, _ = rgba.shape
    a_metre = round(dpi / _INCH)
    head = struct.pack(">IIBBBBB", wide, high, 8, _RGBA, 0, 0, 0)
    chunks = [_SIGNATURE, _chunk(b"IHDR", head), _chunk(b"pHYs", struct.pack(">IIB", a_metre, a_metre, 1))]
    chunks += [_text(keyword, text) for keyword, text in texts.items()]
    chunks += [_chunk(b"IDAT", data) for data in _compressed(rgba, check) if data]
    return b"".join([*chunks, _chunk(b"IEND", b"")])


def _compressed(rgba: NDArray[np.uint8], check: Check) -> Iterator[bytes]:
    """Each row as its difference from the one above it: cells of a matrix are many rows high."""
    high, wide, _ = rgba.shape
    rows = rgba.reshape(high, wide * 4)
    step = max(1, BAND_BYTES // (wide * 4))
    packer = zlib.compressobj(LEVEL)
    for top in range(0, high, step):
        check()
        band = rows[top : top + step]
        filtered = np.empty((len(band), wide * 4 + 1), np.uint8)
        filtered[:, 0] = _UP
        filtered[0, 1:] = band[0] - rows[top - 1] if top else band[0]
        np.subtract(band[1:], band[:-1], out=filtered[1:, 1:])
        yield packer.compress(filtered.data)
    yield packer.flush()


def _text(keyword: str, text: str) -> bytes:
    """Latin-1 where it can be, else UTF-8."""
    try:
        return _chunk(b"tEXt", keyword.encode() + b"\0" + text.encode("latin-1"))
    except UnicodeEncodeError:
        return _chunk(b"iTXt", keyword.encode() + b"\0\0\0\0\0" + text.encode())


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
