"""A window's work on disk: what comes back after a crash, what a full disk and damaged files do, who writes."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.main import Application
from app.notify import Notifier
from app.session import Topic
from app.state import autosave
from app.state.autosave import LOST_NAME, NAME, Autosave, Saved, read_saved, saved_of, take_lost
from model.protocol.framing import Frame, encode_frame
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
    session.desk.model, session.desk.source = INFO, "/models/a"
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
    assert found is not None
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
        assert (config / LOST_NAME).read_bytes() == left and not (config / NAME).exists()
        asked: list[Any] = []
        monkeypatch.setattr(session, "restore", asked.append)
        monkeypatch.setattr(type(session), "can_look", property(lambda _: True))
        session.desk.model, session.desk.source = INFO, "/models/a"
        [button] = [b for b in banner.findChildren(QPushButton) if b.text() == "Bring them back"]
        button.click()
        assert session.prompt_text == wanted.prompt and session.sampler == wanted.sampler
        assert len(asked) == 1
        assert (asked[0].ids, asked[0].nodes[0].draw, asked[0].current) == (wanted.ids, 0.25, 3)
        session.changed.emit(Topic.PROGRESS)
        assert len(asked) == 1  # once
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
    assert found is not None and found.prompt == "second"
    kept.close()


def test_damaged_files_are_no_offer_and_no_error(tmp_path: Path) -> None:
    saved = Saved(source="", prompt="a", add_special=True, chat=False, sampler=SamplerSettings())
    whole = encode_frame(event_frame(autosave.EVENT, saved))
    assert take_lost(tmp_path) is None
    generator = random.Random(5)
    for trial in range(300):
        raw = bytearray(whole)
        for _ in range(generator.randint(1, 4)):
            raw[generator.randrange(len(raw))] = generator.randrange(256)
        (tmp_path / NAME).write_bytes(raw[: generator.randrange(len(raw))] if trial % 3 == 0 else raw)
        found = take_lost(tmp_path)
        assert found is None or isinstance(found, Saved)
        assert not (tmp_path / NAME).exists()
    (tmp_path / NAME).write_bytes(whole)
    assert take_lost(tmp_path) == saved
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(1 << 40)
    assert take_lost(tmp_path) is None


def test_only_the_window_that_writes_preferences_keeps_its_work(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    second = open_window(tmp_path / "config", monkeypatch, qtbot)
    try:
        assert second.ctx is not None and application.ctx is not None
        assert not second.ctx.session.findChildren(Autosave)
        assert len(application.ctx.session.findChildren(Autosave)) == 1
    finally:
        close_window(second)


def test_thousands_of_nodes_are_encoded_off_the_gui_thread(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    assert application.ctx is not None
    session = application.ctx.session
    work(application)
    node = next(iter(session.book.nodes.values()))
    session.book.nodes.update({i: replace(node, id=i) for i in range(4, 10_000)})
    threads: list[str] = []

    def encode(frame: Frame) -> bytes:
        threads.append(threading.current_thread().name)
        return encode_frame(frame)

    monkeypatch.setattr("app.state.autosave.encode_frame", encode)
    kept = Autosave(session, tmp_path, Notifier())
    session.changed.emit(Topic.NODE)
    kept.save()
    kept.wait()
    assert threads == ["autosave"]
    found = read_saved(kept.path)
    assert found is not None and len(found.nodes) == 9_998
    kept.close()
