"""Panics of libraries in Rust: each is an exception here, but has written itself on stderr before, pages of it.

A command says one line, so it leaves those pages out; the engine's stderr is the window's log, where they belong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_silenced: ContextVar[bool] = ContextVar("panics_silenced", default=False)


@contextmanager
def silenced() -> Iterator[None]:
    """Within, what `may_panic` wraps writes nothing to stderr."""
    token = _silenced.set(True)
    try:
        yield
    finally:
        _silenced.reset(token)


@contextmanager
def may_panic() -> Iterator[None]:
    """Around a call of such a library. Where panics are silenced, descriptor 2 goes nowhere meanwhile."""
    if not _silenced.get() or sys.stderr is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
