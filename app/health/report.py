"""What a report of an error needs besides the error: which releases, which system, which engine; nothing private."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import qVersion

from app.settings import log_folder
from app.version import version

if TYPE_CHECKING:
    from model.protocol.engine_requests import HelloReply

KEPT_CRASHES = 5
CRASH_LOG = "crash.log"


def versions(engine: str = "") -> str:
    """Releases and system, two or three lines. No path, no name of the user or the machine, nothing of the
    environment: what people paste in public."""
    lines = (
        f"Decoderscope {version()} · Python {platform.python_version()} · Qt {qVersion()}",
        f"{platform.system()} {platform.release()} {platform.machine()} · {os.cpu_count()} cores",
        engine,
    )
    return "\n".join(line for line in lines if line)


def engine_line(hello: HelloReply | None) -> str:
    """The engine's release and devices; "" before it has said so."""
    if hello is None:
        return ""
    devices = ", ".join(f"{device.name} {device.label}".strip() for device in hello.devices)
    return f"engine {hello.version} · torch {hello.torch} · {hello.threads} threads · {devices}"


def keep_last_crash() -> Path | None:
    """The report of a hard crash of an earlier window, kept under a name of its own; None when there was none."""
    left = log_folder() / CRASH_LOG
    try:
        if not left.is_file() or not left.stat().st_size:
            return None
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(left.stat().st_mtime))
        kept = left.with_name(f"crash-{stamp}.log")
        left.replace(kept)
        for old in sorted(left.parent.glob("crash-*.log"))[:-KEPT_CRASHES]:
            old.unlink()
        return kept
    except OSError:
        return None
