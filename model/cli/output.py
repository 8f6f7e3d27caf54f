"""Stdout as a command writes it: what can't be written there is an error of ours, and says that it was stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from model.errors import DecoderscopeError


class OutputError(DecoderscopeError):
    """Stdout takes nothing any more: a full disk behind it, or it is closed."""

    code = "output"

    def __init__(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        super().__init__(f"The output could not be written: {reason}. Send it to another file, or free some space.")


class _Output:
    """A stream of text that raises OutputError, or BrokenPipeError where its reader has left."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Raises OutputError."""
        with _told():
            return self._stream.write(text)

    def flush(self) -> None:
        """Raises OutputError."""
        with _told():
            self._stream.flush()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error) from error


@contextmanager
def told_output() -> Iterator[None]:
    """Inside, whatever goes to stdout raises OutputError where it can't be written, to the last byte."""
    before: Any = sys.stdout
    with nullcontext(before) if before is not None else Path(os.devnull).open("w", encoding="utf-8") as stream:
        made: Any = _Output(stream)  # all that print and argparse ask of a stream; None: it was closed at the start
        sys.stdout = made
        try:
            yield
        finally:
            if sys.stdout is made:
                sys.stdout = before


def give_up_output() -> None:
    """What still waits for stdout goes nowhere: the interpreter's own last flush is quiet too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
