"""A run that no engine holds: nothing of it stands under another name, and there is always a way to have it back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.dialogs.error import ErrorDialog
from app.frame.pages import EmptyState
from app.main import Application
from app.panels.veil import Veil
from app.settings import log_folder
from app.state.autosave import saved_of
from app.state.model_desk import EngineStatus
from app.state.under_way import Phase
from model.protocol.wire import ErrorInfo
from tests.app.lost_engine import (
    covered,
    freeze,
    kill,
    kill_while_restoring,
    offers,
    panel,
    press,
    restart,
    session_of,
    started,
)
from tests.app.shell import TIMEOUT

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals are Unix's"),
]


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    with started(tmp_path, monkeypatch, qtbot) as application:
        yield application


def test_without_an_engine_no_number_stands_under_another_name(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    settled = lambda: panel(window, "attention").settled and panel(window, "sampling").settled  # noqa: E731
    qtbot.waitUntil(settled, timeout=TIMEOUT)
    kill(window, qtbot)
    assert not covered(window, "attention") and not covered(window, "sampling")  # what is shown is what is chosen
    shown = panel(window, "attention")
    size = shown.size()
    window.window.resize(window.window.width() - 90, window.window.height() - 90)
    qtbot.waitUntil(lambda: shown.size() != size and shown.settled, timeout=TIMEOUT)
    assert not covered(window, "attention")  # of another size, it is still the same that is drawn
    veil = shown.findChild(Veil)
    assert veil is not None and veil.isVisible() and veil.geometry() == shown.rect()
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


def test_a_run_in_another_number_format_is_not_said_to_be_as_it_was(window: Application, qtbot: QtBot) -> None:
    session, said = session_of(window), list[str]()
    session.notify.message.connect(said.append)
    before = [node.token_id for node in session.path_nodes()]
    for dtype in ("bfloat16", "auto"):
        said.clear()
        window.window.settings.update(dtype=dtype)
        session.open_model(session.source)
        qtbot.waitUntil(lambda: any("run is back" in text for text in said), timeout=TIMEOUT)
        assert [node.token_id for node in session.path_nodes()] == before
        (words,) = [text for text in said if "run is back" in text]
        formats = ("float32 · cpu before", "bfloat16 · cpu now") if dtype == "bfloat16" else ("bfloat16 · cpu before",)
        assert "as it was" not in words and all(text in words for text in formats)
        qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    said.clear()
    session.restart_engine()  # the same format again
    qtbot.waitUntil(lambda: "The run is back as it was." in said, timeout=TIMEOUT)


def test_why_the_engine_stopped_is_said_once_and_its_details_are_all_that_is_known(
    window: Application, qtbot: QtBot
) -> None:
    session = session_of(window)
    kill(window, qtbot)
    session.selection.set_layer(0 if session.selection.layer else 1)
    qtbot.waitUntil(lambda: covered(window, "attention"), timeout=TIMEOUT)
    inside = panel(window, "attention").findChildren(QPushButton)
    assert [each.text() for each in inside if each.isVisible() and each.text() == "Restart the engine"]  # the way out
    assert len(offers(window, "Restart the engine")) == 1
    press(window, "Details")
    [dialog] = window.window.findChildren(ErrorDialog)
    assert session.hello is not None
    details = dialog.details.toPlainText()
    assert dialog.details.isVisible()
    for part in ("ended by: SIGKILL", f"process: {session.hello.pid}", str(log_folder()), time.strftime("%Y-%m-%d"),
                 "torch", "engine process:", "What the engine wrote last:\n"):  # fmt: skip
        assert part in details, part
    dialog.copy.click()
    assert details.split("\n\n")[0] in QGuiApplication.clipboard().text()
    dialog.close()


def test_a_restore_that_is_stopped_leaves_no_run_that_looks_alive(
    window: Application, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    kill(window, qtbot)

    def stopped(_title: str, _message: object, _done: object, failed: Callable[[ErrorInfo], None]) -> None:
        failed(ErrorInfo(code="cancelled", message=""))

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


def test_killed_again_while_restoring_the_prefill_is_still_offered(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    session.set_prompt("the middle of it " * 3)
    freeze(window)
    session.prefill()
    kill(window, qtbot)
    kill_while_restoring(window, qtbot)
    session.set_prompt("typed since")
    restart(window, qtbot)
    assert [token.id for token in session.path_tokens()] == ids
    press(window, "Prefill it again")
    qtbot.waitUntil(lambda: not session.busy and session.n_prompt > 30, timeout=TIMEOUT)
    assert session.prefilled_text == "the middle of it " * 3  # not what is in the box by now
    assert session.prompt_text == "typed since"  # which stays there


def test_an_offer_that_cannot_be_followed_now_stays(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    session.set_prompt("the middle of it")
    freeze(window)
    session.prefill()
    kill(window, qtbot)
    restart(window, qtbot)
    freeze(window)
    session.step()
    press(window, "Prefill it again")
    assert len(offers(window, "Prefill it again")) == 1
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGCONT)
    qtbot.waitUntil(lambda: not session.busy, timeout=TIMEOUT)
    press(window, "Prefill it again")
    assert offers(window, "Prefill it again") == [] and session.phase is Phase.PREFILL


def test_a_visible_prefill_that_ends_with_the_engine_gives_the_run_before_it_back(
    window: Application, qtbot: QtBot
) -> None:
    session = session_of(window)
    ids, run = [token.id for token in session.path_tokens()], session.run_id
    session.settings.update(prefill_chunk=1)
    session.set_prompt("the middle of it " * 3)
    killed: list[int] = []

    def on_chunk(topic: object) -> None:
        if not killed and session.run_id != run and session.busy:
            assert session.hello is not None
            killed.append(session.length)
            os.kill(session.hello.pid, signal.SIGKILL)

    session.changed.connect(on_chunk)
    session.prefill()
    assert session.lost.worth is not None and len(session.lost.worth.nodes) == 3
    qtbot.waitUntil(lambda: session.engine_status is EngineStatus.LOST, timeout=TIMEOUT)
    assert killed
    assert saved_of(session).nodes == session.lost.worth.nodes  # nor is it lost with the window
    restart(window, qtbot)
    assert [token.id for token in session.path_tokens()] == ids
    assert len(offers(window, "Prefill it again")) == 1
