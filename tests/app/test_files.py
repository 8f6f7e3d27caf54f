"""Exports from the engine to the disk: written, cancelled, refused by the disk, cut off by the engine's death."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMetaObject, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine import LATER, REFUSED, EngineClient, EngineState
from app.export.files import WAITING_PARTS, FileExport
from model.export.files import ExportedFile
from model.protocol.attention_requests import HeadView
from model.protocol.export_requests import ExportAttention, ExportReply, FileInfo, FilePart
from model.protocol.file_writing import IncomingFiles
from model.protocol.wire import ErrorInfo, Progress
from tests import fake_engine

MESSAGE = ExportAttention(view=HeadView(layer=0, head=0))
TIMEOUT = 10_000
CANCELLED = ErrorInfo(code="cancelled", message="Cancelled.")


class Engine:
    """Stands for the client: keeps the callbacks of the one request, and tells whether it was cancelled."""

    def __init__(self) -> None:
        self.calls: dict[str, Any] = {}
        self.cancelled = threading.Event()
        self.acked = 0
        self.taken: list[object] = []

    def ack(self) -> None:
        self.acked += 1

    def request(self, message: object, **calls: Any) -> Engine:
        assert message is MESSAGE
        self.calls = calls
        return self

    def cancel(self) -> None:
        self.cancelled.set()

    def send(self, name: str, data: bytes, *, parts: int | None = None) -> FileInfo:
        with ExportedFile(name, "") as file:
            file.write(data)
            for part, array in list(file.parts(1024))[:parts]:
                self.taken.append(self.calls["on_part"](part, {"data": array}))
            return file.info


class Outcome:
    def __init__(self, export: FileExport) -> None:
        self.finished: list[list[Path]] = []
        self.failed: list[ErrorInfo] = []
        self.progress: list[Progress] = []
        export.finished.connect(self.finished.append)
        export.failed.connect(self.failed.append)
        export.progressed.connect(self.progress.append)

    @property
    def over(self) -> bool:
        return bool(self.finished or self.failed)


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def started(qtbot: QtBot, engine: Engine, tmp_path: Path) -> Iterator[tuple[FileExport, Outcome]]:
    del qtbot
    export = FileExport(engine, tmp_path, overwrite=True)  # type: ignore[arg-type]
    outcome = Outcome(export)
    export.start(MESSAGE)
    yield export, outcome
    export.close()
    export.deleteLater()


Started = tuple[FileExport, Outcome]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_written_when_the_reply_comes(started: Started, engine: Engine, qtbot: QtBot, tmp_path: Path) -> None:
    export, outcome = started
    engine.calls["on_progress"](Progress(what="drawing", done=1, total=2, unit="files"))
    infos = (engine.send("a.png", b"p" * 5000), engine.send("a.csv", b""))
    assert "a.png" not in names(tmp_path)
    assert export.running
    engine.calls["on_reply"](ExportReply(files=infos), {})
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    assert outcome.finished == [[tmp_path / "a.png", tmp_path / "a.csv"]]
    assert (tmp_path / "a.png").read_bytes() == b"p" * 5000
    assert names(tmp_path) == ["a.csv", "a.png"]
    assert [step.what for step in outcome.progress] == ["drawing"]
    assert not export.running


@pytest.mark.parametrize("code", ["cancelled", "engine_lost"])
def test_an_end_half_way_leaves_nothing(
    started: Started, engine: Engine, qtbot: QtBot, tmp_path: Path, code: str
) -> None:
    export, outcome = started
    (tmp_path / "a.png").write_bytes(b"old")
    engine.send("a.png", b"p" * 5000, parts=3)
    export.cancel()
    assert engine.cancelled.is_set()
    engine.calls["on_error"](ErrorInfo(code=code, message="why"))
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    assert [error.code for error in outcome.failed] == [code]
    assert names(tmp_path) == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"old"


def test_what_the_disk_says_is_what_is_told(engine: Engine, qtbot: QtBot, tmp_path: Path) -> None:
    export = FileExport(engine, tmp_path / "nowhere", overwrite=True)  # type: ignore[arg-type]
    outcome = Outcome(export)
    export.start(MESSAGE)
    engine.send("a.png", b"p" * 5000)
    qtbot.waitUntil(engine.cancelled.is_set, timeout=TIMEOUT)
    engine.calls["on_error"](CANCELLED)
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    [error] = outcome.failed
    assert error.code == "file_write"
    assert "the folder does not exist. Choose another one" in error.message
    export.deleteLater()


def test_a_reply_after_a_refusal_is_still_a_failure(engine: Engine, qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"old")
    export = FileExport(engine, tmp_path, overwrite=False)  # type: ignore[arg-type]
    outcome = Outcome(export)
    export.start(MESSAGE)
    info = engine.send("a.png", b"new")
    engine.calls["on_reply"](ExportReply(files=(info,)), {})
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    assert [error.code for error in outcome.failed] == ["file_exists"]
    assert (tmp_path / "a.png").read_bytes() == b"old"
    export.deleteLater()


def test_closing_half_way_leaves_nothing_and_says_nothing(
    started: Started, engine: Engine, qtbot: QtBot, tmp_path: Path
) -> None:
    export, outcome = started
    engine.send("a.png", b"p" * 5000, parts=3)
    export.close()
    qtbot.wait(20)
    assert names(tmp_path) == []
    assert not outcome.over
    assert not export.running


def test_the_end_of_the_program_leaves_nothing(
    started: Started, engine: Engine, qtbot: QtBot, tmp_path: Path, qapp: QApplication
) -> None:
    export, outcome = started
    engine.send("a.png", b"p" * 5000, parts=3)
    qtbot.waitUntil(lambda: len(names(tmp_path)) == 1)
    assert QMetaObject.invokeMethod(qapp, "aboutToQuit", Qt.ConnectionType.DirectConnection)
    assert names(tmp_path) == []
    assert not export.running and not outcome.over


def test_the_window_does_not_wait_for_the_disk(
    started: Started, engine: Engine, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda _descriptor: time.sleep(0.3))
    _export, outcome = started
    began = time.monotonic()
    info = engine.send("a.png", b"p")
    engine.calls["on_reply"](ExportReply(files=(info,)), {})
    assert time.monotonic() - began < 0.2
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    assert outcome.finished


def test_parts_are_acknowledged_once_they_are_written(
    started: Started, engine: Engine, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    _export, outcome = started
    disk = threading.Event()
    add = IncomingFiles.add

    def slow(files: IncomingFiles, part: FilePart, data: Any) -> None:
        disk.wait(10)
        add(files, part, data)

    monkeypatch.setattr(IncomingFiles, "add", slow)
    info = engine.send("a.png", b"p" * 5000)
    assert engine.taken == [LATER] * 5
    qtbot.wait(30)
    assert engine.acked == 0
    disk.set()
    engine.calls["on_reply"](ExportReply(files=(info,)), {})
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    assert outcome.finished
    assert engine.acked == 5


def test_an_engine_that_does_not_wait_is_stopped(
    started: Started, engine: Engine, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _export, outcome = started
    disk = threading.Event()
    monkeypatch.setattr(IncomingFiles, "add", lambda *_: disk.wait(10))
    engine.send("a.png", b"p" * 1024 * (WAITING_PARTS + 3))
    assert engine.taken == [LATER] * WAITING_PARTS + [REFUSED] * 3
    disk.set()
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    assert [error.code for error in outcome.failed] == ["broken_transfer"]
    assert names(tmp_path) == []


def test_the_engines_death_leaves_nothing_half_written(qtbot: QtBot, tmp_path: Path) -> None:
    client = EngineClient(command=fake_engine.command())
    client.start()
    qtbot.waitUntil(lambda: client.state is EngineState.READY, timeout=TIMEOUT)
    (tmp_path / "a.png").write_bytes(b"old")
    export = FileExport(client, tmp_path, overwrite=True)
    outcome = Outcome(export)
    export.start(ExportAttention(view=HeadView(layer=0, head=0), dpi=1_000_000))  # parts without an end
    qtbot.waitUntil(lambda: len(names(tmp_path)) == 2, timeout=TIMEOUT)
    assert client._child is not None
    os.kill(client._child.processId(), signal.SIGKILL)
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    assert [error.code for error in outcome.failed] == ["engine_lost"]
    assert names(tmp_path) == ["a.png"]
    assert (tmp_path / "a.png").read_bytes() == b"old"
    client.close()
    export.deleteLater()
    client.deleteLater()


def test_a_cancel_reaches_the_engine(qtbot: QtBot, tmp_path: Path) -> None:
    client = EngineClient(command=fake_engine.command())
    client.start()
    qtbot.waitUntil(lambda: client.state is EngineState.READY, timeout=TIMEOUT)
    export = FileExport(client, tmp_path, overwrite=True)
    outcome = Outcome(export)
    export.start(ExportAttention(view=HeadView(layer=0, head=0), dpi=1_000_000))
    qtbot.waitUntil(lambda: len(names(tmp_path)) == 1, timeout=TIMEOUT)
    export.cancel()
    qtbot.waitUntil(lambda: outcome.over, timeout=TIMEOUT)
    assert [error.code for error in outcome.failed] == ["cancelled"]
    assert names(tmp_path) == []
    client.close()
    export.deleteLater()
    client.deleteLater()
