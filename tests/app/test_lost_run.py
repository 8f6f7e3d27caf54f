"""A run that no engine holds: nothing of it stands under another name, and there is always a way to have it back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.frame.pages import EmptyState
from app.main import Application
from app.session import Session
from app.state.model_desk import EngineStatus
from app.state.under_way import Phase
from model.protocol.wire import ErrorInfo
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals are Unix's"),
]


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    """A tiny model in the real engine, with a run of a few tokens."""
    folder = files.folder(tmp_path / "tiny")
    application = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(folder))
    assert application.ctx is not None
    application.window.resize(1400, 900)
    session = application.ctx.session
    qtbot.waitUntil(lambda: session.can_run and not session.busy, timeout=TIMEOUT)
    session.set_prompt("in the end of the middle")
    session.prefill(then_steps=3)
    qtbot.waitUntil(lambda: not session.busy and len(session.path_nodes()) == 3, timeout=TIMEOUT)
    yield application
    close_window(application)


def session_of(window: Application) -> Session:
    assert window.ctx is not None
    return window.ctx.session


def kill(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: session.engine_status is EngineStatus.LOST, timeout=TIMEOUT)


def panel(window: Application, name: str) -> Any:
    return window.window.docks[name].panel


def covered(window: Application, name: str) -> bool:
    cover = panel(window, name).findChild(EmptyState)
    return cover is not None and cover.isVisible()


def press(window: Application, words: str) -> None:
    [button] = [each for each in window.window.banners.findChildren(QPushButton) if each.text() == words]
    button.click()


def test_without_an_engine_no_number_stands_under_another_name(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    settled = lambda: panel(window, "attention").settled and panel(window, "sampling").settled  # noqa: E731
    qtbot.waitUntil(settled, timeout=TIMEOUT)
    kill(window, qtbot)
    assert not covered(window, "attention") and not covered(window, "sampling")  # what is shown is what is chosen
    session.selection.set_layer(0 if session.selection.layer else 1)
    qtbot.waitUntil(lambda: covered(window, "attention"), timeout=TIMEOUT)
    session.set_sampler(temperature=1.7)
    qtbot.waitUntil(lambda: covered(window, "sampling"), timeout=TIMEOUT)
    assert not panel(window, "prompt").findChildren(EmptyState)  # one can type
    session.restart_engine()
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: not covered(window, "attention") and not covered(window, "sampling"), timeout=TIMEOUT)
    assert len(session.path_nodes()) == 3
    qtbot.waitUntil(lambda: not session.sampling.unserved, timeout=TIMEOUT)
    assert session.sampler.temperature == 1.7


def test_a_restore_that_is_stopped_leaves_no_run_that_looks_alive(
    window: Application, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    kill(window, qtbot)

    def stopped(*_: object) -> None:
        session._on_prefill_error(ErrorInfo(code="cancelled", message=""))

    with monkeypatch.context() as patch:
        patch.setattr(session, "ask_prefill", stopped)
        session.restart_engine()
        qtbot.waitUntil(lambda: session.can_run and not session.busy, timeout=TIMEOUT)
    commands = window.commands
    for name in ("run.step", "run.run", "run.back", "run.duplicate"):
        assert not commands.can(name), name
    assert commands.can("run.prefill")
    before = session.length
    session.step()
    assert session.length == before and not session.busy
    session.selection.set_layer(0 if session.selection.layer else 1)
    qtbot.waitUntil(lambda: covered(window, "attention"), timeout=TIMEOUT)
    press(window, "Bring it back")
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    assert [token.id for token in session.path_tokens()] == ids
    qtbot.waitUntil(lambda: not covered(window, "attention"), timeout=TIMEOUT)
    session.step()
    qtbot.waitUntil(lambda: session.length == before + 1 and not session.busy, timeout=TIMEOUT)


def test_an_engine_that_ends_in_a_prefill_brings_the_run_back_and_offers_the_prefill(
    window: Application, qtbot: QtBot
) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    session.set_prompt("the middle of it " * 3)
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGSTOP)  # so that the prefill is not over before the engine is
    session.prefill()
    assert session.phase is Phase.PREFILL
    kill(window, qtbot)
    session.restart_engine()
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    assert [token.id for token in session.path_tokens()] == ids
    press(window, "Prefill it again")
    qtbot.waitUntil(lambda: not session.busy and session.n_prompt > 30, timeout=TIMEOUT)
    assert session.prefilled_text == "the middle of it " * 3
