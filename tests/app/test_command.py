"""The command `decoderscope` hands every subcommand of the engine's side over, and is its own children when frozen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.__main__ import CHILDREN, ENGINE_SIDE
from model.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def program(*arguments: str, stdin: str = "", frozen: bool = False) -> subprocess.CompletedProcess[str]:
    code = f"import sys\nsys.argv = ['decoderscope', *{list(arguments)!r}]\n"
    code += "sys.frozen = True\n" if frozen else ""
    code += "from app.__main__ import main\nsys.exit(main())"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_every_subcommand_is_the_engines(name: str) -> None:
    assert name in ENGINE_SIDE
    done = program(name, "--help")
    assert done.returncode == 0 and f"usage: decoderscope {name}" in done.stdout


def test_a_frozen_program_is_its_own_children() -> None:
    request = {"template": "{{ bos_token }}hello", "variables": {"bos_token": "<s>"}, "cpu_seconds": 5}
    done = program("chat-template", stdin=json.dumps(request), frozen=True)
    assert json.loads(done.stdout) == {"text": "<s>hello"}, done.stderr
    vocabulary = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}
    lines = [json.dumps(json.dumps(vocabulary)), json.dumps({"text": "a", "special": False})]
    done = program("tokenizer", stdin="\n".join(lines) + "\n", frozen=True)
    assert json.loads(done.stdout)["ids"] == [0], done.stderr
    assert set(CHILDREN) == {"chat-template", "tokenizer"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("frobnicate",), "'frobnicate' is no command"),
        (("--modl", "x"), "'--modl' is not an option"),
        (("a.gguf", "b.gguf"), "one model or run, not 2"),
        (("a" * 4000,), "is no command"),
        ((), "there is no display here"),
        (("/no/such.gguf",), "there is no display here"),
    ],
)
def test_what_can_open_no_window_is_one_line(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    done = program(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and words in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's redirections")
@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_the_code_of_a_mistake_is_the_same_where_nobody_hears_it(closed: str) -> None:
    for arguments, code in (("frobnicate", 2), ("run --temperature nan --prompt a", 2), ("--version", 0)):
        line = f"{sys.executable} -m app {arguments} {closed}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (code, ""), arguments


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="displays of X and Wayland")
@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"QT_QPA_PLATFORM": "xcb"}, "there is no display here"),
        ({"QT_QPA_PLATFORM": "wayland;xcb"}, "there is no display here"),
        ({"DISPLAY": ":7771"}, "no window can be opened here: could not connect to display :7771."),
        ({"QT_QPA_PLATFORM": "nonsense"}, "no window can be opened here: Could not find the Qt platform plugin"),
    ],
)
def test_a_display_that_is_none_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], words: str
) -> None:
    """Where Qt would end the program with an abort."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = program()
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: {words}") and "decoderscope tour --out DIR" in done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="macOS keeps no limit of address space")
@pytest.mark.parametrize(
    ("arguments", "limit", "told"),
    [
        (("run", "--prompt", "a"), 102_400_000, ("102 MB", "734 MB")),  # numpy: OpenBLAS' own line
        (("export", "--prompt", "a"), 600_000_000, ("600 MB", "734 MB")),
        (("engine",), 600_000_000, ("600 MB", "734 MB")),
        (("--version",), 102_400_000, ("102 MB", "168 MB")),
        (("models",), 60_000_000, ("60 MB", "168 MB")),
        (("a.gguf",), 600_000_000, ("600 MB", "734 MB")),
    ],
)
def test_a_memory_limit_that_nothing_starts_under_is_one_line(
    arguments: tuple[str, ...], limit: int, told: tuple[str, str]
) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "app", *arguments], capture_output=True, text=True, check=False, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, before[1])), cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: the memory limit here is {told[0]} (ulimit -v), and it takes {told[1]}")


def test_the_commands_own_file_loads_nothing_before_it_hears_ctrl_c() -> None:
    code = (
        "import os, sys\nbefore = {*sys.modules}\nfrom app.__main__ import main\nprint(sorted({*sys.modules} - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT
    )
    assert done.stdout.strip() == "['__future__', 'app', 'app.__main__']"


@pytest.mark.parametrize("when", ["PySide6.QtCore", "app.window", "PySide6.QtWidgets"])
def test_ctrl_c_while_the_window_comes_up_is_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(tmp_path))
    code = "import sys, signal\nsys.argv = ['decoderscope']\nfrom app.__main__ import main\nclass Finder:\n"
    code += f"    def find_spec(self, name, *_):\n        if name == {when!r}:\n"
    code += "            signal.raise_signal(signal.SIGINT)\nsys.meta_path.insert(0, Finder())\nsys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "size", ["0x0", "999999x999999", "399x300", "8001x900", "1400", "axb", "1e3x900", "-1x5", "１400x900"]
)
def test_a_window_size_that_is_none_is_refused_before_anything_is_made(tmp_path: Path, size: str) -> None:
    done = program("tour", "--size", size, "--out", str(tmp_path / "out"))
    assert done.returncode == 2 and "--size" in done.stderr and done.stderr.count("\n") <= 4
    assert not (tmp_path / "out").exists()


def test_a_tour_whose_display_goes_ends_at_once_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Qt does it where the X server dies: it tells every event loop to exit, and those to come."""
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    code = "from types import SimpleNamespace as Any\nfrom pathlib import Path\nfrom PySide6.QtCore import QTimer\n"
    code += "from PySide6.QtWidgets import QApplication\nfrom app.tour.driver import Driver, TourError, turn\n"
    code += "from app.notify import Notifier\nqt = QApplication([])\n"
    code += "driver = Driver(Any(window=None, notify=Notifier()), Path())\nQTimer.singleShot(100, lambda: qt.exit(1))\n"
    code += "for wait in (lambda: driver.wait(lambda: False, 'waiting', 20), lambda: turn(20_000)):\n"
    code += "    try:\n        wait()\n    except TourError as error:\n        print(error)\n"
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.count("its display is gone") == 2, done.stderr
    assert time.monotonic() - begun < 15
