"""The prompt's box, its tokens and the rest of the window: what is pointed at, what a very long text does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetricsF
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.main import Application
from app.plain import unseen
from app.session import Session
from app.widgets.notice_line import NoticeLine
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def live(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(tiny))
    session = session_of(made)
    qtbot.waitUntil(lambda: not session.busy and session.run is not None and not session.prompt.stale)
    yield made
    close_window(made)


def session_of(application: Application) -> Session:
    assert application.ctx is not None
    return application.ctx.session


def prompt_panel(application: Application) -> Any:
    return application.window.docks["prompt"].panel


def test_what_is_typed_takes_the_hover_of_the_text_before_away(live: Application, qtbot: QtBot) -> None:
    """Every panel went on pointing at a token of the run while another text was written."""
    session, panel = session_of(live), prompt_panel(live)
    assert live.ctx is not None
    panel.edit.pointedAt.emit(session.prompt.tokens[1].start)
    assert live.ctx.selection.hover_token == 1
    panel.edit.setFocus()
    QTest.keyClick(panel.edit, Qt.Key.Key_A)
    assert live.ctx.selection.hover_token is None


def test_a_character_in_parts_is_named_right_after_a_chats_template(live: Application, qtbot: QtBot) -> None:
    """Over its bytes stood what the template had at that place."""
    session, panel = session_of(live), prompt_panel(live)
    session.set_prompt("\u4f60 it")
    qtbot.waitUntil(lambda: not session.prompt.stale)
    session.prefill()
    qtbot.waitUntil(lambda: not session.busy and panel._follows_run() and len(panel._grouped[2]) == 1)
    session.prompt.set_options(chat=True)  # refused by this model, which has no template
    qtbot.waitUntil(lambda: panel._grouped[0] is session.prompt.tokens)
    session.prompt.shown = "<|im_start|>user"
    session.prompt.set_options(chat=False)
    qtbot.waitUntil(lambda: panel._follows_run() and not session.prompt.stale and len(panel._grouped[2]) == 1)
    assert panel._grouped[2][0].text == "\u4f60"


def test_a_character_of_the_box_hovers_its_token_in_every_panel(live: Application, qtbot: QtBot) -> None:
    session, panel = session_of(live), prompt_panel(live)
    assert live.ctx is not None
    selection, tokens = live.ctx.selection, session.prompt.tokens
    for position, token in enumerate(tokens):
        if token.end > token.start:
            panel.edit.pointedAt.emit(token.start)
            assert selection.hover_token == position
    panel.edit.pointedAt.emit(-1)
    assert selection.hover_token is None
    # A text that is not the run's: the strip alone, and the run's panels keep what they have.
    session.set_prompt("😀 other words")
    qtbot.waitUntil(lambda: not session.prompt.stale)
    qtbot.waitUntil(lambda: len(panel.strip._pieces) == len(session.prompt.tokens))
    last = next(
        i for i, token in enumerate(session.prompt.tokens) if session.prompt.text[token.start :].startswith("ther")
    )
    panel.edit.pointedAt.emit(session.prompt.tokens[last].start + 1)  # an emoji is two of Qt's units
    assert panel.strip.hovered == last and selection.hover_token is None


def test_the_token_of_a_character_that_is_pointed_at_comes_into_sight(live: Application, qtbot: QtBot) -> None:
    session, panel = session_of(live), prompt_panel(live)
    session.set_prompt("some words " * 200)
    qtbot.waitUntil(lambda: not session.prompt.stale and len(panel.strip._pieces) == len(session.prompt.tokens))
    bar = panel.strip.verticalScrollBar()
    bar.setValue(bar.maximum())
    assert bar.maximum() > 0
    panel.edit.pointedAt.emit(1)
    assert bar.value() == 0


def test_a_very_long_text_is_counted_and_listed_whole(live: Application, qtbot: QtBot) -> None:
    session, panel = session_of(live), prompt_panel(live)
    text = "x " * 60_000
    session.set_prompt(text)
    qtbot.waitUntil(lambda: not session.prompt.stale)
    qtbot.waitUntil(lambda: "120,000 tokens" in panel.count.text())
    assert len(session.prompt.tokens) == 120_000 and "are shown" not in panel.notices.text()
    qtbot.waitUntil(lambda: len(panel.strip._pieces) == 120_000)
    assert session.model is not None and session.prompt_excess == 120_000 - session.model.n_ctx
    assert panel.edit.text() == text


def test_the_tokens_keep_four_rows_whatever_is_to_be_noticed(live: Application, qtbot: QtBot) -> None:
    """In the standard layout of a window of 1400 × 900: notices are one line, turned where there are more."""
    session, panel = session_of(live), prompt_panel(live)
    live.window.resize(1400, 900)
    line, strip = panel.notices, panel.strip

    def settled(keys: list[str]) -> bool:
        said = [notice.key for notice in line.notices if notice.key != "count"]  # where a line does not hold the count
        return not session.prompt.stale and said == keys and line.isVisible() == bool(keys)

    for text, expected in (
        ("a b c d e f g h " * 5, ["other text"]),
        ("a b c d e f g h " * 20, ["too many", "other text"]),
        ("a\u202e \U000e0041 b " * 40, ["too many", "other text", "unseen"]),
        ("x\u200b" * 110_000, ["too many", "other text", "unseen", "listed"]),
        ("", ["emptied"]),
    ):
        session.set_prompt(text)
        qtbot.waitUntil(lambda expected=expected: settled(expected))  # type: ignore[misc]
        keys = [notice.key for notice in line.notices]
        qtbot.waitUntil(lambda: strip.rows_in(strip.viewport().height()) >= 4)
        assert line.turn.isVisible() == (len(keys) > 1)
        for at in range(len(keys) + (len(keys) > 1)):  # once around
            shown = line.shown
            assert shown is not None and shown.key == keys[at % len(keys)]
            assert line.sentence.text() in shown.texts and shown.texts[0] in line.toolTip()
            for button in (line.action, line.turn):
                text_room = QFontMetricsF(button.font()).horizontalAdvance(button.text())
                assert button.isHidden() or (line.rect().contains(button.geometry()) and text_room <= button.width())
            if len(keys) > 1:
                assert line.turn.text() == f"{at % len(keys) + 1} of {len(keys)} ›"
            if at < len(keys):
                QTest.mouseClick(line.turn, Qt.MouseButton.LeftButton)
    QTest.mouseClick(line.action, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: settled([]) and "perplexity" in panel.count.text())


def test_more_tokens_than_the_model_takes_are_told_first_in_red_and_prefill_is_not_offered(
    live: Application, qtbot: QtBot
) -> None:
    session, panel = session_of(live), prompt_panel(live)
    line, model = panel.notices, session.model
    assert model is not None
    session.set_prompt("another text")
    qtbot.waitUntil(lambda: not session.prompt.stale and line.action.isVisible())
    assert line.action.text() == "Prefill" and ground(line) == live.theme.palette.accent_tint
    session.set_prompt("a " * model.n_ctx)
    qtbot.waitUntil(
        lambda: not session.prompt.stale and [n.key for n in line.notices][:2] == ["too many", "other text"]
    )
    assert all("run of" in text for text in line.notices[1].texts)  # also where there is room for little of it
    over = session.prompt.count - model.n_ctx
    assert line.shown is line.notices[0] and line.sentence.text().startswith(f"{over:,} tokens too many")
    assert ground(line) == live.theme.palette.red_tint and not line.action.isVisible()
    assert panel.count.text().startswith(f"{session.prompt.count:,} tokens") and "too many" not in panel.count.text()
    QTest.mouseClick(line.turn, Qt.MouseButton.LeftButton)
    assert line.shown is line.notices[1] and "run of" in line.sentence.text() and not line.action.isVisible()
    assert ground(line) == live.theme.palette.accent_tint
    session.set_prompt("another text")
    qtbot.waitUntil(lambda: [notice.key for notice in line.notices] == ["other text"] and line.action.isVisible())


def ground(line: NoticeLine) -> QColor:
    return line.grab().toImage().pixelColor(line.width() // 2, 2)


def test_a_notice_beside_the_loss_is_turned_to_it(live: Application, qtbot: QtBot) -> None:
    session, panel = session_of(live), prompt_panel(live)
    session.set_prompt("a \U000e0041 b")
    qtbot.waitUntil(lambda: not session.prompt.stale)
    session.prefill()
    qtbot.waitUntil(lambda: [notice.key for notice in panel.notices.notices] == ["unseen", "loss"], timeout=TIMEOUT)
    assert "perplexity" not in panel.count.text() and "perplexity" in panel.count.toolTip()
    panel.notices.turn.setFocus()
    QTest.keyClick(panel.notices.turn, Qt.Key.Key_Space)
    assert "nats/token" in panel.notices.sentence.text()


def test_what_the_box_shows_is_not_named_and_what_it_cannot_is(live: Application, qtbot: QtBot) -> None:
    session, panel = session_of(live), prompt_panel(live)
    tag = "\U000e0041"
    session.set_prompt(f"Hi \u202eabc\u202c {tag}end")
    qtbot.waitUntil(lambda: "⟨U+E0041⟩" in panel.notices.text() and not session.prompt.stale)
    assert "⟨U+202E⟩" not in panel.notices.text()
    session.set_prompt("x\u200b" * 30_000)  # an excerpt: what is in the middle is not in the box
    qtbot.waitUntil(lambda: "⟨U+200B⟩" in panel.notices.text() and not session.prompt.stale)
    session.set_prompt("caf\u00e9 👩\u200d👩\u200d👧 \u4f60\n\ttab")
    qtbot.waitUntil(lambda: "⟨U+" not in panel.notices.text() and not session.prompt.stale)


def test_what_can_be_done_with_a_text_too_long_to_edit_is_said(live: Application, qtbot: QtBot) -> None:
    session, panel = session_of(live), prompt_panel(live)
    session.set_prompt("\u65e5" * 40_000)
    qtbot.waitUntil(lambda: not session.prompt.stale and panel.edit.isReadOnly())
    said = panel.edit.document().firstBlock().text()
    assert said == "40,000 characters, too long to edit. Delete clears it, Ctrl+V replaces it, Ctrl+Z takes that back."
    panel.edit.setFocus()
    QTest.keyClick(panel.edit, Qt.Key.Key_Delete)
    assert session.prompt_text == panel.edit.text() == "" and not panel.edit.isReadOnly()


def test_a_hidden_character_hovers_its_token(live: Application, qtbot: QtBot) -> None:
    session, panel = session_of(live), prompt_panel(live)
    session.set_prompt("a\u202eb other")
    qtbot.waitUntil(lambda: not session.prompt.stale and len(panel.strip._pieces) == len(session.prompt.tokens))
    assert panel.edit.text() == "a\u202eb other" and panel.edit.document().characterCount() == 10
    panel.edit.pointedAt.emit(1)
    token = session.prompt.tokens[panel.strip.hovered]
    assert token.start <= 1 < token.end


def test_a_few_of_many_hidden_signs_are_named() -> None:
    assert unseen("a\U000e0041b\U000e0041c") == "⟨U+E0041⟩"
    assert unseen("a\u200bb", everywhere=True) == "⟨U+200B⟩" and unseen("a\u200bb") == ""
    assert unseen("\x00\x01\x02\x03", everywhere=True) == "⟨U+0000⟩ ⟨U+0001⟩ ⟨U+0002⟩ …"
    assert unseen("plain \n\t text \u00a0", everywhere=True) == ""
