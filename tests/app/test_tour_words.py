"""A step of the tour that does not come to its end says what was waited for."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.tour.driver import Driver, TourError
from tests.app.shell import close_window, open_window


def test_a_step_that_hangs_says_what_the_engine_was_asked_and_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot)
    try:
        driver = Driver(application, tmp_path)
        with pytest.raises(TourError) as error:
            driver.wait(lambda: False, "drawing", 0.05)
    finally:
        close_window(application)
    said = str(error.value)
    assert said.startswith("drawing: nothing happened for 0 s. Engine starting, asked: engine.hello (")
    assert "rope (out of sight)" in said.partition("not drawn: ")[2]  # behind another tab
