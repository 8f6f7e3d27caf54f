"""A window's work on disk: what comes back after a crash, what a full disk and damaged files do, who writes."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.main import Application
from app.notify import Notifier
from app.session import Topic
from app.state import autosave, bring_back
from app.state.autosave import NAME, Autosave, Saved, read_saved, saved_of
from app.state.bring_back import BringBack, Lost, Unreadable, take_lost
from app.state.model_desk import EngineStatus
from app.state.under_way import Phase
from model.protocol.framing import Frame, encode_frame
from model.protocol.in_turns import encode_event
from model.protocol.run_requests import PrefillReply, Restore
from model.protocol.values import Node, SamplerSettings
from model.protocol.wire import event_frame
from tests.app.shell import close_window, open_window
from tests.fake_engine import INFO, state, tokens


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield made
    close_window(made)


def work(application: Application, text: str = "half \ud83d and \0") -> Saved:
    """A run of two tokens and a branch in the window's session, and what should be kept of it."""
    assert application.ctx is not None
    session = application.ctx.session
    session.desk.model, session.desk.source, session.desk.loaded = INFO, "/models/a", True
    nodes = tuple(
        Node(
            id=2 + i, parent=1, position=2, token_id=i, piece="x", logprob=float("-inf"), p=1.0, entropy=float("nan"),
            draw=0.25, ms=1.0, settings=SamplerSettings(seed=2**64 - 1),
        )
        for i in range(2)
    )  # fmt: skip
    run = replace(state((), "ab"), n_prompt=2, path=(3,), current=3, length=3, nodes=nodes)
    session.book.begin(PrefillReply(state=run, tokens=tokens("ab"), text="ab"))
    session.set_prompt(text)
    session.set_sampler(temperature=1.5, seed=7)
    session.changed.emit(Topic.NODE)
    return saved_of(session)


def keeper(application: Application, folder: Path) -> Autosave:
    assert application.ctx is not None
    return Autosave(application.ctx.session, folder, application.notify)


def test_what_a_window_would_lose_is_kept_and_read_back(application: Application, tmp_path: Path) -> None:
    kept = keeper(application, tmp_path)
    wanted = work(application)
    kept.save()
    kept.wait()
    found = read_saved(kept.path)
    assert (found.prompt, found.source, found.sampler.seed, found.ids) == (wanted.prompt, "/models/a", 7, (97, 98))
    assert found.nodes[1].settings.seed == 2**64 - 1 and found.nodes[0].entropy != found.nodes[0].entropy
    assert [replace(node, entropy=0.0) for node in found.nodes] == [replace(node, entropy=0.0) for node in wanted.nodes]
    assert found.current == 3 and found.kept is not None
    written = kept.path.stat().st_mtime_ns
    kept.save()  # nothing changed: nothing is written
    kept.wait()
    assert kept.path.stat().st_mtime_ns == written
    kept.close()
    assert list(tmp_path.glob("*.dscope-window")) == []  # a clean end


def test_the_next_window_offers_it_and_brings_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    config = tmp_path / "config"
    first = open_window(config, monkeypatch, qtbot)
    kept = keeper(first, config)
    wanted = work(first)
    kept.save()
    kept.wait()
    left = kept.path.read_bytes()
    kept.close()
    close_window(first)
    assert not (config / NAME).exists()
    (config / NAME).write_bytes(left)  # as a crash leaves it
    second = open_window(config, monkeypatch, qtbot)
    try:
        assert second.ctx is not None
        session = second.ctx.session
        [banner] = [b for b in second.window.banners.notices if "run of 4 tokens" in b.sentence.text()]
        [lost] = config.glob("lost-*.dscope-window")
        assert lost.read_bytes() == left and not (config / NAME).exists()
        asked: list[Any] = []
        ended: list[Any] = []

        def bring(coming: Any) -> None:
            asked.append(coming.kept)
            ended.append(coming.ended)

        monkeypatch.setattr(session.lost, "bring", bring)
        session.desk.model, session.desk.source, session.desk.loaded = INFO, "/models/a", True
        session.desk.status = EngineStatus.READY
        [button] = [b for b in banner.findChildren(QPushButton) if b.text() == "Bring them back"]
        button.click()
        assert session.prompt_text == wanted.prompt and session.sampler == wanted.sampler
        assert len(asked) == 1
        assert (asked[0].ids, asked[0].nodes[0].draw, asked[0].current) == (wanted.ids, 0.25, 3)
        session.changed.emit(Topic.PROGRESS)
        second.qt.processEvents()
        assert len(asked) == 1  # once
        ended[0](False)  # it was stopped: nothing of it is used up
        buttons = second.window.banners.findChildren(QPushButton)
        [again] = [b for b in buttons if b.text() == "Bring them back" and b.isVisible()]
        again.click()
        ended[1](True)
        assert [b for b in second.window.banners.notices if "run of 4 tokens" in b.sentence.text()] == []
        [own] = session.findChildren(Autosave)
        assert lost.exists()  # until this window has it on disk itself
        own.save()
        own.wait()
        assert not lost.exists() and read_saved(own.path).prompt == wanted.prompt
        Restore(ids=asked[0].ids, text=asked[0].text, nodes=asked[0].nodes, current=asked[0].current)
    finally:
        close_window(second)


