"""The whole window for tests: with an engine that never answers, with the fake one, or with the real one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app import i18n
from app.main import Application, create
from app.session import Session
from app.settings import Settings, default_path

TIMEOUT = 20_000
SILENT_ENGINE = (sys.executable, "-c", "import sys; sys.stdin.buffer.read()")


def silent(config: Path, monkeypatch: pytest.MonkeyPatch, **preferences: object) -> Application:
    """The application before its window is shown."""
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(config))
    settings = Settings(default_path())
    settings.update(engine_command=SILENT_ENGINE, **preferences)
    settings.save()
    return create()


def open_window(config: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot, **preferences: object) -> Application:
    """The window once its panels are there."""
    application = silent(config, monkeypatch, **preferences)
    with qtbot.waitSignal(application.window.populated, timeout=20_000):
        application.window.show()
    qtbot.waitUntil(application.window.isActiveWindow)
    return application


def window_with(
    config: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot, command: list[str] | None, source: str = ""
) -> Application:
    """The window with a live engine: the fake one, or the real one when `command` is None."""
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(config))
    settings = Settings(default_path())
    if command is not None:
        settings.update(engine_command=tuple(command))
    settings.update(threads=1)
    settings.save()
    application = create(source)
    with qtbot.waitSignal(application.window.populated, timeout=TIMEOUT):
        application.window.show()
    return application


def with_example(application: Application, qtbot: QtBot) -> Application:
    """The window once the run that it begins with has its seven steps."""
    assert application.ctx is not None
    session = application.ctx.session
    qtbot.waitUntil(lambda: session.run is not None and not session.busy and len(session.path_nodes()) == 7)
    qtbot.waitUntil(application.window.isActiveWindow)
    return application


def with_run(application: Application, qtbot: QtBot, prompt: str, steps: int) -> Session:
    """The session once it has a run of `prompt` and so many steps."""
    assert application.ctx is not None
    session = application.ctx.session
    qtbot.waitUntil(lambda: session.can_run and not session.busy, timeout=TIMEOUT)
    session.set_prompt(prompt)
    session.prefill(then_steps=steps)
    qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=TIMEOUT)
    return session


def dialogs(name: str) -> list[QWidget]:
    """The windows of that name in sight."""
    return [w for w in QApplication.topLevelWidgets() if w.objectName() == name and w.isVisible()]


def tab_bars(application: Application) -> list[QTabBar]:
    """The bars of docks that share a place, in sight."""
    bars = application.window.area.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return [bar for bar in bars if bar.isVisible()]


def close_window(application: Application) -> None:
    """Closes it and all that it owns."""
    application.window.close()
    if application.ctx is not None:
        application.ctx.engine.close()
    application.window.deleteLater()
    application.qt.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    i18n.set_language("en")
