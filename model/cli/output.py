"""The standard streams as a command has them: what can't be written to stdout is an error of ours, and says that it was
stdout; what can't be written to stderr is lost."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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


class _Aside:
    """A stream of text that loses what can't be written."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Never fails."""
        with _lost():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Never fails."""
        with _lost():
            self._stream.flush()


@contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except OSError:
        give_up_output(2)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error) from error


def open_closed() -> None:
    """A standard stream that was closed at the start goes nowhere: else there is none to speak to, and the next file
    opened would get its descriptor, and with it what libraries print."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - the lowest descriptor: its own


@contextmanager
def told_output() -> Iterator[None]:
    """Inside, whatever goes to stdout raises OutputError where it can't be written, to the last byte."""
    before: Any = sys.stdout
    made: Any = _Output(before)  # all that print and argparse ask of a stream
    sys.stdout = made
    try:
        yield
    finally:
        if sys.stdout is made:
            sys.stdout = before


@contextmanager
def lost_asides() -> Iterator[None]:
    """Inside, what can't be written to stderr is lost: a full disk behind it changes neither the work nor its end."""
    before: Any = sys.stderr
    made: Any = _Aside(before)
    sys.stderr = made
    try:
        yield
    finally:
        if sys.stderr is made:
            sys.stderr = before


def give_up_output(descriptor: int = 1) -> None:
    """What still waits for stdout (or stderr: 2) goes nowhere: the interpreter's own last flush is quiet too."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
