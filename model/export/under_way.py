"""What an export under way calls now and then."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

FIGURES = "model.export.render"
LOOK_SECONDS = 0.02
Report = Callable[[str, int, int, str], None]
"""How far it is: what, done, of how many, in which unit."""
Check = Callable[[], None]
"""Whether to go on: raises to end it. Asked often enough that a cancel acts within 200 ms."""


def nothing(*_: object) -> None:
    """No progress wanted, or no cancel possible."""


def load_figures(check: Check) -> None:
    """Loads matplotlib, which takes half a second the first time: beside, so that a cancel need not wait for it. What
    goes wrong in it shows when it is imported next."""
    if FIGURES in sys.modules:
        return

    def load() -> None:
        with suppress(Exception):
            importlib.import_module(FIGURES)

    loading = threading.Thread(target=load, name="load figures", daemon=True)
    loading.start()
    while loading.is_alive():
        check()
        loading.join(LOOK_SECONDS)
