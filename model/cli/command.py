"""What a subcommand is, the values its options take, and how it speaks."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from model.errors import DecoderscopeError, shown, shown_ends

_MAX_MESSAGE = 1_000
"""Characters of a sentence that repeats what was typed."""


class UsageError(DecoderscopeError):
    """Arguments that no command understands."""

    code = "usage"

    def __init__(self, message: str) -> None:
        super().__init__(shown_ends(message, _MAX_MESSAGE))


class Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes are errors like any other."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError instead of printing the usage and leaving."""
        raise UsageError(f"{message} (see {self.prog} --help)")


@dataclass(frozen=True, kw_only=True)
class Command:
    """A subcommand: `arguments` declares its options, `run` does it and returns the exit code."""

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """An option's type: a whole number from `low` to `high`."""
    limits = f"{low:,} or more" if high is None else f"from {low:,} to {high:,}"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if value < low or (high is not None and value > high):
            raise argparse.ArgumentTypeError(f"{shown(text, 60)!r} is not a whole number {limits}")
        return value

    return read


def number(text: str) -> float:
    """An option's type: a number; its range is the sampler settings' own matter."""
    try:
        return float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{shown(text, 60)!r} is not a number") from error


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """The options that say which model is opened and how."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model", default="", metavar="MODEL", help="a name, folder, .gguf file or hub id (default: the default model)"
    )
    group.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16", "float16"))
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, mps (default: auto)")
    group.add_argument("--threads", type=whole(0, 1024), default=0, help="default: one a physical core")


class ProgressLine:
    """Progress on one line of a terminal's stderr; silent anywhere else and before a second has passed."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._begun = self._last = time.monotonic()
        self._width = 0

    def __call__(self, what: str, done: int, total: int, unit: str) -> None:
        """Shows how far `what` is."""
        now = time.monotonic()
        if not self._terminal or now - self._last < 0.1 or now - self._begun < 1:
            return
        self._last = now
        share = f"{done / total:.0%}" if total else f"{done:,} {unit}"
        text = f"{what}: {share}"
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Takes the line away."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0
