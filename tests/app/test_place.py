"""Which window this is: locks that nobody holds are taken over, those of living windows are not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLockFile, QSysInfo

from app.state.place import MAX_LOCK_BYTES, Place, lock_path, take_place

HOLDER = """
import sys
from PySide6.QtCore import QLockFile
lock = QLockFile(sys.argv[1])
assert lock.tryLock(0)
if len(sys.argv) > 2:
    open(sys.argv[1], "wb").write(bytes.fromhex(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def places() -> Iterator[list[Place]]:
    made: list[Place] = []
    yield made
    for place in made:
        place.leave()


def one_line(pid: int, host: str) -> bytes:
    return f"{pid}\npython\n{host}\n".encode()


@pytest.mark.parametrize(
    "left",
    [
        b"",
        b"\xff" * 100_000,
        b"\0" * (MAX_LOCK_BYTES - 1),
        one_line(2**22 + 1, QSysInfo.machineHostName()),  # no process has this number
        one_line(os.getpid(), QSysInfo.machineHostName()),  # a living process, which holds no lock
    ],
    ids=["empty", "long", "zeros", "dead", "number-used-again"],
)
def test_a_lock_that_nobody_holds_is_taken_over(tmp_path: Path, places: list[Place], left: bytes) -> None:
    lock_path(tmp_path, 1).write_bytes(left)
    places.append(take_place(tmp_path))
    assert (places[0].number, places[0].why) == (1, "")
    places.append(take_place(tmp_path))
    assert places[1].number == 2 and "Another Decoderscope window" in places[1].why
    places[0].leave()
    assert not lock_path(tmp_path, 1).exists() and lock_path(tmp_path, 2).exists()


@pytest.mark.parametrize("junk", ["", "ff", "00" * (MAX_LOCK_BYTES + 1)], ids=["named", "junk", "long"])
def test_a_lock_that_a_process_holds_is_left_whatever_is_in_it(tmp_path: Path, places: list[Place], junk: str) -> None:
    command = [sys.executable, "-c", HOLDER, str(lock_path(tmp_path, 1)), *filter(None, [junk])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        places.append(take_place(tmp_path))
        assert places[0].number == 2
        places[0].leave()
        holder.kill()  # it leaves its lock behind
        holder.wait()
        places.append(take_place(tmp_path))
        assert places[1].number == 1


@pytest.mark.parametrize("junk", ["", "00" * (MAX_LOCK_BYTES + 1)], ids=["named", "long"])
def test_a_lock_of_another_user_is_called_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: list[Place], junk: str
) -> None:
    command = [sys.executable, "-c", HOLDER, str(lock_path(tmp_path, 1)), *filter(None, [junk])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr("app.state.place.os.access", lambda *_: False)  # to root every file may be written
        places.append(take_place(tmp_path))
        assert places[0].number == 2 and "Another" not in places[0].why
        assert f"({lock_path(tmp_path, 1)}: it belongs to another user)" in places[0].why
        holder.kill()
        holder.wait()


def test_a_window_of_another_machine_is_believed(tmp_path: Path, places: list[Place]) -> None:
    lock_path(tmp_path, 1).write_bytes(one_line(4, "another-machine"))
    places.append(take_place(tmp_path))
    assert places[0].number == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
@pytest.mark.parametrize("kind", ["a folder", "a named pipe", "a link"])
def test_what_is_no_lock_file_is_named_and_nothing_waits(tmp_path: Path, places: list[Place], kind: str) -> None:
    path = lock_path(tmp_path, 1)
    {"a folder": os.mkdir, "a named pipe": os.mkfifo, "a link": lambda at: at.symlink_to("/dev/zero")}[kind](path)
    places.append(take_place(tmp_path))
    assert places[0].number == 2
    assert kind in places[0].why and str(path) in places[0].why and "Another" not in places[0].why


def test_more_windows_than_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: list[Place]) -> None:
    monkeypatch.setattr("app.state.place.MAX_WINDOWS", 2)
    places.extend(take_place(tmp_path) for _ in range(3))
    assert [place.number for place in places] == [1, 2, 0]
    assert "not kept against a crash" in places[2].why


def test_a_folder_that_cannot_be_written_is_the_first_windows(tmp_path: Path, places: list[Place]) -> None:
    (tmp_path / "file").write_text("in the way")
    places.append(take_place(tmp_path / "file" / "config"))
    assert (places[0].number, places[0].why) == (1, "")
    assert isinstance(places[0].lock, QLockFile) and not places[0].lock.isLocked()
