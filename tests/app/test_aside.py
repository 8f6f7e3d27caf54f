"""What is under way beside the session's own work is told in the status bar: how far it is, and a way to stop it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.commands import CommandRegistry
from app.frame.statusbar import StatusLine
from app.state.aside import Aside
from app.theme import Theme
from model.protocol.wire import Progress


@pytest.fixture
def session() -> Any:
    return SimpleNamespace(
        aside=Aside(), busy=False, progress=None, progress_title="", engine_status="ready", phase="ready", memory=None,
        model=None, self_check=None, run=None,
    )  # fmt: skip


@pytest.fixture
def status(qtbot: QtBot, session: Any) -> StatusLine:
    made = StatusLine(Theme("dark"), CommandRegistry())
    qtbot.addWidget(made)
    made.resize(900, 28)
    made.bind(session)
    made.show()
    return made


def test_it_says_what_and_how_far_and_stops_it(qtbot: QtBot, status: StatusLine, session: Any) -> None:
    stopped: list[str] = []
    task = session.aside.begin("Exporting", lambda: stopped.append("export"))
    assert not status.bar.isVisible()  # what is over in a moment is not told
    qtbot.waitUntil(status.bar.isVisible)
    assert status.what.text() == "Exporting"
    task.tell(Progress(what="heads", done=30, total=270, unit="heads"))
    assert "30" in status.what.text() and "270" in status.what.text()
    assert status.bar.value() == round(1000 * 30 / 270)
    status.cancel.click()
    assert stopped == ["export"]
    task.end()
    task.end()
    assert not status.bar.isVisible() and not status.cancel.isVisible()


def test_the_sessions_own_work_goes_before_it(qtbot: QtBot, status: StatusLine, session: Any) -> None:
    stopped: list[str] = []
    task = session.aside.begin("Exporting", lambda: stopped.append("export"))
    qtbot.waitUntil(status.bar.isVisible)
    session.busy, session.progress_title = True, "Prefilling"
    status.refresh()
    assert status.what.text() == "Prefilling"
    status.cancel.click()
    assert not stopped  # it stops what it tells
    session.busy = False
    newer = session.aside.begin("Drawing the heads", lambda: stopped.append("heads"))
    assert status.what.text() == "Drawing the heads"
    status.cancel.click()
    newer.end()
    assert status.what.text() == "Exporting"
    status.cancel.click()
    assert stopped == ["heads", "export"]
    task.end()


def test_what_waits_for_its_turn_is_told_where_nothing_else_goes_on(
    qtbot: QtBot, status: StatusLine, session: Any
) -> None:
    """The heads of a long prompt stood at none of thirty layers for seconds, while the prompt was measured."""
    stopped: list[str] = []
    measuring = session.aside.begin("Measuring the prompt", lambda: stopped.append("prompt"))
    measuring.tell(Progress(what="Measuring the prompt", done=85, total=2071, unit="tokens"))
    qtbot.waitUntil(status.bar.isVisible)
    heads = session.aside.begin("Drawing the heads", lambda: stopped.append("heads"))
    heads.tell(Progress(what="Drawing the heads", done=0, total=30, unit="layers"))
    assert status.what.text().startswith("Measuring the prompt") and "85" in status.what.text()
    row = session.aside.begin("Computing what the query reads", lambda: stopped.append("row"))
    assert status.what.text().startswith("Measuring the prompt"), "one that says nothing may be waiting too"
    row.end()
    status.cancel.click()
    assert stopped == ["prompt"]
    measuring.end()
    assert status.what.text().startswith("Drawing the heads") and "0 / 30" in status.what.text()
    heads.tell(Progress(what="Drawing the heads", done=1, total=30, unit="layers"))
    assert "1 / 30" in status.what.text()
    status.cancel.click()
    assert stopped == ["prompt", "heads"]
    heads.end()
