"""What is dropped on the window: one local file or folder, looked at without opening it."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QUrl

from app.i18n import tr


def dropped_path(urls: Sequence[QUrl]) -> Path | str:
    """The one path dropped, or the sentence that says why there is none."""
    if len(urls) != 1:
        return tr("Drop one file or folder; these are {n}.", n=f"{len(urls):,}")
    if not urls[0].isLocalFile():
        return tr("Links are not fetched: open a hub model by its id (Ctrl+O).")
    return Path(urls[0].toLocalFile())


def refuse_path(path: Path) -> str:
    """Why a path is not even looked into: it is missing, or neither a file nor a folder. Never blocks."""
    from model.protocol.errors import shown  # noqa: PLC0415 - with numpy behind it: not before the first paint

    try:
        mode = path.stat().st_mode  # a FIFO or a device is not opened by this
    except OSError as error:
        return tr("{path} can't be read: {why}.", path=shown(path.name), why=error.strerror or str(error))
    except ValueError:  # a NUL or half a character in it
        return tr("{path} is a name that no file or folder can have.", path=shown(path.name))
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return tr("{path} is neither a file nor a folder.", path=shown(path.name))
    return ""
