"""How the program ends when it is told to, and what it says when something in the window goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
SILENT_ENGINE = [sys.executable, "-c", "import sys; sys.stdin.buffer.read()"]
QUICK = 3.0
SCRIPT = """
import sys
from PySide6.QtCore import QTimer
from app import main

def more(application):
    crash_guard(application)
    print("up", flush=True)
    {more}

crash_guard = main._guard
main._guard = more
sys.exit(main.run([]))
"""


def start(config: Path, more: str = "") -> subprocess.Popen[str]:
    config.mkdir()
    engine = str(SILENT_ENGINE).replace("'", '"')
    (config / "settings.json").write_text(f'{{"engine_command": {engine}}}', encoding="utf-8")
    environment = {**os.environ, "DECODERSCOPE_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(more=more)], env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def wait_for_child(process: subprocess.Popen[str]) -> psutil.Process:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        children = psutil.Process(process.pid).children()
        if children:
            return children[0]
        time.sleep(0.05)
    pytest.fail("the window started no engine")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are Unix's")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.usefixtures("qapp")
def test_a_signal_closes_the_window_and_ends_the_engine(tmp_path: Path, number: int) -> None:
    with start(tmp_path / "config") as process:
        engine = wait_for_child(process)
        time.sleep(0.5)
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == 0
        assert time.monotonic() - started < QUICK
    psutil.wait_procs([engine], timeout=QUICK)
    assert not engine.is_running()
    assert (tmp_path / "config" / "window.lock").exists() is False


@pytest.mark.usefixtures("qapp")
def test_an_error_in_a_slot_is_told_and_logged_and_the_window_goes_on(tmp_path: Path) -> None:
    more = (
        "QTimer.singleShot(800, lambda: 1 / 0); "
        "QTimer.singleShot(2000, lambda: (print(application.notify.last, flush=True), application.window.close()))"
    )
    with start(tmp_path / "config", more) as process:
        assert process.stdout is not None
        assert "division by zero" in process.stdout.readline()
        assert process.wait(20) == 0
    log = (tmp_path / "config" / "decoderscope.log").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in log
    assert "Traceback" in log
