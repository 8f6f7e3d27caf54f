"""Which keys reach the run after a prefill and a branch, and what says which text the run on the screen is of."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.dialogs.steps import StepsDialog
from app.main import Application
from app.session import Session
from model.protocol.run_requests import Branch, Seek, Step
from model.protocol.token_run import NO_TOKENS
from tests.app.shell import close_window, window_with
from tests.model.checkpoint import files

TEXT = "in the end"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def live(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(tiny))
    idle(qtbot, session_of(made), 7)
    qtbot.waitUntil(made.window.isActiveWindow)
    yield made
    close_window(made)


def session_of(application: Application) -> Session:
    assert application.ctx is not None
    return application.ctx.session


def panel(application: Application, name: str) -> Any:
    return application.window.docks[name].panel


def idle(qtbot: QtBot, session: Session, steps: int) -> None:
    qtbot.waitUntil(lambda: not session.busy and session.run is not None and len(session.path_nodes()) == steps)


def candidates_of_now(qtbot: QtBot, application: Application) -> None:
    """Until the candidates on the screen are those of the current step: a click takes them where they belong."""
    session, sampling = session_of(application), panel(application, "sampling")
    qtbot.waitUntil(lambda: sampling._place == (session.run_id, session.current_node))


def press(
    application: Application, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    QTest.keyClick(application.window.windowHandle(), key, modifier)


def test_as_many_steps_as_asked_for_and_the_number_is_remembered(live: Application, qtbot: QtBot) -> None:
    session, registry = session_of(live), live.window.registry
    session.first()  # the seven steps there are end the text
    idle(qtbot, session, 0)
    for number, shown in ((3, 16), (2, 3)):
        registry.run("run.step_many")
        [dialog] = [d for d in live.window.findChildren(StepsDialog) if d.isVisible()]
        assert dialog.box.value() == shown
        before = len(session.path_nodes())
        dialog.box.setValue(number)
        dialog.accept()
        assert live.settings.panel("run") == {"steps": number}
        idle(qtbot, session, before + number)
        qtbot.waitUntil(lambda: not live.window.findChildren(StepsDialog))


def test_a_run_is_started_again_from_its_own_prompt(live: Application, qtbot: QtBot) -> None:
    session, edit = session_of(live), panel(live, "prompt").edit
    before, ids, text = session.run_id, [token.id for token in session.prompt_tokens], edit.text()
    edit.setPlainText(TEXT)
    qtbot.waitUntil(lambda: not session.prompt.stale)
    assert live.window.registry.run("run.restart")
    idle(qtbot, session, 0)
    assert session.run_id != before
    assert [token.id for token in session.prompt_tokens] == ids
    qtbot.waitUntil(lambda: edit.text() == text)
    qtbot.waitUntil(lambda: not session.busy and not session.prompt.stale)
    assert [token.id for token in session.live_tokens] == ids


def test_a_long_paste_has_no_bar_over_the_text(live: Application, qtbot: QtBot) -> None:
    edit = panel(live, "prompt").edit
    for text in ("word " * 1_040, "x" * 5_200):
        pasted = QMimeData()
        pasted.setText(text)
        edit.selectAll()
        edit.insertFromMimeData(pasted)
        QApplication.processEvents()
        assert edit.text() == text
        assert not edit.horizontalScrollBar().isVisible()
        assert edit.viewport().height() >= edit.height_of(2) - 2 * edit.frameWidth() - 16


def test_arrows_step_after_a_click_into_a_table(live: Application, qtbot: QtBot) -> None:
    session = session_of(live)
    idle(qtbot, session, 7)
    candidates_of_now(qtbot, live)
    for table in (panel(live, "sampling").table, panel(live, "timeline").table):  # a candidate that is clicked is taken
        qtbot.waitUntil(lambda table=table: table.model().rowCount() > 8)  # type: ignore[misc] # the branch's step too
        last = table.model().index(table.model().rowCount() - 1, 1)
        table.scrollTo(last)
        QApplication.processEvents()
        at = table.visualRect(last).center()
        assert table.indexAt(at).row() == last.row()
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
        table.setFocus()
        idle(qtbot, session, 8)
        QTest.keyClick(table, Qt.Key.Key_Left)
        idle(qtbot, session, 7)
        QTest.keyClick(table, Qt.Key.Key_Right)
        idle(qtbot, session, 8)


def test_a_step_rows_token_is_pointed_at_everywhere(live: Application, qtbot: QtBot) -> None:
    session, timeline = session_of(live), panel(live, "timeline")
    table, selection = timeline.table, session.selection
    for row in (3, 0):
        token = session.n_prompt - 1 + row

        def pointed(row: int = row, token: int = token) -> bool:
            table.scrollTo(table.model().index(row, 1))
            at = table.visualRect(table.model().index(row, 1)).center()
            for beside in (1, 0):
                place = table.viewport().mapTo(live.window, at + QPoint(beside, 0))
                QTest.mouseMove(live.window.windowHandle(), place)
            QApplication.processEvents()
            return bool(selection.hover_token == token)

        qtbot.waitUntil(pointed)
        qtbot.waitUntil(partial(lambda wanted: timeline.curve.hovered == wanted, token))
    table.leaveEvent(QEvent(QEvent.Type.Leave))
    assert selection.hover_token is None


def test_after_a_prefill_from_the_text_space_steps_and_a_click_goes_on_typing(live: Application, qtbot: QtBot) -> None:
    session, edit = session_of(live), panel(live, "prompt").edit
    edit.setPlainText(TEXT)
    edit.setFocus()
    qtbot.waitUntil(edit.hasFocus)
    press(live, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    idle(qtbot, session, 0)
    press(live, Qt.Key.Key_Space)
    idle(qtbot, session, 1)
    press(live, Qt.Key.Key_Right)
    idle(qtbot, session, 2)
    assert edit.text() == TEXT
    QTest.mouseClick(edit.viewport(), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(edit.hasFocus)
    press(live, Qt.Key.Key_Space)
    assert edit.text().count(" ") == TEXT.count(" ") + 1


def test_a_branch_by_a_click_leaves_space_to_the_run_and_no_row_chosen(live: Application, qtbot: QtBot) -> None:
    session, table = session_of(live), panel(live, "sampling").table
    qtbot.waitUntil(lambda: table.model().rowCount() > 3)
    candidates_of_now(qtbot, live)
    row = table.visualRect(table.model().index(3, 1)).center()
    chosen = table.candidate(3).id
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=row)
    idle(qtbot, session, 8)
    assert session.path_nodes()[-1].token_id == chosen
    qtbot.waitUntil(lambda: not table.selectionModel().hasSelection())
    assert table.hasFocus()
    press(live, Qt.Key.Key_Space)
    idle(qtbot, session, 9)
    qtbot.waitUntil(lambda: session.distribution is not None and session.distribution.node == session.current_node)
    qtbot.waitUntil(lambda: panel(live, "sampling").settled)
    table.selectRow(2)
    before = session.distribution
    session.set_sampler(temperature=2.5)  # the same place, other figures: the row is still the one that was chosen
    qtbot.waitUntil(lambda: session.distribution is not before)
    qtbot.wait(100)  # a few frames
    assert table.selectionModel().hasSelection()
    session.back()
    qtbot.waitUntil(lambda: not table.selectionModel().hasSelection())


def test_a_click_on_a_tab_or_in_a_panel_makes_it_the_one_in_use(live: Application, qtbot: QtBot) -> None:
    window = live.window
    assert window.in_use is not None
    panel(live, "prompt").edit.setFocus()
    assert window.in_use.panel.panel_id == "prompt"
    bar = next(
        bar for bar in window.area.findChildren(QTabBar) if "RoPE" in [bar.tabText(i) for i in range(bar.count())]
    )
    index = next(i for i in range(bar.count()) if bar.tabText(i) == "RoPE")
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(index).center())
    assert window.in_use.panel.panel_id == "rope"
    draw = panel(live, "sampling").draw  # takes no focus
    place = draw.mapTo(window, draw.rect().center())
    QTest.mouseClick(window.windowHandle(), Qt.MouseButton.LeftButton, pos=place)
    assert window.in_use.panel.panel_id == "sampling"
    press(live, Qt.Key.Key_E, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: bool(QApplication.activeModalWidget()))
    dialog: Any = QApplication.activeModalWidget()
    assert dialog.kind_box.key() == "sampler"
    dialog.close()
    qtbot.waitUntil(window.isActiveWindow)
    panel(live, "prompt").edit.setFocus()
    qtbot.waitUntil(lambda: window.in_use is not None and window.in_use.panel.panel_id == "prompt")
    window.setFocus()  # as after a prefill
    assert window.in_use.panel.panel_id == "attention"


def test_a_run_of_another_text_is_told_and_its_query_and_expectation_leave_the_tokens(
    live: Application, qtbot: QtBot
) -> None:
    session, prompt, bar = session_of(live), panel(live, "prompt"), live.window.run_bar.readout
    assert not prompt.notices.isVisible() and "other text" not in bar.text()
    of_the_run = session.prompt_text
    prompt._on_click(2)
    qtbot.waitUntil(prompt.expected.isVisible)
    assert prompt.strip._selected == 2
    for change in ("typed", "emptied", "in the template"):
        if change == "in the template":
            session.prompt.set_options(add_special=False, chat=True)
            session.prompt.tokens = NO_TOKENS  # as where there is none to fill in
            session.prompt.changed.emit()
        else:
            prompt.edit.setPlainText(TEXT if change == "typed" else "")
        qtbot.waitUntil(lambda: prompt.notices.isVisible() and "run of other text" in bar.text())
        assert of_the_run[:20] in prompt.notices.text()
        qtbot.waitUntil(lambda: not prompt.expected.isVisible() and prompt.strip._selected is None)
        assert prompt.notices.action.isVisible()
        assert prompt.notices.action.text() == ("Bring it back" if change == "emptied" else "Prefill")
        session.prompt.set_options(add_special=True, chat=False)
        prompt.edit.setPlainText(of_the_run)
        qtbot.waitUntil(lambda: not prompt.notices.isVisible() and "other text" not in bar.text())
        assert not prompt.expected.isVisible() and prompt.strip._selected == 2
    prompt.edit.setPlainText(TEXT)
    qtbot.waitUntil(prompt.notices.isVisible)
    QTest.mouseClick(prompt.notices.action, Qt.MouseButton.LeftButton)
    idle(qtbot, session, 0)
    qtbot.waitUntil(lambda: not prompt.notices.isVisible())
    assert session.prefilled_text == TEXT


def test_the_run_s_text_comes_back_into_an_emptied_box(live: Application, qtbot: QtBot) -> None:
    session, prompt = session_of(live), panel(live, "prompt")
    of_the_run, run = session.prompt_text, session.run_id
    assert not prompt.notices.isVisible()
    prompt.edit.setPlainText("")
    qtbot.waitUntil(lambda: prompt.notices.isVisible() and prompt.notices.action.text() == "Bring it back")
    QTest.mouseClick(prompt.notices.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not prompt.notices.isVisible())
    assert prompt.edit.text() == of_the_run
    assert session.run_id == run  # nothing was run for it
    prompt.edit.undo()
    assert prompt.edit.text() == ""


def test_no_step_can_follow_a_run_to_the_end(live: Application, qtbot: QtBot) -> None:
    session, registry = session_of(live), live.window.registry
    session.first()
    qtbot.waitUntil(lambda: not session.busy)
    session.step()
    assert session.busy and registry.can("run.step")  # counted, and taken after it
    idle(qtbot, session, 1)
    session.first()
    qtbot.waitUntil(lambda: not session.busy)
    session.run_until_end()
    assert session.busy and not registry.can("run.step")
    assert not live.window.status.what.isVisible()  # the engine's words say it
    session.stop()
    qtbot.waitUntil(lambda: not session.busy)
    assert registry.can("run.step")


def test_an_expectation_is_of_one_run(live: Application, qtbot: QtBot) -> None:
    session, prompt = session_of(live), panel(live, "prompt")
    prompt._on_click(2)
    qtbot.waitUntil(prompt.expected.isVisible)
    session.prefill()  # the same text once more
    idle(qtbot, session, 0)
    qtbot.waitUntil(lambda: not prompt.expected.isVisible())


def test_a_search_without_a_hit_says_so_in_words(live: Application, qtbot: QtBot) -> None:
    sampling = panel(live, "sampling")
    sampling.search.setText("zzqq\u4f60")
    qtbot.waitUntil(sampling.missing.isVisible)
    assert "zzqq\u4f60" in sampling.missing.text()
    sampling.search.clear()
    qtbot.waitUntil(lambda: not sampling.missing.isVisible())


def test_what_was_said_of_a_prefill_ends_with_the_engine_and_with_the_next_one(live: Application, qtbot: QtBot) -> None:
    session, message = session_of(live), live.window.status.message
    live.notify.say("Prefill stopped.")
    session.prefill()
    assert message.text() == ""
    idle(qtbot, session, 0)
    live.notify.say("Prefill stopped.")
    session.engine._child.kill()  # type: ignore[union-attr]
    qtbot.waitUntil(lambda: session.engine_status == "lost")
    assert message.text() == ""  # the banner and the engine's own words say it


def test_the_default_model_has_its_name_among_the_recent_ones(live: Application, qtbot: QtBot) -> None:
    del qtbot
    assert live.ctx is not None
    session, opened = session_of(live), list[str]()
    live.settings.update(recent_models=("",))
    live.window._open = opened.append  # type: ignore[method-assign, assignment]
    file_menu = live.window.menu.menus["File"]
    for names in (("",), ("/a/model", ""), ()):
        live.settings.update(recent_models=names)
        file_menu.aboutToShow.emit()
        [recent] = [action.menu() for action in file_menu.actions() if action.text() == "Recent models"]
        assert isinstance(recent, QMenu)
        entry = session.desk.default_entry
        assert entry is not None
        assert [action.text() for action in recent.actions()] == [name or entry.title for name in names]
        assert recent.isEnabled() == bool(names)
        for action in recent.actions():
            action.trigger()
    assert opened == ["", "/a/model", ""]


def test_a_token_pointed_at_elsewhere_lights_its_step(live: Application, qtbot: QtBot) -> None:
    session, table = session_of(live), panel(live, "timeline").table
    chosen = 7
    qtbot.waitUntil(lambda: table.currentIndex().row() == chosen)

    def colour(row: int) -> QColor:
        cell = table.visualRect(table.model().index(row, 0))
        return QColor(table.viewport().grab(cell).toImage().pixelColor(1, 1))

    row = table.rowAt(3)
    assert row not in {-1, 0, chosen}
    plain = colour(row)
    strip = panel(live, "prompt").strip
    strip.say_hovered(session.n_prompt - 1 + row)
    qtbot.waitUntil(lambda: table.hovered == row)
    assert colour(row) != plain
    assert table.currentIndex().row() == chosen
    strip.say_hovered(1)  # within the prompt: the prefill's
    qtbot.waitUntil(lambda: table.hovered == 0)
    strip.say_hovered(None)
    qtbot.waitUntil(lambda: table.hovered is None)
    assert colour(row) == plain


def test_the_run_follows_a_drag_along_the_curve_and_the_axis_stays(
    live: Application, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, curve = session_of(live), panel(live, "timeline").curve
    prompt = session.n_prompt
    asked: list[object] = []
    qtbot.waitUntil(lambda: curve.count == prompt + 7)
    ask = session._ask_state

    def count(message: Step | Seek | Branch) -> None:
        asked.append(message)
        ask(message)

    monkeypatch.setattr(session, "_ask_state", count)

    def at(position: int) -> QPoint:
        return QPoint(round(curve.x_of(position)), curve.height() // 2)

    QTest.mousePress(curve, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at(prompt + 5))
    for position in (prompt + 4, prompt + 3, prompt + 2, prompt):  # while the first is under way: only the last counts
        drag(curve, at(position))
    idle(qtbot, session, 1)
    assert len(asked) == 2
    qtbot.waitUntil(lambda: curve.cursor_at == prompt)
    assert curve.count == prompt + 7
    drag(curve, at(prompt + 6))
    idle(qtbot, session, 7)
    QTest.mouseRelease(curve, Qt.MouseButton.LeftButton)
    drag(curve, at(prompt + 1), Qt.MouseButton.NoButton)
    QApplication.processEvents()
    assert not session.busy
    assert len(asked) == 3


def test_branches_are_reached_by_keys(live: Application, qtbot: QtBot) -> None:
    session, tree, registry = session_of(live), panel(live, "timeline").tree, live.window.registry
    assert not registry.can("run.branch_after")
    one = session.current_node
    session.seek(session.path_nodes()[3].parent)
    idle(qtbot, session, 3)
    session.branch(session.current_node, session.prompt_tokens[0].id)
    idle(qtbot, session, 4)
    other = session.current_node
    for command, wanted in (("run.branch_after", one), ("run.branch_before", other), ("run.branch_after", one)):
        assert registry.run(command)
        qtbot.waitUntil(partial(lambda node: not session.busy and session.current_node == node, wanted))
    qtbot.waitUntil(tree.isVisible)
    tree.setFocus()
    assert tree.focusPolicy() is Qt.FocusPolicy.StrongFocus
    session.seek(session.path_nodes()[3].id)
    idle(qtbot, session, 4)
    qtbot.waitUntil(lambda: tree._current == session.current_node)
    press(live, Qt.Key.Key_Down)
    assert tree.chosen == other
    assert session.nodes[other].piece in tree.accessibleDescription()
    press(live, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not session.busy and session.current_node == other)
    qtbot.waitUntil(lambda: tree._current == other)  # which chooses it anew
    press(live, Qt.Key.Key_Left)
    press(live, Qt.Key.Key_Return)
    idle(qtbot, session, 3)


def drag(widget: QWidget, at: QPoint, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
    """The mouse moves over a widget with a button down, which QTest.mouseMove does not know of."""
    where = QPointF(at)
    event = QMouseEvent(
        QEvent.Type.MouseMove, where, widget.mapToGlobal(where), Qt.MouseButton.NoButton, button,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)