def test_a_full_disk_is_told_once_and_the_old_file_stays(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keeper(application, tmp_path)
    work(application, "first")
    kept.save()
    kept.wait()
    before = kept.path.read_bytes()
    told: list[str] = []
    application.notify.notice.connect(told.append)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        work(application, "second")
        for _ in range(3):
            kept.save()
            kept.wait()
    assert kept.path.read_bytes() == before and len(list(tmp_path.glob(".*"))) == 0
    assert len(told) == 1 and "No space left on device" in told[0]
    kept.save()  # room again: it is tried again by itself
    kept.wait()
    found = read_saved(kept.path)
    assert found.prompt == "second"
    kept.close()


def test_damaged_files_are_kept_and_no_error(tmp_path: Path) -> None:
    saved = Saved(source="", prompt="a", add_special=True, chat=False, sampler=SamplerSettings())
    whole = encode_frame(event_frame(autosave.EVENT, saved))
    assert take_lost(tmp_path) is None
    generator, kept = random.Random(5), set[Path]()
    for trial in range(300):
        raw = bytearray(whole)
        for _ in range(generator.randint(1, 4)):
            raw[generator.randrange(len(raw))] = generator.randrange(256)
        (tmp_path / NAME).write_bytes(raw[: generator.randrange(len(raw))] if trial % 3 == 0 else raw)
        found = take_lost(tmp_path)
        if isinstance(found, Unreadable):
            assert found.why and found.path.exists() and found.path not in kept
            kept.add(found.path)
        else:
            assert isinstance(found, Lost) and found.path.exists() and found.path not in kept
            kept.add(found.path)
        assert not (tmp_path / NAME).exists()
    assert kept and all(path.exists() for path in kept)  # none took another's place
    (tmp_path / NAME).write_bytes(whole)
    found = take_lost(tmp_path)
    assert isinstance(found, Lost) and found.saved == saved
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(1 << 40)
    found = take_lost(tmp_path)
    assert isinstance(found, Unreadable) and "larger" in found.why


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_a_pipe_where_work_would_be_is_moved_away_unopened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    found = take_lost(tmp_path)
    assert isinstance(found, Unreadable) and "a named pipe" in found.why and found.path.is_fifo()


@pytest.mark.parametrize("damage", ["cut", "order", "no data"])
def test_what_cannot_be_read_is_told_kept_and_its_prompt_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot, damage: str
) -> None:
    saved = Saved(
        source="a", prompt='"prompt": my \u00e9 \ud83d text', add_special=True, chat=False, sampler=SamplerSettings()
    )
    frame = event_frame(autosave.EVENT, saved)
    raw = encode_frame(frame)
    if damage == "order":
        data = {**frame.header["data"], "sampler": {**frame.header["data"]["sampler"], "order": ["top_k"]}}
        raw = encode_frame(Frame(header={**frame.header, "data": data}))
    elif damage == "no data":
        raw = encode_frame(Frame(header={"v": 1, "event": autosave.EVENT}))
    config = tmp_path / "config"
    config.mkdir()
    (config / NAME).write_bytes(raw[:-5] if damage == "cut" else raw)
    application = open_window(config, monkeypatch, qtbot)
    try:
        [kept] = config.glob("unreadable-*.dscope-window")
        [banner] = [b for b in application.window.banners.notices if str(kept) in b.sentence.text()]
        offers = [b for b in banner.findChildren(QPushButton) if b.text() == "Bring the prompt back"]
        if damage == "no data":
            assert offers == []
            return
        offers[0].click()
        assert application.ctx is not None and application.ctx.session.prompt_text == saved.prompt
    finally:
        close_window(application)
    assert kept.exists()


