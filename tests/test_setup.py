"""Set-up from a bare machine: what is missing is named in one line, and with nothing missing it does nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("sh", "cat", "sed", "cksum", "dirname", "rm", "mktemp", "tail", "awk", "cp", "mkdir", "head")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="set-up there is done by hand, see README.md")


class Machine:
    """A copy of the set-up scripts with a PATH that holds a few tools and whatever a test adds."""

    def __init__(self, folder: Path) -> None:
        self.clone = folder / "clone"
        self.tools = folder / "tools"
        self.tools.mkdir()
        shutil.copytree(ROOT / "packaging", self.clone / "packaging")
        shutil.copy(ROOT / "pyproject.toml", self.clone)
        for tool in TOOLS:
            found = shutil.which(tool)
            assert found is not None, tool
            (self.tools / tool).symlink_to(found)
        self.add("uname", "echo Linux")
        self.add("id", "echo 1000")
        self.libraries(*self.packages("lib").values())
        for program in self.packages("cmd").values():
            self.add(program, "exit 0")
        self.replace_files(str(folder))

    def packages(self, kind: str) -> dict[str, str]:
        """Debian package to what its probe looks for, of one kind of probe."""
        lines = (self.clone / "packaging" / "system-packages.txt").read_text(encoding="utf-8").splitlines()
        rows = [line.split() for line in lines if line and not line.startswith("#")]
        return {package: probe.partition(":")[2] for _, package, probe in rows if probe.startswith(f"{kind}:")}

    def replace_files(self, place: str) -> None:
        """Points the font probes at a place that is there."""
        listing = self.clone / "packaging" / "system-packages.txt"
        rows = listing.read_text(encoding="utf-8").splitlines()
        listing.write_text(
            "\n".join(row.split("file:")[0] + f"file:{place}" if "file:" in row else row for row in rows)
        )
        listing.write_text(listing.read_text(encoding="utf-8") + "\n", encoding="utf-8")

    def add(self, name: str, script: str) -> Path:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def libraries(self, *names: str) -> None:
        self.add("ldconfig", "\n".join(f"echo '\t{name} (libc6,x86-64) => /lib/{name}'" for name in names))

    def set_up(self, level: str = "run") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.tools / "sh"), "packaging/setup.sh", level],
            cwd=self.clone,
            env={"PATH": str(self.tools), "HOME": str(self.clone), "PYTHON": "python3"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def add_python(self, version: str, *, has_venv: bool = True) -> None:
        """An interpreter that answers the questions set-up asks, makes an environment of itself, and logs its pip."""
        major_minor = ".".join(version.split(".")[:2])
        old = int(tuple(int(part) for part in version.split(".")) < (3, 11))
        self.add(
            "python3",
            f"""
            case "$*" in
                --version) echo 'Python {version}' ;;
                *version_info*'[:2]'*) echo {major_minor} ;;
                *version_info*) exit {old} ;;
                *ensurepip*) exit {int(not has_venv)} ;;
                '-m venv '*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
                *'-m pip '*) echo "$*" >>pip-calls ;;
                *'-m model models where default') [ -e model-calls ] ;;
                *'-m model models get default') echo model >>model-calls ;;
                *) exit 99 ;;
            esac""",
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    return done.stderr.splitlines()


def test_fresh_machine_is_set_up_once(machine: Machine) -> None:
    machine.add_python("3.12.4")
    first = machine.set_up()
    assert first.returncode == 0, first.stderr
    pip_calls = (machine.clone / "pip-calls").read_text(encoding="utf-8")
    assert "--constraint packaging/constraints.txt" in pip_calls
    assert pip_calls.rstrip().endswith("--editable .")

    second = machine.set_up()
    assert (second.returncode, second.stderr, second.stdout) == (0, "", "")
    assert (machine.clone / "pip-calls").read_text(encoding="utf-8") == pip_calls


def test_changed_pin_installs_again_and_changed_lint_rule_does_not(machine: Machine) -> None:
    machine.add_python("3.11.2")
    machine.set_up("dev")
    calls = machine.clone / "pip-calls"
    before = calls.read_text(encoding="utf-8")
    assert before.rstrip().endswith("--editable .[dev]")
    with (machine.clone / "pyproject.toml").open("a", encoding="utf-8") as project:
        project.write("# a lint rule\n")
    machine.set_up("dev")
    machine.set_up("run")  # what tests need holds what the program needs
    assert calls.read_text(encoding="utf-8") == before
    with (machine.clone / "packaging" / "constraints.txt").open("a", encoding="utf-8") as pins:
        pins.write("six==1.17.0\n")
    machine.set_up("dev")
    assert calls.read_text(encoding="utf-8") == before * 2


def test_old_python_is_one_line(machine: Machine) -> None:
    machine.add_python("3.9.1")
    done = machine.set_up()
    assert done.returncode == 1
    (line,) = lines(done)
    assert line.startswith("set-up: Python 3.11 or newer is needed and Python 3.9.1 was found")


def test_no_python_is_one_line(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 1
    (line,) = lines(done)
    assert "no Python 3 was found" in line


def test_missing_venv_module_names_its_package(machine: Machine) -> None:
    machine.add_python("3.11.2", has_venv=False)
    done = machine.set_up()
    assert done.returncode == 1
    (line,) = lines(done)
    assert line.endswith("sudo apt-get install python3.11-venv")


def test_missing_libraries_without_root_are_one_line_and_set_up_goes_on(machine: Machine) -> None:
    machine.add_python("3.11.2")
    present = [name for package, name in machine.packages("lib").items() if package not in {"libegl1", "libxcb-icccm4"}]
    machine.libraries(*present)
    done = machine.set_up()
    assert done.returncode == 0
    named = [line for line in lines(done) if "system packages" in line]
    assert named == [
        "set-up: going on without these system packages; install them with: sudo apt-get install libegl1 libxcb-icccm4 "
    ]
    assert (machine.clone / "model-calls").exists()


def test_missing_libraries_as_root_are_installed_in_one_go(machine: Machine) -> None:
    machine.add_python("3.11.2")
    machine.add("id", "echo 0")
    machine.add("apt-get", f'echo "$*" >>{machine.clone}/apt-calls')
    (machine.tools / "openbox").unlink()
    (machine.tools / "Xvfb").unlink()
    assert machine.set_up("run").returncode == 0
    assert not (machine.clone / "apt-calls").exists(), "the program itself needs no virtual screen"
    assert machine.set_up("dev").returncode == 0
    calls = (machine.clone / "apt-calls").read_text(encoding="utf-8").splitlines()
    assert calls == ["update", "install -y --no-install-recommends xvfb openbox"]


def test_failing_apt_is_said_and_set_up_goes_on(machine: Machine) -> None:
    machine.add_python("3.11.2")
    machine.add("id", "echo 0")
    machine.add("apt-get", "echo 'E: no network' >&2; exit 100")
    machine.libraries(*list(machine.packages("lib").values())[1:])
    done = machine.set_up()
    assert done.returncode == 0
    assert "E: no network" in done.stderr
    assert "sudo apt-get install libegl1" in done.stderr


def test_no_display_walks_the_tour_offscreen(machine: Machine) -> None:
    machine.add_python("3.11.2")
    python = machine.clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    shutil.copy(machine.add("echo-program", 'echo "$QT_QPA_PLATFORM: $*"'), python)

    def run(*arguments: str, **variables: str) -> str:
        command = [str(machine.tools / "sh"), "packaging/run.sh", *arguments]
        environment = {"PATH": str(machine.tools), **variables}
        return subprocess.run(
            command, cwd=machine.clone, env=environment, capture_output=True, text=True, check=True, timeout=20
        ).stdout

    without = run().splitlines()
    assert without[0].startswith("There is no display here")
    assert without[1] == "offscreen: -P -m app tour --out out/"
    assert run(DISPLAY=":7").splitlines() == [": -P -m app"]
    assert run(WAYLAND_DISPLAY="wayland-0").splitlines() == [": -P -m app"]
    assert run("run", "--prompt", "two words").splitlines() == ["offscreen: -P -m app run --prompt two words"]


def test_clone_that_is_ready_needs_under_two_seconds() -> None:
    start = time.monotonic()
    done = subprocess.run(
        ["sh", "packaging/setup.sh", "dev"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=110
    )
    assert (done.stdout, done.stderr) == ("", ""), "run make test, which sets up first"
    assert time.monotonic() - start < 2
