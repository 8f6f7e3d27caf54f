"""Names that every filesystem takes."""

from __future__ import annotations

import unicodedata

MAX_NAME_BYTES = 200
"""Of a file's name in UTF-8: filesystems take 255, some less once encrypted, and a suffix may be added."""
MAX_STEM_BYTES = 160
_FORBIDDEN = frozenset('<>:"/\\|?*')
_RESERVED = frozenset({"CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(1, 10))})


def safe_name(name: str) -> str:
    """A file name that every filesystem takes: no separators, colons or controls, nothing reserved, short enough, its
    extension kept; other characters, emoji too, as they are. Never empty, never with a folder in it."""
    kept = "".join(
        "-" if character in _FORBIDDEN else "" if unicodedata.category(character) in {"Cc", "Cs"} else character
        for character in unicodedata.normalize("NFC", name)
    ).strip(" .")
    stem, dot, extension = kept.rpartition(".")
    if not dot or len(extension.encode()) > 24 or " " in extension:
        stem, extension = kept, ""
    stem = stem.rstrip(" .")
    room = MAX_NAME_BYTES - (len(extension.encode()) + 1 if extension else 0)
    stem = stem.encode()[:room].decode(errors="ignore").rstrip(" .\u200d\ufe0f") or "export"
    if stem.partition(".")[0].upper() in _RESERVED:
        stem += "-"
    return f"{stem}.{extension}" if extension else stem


def safe_stem(stem: str) -> str:
    """A name without its extension, made safe, with room for any extension we add."""
    name = safe_name(f"{stem}.x")
    return name[:-2].encode()[:MAX_STEM_BYTES].decode(errors="ignore").rstrip(" .") or "export"
