"""Notices between toolbar and panels: how long they stay, what their buttons do, how much room they take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app import i18n
from app.main import Application
from app.notify import WayOut
from tests.app.shell import close_window, open_window


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield made
    close_window(made)
    i18n.set_language("en")


def test_notices_stay_until_they_are_closed(application: Application) -> None:
    banners = application.window.banners
    for text in ("one", "one", "two"):
        application.notify.tell(text)
    assert [notice.sentence.text() for notice in banners.notices] == ["one", "two"]
    assert banners.isVisible()
    for notice in list(banners.notices):
        QTest.mouseClick(notice.findChildren(QWidget)[-1], Qt.MouseButton.LeftButton)
    assert banners.notices == []
    assert not banners.isVisible()


def test_a_notice_whose_button_fails_stays_and_one_that_was_withdrawn_does_nothing(
    application: Application, qtbot: QtBot
) -> None:
    banners, ran = application.window.banners, []

    def fail() -> None:
        raise RuntimeError("it does not work")

    banners.notice("fails", "amber", WayOut(label="Go", run=fail))
    [banner] = banners.notices
    [button] = [each for each in banner.findChildren(QPushButton) if each.text() == "Go"]
    for _ in range(2):
        with qtbot.captureExceptions() as caught:
            button.click()
        assert [kind for kind, *_ in caught] == [RuntimeError]
        assert banners.notices == [banner] and banner.isVisible()
    banners.withdraw("fails")
    assert banners.notices == []
    choices = (WayOut(label="one", run=lambda: ran.append("one")),)
    banners.notice("choose", "amber", WayOut(label="Which", run=lambda: None, choices=choices))
    [menu] = [each.menu() for each in banners.notices[0].findChildren(QPushButton) if each.menu() is not None]
    banners.withdraw("choose")  # with its menu open
    menu.actions()[0].trigger()
    assert ran == [] and banners.notices == []


def test_a_notice_that_is_offered_anew_is_there_once(application: Application) -> None:
    banners = application.window.banners

    def again() -> bool:
        banners.notice("same", "amber", WayOut(label="Go", run=again))
        return False

    again()
    for _ in range(3):
        [button] = [each for each in banners.notices[0].findChildren(QPushButton) if each.text() == "Go"]
        button.click()
        assert [banner.text for banner in banners.notices] == ["same"]
    banners.withdraw("same")


@pytest.mark.parametrize("text", ["line\n" * 4000, "x" * 20_000, "word " * 4000])
def test_a_long_notice_leaves_room_for_the_window(application: Application, qtbot: QtBot, text: str) -> None:
    banners, height = application.window.banners, application.window.height()
    application.notify.tell(text)
    application.notify.tell(text)
    [banner] = banners.notices
    qtbot.wait(50)
    assert banners.height() < 250 and application.window.height() == height
    assert banner.sentence.text().endswith("…") and banner.sentence.toolTip() == text[:4000]
    banners._close(banner)


def test_what_was_told_and_offered_outlives_another_language(application: Application, qtbot: QtBot) -> None:
    ran: list[str] = []
    application.notify.tell("told")
    application.notify.warn("warned")
    application.notify.propose("offered", WayOut(label="Go", run=lambda: ran.append("gone")))
    application.settings.update(language="zh_CN")
    qtbot.waitUntil(lambda: application.window.run_bar.prefill.text() == "预填充")
    banners = application.window.banners
    assert [(each.text, each._voice) for each in banners.notices] == [
        ("told", "amber"), ("warned", "red"), ("offered", "accent"),
    ]  # fmt: skip
    qtbot.waitUntil(lambda: all(each.isVisible() for each in banners.notices))
    [button] = [each for each in banners.notices[2].findChildren(QPushButton) if each.text() == "Go"]
    button.click()
    assert ran == ["gone"] and [each.text for each in banners.notices] == ["told", "warned"]
