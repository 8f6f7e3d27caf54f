"""Notices between toolbar and panels: how long they stay, what their buttons do, how much room they take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app import i18n
from app.main import Application
from app.notify import WayOut
from app.state.check_words import nearest
from model.protocol.engine_requests import CheckRow, SelfCheckReply
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


def test_a_notice_is_as_high_as_its_sentence_when_the_text_grows_and_shrinks_under_it(
    application: Application, qtbot: QtBot
) -> None:
    """It kept the height of the text there was: half of a sentence, and later an empty bar."""
    application.window.resize(1000, 700)
    banners = application.window.banners
    banners.notice("a sentence of some words " * 5, "amber", WayOut(label="Bring it back", run=lambda: None))
    [banner] = banners.notices
    heights = []

    def fits(scale: float) -> bool:
        sentence = banner.sentence
        return banner.height() == max(38 * scale, sentence.heightForWidth(sentence.width()) + 16)

    for scale in (1.0, 2.0, 1.0):
        application.settings.update(text_scale=scale)
        qtbot.waitUntil(partial(fits, scale))
        heights.append(banner.height())
    assert heights[0] == heights[2] < 60 < heights[1]


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


def test_a_red_notice_is_not_pushed_out_by_others(application: Application) -> None:
    banners = application.window.banners
    application.notify.warn("wrong")
    for number in range(4):
        application.notify.tell(f"told {number}")
    assert [banner.text for banner in banners.notices] == ["wrong", "told 1", "told 2", "told 3"]
    for number in range(3):
        application.notify.warn(f"wrong {number}")
    assert [banner.text for banner in banners.notices if banner.red] == ["wrong 0", "wrong 1", "wrong 2"]


def test_what_is_complained_of_stays_in_the_status_bar_until_it_is_closed_or_another_comes(
    application: Application, qtbot: QtBot
) -> None:
    notify, status = application.notify, application.window.status
    red = application.theme.palette.red.name()
    notify.say("hint")
    assert status.message.text() == "hint" and not status.close_message.isVisible()
    notify.complain("this went wrong")
    notify.say("another hint")
    notify.clear()
    notify.say("a last hint")
    assert status.message.text() == "this went wrong" and red in status.message.styleSheet()
    status._fade.timeout.emit()
    assert status.message.text() == "this went wrong"
    notify.complain("that went wrong")
    notify.say("still said")
    assert status.message.text() == "that went wrong"
    assert status.close_message.isVisible() and status.close_message.accessibleName() == "Close this message"
    QTest.mouseClick(status.close_message, Qt.MouseButton.LeftButton)
    assert status.message.text() == "still said" and not status.message.styleSheet()
    assert not status.close_message.isVisible()
    status._fade.timeout.emit()
    assert status.message.text() == ""


def test_what_is_complained_of_has_room_before_the_figures(application: Application, qtbot: QtBot) -> None:
    status, text = application.window.status, "The temperature is 7, expected a number from 0 to 5."
    status.memory.setText("memory 860 MB / 25.1 GB")
    status.shape.setText("cpu · 30 layers · 9 heads · 3 KV heads")
    status.check.setText("self-check: fused attention 8.5e-06 ≤ 1e-04")
    application.window.resize(900, 700)
    qtbot.waitUntil(lambda: status.width() <= 900 and status.check.isVisible())
    application.notify.complain(text)
    qtbot.waitUntil(lambda: status.message.shown() == text)
    assert not (status.check.isVisible() and status.memory.isVisible())


def check(name: str, error: float, bound: float, *, ok: bool = True) -> CheckRow:
    return CheckRow(name=name, title=name, ok=ok, error=error, bound=bound)


def test_the_self_check_in_the_status_bar_names_the_one_nearest_to_its_bound(
    application: Application, qtbot: QtBot
) -> None:
    assert application.ctx is not None
    session, status = application.ctx.session, application.window.status
    large, near = check("blocks", 9e-5, 1e-3), check("rope", 8e-7, 1e-6)
    session.facts.take_check(SelfCheckReply(rows=(check("captured", 0, 0), large, near)))
    qtbot.waitUntil(lambda: status.check.text() == "self-check: RoPE shift 8.0e-07 ≤ 1e-06")
    assert status.check.toolTip().splitlines()[0] == (
        "Of all checks this one came nearest to its bound: RoPE: shift both, same q·k"
    )
    session.facts.take_check(SelfCheckReply(rows=(near, check("sums", 2e-4, 1e-4, ok=False), large)))
    qtbot.waitUntil(lambda: status.check.text() == "self-check: sums of weights 2.0e-04 > 1e-04 ✗")
    application.window.resize(720, 480)
    qtbot.wait(50)
    status._fit()
    assert status.check.isVisible()  # wrong numbers are said however little room there is
    session.facts.take_check(SelfCheckReply(rows=(near, check("keys", math.nan, 0, ok=False))))
    qtbot.waitUntil(lambda: status.check.text().startswith("self-check: stored q, k, v nan"))
    assert nearest((check("captured", 1e-9, 0), near)).name == "captured"
