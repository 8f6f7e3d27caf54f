"""A step or a seek overtakes what was asked of the run: back and forth in a moment, with the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main import Application
from app.panels.attention import AttentionPanel
from app.session import Session, Topic
from model.protocol.attention_requests import GetMatrix, HeadView
from model.protocol.wire import Place
from tests.app.shell import TIMEOUT, close_window, window_with, with_run
from tests.app.tiny_folder import tiny_folder


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    source = tiny_folder(tmp_path / "model", "llama")
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(source))
    with_run(made, qtbot, "The animal did not cross", 4)
    qtbot.waitUntil(lambda: attention(made).settled, timeout=TIMEOUT)
    yield made
    close_window(made)


def attention(application: Application) -> AttentionPanel:
    panel = application.window.docks["attention"].panel
    assert isinstance(panel, AttentionPanel)
    return panel


def session_of(application: Application) -> Session:
    assert application.ctx is not None
    return application.ctx.session


def test_an_answer_says_where_the_run_was(qtbot: QtBot, application: Application) -> None:
    session = session_of(application)
    here, before = session.current_node, session.book.parent(session.current_node)
    found: list[tuple[Place | None, int]] = []
    session.back()
    message = GetMatrix(view=HeadView(layer=0, head=0), rows=(0, 0), cols=(0, 0), height=9, width=9)
    pending = session.engine.request(message, on_reply=lambda reply, _arrays: found.append((pending.at, reply.length)))
    assert session.current_node == here  # as far as the window knows
    qtbot.waitUntil(lambda: bool(found), timeout=TIMEOUT)
    assert found == [((session.run_id, before), session.length)]


def test_back_and_forth_in_a_moment_the_matrix_is_that_of_the_whole_path(
    qtbot: QtBot, application: Application
) -> None:
    session, panel = session_of(application), attention(application)
    here, length = session.current_node, session.length
    session.back()  # under way when the matrix is asked for
    panel.main.restyle()
    went: list[int] = []

    def forth(topic: str) -> None:
        if session.current_node != here and not went and not session.busy:
            went.append(session.current_node)
            session.forward()

    session.changed.connect(forth)
    qtbot.waitUntil(lambda: bool(went), timeout=TIMEOUT)
    qtbot.waitUntil(lambda: session.current_node == here and not session.busy, timeout=TIMEOUT)
    session.changed.emit(Topic.NODE)
    qtbot.waitUntil(lambda: panel.settled, timeout=TIMEOUT)
    last = (length - 1, length - 1)
    qtbot.waitUntil(lambda: panel.main.heat.value_of(last) is not None, timeout=TIMEOUT)
    assert panel.main.heat.tiles[-1].rows == (0, length)
