"""Bytes, tokens and progress in words that fit a status line."""

from __future__ import annotations

from app.i18n import tr


def progress_amount(done: int, total: int, unit: str) -> str:
    """How far, in its unit."""
    if unit in {"B", "byte", "bytes"}:
        return f"{size(done)} / {size(total)}" if total else size(done)
    return f"{done:,} / {total:,} {unit}" if total else f"{done:,} {unit}"


def tokens(n: int) -> str:
    """So many tokens, in words."""
    return tr("1 token") if n == 1 else tr("{n} tokens", n=f"{n:,}")


def size(count: float) -> str:
    """Bytes with three digits: 612 MB, 5.60 GB."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit in {"B", "KB", "MB"} else f"{count:.1f} {unit}"
        count /= 1000
    return ""
