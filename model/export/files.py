"""Files being made: kept in memory while small, on disk when large, hashed as they are written, read out in pieces."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Iterator
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from model.protocol.export_requests import FileInfo, FilePart
from model.protocol.framing import CHUNK_BYTES

IN_MEMORY = 16 * 2**20
"""Bytes up to which a file under way stays in memory."""


class ExportedFile:
    """A file of an export: a name, a format, bytes. A context manager; closing it frees the bytes.

    Written once through `writer` (which cannot seek, so that what is hashed is what is kept), then read by `parts`.
    """

    def __init__(self, name: str, file_format: str) -> None:
        self.name, self.format = name, file_format
        self.size = 0
        self._hash = hashlib.sha256()
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # closed by close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._spool.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Appends."""
        self._spool.write(data)
        self._hash.update(data)
        self.size += len(data) if not isinstance(data, memoryview) else data.nbytes

    def writer(self) -> io.BufferedWriter:
        """A binary stream that appends; not seekable."""
        return io.BufferedWriter(_Appender(self), buffer_size=1 << 16)

    @property
    def info(self) -> FileInfo:
        """What the reply says of it."""
        return FileInfo(name=self.name, format=self.format, size=self.size, sha256=self._hash.hexdigest())

    def parts(self, chunk: int = CHUNK_BYTES) -> Iterator[tuple[FilePart, NDArray[np.uint8]]]:
        """The file in order, in pieces of at most `chunk` bytes; an empty file is one empty, last part."""
        self._spool.seek(0)
        offset = 0
        while True:
            data = self._spool.read(chunk)
            end = offset + len(data)
            last = end >= self.size
            part = FilePart(name=self.name, offset=offset, last=last, sha256=self._hash.hexdigest() if last else "")
            yield part, np.frombuffer(data, dtype=np.uint8)
            if last:
                return
            offset = end

    def read(self) -> bytes:
        """All of it: for small files and tests."""
        self._spool.seek(0)
        return self._spool.read()


class _Appender(io.RawIOBase):
    """The raw stream under `ExportedFile.writer`."""

    def __init__(self, file: ExportedFile) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._file.write(view)
        return view.nbytes
