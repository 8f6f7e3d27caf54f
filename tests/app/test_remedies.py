"""Refusals and their ways out, with the real engine on a tiny model: too long, over the budget, nothing typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.dialogs.error import ErrorDialog
from app.main import Application
from app.notify import Trouble, WayOut
from app.panels.prompt import PromptPanel
from app.session import Session
from model.protocol.attention_requests import GetMatrix, HeadView
from tests import fake_engine
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def live(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(tiny))
    session = session_of(made)
    qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=3 * TIMEOUT)
    yield made
    close_window(made)


def session_of(application: Application) -> Session:
    assert application.ctx is not None
    return application.ctx.session


def sheets(application: Application) -> list[ErrorDialog]:
    return [dialog for dialog in application.window.findChildren(ErrorDialog) if dialog.isVisible()]


def press(dialog: ErrorDialog, words: str) -> None:
    [button] = [button for button in dialog.findChildren(QPushButton) if words in button.text()]
    button.click()


def type_prompt(session: Session, text: str, qtbot: QtBot) -> None:
    session.set_prompt(text)
    qtbot.waitUntil(lambda: not session.prompt.stale, timeout=TIMEOUT)


def test_a_prompt_longer_than_the_context_is_refused_before_anything_runs(live: Application, qtbot: QtBot) -> None:
    session = session_of(live)
    assert session.model is not None
    run, n_ctx = session.run_id, session.model.n_ctx
    type_prompt(session, "in the end " * n_ctx, qtbot)
    [panel] = [dock.panel for dock in live.window.docks.values() if isinstance(dock.panel, PromptPanel)]
    qtbot.waitUntil(lambda: "too many for the context" in panel.notices.text(), timeout=TIMEOUT)
    session.prefill()
    assert not session.busy and session.run_id == run
    [dialog] = sheets(live)
    assert f"{n_ctx:,}" in dialog.trouble.message
    press(dialog, "Cut the prompt")
    qtbot.waitUntil(lambda: session.run_id != run and not session.busy, timeout=TIMEOUT)
    assert session.n_prompt == n_ctx


def test_a_prompt_over_the_budget_goes_on_once_the_budget_is_raised(live: Application, qtbot: QtBot) -> None:
    session = session_of(live)
    run = session.run_id
    session.remedies.use_budget(2000)
    qtbot.waitUntil(lambda: session.memory is not None and session.memory.budget == 2000, timeout=TIMEOUT)
    assert live.settings.values.budget_bytes == 2000
    type_prompt(session, "in the end " * 4, qtbot)
    session.prefill()
    qtbot.waitUntil(lambda: bool(sheets(live)), timeout=TIMEOUT)
    assert session.run_id == run and "the budget is 2 kB" in sheets(live)[0].trouble.message
    press(sheets(live)[0], "Raise the budget")
    qtbot.waitUntil(lambda: session.run_id != run and not session.busy, timeout=TIMEOUT)
    assert session.memory is not None and session.memory.budget == live.settings.values.budget_bytes > 1 << 20


def test_a_budget_of_before_is_told_to_an_engine_that_starts_again(live: Application, qtbot: QtBot) -> None:
    session = session_of(live)
    session.remedies.use_budget(50 << 20)
    qtbot.waitUntil(lambda: live.settings.values.budget_bytes == 50 << 20, timeout=TIMEOUT)
    session.restart_engine()
    qtbot.waitUntil(lambda: not session.can_look, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: session.can_look and not session.busy, timeout=3 * TIMEOUT)
    assert session.memory is not None and session.memory.budget == 50 << 20


def test_nothing_typed_can_not_be_prefilled(live: Application, qtbot: QtBot) -> None:
    session, registry = session_of(live), live.window.registry
    session.set_prompt("")
    assert not registry.can("run.prefill")
    qtbot.waitUntil(lambda: not live.window.run_bar.prefill.isEnabled(), timeout=TIMEOUT)
    session.prefill()
    said = live.window.status.message
    assert said.text() == "The prompt is empty: type something first."
    session.set_prompt("a")
    assert not said.text()  # it holds no longer
    qtbot.waitUntil(live.window.run_bar.prefill.isEnabled, timeout=TIMEOUT)


def test_errors_are_shown_one_at_a_time_and_none_twice(live: Application, qtbot: QtBot) -> None:
    for title in ("one", "two", "one", "two"):
        way = WayOut(label="Cut it", run=lambda: None)  # of its own each time, as where a key is pressed again
        live.notify.fail(Trouble(title=title, message="m", ways_out=(way,)))
    assert [dialog.trouble.title for dialog in sheets(live)] == ["one"]
    sheets(live)[0].close()
    qtbot.waitUntil(lambda: [dialog.trouble.title for dialog in sheets(live)] == ["two"], timeout=TIMEOUT)
    sheets(live)[0].close()
    qtbot.wait(50)
    assert not sheets(live)


def test_a_panel_whose_answer_is_late_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, fake_engine.command())
    try:
        session = session_of(made)
        qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=TIMEOUT)
        dock = made.window.docks["attention"]
        qtbot.waitUntil(lambda: not dock.panel.behind, timeout=TIMEOUT)
        slow = GetMatrix(view=HeadView(layer=0, head=0), rows=(900, 901), cols=(0, 1), height=1, width=1)  # ms
        dock.panel.ask(slow, lambda *_: None)
        qtbot.waitUntil(dock.bar.behind.isVisible, timeout=TIMEOUT)
        qtbot.waitUntil(lambda: not dock.bar.behind.isVisible(), timeout=TIMEOUT)
    finally:
        close_window(made)
