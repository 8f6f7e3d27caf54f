"""The window without a model: its engine is a process that listens and never answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from pytestqt.qtbot import QtBot

from app import i18n
from app.main import Application, create
from app.settings import Settings, default_path

SILENT_ENGINE = (sys.executable, "-c", "import sys; sys.stdin.buffer.read()")


def open_window(config: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot, **preferences: object) -> Application:
    """The window once its panels are there."""
    monkeypatch.setenv("DECODERSCOPE_CONFIG", str(config))
    settings = Settings(default_path())
    settings.update(engine_command=SILENT_ENGINE, **preferences)
    settings.save()
    application = create()
    with qtbot.waitSignal(application.window.populated, timeout=20_000):
        application.window.show()
    qtbot.waitUntil(application.window.isActiveWindow)
    return application


def close_window(application: Application) -> None:
    """Closes it and all that it owns."""
    application.window.close()
    if application.ctx is not None:
        application.ctx.engine.close()
    application.window.deleteLater()
    application.qt.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    i18n.set_language("en")
