"""The command `decoderscope`: the window, the tour, or an engine-side subcommand that loads no Qt."""

from __future__ import annotations

# No more here than every interpreter has loaded by now: until `main` runs Ctrl-C is Python's own, a page of traceback.
import os
import sys

EXIT_INTERRUPTED = 130
ENGINE_SIDE = frozenset(
    {"run", "export", "models", "record-check", "doctor", "bench", "engine", "--version", "--help", "-h"}
)
LEAST_BYTES, LEAST_TO_COMPUTE = 160 * 2**20, 700 * 2**20
"""Of address space, without which numpy, and torch, end the process in their own words while they come in."""
# What a frozen program, which has no interpreter to hand a script to, starts itself as.
CHILDREN = {"chat-template": "model.checkpoint.chat_child", "tokenizer": "model.checkpoint.tokenizer_child"}
LIGHT = (ENGINE_SIDE - {"run", "export", "bench", "engine"}) | CHILDREN.keys()
"""What can begin without torch. The window can, but its engine has its limits."""


def main() -> int:
    """Runs what the arguments ask for; the exit code. Ctrl-C ends it quietly from here on, modules coming in too."""
    try:
        return _main()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _main() -> int:
    import runpy  # noqa: PLC0415 - where Ctrl-C is heard

    from app.complaint import complain  # noqa: PLC0415

    _open_closed()
    arguments = sys.argv[1:]
    first = arguments[0] if arguments else ""
    if problem := no_room(first):
        return complain(problem)
    if first in ENGINE_SIDE:
        sys.argv[0] = "decoderscope"
        runpy.run_module("model", run_name="__main__", alter_sys=True)
        return 0
    if first in CHILDREN and getattr(sys, "frozen", False):
        runpy.run_module(CHILDREN[first], run_name="__main__")
        return 0
    if first == "tour":
        from app.tour.command import main as tour  # noqa: PLC0415

        return int(tour(arguments[1:]))
    problem = trouble_with(arguments)
    if problem:
        return complain(problem)
    _end_on_ctrl_c()
    from app.main import run  # noqa: PLC0415

    return run(arguments)


def _end_on_ctrl_c() -> None:
    """Until the window takes signals itself, at its first paint, it holds nothing that an end could leave behind; and
    Qt's libraries do not bear an exception while they come in: they abort."""
    import signal  # noqa: PLC0415

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))


def _open_closed() -> None:
    """A standard stream that was closed at the start goes nowhere, and no file opened later gets its descriptor."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - for good


def no_room(command: str) -> str:
    """Why a command can't begin under this process's limit of memory (`ulimit -v`); empty where it can be tried."""
    try:
        import resource  # noqa: PLC0415 - exists on POSIX only
    except ImportError:
        return ""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    least = LEAST_TO_COMPUTE if command not in LIGHT else LEAST_BYTES
    if limit == resource.RLIM_INFINITY or limit >= least:
        return ""
    return (
        f"the memory limit here is {limit / 1e6:,.0f} MB (ulimit -v), and it takes {least / 1e6:,.0f} MB to start: "
        "raise it, or take it away with ulimit -v unlimited."
    )


def trouble_with(arguments: list[str]) -> str:
    """Why the window can't be opened with these arguments here; empty when it can be tried."""
    more = "(see decoderscope --help)"
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return "the folder this was started in no longer exists: change to another one and try again."
    if unknown := [argument for argument in arguments if argument.startswith("-")]:
        return f"{unknown[0]!r} is not an option of the window {more}"
    if len(arguments) > 1:
        return f"the window opens one model or run, not {len(arguments)} {more}"
    # Path's raises for a name that is too long
    if arguments and arguments[0].isalpha() and not os.path.exists(arguments[0]):  # noqa: PTH110
        return f"{arguments[0]!r} is no command, and there is no file or folder of that name {more}"
    return no_display()


def no_display() -> str:
    """Where there is no display a window would end in Qt's abort: says so and what can be done; else empty."""
    platforms = os.environ.get("QT_QPA_PLATFORM", "")
    shown = not all(name.partition(":")[0].startswith(("xcb", "wayland")) for name in platforms.split(";") if name)
    if not sys.platform.startswith("linux") or shown or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        return ""
    from app.complaint import WITHOUT_ONE  # noqa: PLC0415

    return f"there is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set). {WITHOUT_ONE}"


if __name__ == "__main__":
    sys.exit(main())
