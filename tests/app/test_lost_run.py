"""A run that no engine holds: nothing of it stands under another name, and there is always a way to have it back."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.dialogs.error import ErrorDialog
from app.frame.pages import EmptyState
from app.main import Application
from app.notify import WayOut
from app.panels.veil import Veil
from app.session import Session
from app.settings import log_folder
from app.state.autosave import EVENT, NAME, Saved, read_saved, saved_of
from app.state.bring_back import MAX_LOST, offer_lost
from app.state.lost_run import Return
from app.state.model_desk import EngineStatus
from app.state.prompt_state import EXAMPLE_PROMPT
from app.state.under_way import Phase
from model.protocol.framing import encode_frame
from model.protocol.wire import ErrorInfo, event_frame
from tests.app.shell import TIMEOUT, close_window, window_with
from tests.model.checkpoint import files

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals are Unix's"),
]


@pytest.fixture
def window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    """A tiny model in the real engine, with a run of a few tokens."""
    folder = files.folder(tmp_path / "tiny")
    application = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(folder))
    assert application.ctx is not None
    application.window.resize(1400, 900)
    session = application.ctx.session
    qtbot.waitUntil(lambda: session.can_run and not session.busy, timeout=TIMEOUT)
    session.set_prompt("in the end of the middle")
    session.prefill(then_steps=3)
    qtbot.waitUntil(lambda: not session.busy and len(session.path_nodes()) == 3, timeout=TIMEOUT)
    yield application
    close_window(application)


def session_of(window: Application) -> Session:
    assert window.ctx is not None
    return window.ctx.session


def kill(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: session.engine_status is EngineStatus.LOST, timeout=TIMEOUT)


def panel(window: Application, name: str) -> Any:
    return window.window.docks[name].panel


def covered(window: Application, name: str) -> bool:
    cover = panel(window, name).findChild(EmptyState)
    return cover is not None and cover.isVisible()


def press(window: Application, words: str) -> None:
    [button] = offers(window, words)
    button.click()


def offers(window: Application, words: str) -> list[QPushButton]:
    buttons = window.window.banners.findChildren(QPushButton)
    return [each for each in buttons if each.text() == words and each.isVisible()]


def restart(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    session.restart_engine()
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)


def freeze(window: Application) -> None:
    """Nothing that is asked from now on is over before the engine is."""
    session = session_of(window)
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGSTOP)


def kill_while_restoring(window: Application, qtbot: QtBot) -> None:
    """Starts another engine and kills it as soon as it is asked for the run."""
    session = session_of(window)
    session.restart_engine()
    qtbot.waitUntil(lambda: session.progress_title == "Restoring the run", timeout=TIMEOUT)
    kill(window, qtbot)


def told(window: Application) -> list[str]:
    return [banner.sentence.text() for banner in window.window.banners.notices]


def test_without_an_engine_no_number_stands_under_another_name(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    settled = lambda: panel(window, "attention").settled and panel(window, "sampling").settled  # noqa: E731
    qtbot.waitUntil(settled, timeout=TIMEOUT)
    kill(window, qtbot)
    assert not covered(window, "attention") and not covered(window, "sampling")  # what is shown is what is chosen
    shown = panel(window, "attention")
    size = shown.size()
    window.window.resize(window.window.width() - 90, window.window.height() - 90)
    qtbot.waitUntil(lambda: shown.size() != size and shown.settled, timeout=TIMEOUT)
    assert not covered(window, "attention")  # of another size, it is still the same that is drawn
    veil = shown.findChild(Veil)
    assert veil is not None and veil.isVisible() and veil.geometry() == shown.rect()
    session.selection.set_layer(0 if session.selection.layer else 1)
    qtbot.waitUntil(lambda: covered(window, "attention"), timeout=TIMEOUT)
    session.set_sampler(temperature=1.7)
    qtbot.waitUntil(lambda: covered(window, "sampling"), timeout=TIMEOUT)
    assert not panel(window, "prompt").findChildren(EmptyState)  # one can type
    session.restart_engine()
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: not covered(window, "attention") and not covered(window, "sampling"), timeout=TIMEOUT)
    assert len(session.path_nodes()) == 3
    qtbot.waitUntil(lambda: not session.sampling.unserved, timeout=TIMEOUT)
    assert session.sampler.temperature == 1.7


def test_why_the_engine_stopped_is_said_once_and_its_details_are_all_that_is_known(
    window: Application, qtbot: QtBot
) -> None:
    session = session_of(window)
    kill(window, qtbot)
    session.selection.set_layer(0 if session.selection.layer else 1)
    qtbot.waitUntil(lambda: covered(window, "attention"), timeout=TIMEOUT)
    inside = panel(window, "attention").findChildren(QPushButton)
    assert not [each for each in inside if each.text() == "Restart the engine"]
    assert len(offers(window, "Restart the engine")) == 1
    press(window, "Details")
    [dialog] = window.window.findChildren(ErrorDialog)
    assert session.hello is not None
    details = dialog.details.toPlainText()
    assert dialog.details.isVisible()
    for part in ("ended by: SIGKILL", f"process: {session.hello.pid}", str(log_folder()), time.strftime("%Y-%m-%d"),
                 "torch", "engine process:", "What the engine wrote last:\n"):  # fmt: skip
        assert part in details, part
    dialog.copy.click()
    assert details.split("\n\n")[0] in QGuiApplication.clipboard().text()
    dialog.close()


def test_a_restore_that_is_stopped_leaves_no_run_that_looks_alive(
    window: Application, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    kill(window, qtbot)

    def stopped(_title: str, _message: object, _done: object, failed: Callable[[ErrorInfo], None]) -> None:
        failed(ErrorInfo(code="cancelled", message=""))

    with monkeypatch.context() as patch:
        patch.setattr(session, "ask_prefill", stopped)
        session.restart_engine()
        qtbot.waitUntil(lambda: session.can_run and not session.busy, timeout=TIMEOUT)
    commands = window.commands
    for name in ("run.step", "run.run", "run.back", "run.duplicate"):
        assert not commands.can(name), name
    assert commands.can("run.prefill")
    before = session.length
    session.step()
    assert session.length == before and not session.busy
    session.selection.set_layer(0 if session.selection.layer else 1)
    qtbot.waitUntil(lambda: covered(window, "attention"), timeout=TIMEOUT)
    press(window, "Bring it back")
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    assert [token.id for token in session.path_tokens()] == ids
    qtbot.waitUntil(lambda: not covered(window, "attention"), timeout=TIMEOUT)
    session.step()
    qtbot.waitUntil(lambda: session.length == before + 1 and not session.busy, timeout=TIMEOUT)


def test_an_engine_that_ends_in_a_prefill_brings_the_run_back_and_offers_the_prefill(
    window: Application, qtbot: QtBot
) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    session.set_prompt("the middle of it " * 3)
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGSTOP)  # so that the prefill is not over before the engine is
    session.prefill()
    assert session.phase is Phase.PREFILL
    kill(window, qtbot)
    session.restart_engine()
    qtbot.waitUntil(lambda: session.can_go_on and not session.busy, timeout=TIMEOUT)
    assert [token.id for token in session.path_tokens()] == ids
    press(window, "Prefill it again")
    qtbot.waitUntil(lambda: not session.busy and session.n_prompt > 30, timeout=TIMEOUT)
    assert session.prefilled_text == "the middle of it " * 3


def test_killed_again_while_restoring_the_prefill_is_still_offered(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    ids = [token.id for token in session.path_tokens()]
    session.set_prompt("the middle of it " * 3)
    freeze(window)
    session.prefill()
    kill(window, qtbot)
    kill_while_restoring(window, qtbot)
    session.set_prompt("typed since")
    restart(window, qtbot)
    assert [token.id for token in session.path_tokens()] == ids
    press(window, "Prefill it again")
    qtbot.waitUntil(lambda: not session.busy and session.n_prompt > 30, timeout=TIMEOUT)
    assert session.prefilled_text == "the middle of it " * 3  # not what is in the box by now
    assert session.prompt_text == "typed since"  # which stays there


def test_an_offer_that_cannot_be_followed_now_stays(window: Application, qtbot: QtBot) -> None:
    session = session_of(window)
    session.set_prompt("the middle of it")
    freeze(window)
    session.prefill()
    kill(window, qtbot)
    restart(window, qtbot)
    freeze(window)
    session.step()
    press(window, "Prefill it again")
    assert len(offers(window, "Prefill it again")) == 1
    assert session.hello is not None
    os.kill(session.hello.pid, signal.SIGCONT)
    qtbot.waitUntil(lambda: not session.busy, timeout=TIMEOUT)
    press(window, "Prefill it again")
    assert offers(window, "Prefill it again") == [] and session.phase is Phase.PREFILL


def test_a_visible_prefill_that_ends_with_the_engine_gives_the_run_before_it_back(
    window: Application, qtbot: QtBot
) -> None:
    session = session_of(window)
    ids, run = [token.id for token in session.path_tokens()], session.run_id
    session.settings.update(prefill_chunk=1)
    session.set_prompt("the middle of it " * 3)
    killed: list[int] = []

    def on_chunk(topic: object) -> None:
        if not killed and session.run_id != run and session.busy:
            assert session.hello is not None
            killed.append(session.length)
            os.kill(session.hello.pid, signal.SIGKILL)

    session.changed.connect(on_chunk)
    session.prefill()
    assert session.lost.worth is not None and len(session.lost.worth.nodes) == 3
    qtbot.waitUntil(lambda: session.engine_status is EngineStatus.LOST, timeout=TIMEOUT)
    assert killed
    assert saved_of(session).nodes == session.lost.worth.nodes  # nor is it lost with the window
    restart(window, qtbot)
    assert [token.id for token in session.path_tokens()] == ids
    assert len(offers(window, "Prefill it again")) == 1


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
