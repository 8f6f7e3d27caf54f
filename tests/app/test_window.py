from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QLabel, QLineEdit, QPushButton, QTabBar
from pytestqt.qtbot import QtBot

from app.commands import Command
from app.dialogs.error import ErrorDialog
from app.frame.dock_tabs import TabTools
from app.frame.drops import refuse_path
from app.frame.toolbar import MARGIN, SPACING
from app.keys import typing
from app.main import Application
from app.notify import Trouble, WayOut
from app.panels.prompt import PromptPanel, utf16_offsets
from app.settings import Settings
from tests.app.shell import close_window, dialogs, open_window


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    opened = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield opened
    close_window(opened)


def prompt_of(application: Application) -> PromptPanel:
    panel = application.window.docks["prompt"].panel
    assert isinstance(panel, PromptPanel)
    return panel


def test_every_panel_is_docked_in_the_standard_layout(application: Application) -> None:
    docks = application.window.docks
    assert all(dock.isVisible() and not dock.isFloating() for dock in docks.values())
    left, centre, right = (docks[name].geometry() for name in ("prompt", "attention", "sampling"))
    assert left.right() < centre.left() < centre.right() < right.left()
    assert docks["timeline"].geometry().top() > left.bottom()
    assert centre.width() > left.width() + right.width()


def test_language_switches_live_and_nothing_is_lost(application: Application, qtbot: QtBot) -> None:
    window = application.window
    prompt_of(application).edit.setPlainText("kept")
    window.registry.run("view.language.zh_CN")
    qtbot.waitUntil(lambda: window.docks["prompt"].windowTitle() == "提示词")
    assert [menu.title() for menu in window.menu.menus.values()] == ["文件", "运行", "视图", "模型", "帮助"]
    assert window.run_bar.prefill.text() == "预填充"
    assert prompt_of(application).edit.text() == "kept"
    untranslated = [c.label for c in window.registry if c.label == c.title and c.submenu != "Language"]
    assert untranslated == []
    window.registry.run("view.language.en")
    qtbot.waitUntil(lambda: window.docks["prompt"].windowTitle() == "Prompt")
    application.theme.set_choice("light")  # what was made anew follows, what is gone does not answer
    application.theme.set_choice("dark")


def test_theme_and_text_scale_act_at_once(application: Application) -> None:
    registry, theme = application.commands, application.theme
    registry.run("view.theme.light")
    assert application.qt.palette().window().color() == theme.palette.window
    assert not theme.dark
    for _ in range(20):
        registry.run("view.text_larger")
    assert theme.text_scale == 2.0
    assert not registry.can("view.text_larger")
    registry.run("view.text_normal")
    assert theme.text_scale == 1.0
    registry.run("view.theme.dark")


def test_letters_are_text_in_a_field_and_commands_elsewhere(application: Application, qtbot: QtBot) -> None:
    window, edit = application.window, prompt_of(application).edit
    ran: list[str] = []
    for name, keys, kind in (
        ("t.letter", "B", "letter"),
        ("t.free", "PgDown", "unclaimed"),
        ("t.global", "Ctrl+B", "global"),
    ):
        application.commands.add(_command(name, keys, kind, ran))
    edit.setFocus()
    qtbot.waitUntil(edit.hasFocus)
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_B)
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_PageDown)
    assert edit.text().endswith("b") or "b" in edit.text()
    assert ran == []
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    assert ran == ["t.global"]
    table = window.docks["sampling"].panel.table  # type: ignore[attr-defined] # a table would search for the letter
    table.setFocus()
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_B)
    assert ran == ["t.global", "t.letter"]
    window.setFocus()
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_PageDown)
    assert ran == ["t.global", "t.letter", "t.free"]


