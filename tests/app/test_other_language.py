"""Another language in the middle of work: said a piece a turn, and nothing that a person did is lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app import i18n
from app.frame.curtain import Curtain
from app.frame.turns import Turns
from app.frame.widget_path import at_path, path_of
from app.i18n import again, tr
from app.main import Application
from app.notify import WayOut
from app.panels import PANELS
from app.panels.base import Panel
from app.panels.kv import KvPanel
from app.state.under_way import Phase
from tests.app.shell import close_window, open_window, window_with, with_example
from tests.model.checkpoint import files


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = open_window(tmp_path / "config", monkeypatch, qtbot)
    made.window.resize(1400, 900)
    qtbot.wait(300)  # the layout has settled
    yield made
    close_window(made)


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(files.folder(tmp_path / "tiny")))
    yield with_example(made, qtbot)
    close_window(made)


def panel(application: Application, name: str) -> Any:
    return application.window.docks[name].panel


def under_way(application: Application) -> bool:
    language = application.window._language
    return language is not None and language._turns.under_way


def choose(application: Application, qtbot: QtBot, language: str) -> None:
    """The language, until everything says it."""
    application.settings.update(language=language)
    qtbot.waitUntil(lambda: not under_way(application))


def titles(application: Application) -> list[str]:
    return [dock.windowTitle() for dock in application.window.docks.values()]


def test_it_is_said_a_piece_a_turn_those_in_sight_first(
    application: Application, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    window, turns, made = application.window, list[int](), list[str]()
    in_sight = {name for name, dock in window.docks.items() if dock.panel.seen()}
    old = {name: dock.panel for name, dock in window.docks.items()}
    beats = [0]
    clock = QObject()
    clock.timerEvent = lambda _event: beats.__setitem__(0, beats[0] + 1)  # type: ignore[method-assign]
    clock.startTimer(1, Qt.TimerType.PreciseTimer)
    for kind in PANELS:
        build = kind.build

        def counted(self: Any, build: Any = build) -> None:
            made.append(self.panel_id)
            turns.append(beats[0])
            build(self)

        monkeypatch.setattr(kind, "build", counted)
    choose(application, qtbot, "zh_CN")
    assert 0 < len(in_sight) < len(old)
    assert set(made[: len(in_sight)]) == in_sight and sorted(made) == sorted(old)
    assert len(set(turns)) == len(turns)  # the loop turned between any two
    assert all(dock.panel is not old[name] for name, dock in window.docks.items())
    assert not any(isValid(each) for each in old.values())
    assert not set(titles(application)) & {kind.title for kind in PANELS if kind.title != "RoPE"}
    assert [bar.tabText(0) for bar in window.frames._tools] == ["KV 缓存"]
    assert window.run_bar.prefill.text() == "预填充" and window.status.cancel.text() == "取消"
    float_button = window.docks["prompt"].bar.float_button
    assert (
        float_button.toolTip() == float_button.accessibleName() == tr("Float {title}", title="提示词") != "Float 提示词"
    )


def test_two_changes_in_quick_succession_end_in_the_second(application: Application, qtbot: QtBot) -> None:
    window = application.window
    application.settings.update(language="zh_CN")
    qtbot.waitUntil(lambda: bool(window._language and window._language._made))  # some are made and not in place
    choose(application, qtbot, "en")
    assert titles(application) == [kind.title for kind in PANELS]
    assert panel(application, "sampling").findChildren(QLabel)
    words = {label.text() for dock in window.docks.values() for label in dock.findChildren(QLabel)}
    assert not any("\u4e00" <= letter <= "\u9fff" for text in words for letter in text)
    qtbot.waitUntil(lambda: not any(isinstance(each, Panel) for each in QApplication.topLevelWidgets()))


def test_closing_in_the_middle_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot)
    window = application.window
    application.settings.update(language="zh_CN")
    qtbot.waitUntil(lambda: bool(window._language and window._language._made))
    panels = [dock.panel for dock in window.docks.values()]
    monkeypatch.setattr("app.window._quit", lambda: None)
    window.close()
    assert not under_way(application)
    qtbot.wait(100)
    assert [dock.panel for dock in window.docks.values()] == panels
    close_window(application)


def test_undo_caret_and_focus_of_the_prompt_are_kept(application: Application, qtbot: QtBot) -> None:
    edit = panel(application, "prompt").edit
    edit.setFocus()
    QTest.keyClicks(edit, " more")
    QTest.keyClick(edit, Qt.Key.Key_Left)
    text, caret = edit.text(), edit.textCursor().position()
    old = panel(application, "prompt")
    choose(application, qtbot, "zh_CN")
    now = panel(application, "prompt")
    assert now is not old and now.edit.hasFocus() and now.edit.isVisible()
    assert now.edit.text() == text and now.edit.textCursor().position() == caret
    assert now.edit.accessibleName() == "提示词"
    QTest.keyClicks(now.edit, "!")
    assert application.ctx is not None
    assert application.ctx.session.prompt_text == now.edit.text() == text[:caret] + "!" + text[caret:]
    steps = 0
    while now.edit.text() != text.removesuffix(" more") and steps < 10:
        now.edit.undo()
        steps += 1
    assert 0 < steps < 10 and application.ctx.session.prompt_text == now.edit.text()
    assert [child for child in now.split.children() if isinstance(child, type(edit))] == [edit]


@pytest.mark.parametrize("name", ["temperature", "search", "attention"])
def test_the_focus_stays_where_it_was(live: Application, qtbot: QtBot, name: str) -> None:
    def wanted() -> QWidget:
        sampling = panel(live, "sampling")
        places = {"temperature": sampling.rows["temperature"]._slider, "search": sampling.table.search}
        return places.get(name) or panel(live, "attention").main.heat  # type: ignore[no-any-return]

    before = wanted()
    before.setFocus()
    qtbot.waitUntil(before.hasFocus)
    choose(live, qtbot, "zh_CN")
    assert wanted() is not before and wanted().hasFocus()
    assert live.window.in_use is not None
    assert live.window.in_use.panel is panel(live, "attention" if name == "attention" else "sampling")


def test_docks_stay_as_they_are(live: Application, qtbot: QtBot) -> None:
    window = live.window
    sampling, kv = window.docks["sampling"], window.docks["kv"]
    kv.toggle_floating()
    kv.move(40, 60)
    kv.resize(520, 430)
    window.docks["model"].close()
    window.toggle_maximised(sampling)
    qtbot.wait(200)
    shown = {name: (dock.isVisible(), dock.isFloating()) for name, dock in window.docks.items()}
    geometry, saved = kv.geometry(), window.layout_text()
    assert live.ctx is not None
    live.ctx.selection.toggle_pin(live.ctx.selection.view)
    choose(live, qtbot, "zh_CN")
    assert {name: (dock.isVisible(), dock.isFloating()) for name, dock in window.docks.items()} == shown
    assert kv.geometry() == geometry and window.maximised is sampling and sampling.maximised
    assert window.layout_text() == saved
    window.restore_maximised()
    qtbot.waitUntil(window.docks["prompt"].isVisible)
    assert kv.isFloating() and not window.docks["model"].isVisible()
    qtbot.waitUntil(lambda: len(panel(live, "attention").pinned) == 1)


def test_what_is_under_way_goes_on(live: Application, qtbot: QtBot) -> None:
    assert live.ctx is not None
    session = live.ctx.session
    session.first()
    qtbot.waitUntil(lambda: not session.busy and not session.path_nodes())
    session.step(7)
    assert session.busy
    live.settings.update(language="zh_CN")
    qtbot.waitUntil(lambda: not session.busy and len(session.path_nodes()) == 7)
    qtbot.waitUntil(lambda: not under_way(live))
    qtbot.waitUntil(lambda: all(dock.panel.settled for dock in live.window.docks.values() if dock.panel.seen()))
    assert panel(live, "attention").main.heat.isVisible()
    assert not panel(live, "attention")._empty


def test_a_picture_stands_in_until_the_new_panel_is_drawn(live: Application, qtbot: QtBot) -> None:
    dock = live.window.docks["attention"]

    def curtains() -> list[Curtain]:
        return dock.findChildren(Curtain)

    live.settings.update(language="zh_CN")
    old = dock.panel
    qtbot.waitUntil(lambda: dock.panel is not old)
    assert curtains() and not dock.panel.settled and dock.panel.seen()
    qtbot.waitUntil(lambda: not curtains(), timeout=2000)
    qtbot.waitUntil(lambda: dock.panel.settled)


def test_a_panel_that_cannot_be_made_stays(
    application: Application, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *what: told.append(what[0]))
    monkeypatch.setattr(KvPanel, "build", lambda _self: 1 / 0)
    old = {name: dock.panel for name, dock in application.window.docks.items()}
    choose(application, qtbot, "zh_CN")
    assert [name for name, dock in application.window.docks.items() if dock.panel is old[name]] == ["kv"]
    assert told == [ZeroDivisionError]


def test_open_notices_and_their_buttons_follow_and_are_withdrawn_in_any_language(
    application: Application, qtbot: QtBot
) -> None:
    banners, ran = application.window.banners, list[str]()
    application.notify.tell(tr("The last window crashed. A report is in {path}.", path="/a & b"))
    application.notify.propose(
        tr("The run on the screen is not in the engine: nothing more can be read from it."),
        WayOut(label=tr("Bring it back"), run=lambda: ran.append("back")),
        WayOut(
            label=tr("Discard …"),
            run=lambda: None,
            choices=(WayOut(label=tr("Close {title}", title="a & b"), run=lambda: ran.append("chosen")),),
        ),
    )
    told, offered = banners.notices
    first = told.sentence.text(), offered.sentence.text()
    choose(application, qtbot, "zh_CN")
    assert banners.notices == [told, offered] and told.isVisible() and offered.isVisible()
    assert told.sentence.text() == tr("The last window crashed. A report is in {path}.", path="/a & b") != first[0]
    buttons = [button.text() for button in offered.findChildren(QPushButton)]
    assert buttons == [tr("Bring it back"), tr("Discard …")] != ["Bring it back", "Discard …"]
    [choice] = offered.findChildren(QPushButton)[1].menu().actions()
    assert choice.text() == tr("Close {title}", title="a && b") != "Close a && b"
    choice.trigger()
    assert ran == ["chosen"]
    application.notify.propose(
        tr("The run on the screen is not in the engine: nothing more can be read from it."),
        WayOut(label=tr("Bring it back"), run=lambda: ran.append("back")),
    )
    words = i18n.tr("The run on the screen is not in the engine: nothing more can be read from it.")
    choose(application, qtbot, "en")
    assert [each.sentence.text() for each in banners.notices] == list(first)
    application.notify.withdraw(words)  # what it was called in Chinese
    assert banners.notices == [told]
    application.notify.tell(tr("The last window crashed. A report is in {path}.", path="/a & b"))
    assert banners.notices == [told]  # the same is told once


def test_the_last_message_follows_and_fades_all_the_same(application: Application, qtbot: QtBot) -> None:
    status = application.window.status
    application.notify.say(tr("Stop what is under way first."))
    left = status._fade.remainingTime()
    choose(application, qtbot, "zh_CN")
    assert status.message.text() == tr("Stop what is under way first.") != "Stop what is under way first."
    assert 0 < status._fade.remainingTime() <= left
    choose(application, qtbot, "en")


def test_what_is_under_way_is_told_in_the_new_language(application: Application, qtbot: QtBot) -> None:
    assert application.ctx is not None
    status, doing = application.window.status, application.ctx.session.under_way
    if doing.busy:
        doing.end()
    doing.begin(Phase.DECODE, tr("Opening the run"), SimpleNamespace(cancel=lambda: None))  # type: ignore[arg-type]
    qtbot.waitUntil(lambda: status.what.text() == "Opening the run")
    choose(application, qtbot, "zh_CN")
    assert status.what.text() == tr("Opening the run") != "Opening the run"
    choose(application, qtbot, "en")


def test_words_are_said_again_with_what_they_hold(qapp: object) -> None:
    inner = tr("Prompt")
    whole = tr("Close {title}", title=inner)
    plain = f"{whole}!"
    try:
        i18n.set_language("zh_CN")
        assert again(whole) == tr("Close {title}", title=tr("Prompt")) != whole
        assert again(plain) == plain == "Close Prompt!"
    finally:
        i18n.set_language("en")
    assert again(again(whole)) == whole == "Close Prompt"


def test_turns_go_on_after_one_that_raised_and_wait_while_a_menu_is_open(
    monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    turns, done = Turns(), list[str]()
    with qtbot.captureExceptions() as raised:
        turns.add(lambda: 1 / 0, lambda: done.append("after"))
        qtbot.waitUntil(lambda: done == ["after"])
    assert [kind for kind, *_ in raised] == [ZeroDivisionError]
    monkeypatch.setattr(QApplication, "activePopupWidget", lambda: True)
    turns.add(lambda: done.append("made"))
    turns.add(lambda: done.append("placed"), gently=True)
    qtbot.wait(150)
    assert done == ["after", "made"] and turns.under_way
    monkeypatch.setattr(QApplication, "activePopupWidget", lambda: None)
    qtbot.waitUntil(lambda: done == ["after", "made", "placed"])
    turns.add(lambda: done.append("never"))
    turns.drop()
    qtbot.wait(30)
    assert "never" not in done and not turns.under_way


def test_a_widget_is_found_by_its_place_among_the_attributes(qtbot: QtBot) -> None:
    class Row(QWidget):
        def __init__(self, parent: QWidget) -> None:
            super().__init__(parent)
            self.box = QLabel(self)

    class Root(QWidget):
        def __init__(self) -> None:
            super().__init__()
            self.outside = QLabel()
            self.rows = {"a": Row(self), "b": Row(self)}
            self.nameless = Row(self)
            self.nameless.box = None  # type: ignore[assignment]

    first, second = Root(), Root()
    for each in (first, second):
        qtbot.addWidget(each)
        qtbot.addWidget(each.outside)
    way = path_of(first, first.rows["b"].box)
    assert way == (("rows", "b"), ("box", None))
    assert at_path(second, way) is second.rows["b"].box
    assert path_of(first, first.outside) is None
    assert path_of(first, first.nameless.children()[0]) is None  # type: ignore[arg-type]
    del second.rows["b"]
    assert at_path(second, way) is None


def test_buttons_that_qt_makes_have_names_in_the_language_in_force(application: Application, qtbot: QtBot) -> None:
    window = application.window
    asked = {"qt_dockwidget_floatbutton", "qt_dockwidget_closebutton", "ScrollLeftButton", "qt_toolbar_ext_button"}

    def names() -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for button in window.findChildren(QAbstractButton):
            of_a_field = isinstance(button.parent(), QLineEdit)
            part = "clear" if of_a_field else button.objectName()
            if part in asked or of_a_field:
                found.setdefault(part, set()).add(button.accessibleName())
        return found

    english = {
        "qt_dockwidget_floatbutton": {"Float"}, "qt_dockwidget_closebutton": {"Close"},
        "ScrollLeftButton": {"Scroll Left"}, "qt_toolbar_ext_button": {"More"}, "clear": {"Clear"},
    }  # fmt: skip
    assert names() == english
    choose(application, qtbot, "zh_CN")
    assert names() == {
        "qt_dockwidget_floatbutton": {"悬浮"}, "qt_dockwidget_closebutton": {"关闭"},
        "ScrollLeftButton": {"向左滚动"}, "qt_toolbar_ext_button": {"更多"}, "clear": {"清除"},
    }  # fmt: skip
    choose(application, qtbot, "en")
    assert names() == english
