"""What a file is by its first bytes, so that a wrong one is called by its name before anything parses it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from model.checkpoint.errors import BadFileError

HEAD_BYTES = 512
_UNFINISHED = (".crdownload", ".part", ".partial", ".incomplete", ".download", ".aria2", ".tmp")
_FETCH_AGAIN = "Download it again."
_CONVERT = (
    "Pickle files can run code, so they are never opened: use the model's .safetensors version, or convert it with "
    "transformers (save_pretrained) on a machine where you trust the file."
)


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name in a sentence and, for a wrong one, the way out."""

    name: str
    remedy: str = ""


SAFETENSORS = Kind("a safetensors file")
GGUF = Kind("a GGUF file", "Open it by its own path, ending in .gguf.")
EMPTY = Kind("an empty file", _FETCH_AGAIN)
UNFINISHED = Kind("an unfinished download", "Let the download end, or start it again.")
LFS_POINTER = Kind("a Git LFS pointer, not the file itself", "Run `git lfs pull` in its folder.")
WEB_PAGE = Kind("a web page", "The download returned a page (a login or an error?). " + _FETCH_AGAIN)
PICKLE = Kind("a Python pickle", _CONVERT)
ZIP = Kind("a zip archive (PyTorch's .bin and .pt files are such)", _CONVERT)
COMPRESSED = Kind("a compressed archive", "Unpack it first.")
HDF5 = Kind("an HDF5 file (TensorFlow or Keras weights)", "Use the model's .safetensors version.")
OLD_GGML = Kind("a GGML file from before GGUF", "Convert it with llama.cpp's converter.")
JSON = Kind("a JSON text", "")
UNKNOWN = Kind("none of the kinds known here", "Check that the download is complete and unchanged.")

_MAGICS: tuple[tuple[bytes, Kind], ...] = (
    (b"GGUF", GGUF),
    (b"version https://git-lfs", LFS_POINTER),
    (b"PK\x03\x04", ZIP),
    (b"\x1f\x8b", COMPRESSED),
    (b"7z\xbc\xaf'\x1c", COMPRESSED),
    (b"\xfd7zXZ\x00", COMPRESSED),
    (b"\x28\xb5\x2f\xfd", COMPRESSED),
    (b"\x89HDF\r\n\x1a\n", HDF5),
    (b"lmgg", OLD_GGML),
    (b"fmgg", OLD_GGML),
    (b"tjgg", OLD_GGML),
)


def kind_of(head: bytes, size: int, name: str = "") -> Kind:
    """The kind of a file with these first bytes (512 are enough), this size and this name."""
    if name.lower().endswith(_UNFINISHED):
        return UNFINISHED
    if size == 0:
        return EMPTY
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    if len(head) >= 9 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= size:
        return SAFETENSORS
    if head[:1] == b"\x80" and head[1:2] in {b"\x02", b"\x03", b"\x04", b"\x05"}:
        return PICKLE
    return _text_kind(head.lstrip(b"\xef\xbb\xbf \t\r\n").lower())


def _text_kind(text: bytes) -> Kind:
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<error", b"<head", b"<body")):
        return WEB_PAGE
    return JSON if text.startswith((b"{", b"[")) else UNKNOWN


def require(descriptor: int, path: Path, expected: Kind) -> int:
    """The size of the open file in bytes; BadFileError when it is plainly another kind than `expected`.

    A file of unknown kind passes: its parser has the better sentence.
    """
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, 0, os.SEEK_SET)
    found = kind_of(os.read(descriptor, HEAD_BYTES), size, path.name)
    if found not in {expected, UNKNOWN}:
        raise BadFileError(path, f"this is {found.name}", expected=expected.name, remedy=found.remedy)
    return size
