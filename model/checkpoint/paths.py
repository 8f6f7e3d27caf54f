"""Files on disk: our cache directory, regular files opened without blocking, atomic replacement, one writer."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import platformdirs

from model.checkpoint.errors import BadFileError, CheckpointError
from model.checkpoint.progress import CheckCancel, never_cancel

CACHE_VARIABLE = "DECODERSCOPE_CACHE_DIR"
_LOCK_POLL_SECONDS = 0.1


class CacheDirError(CheckpointError):
    """Our cache can't be written to."""

    code = "cache_dir"

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(
            f"Can't make the cache directory {path}: {reason}. Set {CACHE_VARIABLE} to one you may write to."
        )


def cache_dir() -> Path:
    """Where fetched and prepared models live: $DECODERSCOPE_CACHE_DIR, else the user's cache directory."""
    override = os.environ.get(CACHE_VARIABLE)
    return Path(override) if override else Path(platformdirs.user_cache_dir("decoderscope", appauthor=False))


def make_dir(path: Path) -> Path:
    """The directory, made if absent; CheckpointError when it can't be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CacheDirError(path, error.strerror or str(error)) from error
    return path


def open_regular(path: Path) -> int:
    """A read-only descriptor of a regular file; a FIFO, device, folder or dangling link is refused without waiting."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        kind = path.stat().st_mode  # looked at first: opening some devices has effects
        if not stat.S_ISREG(kind):
            raise BadFileError(path, "not a regular file", found=_kind_of(kind), expected="a file")
        descriptor = os.open(path, flags)
    except FileNotFoundError as error:
        problem = "a link to a file that does not exist" if path.is_symlink() else "no such file"
        raise BadFileError(path, problem, remedy="Check the path.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadFileError(path, f"can't be read: {reason}", remedy="Check its name and permissions.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # swapped in between
        os.close(descriptor)
        raise BadFileError(path, "not a regular file", expected="a file")
    return descriptor


def read_at(descriptor: int, count: int, offset: int) -> bytes:
    """Up to `count` bytes at `offset`; fewer at the end of the file."""
    if sys.platform != "win32":
        return os.pread(descriptor, count, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, count)


def _kind_of(mode: int) -> str:
    tests = {
        stat.S_ISDIR: "a folder",
        stat.S_ISFIFO: "a named pipe",
        stat.S_ISSOCK: "a socket",
        stat.S_ISCHR: "a device",
        stat.S_ISBLK: "a device",
    }
    return next((name for test, name in tests.items() if test(mode)), "something else")


@contextmanager
def lock(path: Path, check_cancel: CheckCancel = never_cancel) -> Iterator[None]:
    """Holds `path` + ".lock" against other processes; waits, asking `check_cancel` meanwhile."""
    file_lock = filelock.FileLock(f"{path}.lock")
    while True:
        check_cancel()
        try:
            file_lock.acquire(timeout=_LOCK_POLL_SECONDS)
            break
        except filelock.Timeout:
            continue
    try:
        yield
    finally:
        file_lock.release()


@contextmanager
def staging(target: Path) -> Iterator[Path]:
    """An empty directory beside `target` that is gone afterwards, whatever happens.

    Leftovers of a killed process go too; call it under `lock(target)`.
    """
    directory = target.parent / f".{target.name}.partial"
    shutil.rmtree(directory, ignore_errors=True)
    make_dir(directory)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def publish(staged: Path, target: Path) -> None:
    """Makes `staged` durable and moves it over `target` in one step."""
    with staged.open("rb+") as file:
        os.fsync(file.fileno())
    staged.replace(target)


def free_bytes(path: Path) -> int:
    """Free space on the disk that holds `path` or its nearest existing parent."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free
