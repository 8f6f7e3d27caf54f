"""What the command says on stderr when the window cannot be opened."""

from __future__ import annotations

import os
import sys

EXIT_ERROR = 2
WITHOUT_ONE = (
    "`decoderscope tour --out DIR` walks the main job in an offscreen window; run, export, models and doctor need none."
)


def complain(problem: str) -> int:
    """One line on stderr; the exit code of a mistake, whether or not the line could be written."""
    try:
        sys.stderr.write(f"error: {problem}\n")
        sys.stderr.flush()
    except OSError:  # the interpreter would try again at its end, and end with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return EXIT_ERROR
