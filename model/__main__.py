"""The engine's side of the command line: `python -m model …`, or `decoderscope …` for all but the window."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import FrameType

from model import panics
from model.cli import COMMANDS
from model.cli.command import Parser, UsageError
from model.cli.output import OutputError, give_up_output, lost_asides, open_closed, told_output
from model.errors import DecoderscopeError, LackingError, shown_ends
from model.version import product_version

PROG = "decoderscope"
EXIT_ERROR, EXIT_INTERRUPTED, EXIT_PIPE = 2, 130, 141
TRACEBACK_VARIABLE = "DECODERSCOPE_TRACEBACK"
_NO_ROOM = ("out of memory", "can't allocate memory")
"""How libraries say it of this machine."""
NO_MEMORY = "Memory ran out: take a shorter prompt, a smaller dtype or a smaller model."


def parser() -> Parser:
    """Every subcommand and its options."""
    made = Parser(
        prog=PROG,
        usage=f"{PROG} [MODEL | RUN.dscope]  |  {PROG} tour --out DIR  |  {PROG} COMMAND …",
        description="A microscope for decoder-only language models.",
        epilog=f"Without a command the window opens, with a .gguf file, a folder, a hub id or a run file where one is "
        f"named. `{PROG} tour --out DIR` walks the main job in it and leaves pictures and exports.",
        allow_abbrev=False,
    )
    made.add_argument("--version", action="version", version=f"{PROG} {product_version()}")
    commands = made.add_subparsers(prog=PROG, title="commands", dest="command", metavar="COMMAND")
    for command in COMMANDS:
        one = commands.add_parser(command.name, help=command.help, description=f"{command.help}.", allow_abbrev=False)
        command.arguments(one)
        one.set_defaults(run=command.run)
    return made


class NoFolderError(DecoderscopeError):
    """The folder a command was started in has been removed."""

    code = "no_folder"

    def __init__(self) -> None:
        super().__init__("The folder this was started in no longer exists: change to another one and try again.")


class EndedError(KeyboardInterrupt):
    """A signal that asks the process to end: what is half done is taken away, as with Ctrl-C."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP raise EndedError, once: what takes away is not ended itself. One that is ignored
    (nohup) or handled already is left alone; so are all of them off the main thread, where they can't be handled."""
    ended = False

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        if not ended:
            ended = True
            raise EndedError(number)

    taken = []
    try:
        for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, end)
                taken.append(number)
    except ValueError:  # not the main thread
        pass
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a subcommand; the exit code. A mistake is one line on stderr and exit code 2."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # of libraries; ours are errors or part of a reply
    open_closed()
    with lost_asides():
        return _told(arguments)


def _told(arguments: Sequence[str] | None) -> int:
    """The exit code; what went wrong has been told."""
    try:
        with told_output():
            return _run(arguments)
    except EndedError as error:
        return 128 + error.number
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        give_up_output()
        return EXIT_PIPE
    except OutputError as error:
        give_up_output()
        return _fail(str(error))
    except DecoderscopeError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail(NO_MEMORY)
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        if type(error).__name__ == "OutOfMemoryError":
            return _fail("The device's memory ran out: take a shorter prompt, a smaller dtype or another device.")
        if isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_ROOM):
            return _fail(NO_MEMORY)
        if (lacking := LackingError.of(error)) is not None:
            return _fail(str(lacking))
        reason = shown_ends(f"{type(error).__name__}: {error}", 400)
        return _fail(f"Something went wrong: {reason} (set {TRACEBACK_VARIABLE}=1 to see where)")


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = parser().parse_args(arguments)
    except SystemExit:  # --help and --version have printed
        sys.stdout.flush()
        raise
    if options.command is None:
        raise UsageError(f"give a command: {', '.join(command.name for command in COMMANDS)} (see {PROG} --help)")
    # The engine writes nothing to a disk: its end, which the window may ask for, needs no turn of its own.
    if options.command == "engine":
        return int(options.run(options))
    _require_folder()
    quiet = nullcontext() if os.environ.get(TRACEBACK_VARIABLE) else panics.silenced()
    with _ended_by_signals(), quiet:
        code: int = options.run(options)
        sys.stdout.flush()
    return code


def _require_folder() -> None:
    """Raises NoFolderError where the working folder is gone: relative paths lead nowhere, and oneMKL ends the process
    without a word of ours."""
    try:
        os.getcwd()  # noqa: PTH109 - Path's is the same
    except FileNotFoundError as error:
        raise NoFolderError from error


def _fail(sentence: str) -> int:
    print("error:", " ".join(sentence.split()), file=sys.stderr)
    return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
