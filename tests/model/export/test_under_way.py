"""Loading what draws figures does not hold a cancel up."""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import sys
from model.errors import CancelledError
from model.export.under_way import FIGURES, load_figures
asked = []
def check():
    asked.append(None)
    if len(asked) == 2:
        raise CancelledError
try:
    load_figures(check)
except CancelledError:
    print(FIGURES in sys.modules and hasattr(sys.modules[FIGURES], "render"))
load_figures(lambda: None)  # what was left loading goes on
import model.export.render
print(callable(model.export.render.render))
sys.modules[FIGURES] = None
try:
    load_figures(check)
    import model.export.render
except ImportError:
    print("said")
"""


def test_a_cancel_while_figures_are_loaded_acts_at_once_and_errors_are_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    first, whole, end = done.stdout.splitlines()
    assert first == "False"  # it was given up before it was there
    assert (whole, end) == ("True", "said")
    assert not done.stderr