def test_work_that_another_window_takes_meanwhile_is_no_trouble(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in (NAME, "lost-2-20261130-101112.dscope-window"):
        (folder / name).write_bytes(encode_frame(event_frame(autosave.EVENT, work(application))))

    def gone(path: Path, _limit: int) -> bytes:
        path.unlink()
        return path.read_bytes()

    monkeypatch.setattr(bring_back, "read_small", gone)
    assert application.ctx is not None
    bring_back.offer_lost(folder, 3, application.ctx.session, application.notify)
    assert application.window.banners.notices == [] and list(folder.glob("*.dscope-window")) == []


def test_the_typed_prompt_comes_back_after_the_recorded_run_it_was_typed_over(
    application: Application, tmp_path: Path
) -> None:
    assert application.ctx is not None
    session = application.ctx.session
    session.desk.model, session.desk.status, session.desk.loaded = INFO, EngineStatus.READY, True
    saved = Saved(source="/a/run.dscope", prompt="typed", add_special=False, chat=False, sampler=SamplerSettings())
    lost = Lost(saved=saved, path=tmp_path / "lost-1.dscope-window", when=0.0)
    BringBack((lost,), session, application.notify, session).start(lost)
    assert session.busy and session.phase is Phase.OPENING  # the file is looked into
    session.under_way.end()
    reply = SimpleNamespace(recorded=False)
    session.prompt.take("recorded", "recorded", tokens("recorded"))  # as a run file's answer does
    session.files.opened.emit(reply)
    assert (session.prompt_text, session.prompt.add_special) == ("typed", False)
    session.prompt.take("another", "another", tokens("another"))
    session.files.opened.emit(reply)
    assert session.prompt_text == "another"  # once


def test_every_window_keeps_its_work_under_its_own_number(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    config = tmp_path / "config"
    second = open_window(config, monkeypatch, qtbot)
    try:
        assert second.ctx is not None and application.ctx is not None
        [first_kept] = application.ctx.session.findChildren(Autosave)
        [kept] = second.ctx.session.findChildren(Autosave)
        assert (first_kept.path.name, kept.path.name) == (NAME, "unsaved-2.dscope-window")
        work(second, "of the second")
        kept.save()
        kept.wait()
        left = kept.path.read_bytes()
    finally:
        close_window(second)
    assert not kept.path.exists()
    kept.path.write_bytes(left)  # as a crash leaves it
    third = open_window(config, monkeypatch, qtbot)
    try:
        assert [b for b in third.window.banners.notices if b.sentence.text().startswith("Window 2 ended")]
        [lost] = config.glob("lost-2-*.dscope-window")
        assert lost.read_bytes() == left
    finally:
        close_window(third)


def test_work_of_a_window_that_is_still_there_is_not_taken(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    config = tmp_path / "config"
    (config / NAME).write_bytes(b"the first window's")
    second = open_window(config, monkeypatch, qtbot)
    close_window(second)
    assert (config / NAME).read_bytes() == b"the first window's"
    assert application.place is not None and application.place.number == 1


def test_thousands_of_nodes_are_encoded_off_the_gui_thread(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    assert application.ctx is not None
    session = application.ctx.session
    work(application)
    node = next(iter(session.book.nodes.values()))
    session.book.nodes.update({i: replace(node, id=i) for i in range(4, 10_000)})
    threads: list[str] = []

    def encode(event: str, data: Saved, field: str) -> bytes:
        threads.append(threading.current_thread().name)
        return encode_event(event, data, field)

    monkeypatch.setattr("app.state.autosave.encode_event", encode)
    kept = Autosave(session, tmp_path, Notifier())
    session.changed.emit(Topic.NODE)
    kept.save()
    kept.wait()
    assert threads == ["autosave"]
    found = read_saved(kept.path)
    assert len(found.nodes) == 9_998
    kept.close()
