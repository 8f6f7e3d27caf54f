"""Writes what an export sends: whole files or none, and never half of one over what was there before.

Each file grows beside its target under a hidden name, is checked against the size and hash the engine names, synced
to disk and renamed into place. Used by the window, which gets it in parts, and by the command line and the library,
whose exporters write to `IncomingFiles.writer`; needs neither torch nor Qt.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import queue
import secrets
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from model.errors import DecoderscopeError, shown
from model.protocol.export_requests import FileInfo, FilePart
from model.protocol.file_names import MAX_NAME_BYTES, safe_name
from model.protocol.framing import Array

RUN_SUFFIX = ".dscope"
BUFFERS, BUFFER_BYTES = 3, 4 * 2**20
"""What may wait for the disk while a file is made here: one is filled while another one is written."""
BUFFERED = 2**16
GIVEN = 2
"""Stretches of the caller's own memory that may wait for the disk, beside the buffers."""
SYNC_BYTES = 32 * 2**20
"""Of a file under way, what is sent to the disk at a time."""
AHEAD = 4
"""Times that, how far a file may be ahead of the disk."""
_REASONS = {
    errno.ENOSPC: "the disk is full. Free some space or choose another folder",
    errno.EDQUOT: "the disk quota is used up. Free some space or choose another folder",
    errno.EFBIG: "the file is larger than this disk or session allows. Choose another folder or a smaller export",
    errno.EACCES: "you have no permission to write there. Choose another folder",
    errno.EPERM: "you have no permission to write there. Choose another folder",
    errno.EROFS: "the disk is read-only. Choose another folder",
    errno.ENOENT: "the folder does not exist. Choose another one, or make it first",
    errno.ENOTDIR: "a part of the path is not a folder. Choose another folder",
    errno.ENAMETOOLONG: "the name is too long. Choose a shorter one",
    errno.EMFILE: "too many files are open. Raise the limit (ulimit -n), or close other programs",
    errno.ENFILE: "too many files are open. Close other programs",
    errno.EIO: "the disk reported an error. Choose another one",
}

_NO_FILE = "something that is not a file has this name. Choose another name"


class FileWriteError(DecoderscopeError):
    """A file that could not be written; what was there before is as it was."""

    code = "file_write"

    def __init__(self, path: Path, reason: str) -> None:
        self.path, self.reason = path, reason
        name, folder = shown(path.name or str(path)), shown(str(path.parent), 300)
        super().__init__(f"{name} could not be written to {folder}: {reason}. Nothing was changed.")

    @classmethod
    def of(cls, path: Path, error: OSError) -> FileWriteError:
        """The sentence for what the system said."""
        reason = _REASONS.get(error.errno or 0)
        if error.errno == errno.ENOENT and os.path.isdir(path.parent):  # noqa: PTH112 - the method raises for a long name
            reason = "this folder takes no files. Choose another folder"  # the kernel's own, such as /proc
        return cls(path, reason or f"{error.strerror or error}. Choose another folder")


class FileExistsAlreadyError(FileWriteError):
    """A target that is there and may not be replaced."""

    code = "file_exists"

    def __init__(self, path: Path) -> None:
        super().__init__(path, "a file of this name is there. Choose another name or overwrite it (--overwrite)")


class BrokenTransferError(FileWriteError):
    """What arrived is not what was sent."""

    code = "broken_transfer"

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(path, f"{what}. Export it again")


def named(path: Path, suffix: str) -> Path:
    """Where a file goes that a person named: with `suffix`, its name made safe. Raises FileWriteError for a folder, for
    a name without a stem and for one that is too long."""
    try:
        found = path.stat().st_mode if path.exists() else None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error
    if not path.name or (found is not None and stat.S_ISDIR(found)):
        raise FileWriteError(path, f"this is a folder. Name a file in it, such as run{suffix}")
    if found is not None and not stat.S_ISREG(found):
        raise FileWriteError(path, _NO_FILE)
    stem = path.name[: -len(suffix)] if path.name.lower().endswith(suffix) else path.name
    if not stem.strip(" ."):
        raise FileWriteError(path, f"the name has nothing before its extension. Choose one such as run{suffix}")
    if len(path.name.encode(errors="replace")) > MAX_NAME_BYTES:
        raise FileWriteError(path, _REASONS[errno.ENAMETOOLONG])
    name = safe_name(stem + suffix)
    return path.with_name(name if name.endswith(suffix) else f"export{suffix}")  # nothing of the stem was left


