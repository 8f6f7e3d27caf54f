"""The engine client against a real child process: answers, cancels, slots, every way to lose an engine, no orphans."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QObject, QTimer
from pytestqt.qtbot import QtBot

from app import engine as engine_module
from app.engine import LATER, LOST, CrashInfo, EngineClient, EngineState, Pending
from app.engine_child import default_command
from model.protocol.attention_requests import GetMatrix, HeadView, MatrixReply
from model.protocol.engine_requests import Hello, OpenModel
from model.protocol.events import EngineStarting
from model.protocol.export_requests import ExportAttention, FilePart
from model.protocol.run_requests import Prefill, PrefillReply, Restore, Step, StepPart, Tokenize
from model.protocol.values import ModelInfo, SamplerSettings
from model.protocol.wire import Request
from tests import fake_engine
from tests.model.checkpoint import files
from tests.model.engine_child import alive

TIMEOUT = 15_000


class Answers:
    """Asks, and collects what comes back."""

    def __init__(self, client: EngineClient) -> None:
        self.client = client
        self.replies: list[Any] = []
        self.arrays: list[Any] = []
        self.parts: list[Any] = []
        self.progress: list[Any] = []
        self.errors: list[Any] = []

    def ask(self, message: Request, **options: Any) -> Pending:
        return self.client.request(
            message,
            on_reply=self._take,
            on_part=lambda part, _arrays: self.parts.append(part),
            on_progress=self.progress.append,
            on_error=self.errors.append,
            **options,
        )

    def _take(self, reply: object, arrays: object) -> None:
        self.replies.append(reply)
        self.arrays.append(arrays)

    @property
    def codes(self) -> list[str]:
        return [error.code for error in self.errors]


@pytest.fixture
def client(qtbot: QtBot) -> Iterator[EngineClient]:
    del qtbot
    made = EngineClient(command=fake_engine.command())
    yield made
    made.close()
    made.deleteLater()


@pytest.fixture
def ready(client: EngineClient, qtbot: QtBot) -> EngineClient:
    client.start()
    qtbot.waitUntil(lambda: client.state is EngineState.READY, timeout=TIMEOUT)
    return client


def view(layer: int = 0, ms: int = 0) -> GetMatrix:
    return GetMatrix(view=HeadView(layer=layer, head=0), rows=(ms, 0), height=2, width=2)


def pid(client: EngineClient) -> int:
    assert client._child is not None
    return int(client._child.processId())


def test_it_starts_says_so_and_answers_with_dataclasses(client: EngineClient, qtbot: QtBot) -> None:
    states: list[EngineState] = []
    events: list[tuple[str, object]] = []
    client.stateChanged.connect(states.append)
    client.eventReceived.connect(lambda name, data: events.append((name, data)))
    answers = Answers(client)
    client.start()
    client.start()  # again: nothing happens
    answers.ask(Tokenize(text="a\ud83d"))
    pending = answers.ask(OpenModel(source="progress"))
    qtbot.waitUntil(lambda: len(answers.replies) == 2, timeout=TIMEOUT)
    assert states == [EngineState.STARTING, EngineState.READY]
    assert isinstance(events[0][1], EngineStarting) and events[0][1].pid == pid(client)
    assert client.hello is not None and client.hello.pid == pid(client)
    tokens, model = answers.replies
    assert list(tokens.pieces) == ["a", "\ud83d"] and answers.arrays[0]["kind"].tolist() == [0, 1]
    assert isinstance(model, ModelInfo) and pending.done and not pending.cancelling
    assert answers.progress[0].total == 1000 and answers.errors == []
    answers.ask(view(3))
    qtbot.waitUntil(lambda: len(answers.replies) == 3, timeout=TIMEOUT)
    assert isinstance(answers.replies[2], MatrixReply) and answers.replies[2].high != answers.replies[2].high
    assert answers.arrays[2]["pixels"].tolist() == [[3, 3], [3, 3]]


def test_busy_means_the_model_works(ready: EngineClient, qtbot: QtBot) -> None:
    changes: list[bool] = []
    ready.busyChanged.connect(changes.append)
    answers = Answers(ready)
    answers.ask(view())
    answers.ask(Step(n=3, settings=SamplerSettings()))
    assert ready.busy
    qtbot.waitUntil(lambda: not ready.busy, timeout=TIMEOUT)
    assert changes == [True, False]
    assert [part.length for part in answers.parts] == [2, 3, 4]  # after a prompt of one
    assert all(isinstance(part, StepPart) and part.node.logprob == float("-inf") for part in answers.parts)


def test_a_cancel_is_seen_at_once_and_ends_the_request(ready: EngineClient, qtbot: QtBot) -> None:
    answers = Answers(ready)
    pending = answers.ask(Prefill(text="a", chunk=3000))
    qtbot.waitUntil(lambda: bool(answers.progress), timeout=TIMEOUT)
    begun = time.monotonic()
    pending.cancel()
    pending.cancel()
    assert pending.cancelling and not pending.done
    qtbot.waitUntil(lambda: pending.done, timeout=TIMEOUT)
    assert time.monotonic() - begun < 0.2
    assert answers.codes == ["cancelled"] and ready.state is EngineState.READY
    pending.cancel()  # too late: nothing happens
    answers.ask(Prefill(text="b"))
    qtbot.waitUntil(lambda: len(answers.replies) == 1, timeout=TIMEOUT)
    assert isinstance(answers.replies[0], PrefillReply) and answers.replies[0].text == "b"


def test_a_dragged_slider_never_queues_up(ready: EngineClient, qtbot: QtBot) -> None:
    answers = Answers(ready)
    answers.ask(view(ms=200))
    for layer in range(30):
        answers.ask(view(layer), slot="matrix")
    qtbot.waitUntil(lambda: len(answers.replies) + len(answers.errors) == 31, timeout=TIMEOUT)
    assert answers.codes == ["superseded"] * 29
    assert answers.arrays[-1]["pixels"][0, 0] == 29


def test_views_come_while_a_prefill_runs(ready: EngineClient, qtbot: QtBot) -> None:
    model, views = Answers(ready), Answers(ready)
    pending = model.ask(Prefill(text="a", chunk=3000))
    for layer in range(5):
        views.ask(view(layer))
        qtbot.waitUntil(lambda count=layer + 1: len(views.replies) == count, timeout=TIMEOUT)  # type: ignore[misc]
    assert not pending.done


def test_files_are_acknowledged_piece_by_piece(ready: EngineClient, qtbot: QtBot) -> None:
    answers = Answers(ready)
    answers.ask(ExportAttention(view=HeadView(layer=0, head=0), dpi=30))
    qtbot.waitUntil(lambda: bool(answers.replies), timeout=TIMEOUT)
    assert [part.offset for part in answers.parts] == list(range(0, 30 * 1024, 1024))
    assert answers.parts[-1].last


def test_a_slow_disk_holds_the_engine_back(ready: EngineClient, qtbot: QtBot) -> None:
    parts: list[FilePart] = []
    replies: list[object] = []

    def keep(part: FilePart, _arrays: object) -> object:
        parts.append(part)
        return LATER

    message = ExportAttention(view=HeadView(layer=0, head=0), dpi=20)
    pending = ready.request(message, on_part=keep, on_reply=lambda reply, _arrays: replies.append(reply))
    qtbot.waitUntil(lambda: len(parts) == 8, timeout=TIMEOUT)
    qtbot.wait(200)
    assert len(parts) == 8
    pending.ack()
    qtbot.waitUntil(lambda: len(parts) == 9, timeout=TIMEOUT)
    for _ in range(19):
        pending.ack()
    qtbot.waitUntil(lambda: bool(replies), timeout=TIMEOUT)
    assert len(parts) == 20


def test_a_piece_that_cannot_be_written_ends_the_export(
    ready: EngineClient, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: told.append(kind))
    errors: list[Any] = []

    def write(_part: FilePart, _arrays: object) -> None:
        raise OSError("No space left on device")

    message = ExportAttention(view=HeadView(layer=0, head=0), dpi=30)
    ready.request(message, on_part=write, on_error=errors.append)
    qtbot.waitUntil(lambda: bool(errors), timeout=TIMEOUT)
    assert errors[0].code == "cancelled" and told[0] is OSError


def test_nobody_is_called_after_the_end(ready: EngineClient, qtbot: QtBot) -> None:
    class Panel(QObject):
        def __init__(self) -> None:
            super().__init__()
            self.called: list[object] = []

        def take(self, reply: object, _arrays: object) -> None:
            self.called.append(reply)

    gone, stays, called = Panel(), Panel(), []
    ready.request(view(), on_reply=gone.take)
    ready.request(view(), on_reply=lambda reply, _: called.append(reply), owner=gone)
    ready.request(view(), on_reply=stays.take)
    gone.deleteLater()
    qtbot.waitUntil(lambda: bool(stays.called), timeout=TIMEOUT)
    assert gone.called == [] and called == []


def test_an_exception_in_a_callback_is_reported_and_ends_nothing_else(
    ready: EngineClient, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: told.append(kind))
    ready.request(view(), on_reply=lambda _reply, _arrays: 1 // 0)
    answers = Answers(ready)
    answers.ask(view())
    qtbot.waitUntil(lambda: bool(answers.replies), timeout=TIMEOUT)
    assert told == [ZeroDivisionError]


@pytest.mark.parametrize("when", ["starting", "idle", "prefill", "decode", "export", "hang"])
def test_an_engine_that_is_killed_is_noticed_and_can_be_restarted(
    client: EngineClient, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    if when == "starting":
        monkeypatch.setenv("FAKE_ENGINE_LOAD_SECONDS", "60")
    crashes: list[CrashInfo] = []
    client.crashed.connect(crashes.append)
    client.start()
    monkeypatch.delenv("FAKE_ENGINE_LOAD_SECONDS", raising=False)
    if when != "starting":
        qtbot.waitUntil(lambda: client.state is EngineState.READY, timeout=TIMEOUT)
    victim, answers = pid(client), Answers(client)
    messages: dict[str, list[Request]] = {
        "starting": [OpenModel(source="")],
        "idle": [],
        "prefill": [Prefill(text="a", chunk=3000), view(), Prefill(text="queued")],
        "decode": [Step(n=3000, settings=SamplerSettings()), Step(n=1, settings=SamplerSettings())],
        "export": [ExportAttention(view=HeadView(layer=0, head=0), dpi=10**6)],
        "hang": [OpenModel(source="hang")],
    }
    for message in messages[when]:
        answers.ask(message)
    if when in {"prefill", "decode", "export"}:
        qtbot.waitUntil(lambda: bool(answers.parts or answers.progress), timeout=TIMEOUT)
    os.kill(victim, signal.SIGKILL)
    qtbot.waitUntil(lambda: client.state is EngineState.LOST, timeout=TIMEOUT)
    open_requests = len(messages[when]) - len(answers.replies)
    assert answers.codes == [LOST] * open_requests
    assert len(crashes) == 1 and crashes[0].signal == "SIGKILL" and "SIGKILL" in client.message
    assert not client.busy and not alive(victim)
    late = answers.ask(Hello())
    assert not late.done  # told later, never from within the call
    qtbot.waitUntil(lambda: late.done, timeout=TIMEOUT)
    assert answers.codes[-1] == LOST
    client.restart()
    qtbot.waitUntil(lambda: client.state is EngineState.READY, timeout=TIMEOUT)
    answers.ask(view(1))
    qtbot.waitUntil(lambda: bool(answers.replies) and isinstance(answers.replies[-1], MatrixReply), timeout=TIMEOUT)


@pytest.mark.parametrize(
    ("source", "words", "name", "code"),
    [
        ("die", "crashed (SIGSEGV)", "SIGSEGV", None),
        ("exit", "exit code 7", "", 7),
        ("garbage", "should begin with", "", None),
    ],
)
def test_every_other_way_to_lose_it_says_what_happened(
    ready: EngineClient, qtbot: QtBot, source: str, words: str, name: str, code: int | None
) -> None:
    victim, answers = pid(ready), Answers(ready)
    answers.ask(OpenModel(source=source))
    qtbot.waitUntil(lambda: ready.state is EngineState.LOST, timeout=TIMEOUT)
    assert answers.codes == [LOST] and words in answers.errors[0].message
    crash = ready.crash
    assert crash is not None and words in crash.sentence and crash.signal == name and crash.exit_code == code
    qtbot.waitUntil(lambda: not alive(victim), timeout=TIMEOUT)
    if source == "die":
        assert "Segmentation fault" in crash.stderr  # faulthandler's words, for the report


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (b"DSC1" + b"\xff" * 12, "over the limit"),
        (b"DSC1\x08\0\0\0" + b"\0" * 8 + b'{"v":99}', "protocol version 99"),
        (b"Last login: Tue", "Last"),
        (b"", "exit code 0"),
    ],
)  # fmt: skip
def test_a_command_that_is_no_engine_is_refused(client: EngineClient, qtbot: QtBot, written: bytes, words: str) -> None:
    code = f"import sys, time; sys.stdout.buffer.write({written!r}); sys.stdout.flush(); time.sleep({len(written)})"
    client.start([sys.executable, "-c", code])
    qtbot.waitUntil(lambda: client.state is EngineState.LOST, timeout=TIMEOUT)
    assert words in client.message


def test_a_command_that_does_not_exist_is_refused(client: EngineClient, qtbot: QtBot) -> None:
    answers = Answers(client)
    client.start(["/nowhere/engine", "--fast"])
    answers.ask(Hello())
    qtbot.waitUntil(lambda: client.state is EngineState.LOST, timeout=TIMEOUT)
    assert answers.codes == [LOST] and "/nowhere/engine --fast" in client.message


def test_an_engine_that_cannot_start_says_why(
    client: EngineClient, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ENGINE_BROKEN", "1")
    client.start()
    qtbot.waitUntil(lambda: client.state is EngineState.LOST, timeout=TIMEOUT)
    assert "no torch here" in client.message


def test_silence_after_a_cancel_is_told_and_a_restart_helps(ready: EngineClient, qtbot: QtBot) -> None:
    victim, answers = pid(ready), Answers(ready)
    stuck = answers.ask(OpenModel(source="hang"))
    qtbot.wait(200)
    begun = time.monotonic()
    stuck.cancel()
    qtbot.waitUntil(lambda: ready.state is EngineState.SILENT, timeout=TIMEOUT)
    assert 1.9 < time.monotonic() - begun < 2.5
    ready.restart()
    assert answers.codes == [LOST]
    qtbot.waitUntil(lambda: ready.state is EngineState.READY, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: not alive(victim), timeout=TIMEOUT)


def test_an_answer_after_the_silence_is_welcome(
    ready: EngineClient, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "SILENT_AFTER_MS", 100)
    ready._silence.setInterval(100)
    answers = Answers(ready)
    slow = answers.ask(view(ms=800))
    qtbot.wait(200)
    slow.cancel()
    qtbot.waitUntil(lambda: ready.state is EngineState.SILENT, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: ready.state is EngineState.READY, timeout=TIMEOUT)
    assert len(answers.replies) + len(answers.errors) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells that a process is stopped")
def test_a_process_that_is_stopped_is_told_and_welcome_when_it_goes_on(ready: EngineClient, qtbot: QtBot) -> None:
    ready._unheard.setInterval(300)
    answers = Answers(ready)
    answers.ask(view(ms=700))
    qtbot.wait(500)
    assert ready.state is EngineState.READY  # it says nothing for longer than that, and lives
    qtbot.waitUntil(lambda: len(answers.replies) == 1, timeout=TIMEOUT)
    os.kill(pid(ready), signal.SIGSTOP)
    try:
        answers.ask(view())
        qtbot.waitUntil(lambda: ready.state is EngineState.SILENT, timeout=TIMEOUT)
        assert "its process is stopped" in ready.message
    finally:
        os.kill(pid(ready), signal.SIGCONT)
    qtbot.waitUntil(lambda: ready.state is EngineState.READY and len(answers.replies) == 2, timeout=TIMEOUT)


@pytest.mark.parametrize("doing", ["", "hang", "sleep"])
def test_stop_does_not_wait_and_leaves_nothing(ready: EngineClient, qtbot: QtBot, doing: str) -> None:
    victim, answers = pid(ready), Answers(ready)
    if doing:
        answers.ask(OpenModel(source=doing))
        qtbot.wait(50)
    begun = time.monotonic()
    ready.stop()
    assert time.monotonic() - begun < 0.03
    assert ready.state is EngineState.OFF and answers.codes == [LOST] * bool(doing)
    qtbot.waitUntil(lambda: not alive(victim), timeout=1500)
    ready.start()
    qtbot.waitUntil(lambda: ready.state is EngineState.READY, timeout=TIMEOUT)


@pytest.mark.parametrize("doing", ["", "hang"])
def test_close_takes_a_second_at_most(ready: EngineClient, qtbot: QtBot, doing: str) -> None:
    victim = pid(ready)
    if doing:
        ready.request(OpenModel(source=doing))
        qtbot.wait(50)
    begun = time.monotonic()
    ready.close()
    assert time.monotonic() - begun < 1.0
    assert not alive(victim) and ready.state is EngineState.OFF


def test_large_answers_leave_the_window_its_turns(ready: EngineClient, qtbot: QtBot) -> None:
    gaps: list[float] = []
    last = time.monotonic()

    def beat() -> None:
        nonlocal last
        now = time.monotonic()
        gaps.append(now - last)
        last = now

    timer = QTimer()
    timer.timeout.connect(beat)
    timer.start(5)
    answers = Answers(ready)
    for _ in range(60):
        answers.ask(GetMatrix(view=HeadView(layer=0, head=0), height=1024, width=1024))
    qtbot.waitUntil(lambda: len(answers.replies) == 60, timeout=TIMEOUT)
    timer.stop()
    assert max(gaps) < 0.15


def test_the_users_folder_cannot_put_its_own_model_before_ours(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "__init__.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "model.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    command = default_command()
    assert command[1:] == ["-P", "-m", "model", "engine"]
    code = "import model.protocol, sys; sys.stdout.write('Found ' + model.protocol.__file__)"
    client = EngineClient(command=[*command[:2], "-c", code])
    client.start()
    qtbot.waitUntil(lambda: client.state is EngineState.LOST, timeout=TIMEOUT)
    assert "Found " in client.message and "shadowed" not in client.stderr
    client.close()
    client.deleteLater()


def test_the_real_engine_is_killed_and_comes_back_with_the_run(
    qtbot: QtBot, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tiny = files.folder(tmp_path_factory.mktemp("tiny"))
    client = EngineClient()
    answers = Answers(client)
    client.start()
    answers.ask(OpenModel(source=str(tiny), threads=1))
    answers.ask(Prefill(text="in the end"))
    settings = SamplerSettings(temperature=1.5, seed=5)
    answers.ask(Step(n=5, settings=settings, stop_at_end_of_text=False))
    qtbot.waitUntil(lambda: len(answers.replies) == 3, timeout=60_000)
    _, prefill, state = answers.replies
    victim = pid(client)
    answers.ask(Step(n=40, settings=settings, stop_at_end_of_text=False))
    os.kill(victim, signal.SIGKILL)
    qtbot.waitUntil(lambda: client.state is EngineState.LOST, timeout=TIMEOUT)
    client.restart()
    answers.ask(OpenModel(source=str(tiny), threads=1))
    ids = tuple(token.id for token in prefill.tokens)
    answers.ask(Restore(ids=ids, text=prefill.text, nodes=state.nodes, current=state.current))
    before = len(answers.replies)
    qtbot.waitUntil(lambda: len(answers.replies) == before + 2, timeout=60_000)
    restored = answers.replies[-1]
    assert isinstance(restored, PrefillReply) and restored.state.path == state.path
    assert restored.state.text == state.text and restored.tokens == prefill.tokens
    assert [node.draw for node in restored.state.nodes] == [node.draw for node in state.nodes]
    client.close()
    client.deleteLater()
