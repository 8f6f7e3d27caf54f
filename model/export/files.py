"""Files to be made: straight into their place where that is in reach of this process, else kept in memory while small,
on disk when large, hashed as they are written, and read out in pieces."""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from model.protocol.export_requests import FileInfo, FilePart
from model.protocol.file_writing import IncomingFiles
from model.protocol.framing import CHUNK_BYTES

IN_MEMORY = 16 * 2**20
"""Bytes up to which a file under way stays in memory."""


class ExportedFile:
    """A file of an export: a name, a format, bytes. A context manager; closing it frees the bytes.

    With `make`, which writes it whole to a stream that cannot seek, it is made when first asked for: by `put` straight
    to where it goes, by all else into a spool of its own. Without, it is written once through `write` or `writer`.
    """

    def __init__(self, name: str, file_format: str, make: Callable[[IO[bytes]], object] | None = None) -> None:
        self.name, self.format = name, file_format
        self.size = 0
        self._make = make
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
        self._be_made()
        return FileInfo(name=self.name, format=self.format, size=self.size, sha256=self._hash.hexdigest())

    def parts(self, chunk: int = CHUNK_BYTES) -> Iterator[tuple[FilePart, NDArray[np.uint8]]]:
        """The file in order, in pieces of at most `chunk` bytes; an empty file is one empty, last part."""
        self._be_made()
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
        self._be_made()
        self._spool.seek(0)
        return self._spool.read()

    def put(self, incoming: IncomingFiles, *, hashed: bool = False) -> None:
        """Makes it in its place beside its target, with no copy in between. Raises FileWriteError."""
        with incoming.writer(self.name, hashed=hashed) as out:
            if self._make is not None:
                self._make(out)
            else:
                self._spool.seek(0)
                shutil.copyfileobj(self._spool, out, CHUNK_BYTES)

    def _be_made(self) -> None:
        if self._make is not None:
            make, self._make = self._make, None
            with self.writer() as out:
                make(out)


def write_files(
    files: Iterable[ExportedFile], folder: Path, *, overwrite: bool = False, hashed: bool = False
) -> list[tuple[Path, FileInfo]]:
    """Writes an export into `folder`, whole or nothing of it: where each file is, and what it is (`sha256` empty unless
    `hashed`). For an engine in the same process as the disk; else see `parts`. Raises FileWriteError."""
    formats = []
    with IncomingFiles(folder, overwrite=overwrite) as incoming:
        for file in files:
            with file:
                file.put(incoming, hashed=hashed)
                formats.append(file.format)
        written = incoming.keep()
    return [
        (path, FileInfo(name=path.name, format=file_format, size=size, sha256=sha256))
        for file_format, (path, size, sha256) in zip(formats, written, strict=True)
    ]


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
