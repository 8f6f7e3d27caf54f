"""The command `decoderscope` hands every subcommand of the engine's side over, and is its own children when frozen."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from app.__main__ import CHILDREN, ENGINE_SIDE
from model.cli import COMMANDS


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
