"""Files arrive whole or not at all, and what was there before stays."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import CancelledError
from model.export.files import ExportedFile, write_files
from model.protocol.export_requests import FileInfo, FilePart
from model.protocol.file_names import MAX_NAME_BYTES, safe_name, safe_stem
from model.protocol.file_writing import (
    BrokenTransferError,
    FileExistsAlreadyError,
    FileWriteError,
    IncomingFiles,
    named,
)


def sent(name: str, data: bytes, chunk: int = 1000) -> tuple[FileInfo, list[tuple[FilePart, object]]]:
    file = ExportedFile(name, name.rpartition(".")[2])
    file.write(data)
    with file:
        return file.info, list(file.parts(chunk))


def write(folder: Path, name: str, data: bytes, *, overwrite: bool = False) -> list[Path]:
    info, parts = sent(name, data)
    with IncomingFiles(folder, overwrite=overwrite) as files:
        for part, array in parts:
            files.add(part, array)  # type: ignore[arg-type]
        return files.finish([info])


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 54_321])
def test_what_is_sent_is_what_is_there(tmp_path: Path, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    [path] = write(tmp_path, "a.npz", data)
    assert everything(tmp_path) == {"a.npz": data}
    assert path == tmp_path / "a.npz"


def test_parts_are_small_and_tell_the_hash_at_the_end() -> None:
    data = b"x" * 2_500
    info, parts = sent("a.bin", data)
    assert [(part.offset, part.last, len(array)) for part, array in parts] == [  # type: ignore[arg-type]
        (0, False, 1000),
        (1000, False, 1000),
        (2000, True, 500),
    ]
    assert parts[-1][0].sha256 == info.sha256 == hashlib.sha256(data).hexdigest()
    assert info.size == 2_500


@pytest.mark.parametrize("size", [0, 1, 9_999, 10_000, 54_321])
@pytest.mark.parametrize("hashed", [False, True])
def test_what_is_written_here_is_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, hashed: bool
) -> None:
    monkeypatch.setattr("model.protocol.file_writing.BUFFER_BYTES", 10_000)
    monkeypatch.setattr("model.protocol.file_writing.BUFFERED", 100)
    monkeypatch.setattr("model.protocol.file_writing.SYNC_BYTES", 15_000)
    data = np.random.default_rng(size).bytes(size)

    def make(out: IO[bytes]) -> None:
        assert not out.seekable()
        scratch = bytearray()  # whoever writes may use its memory again at once
        for begin, end in itertools.pairwise((*range(0, size, 77), size)):
            scratch[:] = data[begin:end]
            out.write(scratch)

    made = ExportedFile("other.bin", "bin")
    made.write(data)
    files = [ExportedFile("a.npz", "npz", make), made]
    written = write_files(files, tmp_path, hashed=hashed)
    assert everything(tmp_path) == {"a.npz": data, "other.bin": data}
    sha256 = hashlib.sha256(data).hexdigest() if hashed else ""
    assert written == [
        (tmp_path / name, FileInfo(name=name, format=name[-3:], size=size, sha256=sha256))
        for name in ("a.npz", "other.bin")
    ]


@pytest.mark.parametrize("hashed", [False, True])
def test_what_cannot_be_changed_is_written_without_a_copy_and_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hashed: bool
) -> None:
    monkeypatch.setattr("model.protocol.file_writing.BUFFER_BYTES", 10_000)
    monkeypatch.setattr("model.protocol.file_writing.BUFFERED", 5_000)
    monkeypatch.setattr("model.protocol.file_writing.SYNC_BYTES", 15_000)
    rng, whole, taken = np.random.default_rng(7), [], list[object]()
    write = os.write

    def watched(to: int, data: memoryview) -> int:
        taken.append(data.obj)
        return write(to, data)

    monkeypatch.setattr(os, "write", watched)
    given = [np.frombuffer(rng.bytes(size), np.uint8) for size in (5_000, 30_000, 12_345, 9_999, 80_000)]

    def make(out: IO[bytes]) -> None:
        scratch = bytearray(300)
        for block in given:
            for data in (rng.bytes(3), rng.bytes(4_999), rng.bytes(20_000)):
                scratch[:] = data
                whole.append(data)
                assert out.write(memoryview(scratch)) == len(data)
                del scratch[:]
            whole.append(block.tobytes())
            assert out.write(block.data.toreadonly()) == block.size

    ((path, info),) = write_files([ExportedFile("a.npz", "npz", make)], tmp_path, hashed=hashed)
    data = b"".join(whole)
    assert path.read_bytes() == data and info.size == len(data)
    assert info.sha256 == (hashlib.sha256(data).hexdigest() if hashed else "")
    assert all(any(one is block for one in taken) for block in given)


def test_a_file_made_for_parts_is_the_one_made_in_place(tmp_path: Path) -> None:
    asked: list[int] = []

    def make(out: IO[bytes]) -> None:
        asked.append(1)
        out.write(b"n" * 2_500)

    with ExportedFile("a.bin", "bin", make) as file:
        assert asked == []
        info, parts = file.info, list(file.parts(1_000))
        assert (info.size, len(parts), file.read()) == (2_500, 3, b"n" * 2_500)
    assert asked == [1]


def test_nothing_is_left_of_what_could_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"old")

    def make(out: IO[bytes]) -> None:
        out.write(b"n" * 100_000)
        raise CancelledError

    files = [ExportedFile("b.npz", "npz", lambda out: out.write(b"1")), ExportedFile("a.npz", "npz", make)]
    with pytest.raises(CancelledError):
        write_files(files, tmp_path, overwrite=True)
    assert everything(tmp_path) == {"a.npz": b"old"}
    with pytest.raises(FileExistsAlreadyError):
        write_files([ExportedFile("a.npz", "npz", make)], tmp_path)


@pytest.mark.parametrize("call", ["write", "fdatasync", "fsync"])
@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_a_full_disk_met_on_the_writing_thread_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, kind: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr("model.protocol.file_writing.SYNC_BYTES", 2**20)
    (tmp_path / "a.npz").write_bytes(b"old")

    def full(*_: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    def make(out: IO[bytes]) -> None:
        for _ in range(20):
            out.write(kind(b"n" * 2**20))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(FileWriteError, match=r"the disk is full\. Free some space .*\. Nothing"):
            write_files([ExportedFile("a.npz", "npz", make)], tmp_path, overwrite=True)
    assert everything(tmp_path) == {"a.npz": b"old"}


def test_files_take_the_users_permissions_and_keep_those_of_what_they_replace(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        [path] = write(tmp_path, "a.csv", b"1")
        assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(umask)
    path.chmod(0o604)
    write(tmp_path, "a.csv", b"2", overwrite=True)
    assert path.stat().st_mode & 0o777 == 0o604


def test_an_existing_file_is_kept_unless_overwriting_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"old")
    with pytest.raises(
        FileExistsAlreadyError, match=r"a\.png could not be written to .*: a file of this name is there"
    ):
        write(tmp_path, "a.png", b"new")
    assert everything(tmp_path) == {"a.png": b"old"}
    write(tmp_path, "a.png", b"new", overwrite=True)
    assert everything(tmp_path) == {"a.png": b"new"}


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    info, [(part, data)] = sent("a.png", b"new")
    with IncomingFiles(tmp_path) as files:
        files.add(part, data)  # type: ignore[arg-type]
        (tmp_path / "a.png").write_bytes(b"somebody else's")
        with pytest.raises(FileExistsAlreadyError):
            files.finish([info])
    assert everything(tmp_path) == {"a.png": b"somebody else's"}


def test_nothing_is_left_of_an_export_that_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"old")
    _info, parts = sent("a.png", b"n" * 5000)
    files = IncomingFiles(tmp_path, overwrite=True)
    for part, data in parts[:3]:
        files.add(part, data)  # type: ignore[arg-type]
    assert len(everything(tmp_path)) == 2
    files.abandon()
    files.abandon()
    assert everything(tmp_path) == {"a.png": b"old"}


def test_of_several_files_all_appear_or_none(tmp_path: Path) -> None:
    first, second = sent("a.png", b"1"), sent("a.csv", b"2")
    with IncomingFiles(tmp_path) as files:
        for part, data in first[1]:
            files.add(part, data)  # type: ignore[arg-type]
        with pytest.raises(BrokenTransferError, match="never came"):
            files.finish([first[0], second[0]])
    assert everything(tmp_path) == {}
    with IncomingFiles(tmp_path) as files:
        for part, data in [*first[1], *second[1]]:
            files.add(part, data)  # type: ignore[arg-type]
        assert [path.name for path in files.finish([first[0], second[0]])] == ["a.png", "a.csv"]


def test_a_damaged_transfer_is_found(tmp_path: Path) -> None:
    info, parts = sent("a.png", b"n" * 1500)
    (first, data), (last, _) = parts
    with IncomingFiles(tmp_path) as files, pytest.raises(BrokenTransferError, match="a part came at 1,000 where 0"):
        files.add(last, data)  # type: ignore[arg-type]
    with IncomingFiles(tmp_path) as files:
        files.add(first, data)  # type: ignore[arg-type]
        with pytest.raises(BrokenTransferError, match="1,000 of 1,500 bytes"):
            files.finish([info])
    with IncomingFiles(tmp_path) as files:
        files.add(first, data)  # type: ignore[arg-type]
        with pytest.raises(BrokenTransferError, match="SHA-256"):
            files.add(last, b"m" * 500)
    with IncomingFiles(tmp_path) as files:
        files.add(FilePart(name="a:b", offset=0, last=False), b"1")
        with pytest.raises(BrokenTransferError, match="two files"):
            files.add(FilePart(name="a?b", offset=0, last=False), b"1")
    assert everything(tmp_path) == {}


def test_a_missing_folder_has_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(FileWriteError, match="the folder does not exist"):
        write(tmp_path / "nowhere", "a.png", b"1")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileWriteError, match="a part of the path is not a folder"):
        write(tmp_path / "file", "a.png", b"1")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="Linux")
def test_a_folder_of_the_kernels_own_is_not_said_to_be_missing() -> None:
    with pytest.raises(FileWriteError, match=r"to /proc: this folder takes no files\. Choose another folder\."):
        write(Path("/proc"), "a.png", b"1")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"old")
    folder.chmod(0o500)
    yield folder
    folder.chmod(0o700)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_a_read_only_folder_has_a_sentence(read_only: Path) -> None:
    """As another user where this one is root, whom permissions do not hold."""
    if os.geteuid() != 0:
        with pytest.raises(FileWriteError, match="no permission"):
            write(read_only, "a.png", b"new", overwrite=True)
    else:
        for folder in (read_only, *read_only.parents):
            if folder != Path("/") and folder.stat().st_uid == 0 and "pytest" in str(folder):
                folder.chmod(folder.stat().st_mode | 0o055)
        read_only.chmod(0o555)
        code = (
            "import os,sys; sys.path.insert(0, sys.argv[2]);"
            "from pathlib import Path; from tests.model.test_file_writing import write;"
            "os.setuid(65534);\n"
            "try: write(Path(sys.argv[1]), 'a.png', b'new', overwrite=True)\n"
            "except Exception as error: print(error)"
        )
        root = Path(__file__).resolve().parents[2]
        done = subprocess.run([sys.executable, "-c", code, read_only, root], capture_output=True, text=True, check=True)
        assert "you have no permission to write there. Choose another folder. Nothing was changed." in done.stdout
    assert everything(read_only) == {"a.png": b"old"}


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A size limit stops the process's writes as a full disk does, half-way."""
    (tmp_path / "a.npz").write_bytes(b"old")
    _info, parts = sent("a.npz", b"n" * 300_000, chunk=65_536)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    files = IncomingFiles(tmp_path, overwrite=True)
    files.add(*parts[0])  # type: ignore[arg-type]
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(FileWriteError, match="larger than this disk or session allows"):
            files.add(*parts[1])  # type: ignore[arg-type]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert everything(tmp_path) == {"a.npz": b"old"}


