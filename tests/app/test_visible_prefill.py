"""A prefill in visible chunks: panels see the prompt grow, the end is the same, a stop keeps what was read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.frame.toolbar import cost_parts
from app.main import Application
from app.panels.step_table import MS, _text
from app.panels.timeline import step_rows
from app.session import Session, Topic
from model.protocol.attention_requests import GetMatrix, HeadView
from model.protocol.run_requests import Prefill
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files

TEXT = "in the end of the beginning of the end"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files.folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def session(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Session]:
    made: Application = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(tiny))
    assert made.ctx is not None
    session = made.ctx.session
    qtbot.waitUntil(lambda: session.run is not None and not session.busy, timeout=3 * TIMEOUT)
    session.set_prompt(TEXT)
    qtbot.waitUntil(lambda: not session.prompt.stale, timeout=TIMEOUT)
    yield session
    close_window(made)


def prefill(session: Session, qtbot: QtBot) -> None:
    before = session.run_id
    session.prefill()
    qtbot.waitUntil(lambda: session.run_id != before and not session.busy, timeout=TIMEOUT)


def test_each_chunk_is_shown_and_the_end_is_the_same(session: Session, qtbot: QtBot) -> None:
    prefill(session, qtbot)
    whole = session.path_tokens()
    seen: list[int] = []
    session.changed.connect(lambda topic: seen.append(session.length) if topic == Topic.RUN else None)
    session.settings.update(prefill_chunk=4)
    prefill(session, qtbot)
    assert session.path_tokens() == whole
    n = len(whole)
    assert sorted(set(seen)) == [*range(4, n, 4), n]  # every chunk was told, in order
    assert seen == sorted(seen)
    qtbot.waitUntil(lambda: session.prompt_stats is not None, timeout=TIMEOUT)  # of the whole prompt
    assert session.prompt_stats is not None and len(session.prompt_stats.logprob) == n


def test_a_stop_keeps_the_chunks_that_were_read(session: Session, qtbot: QtBot) -> None:
    session.settings.update(prefill_chunk=1)
    before = session.run_id

    def stop(topic: object) -> None:
        if topic == Topic.RUN and session.run_id != before and session.length >= 3:
            session.stop()

    session.changed.connect(stop)
    prefill(session, qtbot)
    assert session.run is not None
    assert 3 <= session.length == session.n_prompt == len(session.prompt_tokens)
    session.step(2)
    qtbot.waitUntil(lambda: len(session.path_nodes()) == 2, timeout=TIMEOUT)  # and the run goes on from there


def test_views_between_chunks_see_a_whole_run(session: Session, qtbot: QtBot) -> None:
    answered: list[int] = []
    message = Prefill(text=TEXT, chunk=4, visible=True)
    lengths: list[int] = []

    def on_part(part: object, _arrays: object) -> None:
        state = part.state  # type: ignore[attr-defined]
        lengths.append(state.length)
        view = GetMatrix(view=HeadView(layer=1, head=0), rows=(0, 4), cols=(0, 4), height=4, width=4)
        session.engine.request(view, on_reply=lambda reply, _arrays: answered.append(reply.length))

    done: list[object] = []
    session.engine.request(message, on_part=on_part, on_reply=lambda reply, _arrays: done.append(reply))
    qtbot.waitUntil(lambda: bool(done) and len(answered) == len(lengths), timeout=TIMEOUT)
    assert set(answered) <= {*lengths, done[0].state.length}  # type: ignore[attr-defined]
    assert lengths == list(range(4, done[0].state.length, 4))  # type: ignore[attr-defined]


def test_a_branch_is_made_once_more(session: Session, qtbot: QtBot) -> None:
    prefill(session, qtbot)
    session.step(3)
    qtbot.waitUntil(lambda: len(session.path_nodes()) == 3 and not session.busy, timeout=TIMEOUT)
    node = session.nodes[session.current_node]
    session.duplicate()
    qtbot.waitUntil(lambda: not session.busy and session.current_node != node.id, timeout=TIMEOUT)
    twin = session.nodes[session.current_node]
    assert (twin.parent, twin.token_id, twin.position) == (node.parent, node.token_id, node.position)
    assert {child.id for child in session.branches_after(node.parent)} == {node.id, twin.id}
    session.step(2)
    qtbot.waitUntil(lambda: len(session.path_nodes()) == 5 and not session.busy, timeout=TIMEOUT)
    assert not session.branches_after(node.id)  # the first one stayed as it was


def test_no_time_is_told_before_it_was_measured(session: Session, qtbot: QtBot) -> None:
    told: list[tuple[str, str]] = []

    def look(topic: object) -> None:
        if topic == Topic.RUN:
            words = "".join(text for text, _voice in cost_parts(session, short=0))
            told.append((words.split("DECODE")[0].strip(), _text(step_rows(session)[0], MS)))

    session.changed.connect(look)
    session.settings.update(prefill_chunk=4)
    prefill(session, qtbot)
    assert len(told) > 2
    assert told[0] == ("PREFILL 4 tok – ms", "–")
    assert all(words.endswith("– ms") and row == "–" for words, row in told[:-1])
    words, row = told[-1]
    assert "–" not in words + row
    assert float(row.replace(",", "")) > 0
