"""The work of an earlier window that crashed: offered until it is back or discarded, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.dialogs.error import ErrorDialog
from app.main import Application
from app.notify import WayOut
from app.state import bring_back
from app.state.autosave import EVENT, NAME, Saved, decode_saved, read_saved, saved_of
from app.state.bring_back import AT_ONCE_BYTES, MAX_LOST, offer_lost
from app.state.lost_run import Return
from app.state.model_desk import EngineStatus
from app.state.prompt_state import EXAMPLE_PROMPT
from app.state.under_way import Phase
from model.protocol.framing import encode_frame
from model.protocol.wire import ErrorInfo, event_frame
from tests.app.lost_engine import (
    freeze,
    kill,
    kill_while_restoring,
    offers,
    press,
    restart,
    session_of,
    started,
    told,
)
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals are Unix's"),
]


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    with started(tmp_path, monkeypatch, qtbot) as application:
        yield application


def lost_file(window: Application, config: Path, source: str, **changes: Any) -> tuple[Saved, Path]:
    """The work of the window that is open, as an earlier one that crashed would have left it."""
    saved = replace(saved_of(session_of(window)), source=source, **changes)
    path = config / NAME
    config.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_frame(event_frame(EVENT, saved)))
    return saved, path


def test_killed_while_an_earlier_windows_run_comes_back_it_comes_back_all_the_same(
    window: Application, qtbot: QtBot, tmp_path: Path
) -> None:
    session = session_of(window)
    config = tmp_path / "earlier"
    saved, _path = lost_file(window, config, session.source)
    session.set_prompt("the end")
    session.prefill()
    qtbot.waitUntil(lambda: not session.busy and not session.path_nodes(), timeout=TIMEOUT)
    claimed: list[Path] = []
    offer_lost(config, 1, session, window.notify, claimed.append)
    freeze(window)
    press(window, "Bring them back")
    assert session.progress_title == "Restoring the run"
    kill(window, qtbot)
    assert saved_of(session).ids == saved.ids
    kill_while_restoring(window, qtbot)
    assert claimed == []
    restart(window, qtbot)
    assert tuple(token.id for token in session.prompt_tokens) == saved.ids and len(session.path_nodes()) == 3
    assert [path.parent for path in claimed] == [config]


def test_an_earlier_windows_run_that_is_stopped_on_its_way_is_offered_again(
    window: Application, qtbot: QtBot, tmp_path: Path
) -> None:
    session = session_of(window)
    lost_file(window, tmp_path / "earlier", session.source)
    session.set_prompt("the end")
    session.prefill()
    qtbot.waitUntil(lambda: not session.busy and not session.path_nodes(), timeout=TIMEOUT)
    offer_lost(tmp_path / "earlier", 1, session, window.notify)
    run = session.run_id
    freeze(window)
    press(window, "Bring them back")
    session.stop()
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGCONT)
    qtbot.waitUntil(lambda: not session.busy, timeout=TIMEOUT)
    if session.run_id == run:  # the stop came before its end
        assert session.can_go_on and len(offers(window, "Bring them back")) == 1
        assert offers(window, "Bring it back") == []


def test_an_earlier_windows_run_opens_its_model_and_no_other_later(
    window: Application, qtbot: QtBot, tmp_path: Path
) -> None:
    session = session_of(window)
    other = files.folder(tmp_path / "other")
    saved, _path = lost_file(window, tmp_path / "earlier", str(other))
    here = session.source
    offer_lost(tmp_path / "earlier", 1, session, window.notify)
    freeze(window)
    press(window, "Bring them back")
    assert session.phase is Phase.OPENING
    kill(window, qtbot)
    restart(window, qtbot)
    assert session.source == here  # what was asked of the engine that is gone is not done unasked
    press(window, "Bring them back")
    qtbot.waitUntil(lambda: session.source == str(other) and session.can_go_on and not session.busy, timeout=TIMEOUT)
    assert tuple(token.id for token in session.prompt_tokens) == saved.ids and len(session.path_nodes()) == 3
    assert offers(window, "Bring them back") == []


def test_an_earlier_windows_run_comes_back_where_no_model_is_open(
    window: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    session = session_of(window)
    config, source = tmp_path / "second", session.source
    saved, _path = lost_file(window, config, source)
    second = window_with(config, monkeypatch, qtbot, None, str(tmp_path / "nothing"))
    try:
        new = session_of(second)
        qtbot.waitUntil(lambda: new.engine_status is EngineStatus.READY and not new.busy, timeout=TIMEOUT)
        qtbot.waitUntil(lambda: new.model is None and len(offers(second, "Bring them back")) == 1, timeout=TIMEOUT)
        press(second, "Bring them back")
        qtbot.waitUntil(lambda: new.can_go_on and not new.busy, timeout=TIMEOUT)
        assert new.source == source and tuple(token.id for token in new.prompt_tokens) == saved.ids
        assert len(new.path_nodes()) == 3
    finally:
        close_window(second)


def test_other_weights_under_the_same_path_are_told(window: Application, qtbot: QtBot, tmp_path: Path) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    kill(window, qtbot)
    session.lost.sha256 = "0" * 64  # as if the file had been another
    restart(window, qtbot)
    assert [token.id for token in session.path_tokens()] == ids
    assert "as it was" not in window.notify.last
    assert [text for text in told(window) if "are not those that drew this run's tokens" in text]
    assert saved_of(session).sha256 == "0" * 64  # also after the next crash
    session.prefill()
    qtbot.waitUntil(lambda: not session.busy and not session.path_nodes(), timeout=TIMEOUT)
    assert session.model is not None and session.lost.sha256 == session.model.sha256


def test_a_run_longer_than_the_context_is_refused_by_its_own_name(
    window: Application, qtbot: QtBot, tmp_path: Path
) -> None:
    session = session_of(window)
    config = Path(session.source) / "config.json"
    fields = json.loads(config.read_text(encoding="utf-8"))
    kill(window, qtbot)
    config.write_text(json.dumps({**fields, "max_position_embeddings": 8}), encoding="utf-8")
    session.restart_engine()
    qtbot.waitUntil(lambda: session.can_run and not session.busy, timeout=TIMEOUT)
    [dialog] = window.window.findChildren(ErrorDialog)
    assert dialog.trouble.title == "The run was not brought back"
    assert f"It has {session.length} tokens" in dialog.trouble.message and "takes 8" in dialog.trouble.message
    assert offers(window, "Bring it back") == []  # it would say the same


def test_without_its_tokenizer_a_run_comes_back_from_its_ids(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    kill(window, qtbot)
    (Path(session.source) / "tokenizer.json").unlink()
    restart(window, qtbot)
    assert [token.id for token in session.path_tokens()] == ids


def test_an_engine_that_cannot_open_the_model_again_offers_no_run(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    weights = Path(session.source) / "model.safetensors"
    kill(window, qtbot)
    weights.rename(weights.with_name("away"))
    session.restart_engine()
    qtbot.waitUntil(lambda: len(offers(window, "Open it again")) == 1, timeout=TIMEOUT)
    for dialog in window.window.findChildren(ErrorDialog):
        dialog.close()
    assert not session.can_run and not session.can_look
    model = window.window.run_bar.model
    qtbot.waitUntil(lambda: model.toolTip().splitlines()[0].endswith("not in the engine"), timeout=TIMEOUT)
    assert not window.commands.can("run.prefill")
    weights.with_name("away").rename(weights)
    press(window, "Open it again")
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    assert [token.id for token in session.path_tokens()] == ids
    assert offers(window, "Open it again") == []
    qtbot.waitUntil(lambda: model.toolTip().splitlines()[0].endswith("cpu"), timeout=TIMEOUT)
    assert model.toolTip().splitlines()[1:] == [str(Path(session.source).absolute())]


def test_with_another_model_open_there_is_nothing_to_bring_back(
    window: Application, qtbot: QtBot, tmp_path: Path
) -> None:
    session = session_of(window)
    kill(window, qtbot)
    session.restart_engine()
    qtbot.waitUntil(lambda: session.progress_title == "Restoring the run", timeout=TIMEOUT)
    session.lost._on_error(
        Return(kept=session.lost.kept, source=session.source),  # type: ignore[arg-type]
        ErrorInfo(code="cancelled", message=""),
    )
    assert len(offers(window, "Bring it back")) == 1
    session.open_model(str(files.folder(tmp_path / "other")))
    qtbot.waitUntil(lambda: session.source.endswith("other") and not session.busy, timeout=TIMEOUT)
    assert offers(window, "Bring it back") == []


def test_lost_work_is_never_replaced_and_offered_until_it_is_back_or_discarded(
    window: Application, qtbot: QtBot, tmp_path: Path
) -> None:
    session = session_of(window)
    config = tmp_path / "earlier"
    for text in ("the first", "the second", "the third"):
        lost_file(window, config, session.source, prompt=text)
        offer_lost(config, 1, session, window.notify)
    assert sorted(read_saved(path).prompt for path in config.glob("lost-*")) == ["the first", "the second", "the third"]
    [button] = offers(window, "Bring back …")[-1:]
    choices = button.menu().actions()
    assert sorted(action.text().split("”")[0] for action in choices) == ["“the first", "“the second", "“the third"]
    [second] = [action for action in choices if "second" in action.text()]
    second.trigger()
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    assert session.prompt_text == "the second"
    assert [text for text in told(window) if text.startswith("2 windows ended")]
    discarded = offers(window, "Discard …")[-1].menu().actions()
    assert len(discarded) == 2
    discarded[0].trigger()
    assert (config / "discarded.dscope-window").exists()
    assert len(list(config.glob("lost-*"))) == 2  # of which one is this window's from now on


def test_what_a_window_shows_by_itself_is_not_kept_as_work(window: Application, tmp_path: Path) -> None:
    session = session_of(window)
    config = tmp_path / "earlier"
    example = {"prompt": EXAMPLE_PROMPT, "text": EXAMPLE_PROMPT + " and", "nodes": ()}
    saved, path = lost_file(window, config, session.source, **example)
    assert saved.example_only
    assert not replace(saved, sampler=replace(saved.sampler, temperature=0.5)).example_only
    assert not replace(saved, prompt=f"{EXAMPLE_PROMPT}!").example_only
    assert not replace(saved, nodes=tuple(session.nodes.values()) * 8).example_only
    offer_lost(config, 1, session, window.notify)
    assert not path.exists() and list(config.glob("*.dscope-window")) == []
    assert offers(window, "Bring them back") == []


def test_the_oldest_of_too_many_works_goes_by_name(window: Application, tmp_path: Path) -> None:
    session = session_of(window)
    config = tmp_path / "earlier"
    for i in range(MAX_LOST + 1):
        _saved, path = lost_file(window, config, session.source, prompt=f"work {i}")
        os.utime(path, (1_000_000 + 86_400 * i, 1_000_000 + 86_400 * i))
        path.rename(config / f"lost-1-{i}.dscope-window")
    offer_lost(config, 1, session, window.notify)
    assert [text for text in told(window) if "“work 0”" in text]
    assert len(list(config.glob("lost-*"))) == MAX_LOST and not (config / "lost-1-0.dscope-window").exists()


def test_offers_are_not_pushed_out_by_notices_nor_by_each_other(window: Application) -> None:
    banners, done = window.window.banners, list[str]()
    for name in "abcde":
        window.notify.propose(name, WayOut(label="Take", run=partial(done.append, name)))
    for i in range(6):
        window.notify.tell(f"notice {i}")
    assert told(window) == [*"abcde", "notice 3", "notice 4", "notice 5"]
    window.qt.processEvents()
    visible = [banner.sentence.text() for banner in banners.notices if banner.isVisible()]
    assert visible == [*"abc", "notice 3", "notice 4", "notice 5"]  # the others wait
    for _ in range(5):
        offers(window, "Take")[0].click()
    assert done == list("abcde")
    window.notify.propose("again", WayOut(label="Take", run=lambda: done.append("old")))
    window.notify.propose("again", WayOut(label="Take", run=lambda: done.append("new")))
    press(window, "Take")
    assert done[-1] == "new"


def test_a_run_of_twenty_thousand_tokens_is_read_without_holding_the_window(
    window: Application, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, config = session_of(window), tmp_path / "earlier"
    first = session.path_nodes()[0]
    many = tuple(replace(first, id=first.id + i) for i in range(20_000))  # all after one token, as after many a branch
    saved, path = lost_file(window, config, session.source, nodes=many, current=first.id)
    assert path.stat().st_size > AT_ONCE_BYTES
    read_by: list[threading.Thread] = []
    told_by: list[threading.Thread] = []
    decode, offer = decode_saved, bring_back._offer_found

    def decoded(raw: bytes) -> Saved:
        read_by.append(threading.current_thread())
        return decode(raw)

    def offered(*args: Any) -> None:
        told_by.append(threading.current_thread())
        offer(*args)

    monkeypatch.setattr(bring_back, "decode_saved", decoded)
    monkeypatch.setattr(bring_back, "_offer_found", offered)
    offer_lost(config, 1, session, window.notify)
    assert not path.exists() and told_by == []  # this window's own work may take its place
    qtbot.waitUntil(lambda: len(offers(window, "Bring them back")) == 1)
    assert read_by and threading.main_thread() not in read_by and told_by == [threading.main_thread()]
    [kept] = config.glob("lost-*.dscope-window")
    assert decode(kept.read_bytes()) == saved