def test_letters_in_a_text_too_long_to_edit_do_nothing(application: Application, qtbot: QtBot) -> None:
    """It looks like any other: what is typed into it began runs and put the grid away."""
    window, edit, ran = application.window, prompt_of(application).edit, list[str]()
    for name, keys, kind in (("t.letter", "B", "letter"), ("t.free", "PgDown", "unclaimed")):
        application.commands.add(_command(name, keys, kind, ran))
    edit.set_text("\u65e5" * 40_000)
    assert edit.isReadOnly()
    edit.setFocus()
    qtbot.waitUntil(edit.hasFocus)
    for key in (Qt.Key.Key_B, Qt.Key.Key_PageDown):
        QTest.keyClick(window.windowHandle(), key)
    assert ran == [] and len(edit.text()) == 40_000
    window.setFocus()
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_B)
    assert ran == ["t.letter"]


def test_enter_in_a_field_is_the_fields(application: Application, qtbot: QtBot) -> None:
    """A one-line field says that Enter was pressed and lets the key go on: it led into the block walk."""
    window, ran = application.window, list[str]()
    taken = [each.id for each in application.commands if {"Return", "Up", "Esc"} & set(each.shortcuts)]
    application.commands.remove(*taken)
    for name, keys in (("t.enter", "Return"), ("t.up", "Up"), ("t.away", "Esc")):
        application.commands.add(_command(name, keys, "unclaimed", ran))
    panel = window.docks["sampling"].panel
    fields = [*panel.findChildren(QLineEdit), *window.docks["rope"].panel.findChildren(QLineEdit)]
    window.docks["rope"].raise_()
    fields = [field for field in fields if field.isVisible() and field.isEnabled()]
    assert fields
    for field in fields:
        field.setFocus()
        qtbot.waitUntil(field.hasFocus)
        for key in (Qt.Key.Key_Return, Qt.Key.Key_Up):
            QTest.keyClick(window.windowHandle(), key)
        assert ran == []
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_Escape)
    assert ran == ["t.away"]
    window.setFocus()
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_Return)
    assert ran == ["t.away", "t.enter"]


def _command(name: str, keys: str, kind: str, ran: list[str]) -> Command:
    return Command(id=name, title=name, shortcuts=(keys,), keys=kind, run=lambda: ran.append(name))  # type: ignore[arg-type]


def test_no_two_commands_share_a_key(application: Application) -> None:
    seen: dict[str, str] = {}
    for command in application.commands:
        for keys in command.shortcuts:
            if keys == "Escape" and keys in seen:  # the first of them that can: never both
                assert {command.id, seen[keys]} == {"run.stop", "view.restore_panel"}
                continue
            assert keys not in seen, f"{command.id} and {seen[keys]} both want {keys}"
            seen[keys] = command.id


def test_typing_knows_its_fields(application: Application) -> None:
    assert typing(prompt_of(application).edit)
    assert not typing(application.window)
    assert not typing(None)


def test_a_dock_maximises_floats_closes_and_comes_back(application: Application, qtbot: QtBot) -> None:
    window = application.window
    docks, sampling = window.docks, window.docks["sampling"]
    qtbot.wait(200)  # the layout has settled
    width = sampling.width()
    QTest.mouseDClick(sampling.bar, Qt.MouseButton.LeftButton, pos=sampling.bar.label.geometry().center())
    assert [name for name, dock in docks.items() if dock.isVisible()] == ["sampling"]
    qtbot.waitUntil(lambda: sampling.width() > 2 * width)
    QTest.mouseDClick(sampling.bar, Qt.MouseButton.LeftButton, pos=sampling.bar.label.geometry().center())
    assert all(dock.isVisible() for dock in docks.values())
    qtbot.waitUntil(lambda: abs(sampling.width() - width) < 8)
    window.toggle_maximised(sampling)
    window.reset_layout()
    assert not sampling.maximised and all(dock.isVisible() for dock in docks.values())
    sampling.toggle_floating()
    assert sampling.isFloating()
    sampling.toggle_floating()
    assert not sampling.isFloating()
    sampling.close()
    assert not sampling.isVisible()
    sampling.toggleViewAction().trigger()
    assert sampling.isVisible()


def test_tabbed_docks_give_their_title_to_the_tab(application: Application, qtbot: QtBot) -> None:
    window = application.window
    window.area.tabifyDockWidget(window.docks["prompt"], window.docks["timeline"])
    qtbot.waitUntil(lambda: window.docks["timeline"].tabbed)
    assert not window.docks["timeline"].bar.isVisible()
    window.reset_layout()
    qtbot.waitUntil(lambda: not window.docks["timeline"].tabbed)
    assert window.docks["timeline"].bar.isVisible()


