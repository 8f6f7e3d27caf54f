"""A bench for panels: the real session and selection, and the engine's own handlers on a real run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QObject, QTimer, Signal
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from app.commands import CommandRegistry
from app.context import AppContext
from app.frame.docks import PanelScroll
from app.notify import Notifier
from app.panels.base import Panel
from app.selection import Selection
from app.session import Session, Topic
from app.settings import Settings
from app.state.model_desk import EngineStatus
from app.theme import Theme
from model import handlers  # noqa: F401 - registers them
from model.errors import DecoderscopeError
from model.handler_registry import HANDLERS, EngineContext
from model.loading import LoadedModel
from model.protocol.run_requests import PrefillReply
from model.protocol.values import SamplerSettings, Token
from model.protocol.wire import ErrorInfo, Request
from model.run import Run
from tests.model.tiny import random_ids

P = TypeVar("P", bound=Panel)
GREEDY = SamplerSettings(temperature=0.0)
FAMILIES: list[tuple[str, dict[str, Any]]] = [
    ("GPT2", {"n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 64}),
    ("Bloom", {"hidden_size": 48, "n_layer": 3, "n_head": 6}),
    ("GPTNeoX", {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 80,
                 "max_position_embeddings": 64}),
    ("Mixtral", {"hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
                 "num_key_value_heads": 2, "num_local_experts": 6, "num_experts_per_tok": 2,
                 "max_position_embeddings": 128, "sliding_window": None}),
]  # fmt: skip
"""Tiny models of four kinds, for panels that look different on each: reference family and its fields."""


class LocalJob:
    """What a handler needs of a job."""

    away_ms = 0.0

    def __init__(self, on_part: Callable[..., None] | None) -> None:
        self._on_part = on_part

    def yield_point(self) -> None:
        """Nobody else waits."""

    check_cancel = yield_point

    def progress(self, *_: object) -> None:
        """Nobody looks."""

    def part(self, part: object, arrays: dict[str, Any] | None = None) -> None:
        if self._on_part:
            self._on_part(part, arrays or {})


class LocalPending:
    """What is given for a request."""

    def __init__(self, engine: LocalEngine, entry: tuple[Request, dict[str, Any]]) -> None:
        self._engine, self._entry = engine, entry

    def cancel(self) -> None:
        """Ends it, where it waits."""
        self._engine.cancel(self._entry)

    def ack(self) -> None:
        """Nobody waits for it."""


class LocalEngine(QObject):
    """What a panel uses of EngineClient; answers on the next turn of the loop, or at `release` while `held`."""

    stateChanged = Signal(object)
    busyChanged = Signal(bool)

    def __init__(self, model: LoadedModel) -> None:
        super().__init__()
        self.context = EngineContext(model=model)
        self.state, self.message, self.busy, self.hello = "ready", "", False, None
        self.asked: list[Request] = []
        self.held = False
        self._queue: list[tuple[Request, dict[str, Any]]] = []
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self.release)

    def request(self, message: Request, **options: Any) -> object:
        self.asked.append(message)
        slot = options.get("slot")
        for older in [entry for entry in self._queue if slot and entry[1].get("slot") == slot]:
            self._queue.remove(older)
            if older[1].get("on_error"):
                older[1]["on_error"](ErrorInfo(code="superseded", message=""))
        entry = (message, options)
        self._queue.append(entry)
        if not self.held:
            self._timer.start()
        return LocalPending(self, entry)

    def cancel(self, entry: tuple[Request, dict[str, Any]]) -> None:
        """Ends a request that waits."""
        if entry in self._queue:
            self._queue.remove(entry)
            if entry[1].get("on_error"):
                entry[1]["on_error"](ErrorInfo(code="cancelled", message=""))

    @property
    def waiting(self) -> bool:
        return bool(self._queue)

    def release(self) -> None:
        queue, self._queue = self._queue, []
        for message, options in queue:
            owner = options.get("owner") or getattr(options.get("on_reply"), "__self__", None)
            if isinstance(owner, QObject) and not isValid(owner):
                continue  # as the real one does: nobody is there to be told
            handler = HANDLERS[type(message)]
            try:
                reply, arrays = handler(self.context, message, LocalJob(options.get("on_part")))  # type: ignore[arg-type]
            except DecoderscopeError as error:
                if options.get("on_error"):
                    options["on_error"](ErrorInfo.of(error))
                continue
            if options.get("on_reply"):
                options["on_reply"](reply, dict(arrays))

    def asked_of(self, kind: type[Request]) -> list[Request]:
        """The requests of a kind, in order."""
        return [message for message in self.asked if isinstance(message, kind)]


class ModelBench:
    """A context around a model; `run` makes a run the session knows."""

    def __init__(self, folder: Path, theme: Theme, model: LoadedModel) -> None:
        self.model = model
        self.engine = LocalEngine(model)
        self.kept: list[object] = []  # what a test wants to live as long as the bench
        self.settings = Settings(folder / "settings.json", writable=False)
        self.selection, self.notify = Selection(), Notifier()
        self.session = Session(self.engine, self.selection, self.settings, self.notify)  # type: ignore[arg-type]
        self.ctx = AppContext(
            engine=self.engine, session=self.session, selection=self.selection, settings=self.settings,  # type: ignore[arg-type]
            theme=theme, commands=CommandRegistry(), notify=self.notify,
        )  # fmt: skip
        self.session.desk.model = model.info
        self.session.desk.status = EngineStatus.READY
        self.selection.set_model(model.info)

    def run(self, prompt: str | list[int], steps: int = 0) -> Run:
        """A run on a prompt and some greedy steps."""
        run = self.engine.context.run = Run(self.model, budget_bytes=1 << 30)
        run.prefill(prompt)
        run.generate(steps, GREEDY, stop_at_end_of_text=False)
        pieces = self.model.tokenizer.pieces(list(run.prompt_ids))
        tokens = tuple(
            Token(id=token, piece=piece, start=i, end=i + 1)
            for i, (token, piece) in enumerate(zip(run.prompt_ids, pieces, strict=True))
        )
        self.session.book.begin(PrefillReply(state=run.state(), tokens=tokens, text=""))
        self.selection.set_length(run.length)
        self.session.changed.emit(Topic.RUN)
        return run

    def step(self) -> None:
        """One more token, as the session hears of it."""
        run = self.engine.context.run
        assert run is not None
        run.step(GREEDY)
        self.session.book.take(run.state())
        self.selection.set_length(run.length)
        self.session.changed.emit(Topic.NODE)


def bench_with(
    qtbot: QtBot, folder: Path, model: LoadedModel, kind: type[P], size: tuple[int, int], n: int
) -> tuple[ModelBench, P]:
    """A panel on a run of `n` prompt tokens and three steps, a cell chosen; scrolled where it does not fit, as in the
    window."""
    bench = ModelBench(folder, Theme("dark"), model)
    bench.run(random_ids(n), 3)
    bench.selection.set_layer_head(1, 3)
    bench.selection.set_cell(9, 4)
    return bench, docked(qtbot, bench, kind, size)


def docked(qtbot: QtBot, bench: ModelBench, kind: type[P], size: tuple[int, int]) -> P:
    """A panel, scrolled where it does not fit, as in the window."""
    panel = kind(bench.ctx)
    dock = PanelScroll(panel, bench.ctx.theme)
    bench.kept.append(dock)
    qtbot.addWidget(dock)
    dock.resize(*size)
    dock.show()
    qtbot.waitExposed(dock)
    return panel