@pytest.mark.parametrize("call", ["write", "fsync", "close", "open"])
def test_no_space_is_told_wherever_the_system_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "a.npz").write_bytes(b"old")
    real = getattr(os, call)

    def full(*args: object, **kwargs: object) -> object:
        if call == "close":
            real(*args)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(FileWriteError, match=r"the disk is full\. Free some space .*\. Nothing"):
            write(tmp_path, "a.npz", b"new", overwrite=True)
    assert everything(tmp_path) == {"a.npz": b"old"}


def test_only_files_are_replaced_and_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "a.png").mkdir()
    with pytest.raises(FileWriteError, match="not a file"):
        write(tmp_path, "a.png", b"1", overwrite=True)
    os.mkfifo(tmp_path / "b.png")
    with pytest.raises(FileWriteError, match="not a file"):
        write(tmp_path, "b.png", b"1", overwrite=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "real.png").write_bytes(b"old")
    (tmp_path / "c.png").symlink_to(other / "real.png")
    write(tmp_path, "c.png", b"new", overwrite=True)
    assert (tmp_path / "c.png").is_symlink()
    assert (other / "real.png").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("attention.png", "attention.png"),
        ("model:latest.png", "model-latest.png"),
        ("../../etc/passwd", "-.-etc-passwd"),
        ("..", "export"),
        ("", "export"),
        (".png", "png"),
        ("a\x00b\n.csv", "ab.csv"),
        ("emoji 😀.svg", "emoji 😀.svg"),
        ("con.png", "con-.png"),
        ("a . png", "a . png"),
        ("attention.csv-metadata.json", "attention.csv-metadata.json"),
        ("C:\\temp\\x.png", "C--temp-x.png"),
        ("trailing. ", "trailing"),
    ],
)
def test_names_are_made_safe(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@given(st.text(max_size=400))
def test_any_stem_leaves_room_for_an_extension(stem: str) -> None:
    for extension in (".png", ".csv-metadata.json"):
        assert safe_name(safe_stem(stem) + extension) == safe_stem(stem) + extension or safe_stem(stem) == "export"


@given(st.text(max_size=400))
def test_any_name_is_one_that_can_be_written(name: str) -> None:
    safe = safe_name(name)
    assert safe == safe_name(safe)
    assert 0 < len(safe.encode()) <= MAX_NAME_BYTES
    assert not set('<>:"/\\|?*\0') & set(safe)
    assert safe.strip(" .") == safe


@pytest.mark.parametrize("name", ["x" * 300 + ".png", "😀" * 150 + ".npz", "a:b.pdf", "你好" * 100 + ".csv"])
def test_odd_names_are_written(tmp_path: Path, name: str) -> None:
    [path] = write(tmp_path, name, b"1")
    assert path.suffix == Path(name).suffix
    assert everything(tmp_path) == {path.name: b"1"}


@pytest.mark.parametrize(
    ("typed", "name"),
    [("a", "a"), ("a.RUN", "a"), ("a:b", "a-b"), ("a\0b", "ab"), ("\ud800", "export"), ("\x07", "export")],
)
def test_a_named_place_has_a_name_that_can_be_written(tmp_path: Path, typed: str, name: str) -> None:
    assert named(tmp_path / typed, ".run") == tmp_path / f"{name}.run"
