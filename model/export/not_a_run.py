"""What a file is that is no run file, by its first bytes: a picture, a text, nothing at all."""

from __future__ import annotations

import os

from model.checkpoint import sniff

_MAGICS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"RIFF", "a picture or a sound (RIFF)"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (as NPZ files are)"),
    (b"\x93NUMPY", "a NumPy array"),
)
_REMEDIES = frozenset({sniff.UNFINISHED, sniff.LFS_POINTER})
"""Kinds of which a run file may be made."""
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")


def not_a_run(descriptor: int, name: str) -> str:
    """A sentence that says what an open file is; empty where it may be a run file, whole or damaged."""
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, 0, os.SEEK_SET)
    head = os.read(descriptor, sniff.HEAD_BYTES)
    kind = sniff.kind_of(head, size, name)
    if kind is sniff.SAFETENSORS or (kind is sniff.UNKNOWN and head[8:9] == b"{"):
        return ""
    what = next((what for magic, what in _MAGICS if head.startswith(magic)), "")
    if not what and kind is not sniff.UNKNOWN:
        what = kind.name
    elif not what:
        what = "a text" if _is_text(head) else "a file of another kind, or a damaged one"
    remedy = f" {kind.remedy}" if kind in _REMEDIES else ""
    return f"it is {what}, not a run file (.dscope).{remedy}"


def _is_text(head: bytes) -> bool:
    """Whether the beginning of a file reads as one."""
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # a character may be cut at the end
            return False
    return not _CONTROLS & set(head)
