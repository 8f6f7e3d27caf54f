"""Tokens and names that look like markup are shown as they are, wherever they are shown; none fetches or hides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import QAbstractItemView, QDialog, QLabel, QTextEdit, QWidget
from pytestqt.qtbot import QtBot

from app.dialogs.error import ErrorDialog
from app.dialogs.open_model import OpenDialog
from app.export.exporter import Exporter
from app.frame.banners import Banner
from app.main import Application
from app.notify import Trouble
from app.plain import tip
from app.session import Topic
from model.protocol.run_requests import DistributionReply, PrefillReply, StageInfo
from model.protocol.token_run import TokenRun
from model.protocol.values import Candidate, Node, SamplerSettings, Token
from model.protocol.wire import ErrorInfo
from tests.app.shell import close_window, open_window
from tests.fake_engine import INFO, state

EVIL = "<img src='file:///etc/hostname'><b>bold</b>&lt;"


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = open_window(tmp_path / "config", monkeypatch, qtbot)
    yield made
    close_window(made)


def fill(application: Application) -> None:
    """A run whose every token is markup, as the engine would tell it."""
    assert application.ctx is not None
    session = application.ctx.session
    tokens = tuple(Token(id=i, piece=EVIL, start=0, end=1) for i in range(3))
    node = Node(
        id=3, parent=2, position=3, token_id=4, piece=EVIL, logprob=-1.0, p=0.5, entropy=1.0, draw=0.5, ms=1.0,
        settings=SamplerSettings(),
    )  # fmt: skip
    run = state((), EVIL)
    session.desk.model = replace(INFO, name=EVIL, warnings=(EVIL,))
    session.selection.set_model(session.desk.model)
    run = replace(run, n_prompt=3, path=(3,), current=3, length=4, nodes=(node,))
    session.book.begin(PrefillReply(state=run, tokens=tokens, text=EVIL))
    session.selection.set_length(4)
    session.prompt.text = session.prompt.shown = EVIL
    session.prompt.tokens, session.prompt.notice = TokenRun.of(tokens), EVIL
    candidate = Candidate(rank=0, id=4, piece=EVIL, logit=1.0, p_raw=0.5, p=0.5)
    session.sampling.distribution = DistributionReply(
        node=3, candidates=(candidate,), stages=(StageInfo(name="vocabulary", kept=1, mass=1.0),),
        would_pick=candidate, draw=0.5, kept=1, entropy_raw=1.0, entropy=1.0,
    )  # fmt: skip
    for topic in Topic:
        session.changed.emit(topic)
    application.notify.say(EVIL)
    application.notify.tell(EVIL)
    application.notify.warn(EVIL + "!")


def shown_labels(root: QWidget) -> list[QLabel]:
    return [label for label in root.findChildren(QLabel) if label.text()]


def tips(root: QWidget) -> list[str]:
    found = [widget.toolTip() for widget in [root, *root.findChildren(QWidget)]]
    for view in root.findChildren(QAbstractItemView):
        model = view.model()
        if isinstance(model, QAbstractItemModel):
            found += [
                str(model.index(row, column).data(Qt.ItemDataRole.ToolTipRole) or "")
                for row in range(min(50, model.rowCount()))
                for column in range(model.columnCount())
            ]
    return found


def check(root: QWidget) -> None:
    guessing = [label for label in shown_labels(root) if label.textFormat() is not Qt.TextFormat.PlainText]
    assert not [f"{label.parent()} {label.objectName()}: {label.text()}" for label in guessing]
    assert not [text for text in tips(root) if "<img" in text or "<b>" in text]
    assert not [edit for edit in root.findChildren(QTextEdit) if edit.acceptRichText()]


def test_no_label_and_no_tip_takes_tokens_for_markup(application: Application, qtbot: QtBot) -> None:
    fill(application)
    qtbot.wait(150)
    window = application.window
    for dock in window.docks.values():
        dock.raise_()
        qtbot.wait(60)
        check(dock)
    check(window)
    assert any(EVIL in text.replace("&lt;", "<").replace("&gt;", ">") or "img" in text for text in tips(window))
    assert EVIL in {banner.sentence.text() for banner in window.findChildren(Banner)}


@pytest.mark.parametrize("kind", ["error", "open", "export"])
def test_dialogs_show_names_as_they_are(application: Application, kind: str) -> None:
    fill(application)
    assert application.ctx is not None
    session, window = application.ctx.session, application.window
    dialog: QDialog
    if kind == "error":
        dialog = ErrorDialog(application.theme, Trouble(title=EVIL, message=EVIL, details=EVIL), window)
    elif kind == "open":
        dialog = OpenDialog(application.theme, session, EVIL, window)
        dialog.plan.setText(EVIL)
    else:
        dialog = Exporter.shared(application.ctx).open(window.docks["attention"].panel)
    check(dialog)
    dialog.deleteLater()


def test_a_tip_is_read_back_as_it_was_written() -> None:
    for text in (EVIL, "plain", "a < b", "<|end|>", "x & y", "two\nlines <s>  and  blanks"):
        document = QTextDocument()
        made = tip(text)
        document.setHtml(made) if made != text else document.setPlainText(made)
        assert document.toPlainText() == text


def test_an_error_of_the_engine_is_told_in_plain_words(application: Application) -> None:
    application.notify.engine_error(EVIL, ErrorInfo(code="bad_file", message=EVIL, details=EVIL))
    [dialog] = application.window.findChildren(ErrorDialog)
    check(dialog)
    application.notify.engine_error(EVIL, ErrorInfo(code="bad_file", message=EVIL, details=EVIL))
    assert len(application.window.findChildren(ErrorDialog)) == 1  # it is on the screen already
    dialog.close()
