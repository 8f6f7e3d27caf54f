"""What the engine's process is told before torch is imported."""

from __future__ import annotations

import os
import subprocess
import sys

CODE = """
import io, os, sys
from unittest import mock
from model.cli import engine
with mock.patch("model.server.serve", return_value=0), mock.patch.object(sys, "stdin", io.StringIO()):
    engine.run(mock.Mock(threads=0, nice=0))
print(os.environ["OMP_WAIT_POLICY"], "torch" in sys.modules)
"""


def policy(environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_an_engine_beside_a_window_sleeps_at_barriers_unless_told_otherwise() -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    assert policy(kept) == ["passive", "False"]
    assert policy({**kept, "OMP_WAIT_POLICY": "active"}) == ["active", "False"]