def test_the_layout_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> None:
    first = open_window(tmp_path, monkeypatch, qtbot)
    first.window.docks["timeline"].close()
    close_window(first)
    second = open_window(tmp_path, monkeypatch, qtbot)
    try:
        assert not second.window.docks["timeline"].isVisible()
        second.window.reset_layout()
        assert second.window.docks["timeline"].isVisible()
    finally:
        close_window(second)


def test_the_sheet_of_keys_shows_every_key(application: Application, qtbot: QtBot) -> None:
    application.commands.run("help.keys")
    (sheet,) = dialogs("key-sheet")
    texts = {label.text() for label in sheet.findChildren(QLabel)}
    assert {command.label for command in application.commands if command.shortcuts} <= texts
    sheet.close()
    qtbot.waitUntil(lambda: not dialogs("key-sheet"))


def test_an_error_says_what_where_and_what_to_do(application: Application, qtbot: QtBot) -> None:
    done: list[str] = []
    way = WayOut(label="Cut it", run=lambda: done.append("cut"))
    application.notify.fail(Trouble(title="Too long", message="<b>9,000</b> tokens.", details="more", ways_out=(way,)))
    (dialog,) = dialogs("error-dialog")
    assert isinstance(dialog, QDialog)
    labels = {label.text(): label for label in dialog.findChildren(QLabel)}
    assert labels["<b>9,000</b> tokens."].textFormat() is Qt.TextFormat.PlainText
    buttons = {button.text(): button for button in dialog.findChildren(QPushButton)}
    QTest.mouseClick(buttons["Copy details"], Qt.MouseButton.LeftButton)
    assert application.qt.clipboard().text().startswith("Too long\n<b>9,000</b> tokens.\nmore")
    QTest.mouseClick(buttons["Cut it"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not dialogs("error-dialog"))
    assert done == ["cut"]


@pytest.mark.parametrize("text", ["line\n" * 5_000, "x" * 100_000, "word " * 20_000])
def test_an_error_of_any_length_fits_the_screen_and_is_copied_whole(
    application: Application, qtbot: QtBot, text: str
) -> None:
    application.notify.fail(Trouble(title="T" * 500, message=text))
    (dialog,) = dialogs("error-dialog")
    qtbot.waitExposed(dialog)
    assert dialog.height() < 700 and dialog.width() <= 700
    [copied] = [button for button in dialog.findChildren(QPushButton) if button.text() == "Copy details"]
    copied.click()
    assert text.strip() in application.qt.clipboard().text()
    dialog.close()


def test_an_absent_model_gives_three_choices(application: Application, qtbot: QtBot) -> None:
    window = application.window
    assert application.ctx is not None
    application.ctx.session.modelAbsent.emit("")
    assert window.pages.currentWidget() is window._absent
    assert window._absent is not None
    assert len(window._absent.choices) == 3
    qtbot.waitUntil(window._absent.choices[0].hasFocus)  # the one that is drawn as chosen
    QTest.keyClick(window._absent.choices[1], Qt.Key.Key_Return)
    (dialog,) = dialogs("open-dialog")
    dialog.close()


@pytest.mark.skipif(sys.platform == "win32", reason="FIFOs and symbolic links are Unix's")
def test_what_is_no_file_is_refused_without_opening_it(tmp_path: Path) -> None:
    fifo, dangling, good = tmp_path / "fifo", tmp_path / "dangling", tmp_path / "good"
    os.mkfifo(fifo)
    dangling.symlink_to(tmp_path / "nowhere")
    good.write_bytes(b"")
    assert "neither a file nor a folder" in refuse_path(fifo)
    assert "can't be read" in refuse_path(dangling)
    assert "neither" in refuse_path(Path("/dev/null"))
    assert refuse_path(good) == refuse_path(tmp_path) == ""


@pytest.mark.parametrize(
    ("urls", "said"),
    [
        (["file:///a", "file:///b"], "Drop one file or folder; these are 2."),
        (["https://example.org/model"], "Links are not fetched"),
        (["file:///a%00b"], "a\\x00b is a name that no file or folder can have."),
        (["file:///" + "a" * 5000], "aaa"),
    ],
)
def test_odd_drops_are_told(application: Application, urls: list[str], said: str) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl(url) for url in urls])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    application.window.dropEvent(event)
    told = [dialog.trouble.message for dialog in application.window.findChildren(ErrorDialog)]
    assert application.notify.last.startswith(said) or any(text.startswith(said) for text in told)


