"""Toolbar and status line give way where the window has no room for all they say: nothing of them lies outside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.frame.toolbar import BarButton
from app.main import Application
from tests.app.shell import close_window, open_window


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    opened = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield opened
    close_window(opened)


def go(application: Application, qtbot: QtBot, width: int, height: int, scale: float) -> None:
    application.settings.update(text_scale=scale)
    application.window.resize(width, height)
    qtbot.wait(250)


def outside(application: Application) -> list[QWidget]:
    window = application.window
    parts = [child for bar in (window.run_bar, window.status) for child in (bar, *bar.findChildren(QWidget))]
    return [
        part for part in parts
        if part.isVisible() and not part.size().isEmpty()
        and not window.rect().contains(QRect(part.mapTo(window, QPoint()), part.size()))
    ]  # fmt: skip


def test_the_bars_give_way_where_there_is_no_room(application: Application, qtbot: QtBot) -> None:
    window = application.window
    bar, status = window.run_bar, window.status
    bar.model.set_parts("A-model-with-a-name-that-goes-on-Instruct", "float32 · cpu")
    status.memory.setText("memory 860 MB / 25.1 GB")
    status.shape.setText("cpu · 30 layers · 9 heads · 3 KV heads")
    status.check.setText("self-check 8.5e-06")
    go(application, qtbot, 1500, 900, 1.0)
    figures = (status.check, status.memory, status.shape)
    assert all(label.isVisible() for label in figures)
    assert status.engine.toolTip() == ""
    go(application, qtbot, 1000, 700, 2.0)
    assert outside(application) == []
    assert status.check.isVisible() and not status.shape.isVisible()
    assert status.shape.text() in status.engine.toolTip().split("\n")
    whole = BarButton(application.theme, bar.model.text(), "", arrow=True)
    qtbot.addWidget(whole)
    whole.set_form(2)
    assert bar.model.width() < whole.sizeHint().width()
    go(application, qtbot, 1500, 900, 1.0)
    assert all(label.isVisible() for label in figures)
    assert bar.model.form == 0 and bar.model.width() > 250
