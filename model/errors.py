"""The one base of every error a user may meet.

A subclass carries data and makes its own sentence: what happened, where, what was found and expected,
and what to do. `str(error)` is that sentence; no caller adds words of its own.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from pathlib import PurePath

_SHOWN = 200
_NO_ROOM = ("failed to map segment", "annot allocate memory", "paging file is too small")
"""Of the loaders of Linux, of BSDs, of Windows."""


def shown(text: object, limit: int = 100) -> str:
    """A name or value out of an untrusted file, fit for a message: control characters escaped, long ones cut."""
    raw = str(text) if isinstance(text, str | PurePath) else repr(text)
    clean = "".join(ch if ch.isprintable() else ch.encode("unicode_escape", "replace").decode() for ch in raw[:limit])
    return clean + ("…" if len(raw) > limit else "")


def shown_ends(text: str, limit: int = 200) -> str:
    """`shown`, with a long text cut in its middle: what a library says tells at its end where it was."""
    half = limit // 2
    return shown(text, limit) if len(text) <= limit else f"{shown(text[:half], half)}…{shown(text[-half:], half)}"


class DecoderscopeError(Exception):
    """Anything the product can explain in one sentence. `code` names its kind for the app and for tests."""

    code = "error"


class CancelledError(DecoderscopeError):
    """Raised at a yield point after a cancel; whoever holds a half-done state rolls it back."""

    code = "cancelled"

    def __init__(self) -> None:
        super().__init__("Cancelled.")


class BadValueError(DecoderscopeError, ValueError):
    """A setting or argument outside its range."""

    code = "bad_value"

    def __init__(self, field: str, found: object, expected: str) -> None:
        self.field, self.found, self.expected = field, found, expected
        text = repr(found)
        cut = text if len(text) <= _SHOWN else text[:_SHOWN] + " …"
        super().__init__(f"{field} is {cut}; expected {expected}.")


class UnknownNameError(DecoderscopeError):
    """A name that is not in its registry, with the nearest ones."""

    code = "unknown_name"

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = difflib.get_close_matches(name[:_SHOWN], self.known, n=3)
        hint = f" Did you mean {' or '.join(repr(item) for item in near)}?" if near else ""
        super().__init__(f"There is no {kind} called {shown(name)!r}.{hint}")


class LackingError(DecoderscopeError):
    """Something the system gives out is used up, where no file or request is to blame."""

    code = "lacking"

    @classmethod
    def of(cls, error: BaseException) -> LackingError | None:
        """What a library's or the system's error says in its own words; None where it says something else."""
        if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
            return cls("Too many files are open: raise the limit (ulimit -n), or close other programs.")
        if isinstance(error, ImportError) and any(words in str(error) for words in _NO_ROOM):
            return cls(
                "There is not enough memory to start: raise the limit if there is one (ulimit -v), or close other "
                "programs."
            )
        return None


class NoRunError(DecoderscopeError):
    """A request about a run while none exists."""

    code = "no_run"

    def __init__(self) -> None:
        super().__init__("Nothing has been prefilled yet: type a prompt and prefill it first.")


class NoModelError(DecoderscopeError):
    """A request that needs a model while none is loaded."""

    code = "no_model"

    def __init__(self) -> None:
        super().__init__("No model is loaded: open one first.")