def test_a_second_window_does_not_write_preferences(
    application: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    second = open_window(tmp_path / "config", monkeypatch, qtbot)
    try:
        assert any("Another Decoderscope" in notice.sentence.text() for notice in second.window.banners.notices)
        second.settings.update(theme="light")
        second.settings.save()
        assert Settings(application.settings.path).values.theme != "light"
    finally:
        close_window(second)
        application.theme.install(application.qt)


def test_a_window_that_cannot_save_ends_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot)
    try:
        monkeypatch.setattr(application.settings, "save", lambda: 1 / 0)
        ended: list[bool] = []
        monkeypatch.setattr("app.window._quit", lambda: ended.append(True))
        with qtbot.captureExceptions() as raised:
            application.window.close()
            qtbot.waitUntil(lambda: bool(ended), timeout=5000)
        assert [kind for kind, _error, _trace in raised] == [ZeroDivisionError]
        assert not (tmp_path / "config" / "window.lock").exists()
    finally:
        monkeypatch.undo()
        close_window(application)


def test_hundred_thousand_letters_stay_smooth(application: Application, qtbot: QtBot) -> None:
    import time

    edit = prompt_of(application).edit
    edit.setFocus()
    for text in ("x" * 100_000, "word " * 20_000, "你好👩‍👩‍👧" * 5_000):
        edit.set_text(text)
        application.qt.processEvents()
        started = time.perf_counter()
        for _ in range(5):
            QTest.keyClick(edit, Qt.Key.Key_A)
            application.qt.processEvents()
        assert (time.perf_counter() - started) / 5 < 0.25  # 1.3 s with Qt's own choice of where to break
    edit.set_text("short")


def test_utf16_offsets_follow_qts_counting() -> None:
    assert utf16_offsets("abc").tolist() == []
    assert utf16_offsets("你好").tolist() == []
    assert utf16_offsets("a👍b").tolist() == [0, 1, 3, 4]
    assert utf16_offsets("\ud800x").tolist() == []


def test_the_standard_layout_follows_the_window_and_comes_back(application: Application, qtbot: QtBot) -> None:
    window, docks = application.window, application.window.docks
    window.resize(1400, 900)
    qtbot.waitUntil(lambda: docks["kv"].tabbed and not docks["attention"].tabbed)
    qtbot.wait(300)
    before = {name: docks[name].size() for name in ("prompt", "attention", "sampling")}
    window.resize(1000, 640)
    qtbot.waitUntil(lambda: docks["attention"].tabbed)  # the lower panels are tabs beside it
    window.resize(1400, 900)
    qtbot.waitUntil(lambda: not docks["attention"].tabbed)
    qtbot.wait(300)
    for name, size in before.items():
        assert abs(docks[name].width() - size.width()) < 8
        assert abs(docks[name].height() - size.height()) < 8
    assert window.layout_text() == ""


