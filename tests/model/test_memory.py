"""What a process says it held is its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from model.memory import process_bytes

HELD = 300_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's mark is read on Linux")
def test_the_peak_is_not_that_of_the_process_that_started_this_one() -> None:
    held = bytearray(HELD)
    held[::4096] = b"x" * len(held[::4096])
    command = [sys.executable, "-P", "-c", "from model.memory import process_bytes; print(*process_bytes())"]
    now, peak = map(int, subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())
    assert 0 < now <= peak < HELD / 2
    assert process_bytes()[1] > HELD
