"""SHA-256 of files, with progress, and remembered by (path, size, time, inode) so that a big file is hashed once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from model.checkpoint.paths import CacheDirError, cache_dir, make_dir, open_regular
from model.checkpoint.progress import CheckCancel, Progress, never_cancel, no_progress

_CHUNK = 4 << 20
_MEMORY_NAME = "digests.json"
_MEMORY_ENTRIES = 500


def sha256_of(
    path: Path,
    *,
    progress: Progress = no_progress,
    check_cancel: CheckCancel = never_cancel,
    what: str = "Checking the file",
) -> str:
    """Hex digest of a regular file; constant memory."""
    digest = hashlib.sha256()
    with open(open_regular(path), "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        total, done = os.fstat(file.fileno()).st_size, 0
        while chunk := file.read(_CHUNK):
            check_cancel()
            digest.update(chunk)
            done += len(chunk)
            progress(what, done, total, "bytes")
    return digest.hexdigest()


def stamp_of(path: Path) -> list[int]:
    """What changes when a file is replaced or written to: size, modification time in ns, inode."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def remembered_sha256(path: Path, *, progress: Progress = no_progress, check_cancel: CheckCancel = never_cancel) -> str:
    """`sha256_of`, not repeated while the file's stamp stays the same."""
    memory_file = cache_dir() / _MEMORY_NAME
    key, stamp = str(path.resolve()), stamp_of(path)
    memory = _read_memory(memory_file)
    known = memory.get(key)
    if isinstance(known, list) and known[:-1] == stamp and isinstance(known[-1], str):
        return known[-1]
    digest = sha256_of(path, progress=progress, check_cancel=check_cancel)
    memory.pop(key, None)
    memory[key] = [*stamp, digest]
    while len(memory) > _MEMORY_ENTRIES:
        del memory[next(iter(memory))]
    with contextlib.suppress(OSError, CacheDirError):  # a read-only cache only costs the next start a second
        make_dir(memory_file.parent)
        temporary = memory_file.with_name(f"{_MEMORY_NAME}.{os.getpid()}")
        temporary.write_text(json.dumps(memory), encoding="utf-8")
        temporary.replace(memory_file)
    return digest


def _read_memory(path: Path) -> dict[str, object]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
