"""What long work is given: a place to report progress and a question whether to stop."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int, str], None]
"""progress(what, done, total, unit); total 0 when it is not known."""

CheckCancel = Callable[[], None]
"""Raises CancelledError when the work should stop; called at least between two tensors."""


def no_progress(what: str, done: int, total: int, unit: str) -> None:
    """Reports to nobody."""


def never_cancel() -> None:
    """Never asks to stop."""
