"""`decoderscope engine`: the other half of the window, on stdin and stdout."""

from __future__ import annotations

import argparse
import functools
import os
import sys

from model.cli.command import Command, UsageError, whole

NICE_VARIABLE = "DECODERSCOPE_NICE"
DEFAULT_NICE = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("--threads", type=whole(0, 1024), default=0, help="default: one a physical core")
    parser.add_argument(
        "--nice",
        type=whole(0, 19),
        default=None,
        help=f"how far below the window's its priority is (default: {DEFAULT_NICE}, or ${NICE_VARIABLE})",
    )


def run(options: argparse.Namespace) -> int:
    """Serves until the other side is gone."""
    if sys.stdin.isatty():
        raise UsageError("the engine speaks to a window, not to a terminal: start the window, or give it this command")
    try:
        os.getcwd()  # noqa: PTH109 - Path's is the same
    except FileNotFoundError:  # the window's folder is gone; oneMKL would end this process for it
        os.chdir(os.path.abspath(os.sep))  # noqa: PTH100 - no path of Python's is needed
    from model.process import wait_asleep  # noqa: PLC0415 - with psutil, which only an engine needs

    wait_asleep()
    from model.server import load_handlers, serve  # noqa: PLC0415 - numpy and msgspec, before nothing else needs them

    return serve(load=functools.partial(load_handlers, options.threads), nice=_nice(options.nice))


def _nice(option: int | None) -> int:
    text = os.environ.get(NICE_VARIABLE, "") if option is None else str(option)
    try:
        return whole(0, 19)(text) if text else DEFAULT_NICE
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"{NICE_VARIABLE}: {error}") from error


COMMAND = Command(name="engine", help="serve the window on stdin and stdout", arguments=arguments, run=run)
