"""Which of the windows open at once this one is. Each holds a lock of its own in the configuration folder; the first
writes the preferences, and each keeps its work under its own number (autosave.py)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QLockFile, QSysInfo

from app.i18n import tr
from app.small_files import NotAFileError, NotOursError

MAX_WINDOWS = 16
MAX_LOCK_BYTES = 4096
SETTLE_MS = 20  # until a lock that has just been made says whose it is


@dataclass(frozen=True, kw_only=True)
class Place:
    """`number`: 1 for the window that writes the preferences; 0 where none was free. `why`: what the person should know
    of it, "" for the first window."""

    number: int
    lock: QLockFile | None = None
    why: str = ""

    def leave(self) -> None:
        """The window is over: its number is free."""
        if self.lock is not None:
            self.lock.unlock()


def take_place(folder: Path) -> Place:
    """The first number that is free in `folder`."""
    why = ""
    for number in range(1, MAX_WINDOWS + 1):
        try:
            lock = take_lock(lock_path(folder, number))
        except OSError as error:
            why = why or tr(
                "Whether another window is open can't be known ({path}: {why}): what you change in this one's "
                "preferences is not kept. Remove what is there and start again.",
                path=str(error.filename), why=error.strerror or "",
            )  # fmt: skip
            continue
        if lock is not None:
            return Place(number=number, lock=lock, why=why)
        why = why or tr("Another Decoderscope window is open: what you change in this one's preferences is not kept.")
    more = tr("{n} windows are open: this one's work is not kept against a crash.", n=MAX_WINDOWS)
    return Place(number=0, why=f"{why} {more}")


def lock_path(folder: Path, number: int) -> Path:
    """The lock of the window with a number."""
    return folder / ("window.lock" if number == 1 else f"window-{number}.lock")


def take_lock(path: Path) -> QLockFile | None:
    """A lock file, ours from now on (or of a folder that can't be written, where nothing is to be held); None while
    another window holds it. One that no process holds is taken over, whatever is in it. Raises NotAFileError, and
    NotOursError where that can't be known: a window that root has opened leaves one when it crashes."""
    lock = QLockFile(str(path))
    lock.setStaleLockTime(0)
    try:
        found = path.lstat()
    except OSError:
        found = None  # Qt finds out
    if found is not None:
        if not stat.S_ISREG(found.st_mode):
            raise NotAFileError(path, found.st_mode)
        if found.st_size > MAX_LOCK_BYTES and not lock.removeStaleLockFile():  # Qt would read all of it
            if not os.access(path, os.W_OK):
                raise NotOursError(path)
            return None
    if lock.tryLock(0) or lock.error() is not QLockFile.LockError.LockFailedError:
        return lock
    if _owner(lock)[0] == 0 and lock.tryLock(SETTLE_MS):
        return lock
    pid, host = _owner(lock)
    # Junk, or the number of a process that is another's by now. The file's own lock tells: while a window of this
    # machine holds it, it can't be removed. One of another machine, with this folder over the network, is believed.
    here = pid == 0 or host == QSysInfo.machineHostName()
    if here and lock.removeStaleLockFile() and lock.tryLock(0):
        return lock
    if path.exists() and not os.access(path, os.W_OK):
        raise NotOursError(path)
    return None


def _owner(lock: QLockFile) -> tuple[int, str]:
    """The process number and the machine a lock file names; (0, "") where it names none."""
    pid, host, _application = lock.getLockInfo()
    return int(pid), str(host)