def require_place(path: Path, *, overwrite: bool) -> None:
    """Raises FileWriteError where a file could not be written there, before what is to be in it is made."""
    try:
        found = path.stat().st_mode
    except FileNotFoundError:
        found = None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error
    if found is not None and not stat.S_ISREG(found):
        raise FileWriteError(path, _NO_FILE)
    if found is not None and not overwrite:
        raise FileExistsAlreadyError(path)
    require_folder(path.parent, path)


def require_folder(folder: Path, path: Path) -> None:
    """Raises FileWriteError, about `path`, unless `folder` is there and may be written to."""
    try:
        if not stat.S_ISDIR(folder.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError | ValueError) -> FileWriteError:
    """What the system, or Python of a name that no system takes, said."""
    return FileWriteError.of(path, error if isinstance(error, OSError) else OSError(errno.EINVAL, str(error)))


class _Growing:
    """One file under its hidden name."""

    def __init__(self, target: Path, *, hashed: bool = True) -> None:
        self.target, self.hashed = target, hashed
        self.temporary = target.parent / f".decoderscope-{secrets.token_hex(8)}.part"
        self.size = self._on_disk = 0
        self.complete = False
        self.hash = hashlib.sha256()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            self._descriptor = os.open(self.temporary, flags, _mode(target))
        except OSError as error:
            raise FileWriteError.of(target, error) from error

    def write(self, data: memoryview) -> None:
        try:
            rest = data
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            self.size += len(data)
        except OSError as error:
            raise FileWriteError.of(self.target, error) from error
        if self.hashed:
            self.hash.update(data)

    @property
    def ahead(self) -> int:
        """Bytes that were written and not yet sent to the disk."""
        return self.size - self._on_disk

    def push(self) -> None:
        """Sends what has come to the disk now, which leaves little to wait for at the end, and gives its memory back:
        fresh memory for all of a large file costs more than to write it. Where the system can. More may be written
        meanwhile, on another thread."""
        size = self.size
        try:
            if hasattr(os, "fdatasync") and hasattr(os, "posix_fadvise"):
                os.fdatasync(self._descriptor)
                os.posix_fadvise(self._descriptor, self._on_disk, size - self._on_disk, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise FileWriteError.of(self.target, error) from error
        self._on_disk = size

    def settle(self) -> None:
        """To the disk, and closed; a full disk may show only here. May be called again."""
        if self._descriptor < 0:
            return
        try:
            os.fsync(self._descriptor)
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        except OSError as error:
            raise FileWriteError.of(self.target, error) from error

    def put_in_place(self, *, overwrite: bool) -> None:
        """Renames it over its target, or, unless `overwrite`, beside whatever may have appeared there meanwhile."""
        try:
            if overwrite:
                self.temporary.replace(self.target)
                return
            try:
                os.link(self.temporary, self.target)
            except FileExistsError:
                raise FileExistsAlreadyError(self.target) from None
            except OSError:  # no hard links there
                if self.target.exists():
                    raise FileExistsAlreadyError(self.target) from None
                self.temporary.replace(self.target)
            else:
                self.temporary.unlink()
        except OSError as error:
            raise FileWriteError.of(self.target, error) from error

    def discard(self) -> None:
        """Closes it and takes it away."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            with suppress(OSError):
                os.close(descriptor)
        with suppress(OSError):
            self.temporary.unlink(missing_ok=True)


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, else the user's usual ones."""
    try:
        return stat.S_IMODE(target.stat().st_mode) | stat.S_IWUSR
    except OSError:
        return 0o666


class _Worker(io.RawIOBase):
    """A stream into a growing file whose bytes are hashed and written on a thread of their own, while those that follow
    are computed, and sent to the disk on another. What goes wrong there is raised by the next `write` or by `wait`."""

    def __init__(self, file: _Growing) -> None:
        super().__init__()
        self.file = file
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[memoryview | None] = queue.SimpleQueue()
        for _ in range(BUFFERS - 1):
            self._free.put(bytearray(BUFFER_BYTES))
        self._buffer, self._used = bytearray(BUFFER_BYTES), 0
        self._given = threading.Semaphore(GIVEN)
        self._error: BaseException | None = None
        self._stopped = False
        self._due: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._pushing = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="write files", daemon=True)
        self._thread.start()

    def writable(self) -> bool:
        return True

    def give(self, data: memoryview) -> int:
        """`write` without a copy, of what nobody changes any more; waits while too much of that waits."""
        self._raise()
        if self._used:
            self._hand_over()
            self._buffer = self._free.get()
        self._given.acquire()
        self._full.put(data.cast("B"))
        return data.nbytes

    def write(self, data: Any) -> int:
        """Takes a copy; waits while all buffers are full."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            self._raise()
            taken = min(len(rest), BUFFER_BYTES - self._used)
            self._buffer[self._used : self._used + taken] = rest[:taken]
            self._used += taken
            rest = rest[taken:]
            if self._used == BUFFER_BYTES:
                self._hand_over()
                self._buffer = self._free.get()
        return size

    def end(self) -> None:
        """Nothing follows: what is left is written, and all of it synced, while the next file is made."""
        self._hand_over()
        self._full.put(None)

    def wait(self) -> None:
        """Until the disk has it all. Raises FileWriteError."""
        self._thread.join()
        self._raise()

    def stop(self) -> None:
        """Ends the thread, whatever it had to write. May be called again."""
        self._stopped = True
        self._full.put(None)
        self._thread.join()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _hand_over(self) -> None:
        self._full.put(memoryview(self._buffer)[: self._used])
        self._used = 0

    def _work(self) -> None:
        pusher: threading.Thread | None = None
        while (data := self._full.get()) is not None:
            self._unless_over(partial(self.file.write, data))
            if isinstance(data.obj, bytearray):  # one of the buffers, which it was cut from
                self._free.put(data.obj)
            else:
                self._given.release()
            if self.file.ahead >= SYNC_BYTES:
                if pusher is None:  # most files are done before
                    pusher = threading.Thread(target=self._push_due, name="sync files", daemon=True)
                    pusher.start()
                self._due.put(True)
            if self.file.ahead >= AHEAD * SYNC_BYTES:
                self._push()
        if pusher is not None:
            self._due.put(False)
            pusher.join()
        self._unless_over(self.file.settle)

    def _push_due(self) -> None:
        while self._due.get():
            self._push()

    def _push(self) -> None:
        with self._pushing:
            if self.file.ahead >= SYNC_BYTES:  # else somebody was here in the meantime
                self._unless_over(self.file.push)

    def _unless_over(self, work: Callable[[], object]) -> None:
        if self._error is None and not self._stopped:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - raised where the bytes come from
                self._error = error


class _Stream(io.BufferedWriter):
    """Small writes gathered; what is large and can't be changed is not copied on its way."""

    raw: _Worker

    def write(self, data: Any) -> int:
        if isinstance(data, memoryview) and data.readonly and data.nbytes >= BUFFERED:
            self.flush()
            return self.raw.give(data)
        return super().write(data)


