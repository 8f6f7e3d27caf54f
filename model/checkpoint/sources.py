"""What the user named: a catalogue model, a folder, a file, a hub id, or something that is none of these."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from model.checkpoint import sniff
from model.checkpoint.catalogue import CATALOGUE, DEFAULT, Entry, find
from model.checkpoint.errors import BadFileError, CheckpointError, UnsupportedError
from model.checkpoint.fetch import local_path
from model.checkpoint.paths import open_regular
from model.errors import shown

_HUB_ID = re.compile(r"^[\w][\w.-]{0,95}/[\w][\w.-]{0,95}$", re.ASCII)
_RUN_FORMAT = re.compile(rb'"format": ?"dscope"')
Form = Literal["gguf", "folder", "hub"]


class NotFetchedError(CheckpointError):
    """A catalogue model that is not on this machine yet; nothing is downloaded unasked."""

    code = "not_fetched"

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        size = f" ({entry.download_bytes / 1e6:.0f} MB)" if entry.download_bytes else ""
        super().__init__(f"{entry.title} is not on this machine yet: get it first{size}, or open a model from disk.")


class NoSuchModelError(CheckpointError):
    """A name that is no path, no catalogue model and no hub id."""

    code = "no_such_model"

    def __init__(self, source: str) -> None:
        self.source = source
        names = ", ".join(entry.name for entry in CATALOGUE)
        super().__init__(
            f"There is no model called {shown(source)!r}: give a folder, a .gguf file, a hub id such as "
            f"{DEFAULT.hub_id}, or one of {names}."
        )


@dataclass(frozen=True)
class Place:
    """Where a model is and how it is read. `label`: how the user would name it; `entry`: its catalogue entry."""

    form: Form
    path: Path
    label: str
    entry: Entry | None = None


def resolve(source: str | Path | None) -> Place:
    """Finds what `source` names without reading more than 512 bytes; None or "" is the default model."""
    text = "" if source is None else str(source)
    entry = DEFAULT if not text else find(text)
    if entry is not None and not (text and Path(text).exists()):
        return _fetched(entry)
    if "\0" in text:
        raise NoSuchModelError(text)
    if re.match(r"^[a-z][a-z0-9+.-]+://", text, re.IGNORECASE):
        raise UnsupportedError(
            text, "this is a web address", "Give the hub id (owner/name), or download the files first."
        )
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise BadFileError(text, "there is no such user, or none with a folder", remedy="Check the path.") from error
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # half a character, in a name from a window, is no OSError
        if os.path.islink(path):  # noqa: PTH114 - the method raises for a name that is too long
            raise BadFileError(path, "a link to something that does not exist", remedy="Check the path.") from error
        if _HUB_ID.match(text) and ".." not in text and not text.endswith((".gguf", ".safetensors")):
            return Place("hub", path, text)
        if path.is_absolute() or path.suffix or len(path.parts) > 1:
            raise BadFileError(path, "no such file or folder", remedy="Check the path.") from error
        raise NoSuchModelError(text) from error
    if stat.S_ISDIR(mode):
        return Place("folder", path, str(path))
    return _file(path)


def _fetched(entry: Entry) -> Place:
    if (path := local_path(entry)) is not None:
        return Place("gguf", path, entry.title, entry)
    from model.checkpoint.hub import cached_snapshot  # noqa: PLC0415 - the hub's client is slow to import

    if (folder := cached_snapshot(entry.hub_id)) is not None:
        return Place("folder", folder, entry.title, entry)
    raise NotFetchedError(entry)


def _file(path: Path) -> Place:
    descriptor = open_regular(path)
    try:
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            head = file.read(sniff.HEAD_BYTES)
            kind = sniff.kind_of(head, path.stat().st_size, path.name)
    except OSError as error:  # a disk that fails, or a file of the kernel's that has a place for nobody
        problem = f"can't be read: {error.strerror or error}"
        raise BadFileError(
            path, problem, remedy="Open a model's folder, a .gguf file or a .safetensors file."
        ) from error
    if kind is sniff.SAFETENSORS and (path.suffix.lower() == ".dscope" or _RUN_FORMAT.search(head)):
        remedy = "Open it in the window (decoderscope FILE), or export from it (decoderscope export --run FILE)."
        raise UnsupportedError(path, "this is a recorded run, not a model", remedy)
    if kind is sniff.GGUF or path.suffix.lower() == ".gguf":
        return Place("gguf", path, str(path))
    if kind is sniff.SAFETENSORS or path.suffix.lower() == ".safetensors":
        return Place("folder", path, str(path))
    if path.name == "config.json":
        return Place("folder", path.parent, str(path.parent))
    remedy = kind.remedy or "Open a model's folder, a .gguf file or a .safetensors file."
    raise UnsupportedError(path, f"this is {kind.name}, not a model", remedy)
