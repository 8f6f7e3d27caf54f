"""What panels say while there is nothing to show, and how keys are written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QHBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app import i18n
from app.commands import Command
from app.frame.pages import EmptyState
from app.frame.to_come import TO_COME
from app.keys import shortcut_text
from app.panels.attention import AttentionPanel
from app.panels.base import show_waiting
from app.panels.block_walk import BlockWalkPanel
from app.panels.lens import LensPanel
from app.theme import Theme
from tests.app.model_bench import ModelBench
from tests.model.tiny import made


def waiting(**told: Any) -> Any:
    """A session of which only this is known."""
    return SimpleNamespace(**{"engine_status": "ready", "progress": None, "busy": False, "phase": "idle", **told})


@pytest.mark.parametrize(
    ("session", "sentence"),
    [
        (waiting(engine_status="starting"), "Starting the engine …"),
        (waiting(busy=True, phase="opening", progress_title="opening the model"), "opening the model"),
    ],
)
def test_one_panel_says_what_is_under_way_and_the_others_quietly_what_will_stand_there(
    qtbot: QtBot, session: Any, sentence: str
) -> None:
    leads, quiet = (EmptyState(Theme("dark")) for _ in range(2))
    for state in (leads, quiet):
        qtbot.addWidget(state)
        state.resize(400, 300)
        state.show()
        show_waiting(state, session, leads=state is leads, to_come=TO_COME["kv"])
        assert state.accessibleDescription() == sentence
    assert leads.sentence.text() == sentence and leads.sentence.isVisible()
    assert leads.bar.isVisible() and leads.bar.busy and leads.picture.isVisible()
    assert not leads.hint.isVisible()
    assert not any(part.isVisible() for part in (quiet.sentence, quiet.bar, quiet.action))
    assert quiet.hint.isVisible() and quiet.hint.text() == TO_COME["kv"].words
    assert quiet.picture.isVisible() and not quiet.picture.pixmap().isNull()


def test_what_does_not_pass_by_itself_is_said_everywhere_with_the_way_out(qtbot: QtBot) -> None:
    ran: list[str] = []
    state = EmptyState(Theme("dark"))
    qtbot.addWidget(state)
    state.resize(400, 300)
    state.show()
    lost = waiting(engine_status="lost", restart_engine=lambda: ran.append("restarted"))
    show_waiting(state, lost, leads=False, to_come=TO_COME["lens"])
    assert state.sentence.isVisible() and state.picture.isVisible() and not state.hint.isVisible()
    assert state.action.text() == "Restart the engine"
    QTest.mouseClick(state.action, Qt.MouseButton.LeftButton)
    assert ran == ["restarted"]


def test_where_the_middle_is_out_of_sight_another_panel_says_it(qtbot: QtBot, tmp_path: Path) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), made())
    window = QWidget()
    qtbot.addWidget(window)
    row = QHBoxLayout(window)
    middle, beside = AttentionPanel(bench.ctx), BlockWalkPanel(bench.ctx)
    for panel in (middle, beside):
        row.addWidget(panel)
    assert middle.leads() and not beside.leads()  # not before anybody knows who is seen
    window.resize(1200, 500)
    window.show()
    qtbot.waitExposed(window)
    assert middle.leads() and not beside.leads()
    small = LensPanel(bench.ctx)
    row.addWidget(small)
    small.setMaximumWidth(300)
    middle.hide()
    qtbot.waitUntil(lambda: 0 < small.width() <= 300 < beside.width())
    assert beside.leads() and not small.leads()


def test_two_keys_that_a_language_calls_the_same_are_written_once(qapp: object) -> None:
    del qapp
    command = Command(id="walk.into", title="Walk into", shortcuts=("Return", "Enter"), run=lambda: None)
    assert shortcut_text(command) == "Return, Enter"
    try:
        i18n.set_language("zh_CN")
        assert shortcut_text(command) == "回车"
    finally:
        i18n.set_language("en")
