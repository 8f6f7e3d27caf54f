"""The preferences dialog: each change acts at once, or says what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.dialogs.preferences import PreferencesDialog
from app.main import Application
from app.panels.sampling import SamplingPanel
from app.settings import Settings, default_path
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def live(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(tiny))
    assert made.ctx is not None
    session = made.ctx.session
    qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=3 * TIMEOUT)
    yield made
    close_window(made)


def opened(application: Application) -> PreferencesDialog:
    application.window.registry.run("file.preferences")
    [dialog] = application.window.findChildren(PreferencesDialog)
    return dialog


def titles(application: Application) -> list[str]:
    return [dialog.windowTitle() for dialog in application.window.findChildren(PreferencesDialog)]


def sampling(application: Application) -> SamplingPanel:
    panel = application.window.docks["sampling"].panel
    assert isinstance(panel, SamplingPanel)
    return panel


def test_looks_change_at_once_and_are_kept(live: Application, qtbot: QtBot) -> None:
    dialog = opened(live)
    sampling(live).search.setText("kept")
    assert live.ctx is not None
    qtbot.waitUntil(lambda: live.ctx is not None and live.ctx.session.sampling.search == "kept", timeout=TIMEOUT)
    dialog.move(140, 90)
    qtbot.wait(100)  # the window manager moves it
    place = dialog.pos()
    dialog.theme.setCurrentIndex(dialog.theme.findData("light"))
    dialog.scale.setValue(130)
    assert live.theme.text_scale == 1.3 and live.settings.values.theme == "light"
    dialog.language.setCurrentIndex(dialog.language.findData("zh_CN"))
    qtbot.waitUntil(lambda: titles(live) == ["偏好设置"], timeout=TIMEOUT)  # again, in the new language
    [dialog] = live.window.findChildren(PreferencesDialog)
    assert dialog.language.currentData() == "zh_CN" and dialog.scale.value() == 130
    assert (dialog.pos() - place).manhattanLength() < 60  # but for the frame of the window manager
    assert sampling(live).search.text() == "kept"
    live.settings.save()
    assert Settings(default_path()).values.text_scale == 1.3
    dialog.close()


def test_what_a_model_is_opened_with_waits_for_it_to_be_opened(live: Application, qtbot: QtBot) -> None:
    assert live.ctx is not None
    session = live.ctx.session
    assert session.model is not None and session.model.dtype == "float32"
    dialog = opened(live)
    dialog.dtype.setCurrentIndex(dialog.dtype.findData("bfloat16"))
    dialog.threads.setValue(2)
    assert session.model.dtype == "float32"
    dialog.reload.click()
    qtbot.waitUntil(lambda: session.model is not None and session.model.dtype == "bfloat16", timeout=3 * TIMEOUT)
    dialog.close()


def test_the_budget_is_the_engines_and_a_refused_one_comes_back(live: Application, qtbot: QtBot) -> None:
    assert live.ctx is not None
    session = live.ctx.session
    dialog = opened(live)
    dialog.budget.setValue(1.5)
    qtbot.waitUntil(lambda: session.memory is not None and session.memory.budget == 1_500_000_000, timeout=TIMEOUT)
    assert live.settings.values.budget_bytes == 1_500_000_000
    dialog.budget.setValue(900_000)  # GB: no machine has them
    qtbot.waitUntil(lambda: "are free" in live.notify.last, timeout=TIMEOUT)
    session.facts.measure()
    qtbot.waitUntil(lambda: dialog.budget.value() == 1.5, timeout=TIMEOUT)
    dialog.close()


def test_an_engine_command_is_used_at_the_next_start(live: Application, qtbot: QtBot) -> None:
    assert live.ctx is not None
    session = live.ctx.session
    dialog = opened(live)
    dialog.command.setText("nowhere 'unfinished")
    dialog.command.editingFinished.emit()
    assert "can't be read" in dialog.command_words.text() and not live.settings.values.engine_command
    dialog.command.setText("/nowhere/engine --flag 'a b'")
    dialog.restart.click()
    assert list(live.settings.values.engine_command) == ["/nowhere/engine", "--flag", "a b"]
    qtbot.waitUntil(lambda: session.engine_status == "lost", timeout=TIMEOUT)
    dialog.command.setText("")  # this installation's own again
    dialog.restart.click()
    qtbot.waitUntil(lambda: session.can_look and not session.busy, timeout=3 * TIMEOUT)
    dialog.close()