class IncomingFiles:
    """The files of one export on their way into `folder`. A context manager: what was not finished is taken away.

    From another process, `add` each part in the order in which it comes, and `finish` with what the reply lists. From
    this one, write each file through its `writer`, and `keep` them. All raise FileWriteError, after which nothing of
    this export is left behind. One thread at a time.
    """

    def __init__(self, folder: Path, *, overwrite: bool = False) -> None:
        self.folder, self.overwrite = folder, overwrite
        self._files: dict[str, _Growing] = {}
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()

    def target(self, name: str) -> Path:
        """Where a file of this name goes: through a symbolic link to what it names."""
        path = self.folder / safe_name(name)
        return Path(os.path.realpath(path)) if path.is_symlink() else path

    def add(self, part: FilePart, data: bytes | memoryview | Array) -> None:
        """Writes one part."""
        try:
            file = self._files.get(part.name) or self._begin(part.name)
            if file.complete or part.offset != file.size:
                raise BrokenTransferError(file.target, f"a part came at {part.offset:,} where {file.size:,} was due")
            file.write(data.data.cast("B") if isinstance(data, np.ndarray) else memoryview(data))
            if file.ahead >= SYNC_BYTES:
                file.push()
            if part.last:
                file.complete = True
                _check_hash(file, part.sha256)
        except FileWriteError:
            self.abandon()
            raise

    def finish(self, files: Sequence[FileInfo]) -> list[Path]:
        """Checks every file against the list, syncs all, then renames all; returns where they are."""
        try:
            missing = [info.name for info in files if info.name not in self._files]
            if missing or len(files) != len(self._files):
                raise BrokenTransferError(self.target((missing or ["export"])[0]), "a file of the export never came")
            for info in files:
                file = self._files[info.name]
                if not file.complete or file.size != info.size:
                    what = f"{file.size:,} of {info.size:,} bytes came"
                    raise BrokenTransferError(file.target, what)
                _check_hash(file, info.sha256)
            return [file.target for file in self._put_in_place()]
        finally:
            self.abandon()

    @contextmanager
    def writer(self, name: str, *, hashed: bool = False) -> Iterator[IO[bytes]]:
        """A stream, not seekable, for a file that is made here; complete when the block ends without an error. A large
        read-only memoryview is kept until it is written, and what it is of must stay as it is."""
        worker = _Worker(self._begin(name, hashed=hashed))
        self._workers.append(worker)
        with _Stream(worker, BUFFERED) as out:  # many writes are of a few bytes
            yield out
            out.flush()
            worker.end()

    def keep(self) -> list[tuple[Path, int, str]]:
        """Waits for what was written through `writer`, then renames all; where each file is, its size and, if it was
        hashed, its SHA-256."""
        try:
            for worker in self._workers:
                worker.wait()
            return [
                (file.target, file.size, file.hash.hexdigest() if file.hashed else "") for file in self._put_in_place()
            ]
        finally:
            self.abandon()

    def _put_in_place(self) -> list[_Growing]:
        files = list(self._files.values())
        for file in files:
            file.settle()
        for file in files:
            file.put_in_place(overwrite=self.overwrite)
        _sync_folder(self.folder)
        return files

    def abandon(self) -> None:
        """Takes away whatever is not in place; may be called at any time, any number of times."""
        for worker in self._workers:
            worker.stop()
        self._workers.clear()
        for file in self._files.values():
            file.discard()
        self._files.clear()

    def _begin(self, name: str, *, hashed: bool = True) -> _Growing:
        target = self.target(name)
        if any(file.target == target for file in self._files.values()):
            raise BrokenTransferError(target, "two files of the export have this name")
        if target.exists():
            if not target.is_file():
                raise FileWriteError(target, _NO_FILE)
            if not self.overwrite:
                raise FileExistsAlreadyError(target)
        file = self._files[name] = _Growing(target, hashed=hashed)
        return file


def _check_hash(file: _Growing, expected: str) -> None:
    if file.hash.hexdigest() != expected:
        raise BrokenTransferError(file.target, "its SHA-256 is not the one that was sent")


def _sync_folder(folder: Path) -> None:
    """Makes the new names last through a power cut, where the system can."""
    if os.name != "posix":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
