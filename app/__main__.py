"""The command `decoderscope`: the window, the tour, or an engine-side subcommand that loads no Qt."""

from __future__ import annotations

import runpy
import sys

ENGINE_SIDE = frozenset(
    {"run", "export", "models", "record-check", "doctor", "bench", "engine", "--version", "--help", "-h"}
)
# What a frozen program, which has no interpreter to hand a script to, starts itself as.
CHILDREN = {"chat-template": "model.checkpoint.chat_child", "tokenizer": "model.checkpoint.tokenizer_child"}


def main() -> int:
    """Runs what the arguments ask for; the exit code."""
    arguments = sys.argv[1:]
    first = arguments[0] if arguments else ""
    if first in ENGINE_SIDE:
        sys.argv[0] = "decoderscope"
        runpy.run_module("model", run_name="__main__", alter_sys=True)
        return 0
    if first in CHILDREN and getattr(sys, "frozen", False):
        runpy.run_module(CHILDREN[first], run_name="__main__")
        return 0
    if first == "tour":
        from app.tour import main as tour  # noqa: PLC0415

        return int(tour(arguments[1:]))
    from app.main import run  # noqa: PLC0415

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
