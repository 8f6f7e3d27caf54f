"""The small files beside the preferences: only regular ones, read to a limit, written whole; none of it ever waits."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from app.i18n import tr

_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class NotAFileError(OSError):
    """There is a folder, a named pipe or a device where a file should be; `strerror` says which."""

    def __init__(self, path: Path, mode: int) -> None:
        super().__init__(errno.EINVAL, tr("it is {kind} and not a file", kind=kind_of(mode)), str(path))


class NotOursError(OSError):
    """A file may not be written by this user."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EACCES, tr("it belongs to another user"), str(path))


class TooLargeError(OSError):
    """A file is over the limit of its kind."""

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(errno.EFBIG, tr("it is larger than the {n} bytes it may have", n=f"{limit:,}"), str(path))


def kind_of(mode: int) -> str:
    """What a file's mode says it is, in words; for what is no regular file."""
    if stat.S_ISDIR(mode):
        return tr("a folder")
    if stat.S_ISFIFO(mode):
        return tr("a named pipe")
    return tr("a link") if stat.S_ISLNK(mode) else tr("a device or a socket")


def open_regular(path: Path, flags: int) -> int:
    """A descriptor of a regular file, links followed; with O_CREAT in `flags` it is made where there is none. Raises
    NotAFileError for anything else, without waiting, and OSError."""
    try:
        mode = path.stat().st_mode  # looked at first: opening some devices has effects
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    else:
        if not stat.S_ISREG(mode):
            raise NotAFileError(path, mode)
    descriptor = os.open(path, flags | _NO_WAIT, 0o666)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):  # swapped in between
        os.close(descriptor)
        raise NotAFileError(path, mode)
    return descriptor


def read_small(path: Path, limit: int) -> bytes:
    """The whole of a regular file. Raises NotAFileError, TooLargeError over `limit` bytes, and OSError."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise TooLargeError(path, limit)
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TooLargeError(path, limit)
    return data


def write_atomically(path: Path, data: bytes) -> None:
    """Writes `data` to a temporary file beside `path`, flushes it to disk and renames it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
