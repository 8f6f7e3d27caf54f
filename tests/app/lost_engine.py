"""A window whose engine is killed, and what can be seen and pressed in it then."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.frame.pages import EmptyState
from app.main import Application
from app.session import Session
from app.state.model_desk import EngineStatus
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files


@contextmanager
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
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
    [button] = offers(window, words)
    button.click()


def offers(window: Application, words: str) -> list[QPushButton]:
    buttons = window.window.banners.findChildren(QPushButton)
    return [each for each in buttons if each.text() == words and each.isVisible()]


def restart(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    session.restart_engine()
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)


def freeze(window: Application) -> None:
    """Nothing that is asked from now on is over before the engine is."""
    session = session_of(window)
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGSTOP)


def kill_while_restoring(window: Application, qtbot: QtBot) -> None:
    """Starts another engine and kills it as soon as it is asked for the run."""
    session = session_of(window)
    session.restart_engine()
    qtbot.waitUntil(lambda: session.progress_title == "Restoring the run", timeout=TIMEOUT)
    kill(window, qtbot)


def told(window: Application) -> list[str]:
    return [banner.sentence.text() for banner in window.window.banners.notices]