def test_a_layout_of_ones_own_is_left_alone(application: Application, qtbot: QtBot) -> None:
    window, docks = application.window, application.window.docks
    window.resize(1400, 900)
    qtbot.wait(300)
    below = docks["prompt"].mapTo(window.area, docks["prompt"].rect().bottomLeft())
    grip = below + QPoint(docks["prompt"].width() // 2, 4)
    QTest.mousePress(window.area, Qt.MouseButton.LeftButton, pos=grip)
    QTest.mouseRelease(window.area, Qt.MouseButton.LeftButton, pos=grip)
    assert not window.layout_text()  # a click moves nothing
    QTest.mousePress(window.area, Qt.MouseButton.LeftButton, pos=grip)
    QTest.mouseMove(window.area, grip + QPoint(0, 12))
    QTest.mouseRelease(window.area, Qt.MouseButton.LeftButton, pos=grip + QPoint(0, 12))
    assert window.layout_text()
    window.resize(1000, 640)
    qtbot.wait(400)
    assert not docks["attention"].tabbed


def test_a_layout_of_ones_own_keeps_its_sizes_through_themes(application: Application, qtbot: QtBot) -> None:
    window, dock = application.window, application.window.docks["lens"]
    window.resize(1400, 900)
    dock.raise_()
    for _ in range(2):  # from here on it is one's own
        dock.toggle_floating()
        qtbot.wait(300)
    shown = [dock for dock in window.docks.values() if not dock.visibleRegion().isEmpty()]
    before = [dock.geometry() for dock in shown]
    assert len(shown) > 3
    for theme in ("light", "dark") * 3:
        application.settings.update(theme=theme)
        qtbot.wait(250)
    assert [dock.geometry() for dock in shown] == before


def test_docks_that_share_a_place_keep_their_tools(application: Application, qtbot: QtBot) -> None:
    window = application.window
    window.resize(1000, 700)
    window.reset_layout()

    def shared() -> TabTools | None:
        bars = [bar for bar in window.area.findChildren(QTabBar) if bar.isVisible() and bar.count() > 5]
        return bars[0].findChild(TabTools) if len(bars) == 1 else None

    def folded() -> bool:
        tools = shared()
        return tools is not None and tools.isVisible() and tools.more.isVisible() and not tools.crowded

    qtbot.waitUntil(lambda: window.docks["attention"].tabbed and folded())
    tools = shared()
    assert tools is not None
    bar, dock = tools.parentWidget(), tools.dock
    assert isinstance(bar, QTabBar)
    assert dock is not None
    assert tools.x() > bar.tabRect(bar.count() - 1).right()
    menu = tools.menu()
    texts = [action.text() for action in menu.actions() if action.text()]
    export = ["Export this panel"] if dock.panel.exports else []
    others = ["Float this panel", "Maximise this panel", "Close this panel"]
    assert texts == [*export, *others, f"About {dock.windowTitle()}"]
    next(action for action in menu.actions() if action.text() == "Float this panel").trigger()
    assert dock.isFloating()
    window.resize(1400, 900)
    window.reset_layout()
    qtbot.waitUntil(lambda: not window.docks["attention"].tabbed)
    qtbot.waitUntil(lambda: shared() is not None and not folded())
    wide = shared()
    assert wide is not None
    qtbot.waitUntil(wide.info.isVisible)


def test_the_toolbar_gives_up_its_hints_before_units(application: Application) -> None:
    bar = application.window.run_bar
    buttons = (bar.model, *(button for _, button in bar._buttons))
    forms = []
    for width in range(1500, 700, -20):
        bar.resize(width, bar.height())
        assert len({button.form for button in buttons}) == 1
        forms.append(bar.model.form)
        taken = sum(button.sizeHint().width() for button in buttons) + len(buttons) * SPACING + 2 * MARGIN
        assert bar.model.form == 2 or taken + bar.readout.full_width() <= width
    assert forms == sorted(forms)
    assert set(forms) == {0, 1, 2}


@pytest.mark.parametrize(("width", "height", "scale"), [(1400, 900, 2.0), (1000, 700, 1.5)])
def test_no_panel_lies_over_another_in_large_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot, width: int, height: int, scale: float
) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot, text_scale=scale)
    try:
        window = application.window
        window.resize(width, height)
        qtbot.waitUntil(lambda: window.docks["attention"].tabbed)
        qtbot.wait(300)
        for name, dock in window.docks.items():
            dock.raise_()
            qtbot.waitUntil(lambda dock=dock: not dock.visibleRegion().isEmpty())  # type: ignore[misc]
            seen = [each for each in window.docks.values() if not each.visibleRegion().isEmpty()]
            for a, b in itertools.combinations(seen, 2):
                assert not a.geometry().intersects(b.geometry()), (name, a.objectName(), b.objectName())
    finally:
        close_window(application)
