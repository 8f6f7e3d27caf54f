"""The window's frame: a maximised panel and the way back, no panel at all, menus that fit, dialogs in one style."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QDialogButtonBox, QLineEdit, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.dialogs.ask import AskDialog, ConfirmDialog, NameDialog
from app.dialogs.preferences import PreferencesDialog
from app.frame.pages import Choice
from app.main import Application
from app.session import Session
from app.widgets.form_combo import FormCombo
from app.widgets.form_spin import FormSpin
from app.widgets.tick_menu import TickMenu
from model.protocol.engine_requests import CatalogueEntry, HelloReply
from tests.app.shell import close_window, open_window
from tests.model.tiny import made

SMALL_SCREEN = 700


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    opened = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield opened
    close_window(opened)


def test_a_maximised_panel_shows_the_way_back_and_escape_takes_it(application: Application, qtbot: QtBot) -> None:
    window, dock = application.window, application.window.docks["sampling"]
    assert not dock.bar.maximise_button.isVisible()  # until the mouse is there
    window.toggle_maximised(dock)
    assert dock.bar.maximise_button.isVisible() and dock.bar.close_button.isVisible()
    assert "Esc" in dock.bar.maximise_button.toolTip()
    window.setFocus()
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert window.maximised is None
    assert all(other.isVisible() for other in window.docks.values())
    qtbot.waitUntil(lambda: not dock.bar.maximise_button.isVisible())


@pytest.mark.parametrize("how", ["closed", "floated"])
def test_the_others_come_back_when_the_maximised_panel_goes(application: Application, qtbot: QtBot, how: str) -> None:
    window, dock = application.window, application.window.docks["sampling"]
    window.toggle_maximised(dock)
    dock.close() if how == "closed" else dock.toggle_floating()
    assert window.maximised is None and not dock.maximised
    qtbot.waitUntil(lambda: all(other.isVisible() for other in window.docks.values() if other is not dock))
    assert dock.isHidden() == (how == "closed")
    assert dock.isFloating() == (how == "floated")


def test_without_panels_the_window_says_so_and_brings_them_back(application: Application, qtbot: QtBot) -> None:
    window, empty = application.window, application.window.area.empty
    assert not empty.isVisible()
    for dock in window.docks.values():
        dock.close()
    qtbot.waitUntil(empty.isVisible)
    assert empty.sentence.text() == "All panels are closed."
    assert empty.size() == window.area.size()
    window.docks["prompt"].toggleViewAction().trigger()
    qtbot.waitUntil(lambda: not empty.isVisible())
    window.docks["prompt"].toggle_floating()
    qtbot.waitUntil(empty.isVisible)
    assert "windows of their own" in empty.sentence.text()
    QTest.mouseClick(empty.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not empty.isVisible())
    assert all(dock.isVisible() and not dock.isFloating() for dock in window.docks.values())


def test_every_menu_fits_a_small_screen(application: Application) -> None:
    bar = application.window.menu
    assert bar is not None
    for name, menu in bar.menus.items():
        menu.aboutToShow.emit()
        assert menu.sizeHint().height() < SMALL_SCREEN, name


def test_what_is_on_in_a_menu_has_a_tick(application: Application) -> None:
    bar = application.window.menu
    assert bar is not None
    menu = bar.menus["View"]
    menu.aboutToShow.emit()
    for title, fill in (("Panels", True), ("Theme", False)):
        [made] = [a.menu() for a in menu.actions() if a.text() == title]
        assert isinstance(made, TickMenu)
        made.popup(QPoint(0, 0))
        [on, *_] = [action for action in made.actions() if action.isChecked()]
        picture, place = made.grab().toImage(), made.actionGeometry(on)
        accent = application.theme.palette.accent
        share = _share(picture.copy(place.left() + 9, place.center().y() - 6, 14, 14), accent)
        assert (share > 0.4) == fill and 0.02 < share < 0.95  # a filled box with its tick, or the tick alone
        made.close()


@pytest.mark.parametrize("source", ["", "first", "second", "/models/mine.gguf", "/models/not in any list"])
def test_of_the_models_the_open_one_has_a_tick(application: Application, source: str) -> None:
    assert application.ctx is not None
    session, window = application.ctx.session, application.window
    session.desk.hello = HelloReply(
        version="1", torch="2", pid=1, host="", threads=1, devices=(),
        catalogue=tuple(
            CatalogueEntry(name=name, title=name.title(), licence="", download_bytes=1, path="/there")
            for name in ("first", "second")
        ),
    )  # fmt: skip
    application.settings.update(recent_models=("/models/mine.gguf", "second", "", "/models/other.gguf"))
    assert not ticked(window._model_menu())
    session.desk.model, session.desk.source = made().info, source
    wanted = {"": ["First"], "first": ["First"], "second": ["Second"]}.get(source, [source] if "mine" in source else [])
    menu = window._model_menu()
    assert ticked(menu) == wanted
    assert [action.text() for action in menu.actions()][:4] == [
        "First", "Second", "/models/mine.gguf", "/models/other.gguf"
    ]  # fmt: skip
    assert window.menu is not None
    file = window.menu.menus["File"]
    file.aboutToShow.emit()
    [recent] = [a.menu() for a in file.actions() if a.text() == "Recent models"]
    assert isinstance(recent, TickMenu)
    assert ticked(recent) == ([] if source in {"first", "/models/not in any list"} else [source or "First"])


def ticked(menu: TickMenu) -> list[str]:
    return [action.text() for action in menu.actions() if action.isChecked()]


def _share(picture: QImage, colour: QColor) -> float:
    size = picture.size()
    pixels = [picture.pixelColor(x, y) for x in range(size.width()) for y in range(size.height())]
    return sum(abs(p.red() - colour.red()) + abs(p.blue() - colour.blue()) < 40 for p in pixels) / len(pixels)


def test_a_layout_is_asked_for_by_name_and_kept(application: Application, qtbot: QtBot) -> None:
    window = application.window
    window.save_layout_as()
    [dialog] = [d for d in window.findChildren(NameDialog) if d.isVisible()]
    assert not dialog.go.isEnabled()
    QTest.keyClicks(dialog.edit, " mine ")
    QTest.keyClick(dialog.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "mine" in application.settings.values.layouts)


@pytest.mark.parametrize("replace", [True, False])
def test_a_layout_of_a_name_there_is_already_is_replaced_only_where_that_is_chosen(
    application: Application, qtbot: QtBot, *, replace: bool
) -> None:
    window = application.window
    application.settings.update(layouts={"mine": "before"})
    window.save_layout_as()
    [dialog] = [d for d in window.findChildren(NameDialog) if d.isVisible()]
    QTest.keyClicks(dialog.edit, "mine")
    QTest.keyClick(dialog.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: any(d.isVisible() for d in window.findChildren(ConfirmDialog)))
    [box] = [d for d in window.findChildren(ConfirmDialog) if d.isVisible()]
    assert box.sentence.text() == "There is a layout called mine." and box.keep.isDefault()
    assert (box.keep.text(), box.go.text()) == ("Cancel", "Replace")
    QTest.mouseClick(box.go if replace else box.keep, Qt.MouseButton.LeftButton)
    assert application.settings.values.layouts == {"mine": window.layout_text() if replace else "before"}
    assert window.layout_text() != "before"


def test_dialogs_have_buttons_of_the_theme_with_one_primary(application: Application) -> None:
    window = application.window
    window.sheets.ask_steps(lambda _n: None)
    window.save_layout_as()
    dialogs = [d for d in window.findChildren(AskDialog) if d.isVisible()]
    assert len(dialogs) == 2
    for dialog in dialogs:
        assert not dialog.findChildren(QDialogButtonBox)
        buttons = dialog.findChildren(QPushButton)
        assert [b.isDefault() for b in buttons if b.property("primary")] == [True]
        assert all(b.icon().isNull() for b in buttons)
        dialog.reject()


@pytest.mark.parametrize("scale", [1.0, 1.25, 2.0])
def test_fields_of_a_form_have_one_height_and_arrows_that_count(application: Application, scale: float) -> None:
    application.settings.update(text_scale=scale)
    assert application.ctx is not None
    dialog = PreferencesDialog(application.ctx, application.window)
    dialog.show()
    fields = [
        *dialog.findChildren(FormCombo), *dialog.findChildren(QAbstractSpinBox),
        *(e for e in dialog.findChildren(QLineEdit) if not isinstance(e.parent(), QAbstractSpinBox)),
    ]  # fmt: skip
    assert {field.height() for field in fields} == {application.theme.px(26) + 2}
    box = dialog.threads
    assert isinstance(box, FormSpin)
    before = box.value()
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(box.width() - 11, box.height() // 4))
    assert box.value() == before + 1
    QTest.mouseClick(box, Qt.MouseButton.LeftButton, pos=QPoint(box.width() - 11, 3 * box.height() // 4))
    assert box.value() == before
    dialog.close()


def test_icons_follow_the_theme(application: Application) -> None:
    settings = application.settings
    settings.update(theme="dark")
    card = Choice(application.theme, "folder", "Open", "A file", lambda: None)
    for theme in ("light", "dark"):
        settings.update(theme=theme)
        picture = card.picture.pixmap().toImage()
        assert _share(picture, application.theme.palette.accent) > 0.02


def test_no_button_has_the_focus_in_a_panel_that_begins_to_float(application: Application, qtbot: QtBot) -> None:
    dock = application.window.docks["timeline"]
    dock.toggle_floating()
    dock.activateWindow()
    qtbot.waitUntil(dock.bar.maximise_button.isVisible)
    qtbot.wait(100)
    assert not any(button.hasFocus() for button in dock.bar.findChildren(QToolButton))
    assert dock.focusWidget() is None or dock.focusWidget() is dock


def test_what_is_under_way_has_one_bar_however_many_panels_wait(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "engine_status", property(lambda _session: "starting"))
    monkeypatch.setattr(Session, "run", None)
    panels = [dock.panel for dock in application.window.docks.values() if dock.panel.needs == "run"]
    assert len(panels) > 3
    for panel in panels:
        panel._cover()
        assert panel._empty is not None and panel._empty.accessibleDescription()
        assert bool(panel._empty.sentence.text()) == (panel.area == "center")
        assert panel._empty.bar.isHidden() == (panel.area != "center")
