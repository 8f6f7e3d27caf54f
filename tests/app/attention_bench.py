"""A bench for the attention panel: the real session and selection, and an engine in this process that computes plain
softmax attention of random queries and keys, pools as the protocol says, and answers on the next turn of the loop."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QBuffer, QObject, QTimer, Signal
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from app.commands import CommandRegistry
from app.context import AppContext
from app.notify import Notifier
from app.panels.attention import AttentionPanel
from app.selection import Selection
from app.session import Session, Topic
from app.settings import Settings
from app.state.model_desk import EngineStatus
from app.theme import Theme
from model.colormaps import Levels
from model.protocol import attention_requests as ask
from model.protocol.export_requests import DrawnRequest, ExportReply, FileInfo, FilePart, FileRequest
from model.protocol.run_requests import PrefillReply
from model.protocol.values import MemoryInfo, ModelInfo, Node, RunState, SamplerSettings, Token
from model.protocol.wire import ErrorInfo, Request

WORDS = (
    "The", "·animal", "·didn", "'t", "·cross", "·the", "·street", "·because", "·it", "·was", "·too", "·tired", "·to",
    "·move", ".", "⏎", "⏎", "The", "·original", "·internationalisation", "你好", "⟨E4⟩", "<img>",
)  # fmt: skip
MEMORY = MemoryInfo(
    weights=0, kv_used=0, kv_allocated=0, activations=0, rss=0, peak_rss=0, budget=0, available=0
)  # fmt: skip
SIGNED = {"raw", "scores", "masked"}
MOST_VALUES = 65_536
Floats = NDArray[np.floating[Any]]


def model_info(n_layers: int = 6, n_heads: int = 6, n_kv_heads: int = 2) -> ModelInfo:
    return ModelInfo(
        name="tiny", family="llama", source="tiny", sha256="", n_layers=n_layers, n_heads=n_heads,
        n_kv_heads=n_kv_heads, d_model=48, d_head=8, d_mlp=64, d_vocab=300, n_ctx=8192, dtype="float32",
        device="cpu", parameters=1, weight_bytes=4, positions="rope", attention_kind="GQA",
    )  # fmt: skip


@dataclass
class Asked:
    """A request that was made; `answer` serves it."""

    message: Request
    on_reply: Callable[..., None] | None
    on_part: Callable[..., None] | None
    on_error: Callable[..., None] | None
    slot: str | None
    at: tuple[int, int] | None = None


class Handle:
    """What `request` gives back."""

    def __init__(self, engine: InProcessEngine, asked: Asked) -> None:
        self._engine, self._asked = engine, asked

    def cancel(self) -> None:
        self._engine.cancel(self._asked)

    def ack(self) -> None:
        """Nobody waits for it."""

    @property
    def at(self) -> tuple[int, int] | None:
        """Where the run was when it was answered."""
        return self._asked.at


@dataclass(eq=False)
class InProcessEngine(QObject):
    """What a panel uses of EngineClient. With `held` the answers wait for `release`."""

    stateChanged = Signal(object)
    busyChanged = Signal(bool)

    info: ModelInfo = field(default_factory=model_info)
    seed: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self.state, self.message, self.busy, self.hello = "ready", "", False, None
        self.length = 0
        self.place: tuple[int, int] | None = None
        self.asked: list[Request] = []
        self.held = False
        self._queue: list[Asked] = []
        self._cache: dict[Any, Floats] = {}
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self.release)

    def request(
        self,
        message: Request,
        *,
        on_reply: Callable[..., None] | None = None,
        on_part: Callable[..., None] | None = None,
        on_error: Callable[..., None] | None = None,
        slot: str | None = None,
        **_others: object,
    ) -> Handle:
        self.asked.append(message)
        for older in [a for a in self._queue if slot and a.slot == slot]:
            self._queue.remove(older)
            if older.on_error:
                older.on_error(ErrorInfo(code="superseded", message=""))
        asked = Asked(message=message, on_reply=on_reply, on_part=on_part, on_error=on_error, slot=slot)
        self._queue.append(asked)
        if not self.held:
            self._timer.start()
        return Handle(self, asked)

    def cancel(self, asked: Asked) -> None:
        """Ends a request that waits."""
        if asked in self._queue:
            self._queue.remove(asked)
            if asked.on_error:
                asked.on_error(ErrorInfo(code="cancelled", message="Cancelled."))

    @property
    def waiting(self) -> bool:
        """Whether a request has not been answered."""
        return bool(self._queue)

    def release(self) -> None:
        queue, self._queue = self._queue, []
        for asked in queue:
            self._serve(asked)

    def matrix(self, view: ask.HeadView) -> Floats:
        """A head's whole matrix in a stage, NaN where masked."""
        key = (view, self.length, self.seed)
        if key not in self._cache:
            self._cache[key] = self._compute(view)
        return self._cache[key]

    def _compute(self, view: ask.HeadView) -> Floats:
        if isinstance(view.head, str) or view.layer == "all":
            layers = range(self.info.n_layers) if view.layer == "all" else [view.layer]
            stack = np.stack([
                self.matrix(ask.HeadView(layer=layer, head=head, stage=view.stage))
                for layer in layers for head in range(self.info.n_heads)
            ])  # fmt: skip
            over: Floats = stack.max(axis=0) if view.head == "max" else stack.mean(axis=0, dtype=np.float32)
            return over
        n, d = self.length, self.info.d_head
        # Each from its own stream, so that a token keeps its q and k when more follow.
        streams = [np.random.default_rng([self.seed, view.layer, view.head, i]) for i in range(3)]
        q, k = (stream.normal(size=(n, d)).astype(np.float32) * 1.8 for stream in streams[:2])  # (T, D), (S, D)
        raw = q @ k.T  # (T, S)
        kind = view.head % 3
        raw[:, 0] += 12 if kind == 0 else 3
        if kind == 1:
            raw[np.arange(1, n), np.arange(n - 1)] += 14
        hidden = np.triu(np.ones((n, n), dtype=bool), 1)
        if view.stage == "raw":
            return raw
        scores = raw / np.float32(np.sqrt(d))
        if view.stage == "scores":
            return scores
        masked: Floats = np.where(hidden, np.float32(np.nan), scores)
        if view.stage == "masked":
            return masked
        weights = softmax(masked)
        if view.stage == "weighted":
            lengths: Floats = np.abs(streams[2].normal(size=n)).astype(np.float32)
            return weights * lengths[None, :]
        return weights

    def _serve(self, asked: Asked) -> None:
        message = asked.message
        asked.at = self.place
        reply: object
        arrays: dict[str, NDArray[Any]] = {}
        if isinstance(message, ask.GetMatrix):
            reply, arrays = self._matrix(message)
        elif isinstance(message, ask.GetCell):
            value = float(self.matrix(message.view)[message.query, message.key])
            hidden = np.isnan(value)
            reply = ask.CellReply(
                query=message.query, key=message.key, value=None if hidden else value, visible=not hidden
            )
        elif isinstance(message, ask.GetRow | ask.GetColumn):
            row = isinstance(message, ask.GetRow)
            whole = self.matrix(message.view)
            values = whole[message.query] if isinstance(message, ask.GetRow) else whole[:, message.key]
            index = message.query if isinstance(message, ask.GetRow) else message.key
            total = float(np.nansum(values))
            reply = ask.LineReply(index=index, total=total, entropy=1.25 * row, entropy_unscaled=0.5 * row)
            arrays = {"values": values}
        elif isinstance(message, ask.GetEntropy):
            weights = self.matrix(ask.HeadView(layer=message.view.layer, head=message.view.head))
            entropy = -np.nansum(weights * np.log(np.maximum(weights, 1e-30)), axis=1).astype(np.float32)
            reply, arrays = ask.EntropyReply(mean=float(entropy.mean())), {
                "entropy": entropy, "entropy_unscaled": entropy * np.float32(0.4),
            }  # fmt: skip
        elif isinstance(message, ask.GetGrid):
            for layer in message.layers:
                heads = [self._thumb(layer, head, message) for head in range(self.info.n_heads)]
                if asked.on_part:
                    asked.on_part(ask.GridPart(layer=layer), {"pixels": np.stack(heads)})
            reply = ask.GridReply(run_id=1, length=self.length, size=message.size, ms=1.0)
        elif isinstance(message, ask.GetMetrics):
            shape = (self.info.n_layers, self.info.n_heads)
            names = ("entropy", "first", "previous", "self", "induction", "distance")
            arrays = {n: np.random.default_rng(i).random(shape).astype(np.float32) for i, n in enumerate(names)}
            reply = ask.MetricsReply(names=names, repeats=0, run_id=1, length=self.length)
        elif isinstance(message, FileRequest):
            reply = self._export(message, asked.on_part)
        else:
            if asked.on_error:
                asked.on_error(ErrorInfo(code="unknown", message=f"{message.method} is not served here"))
            return
        if asked.on_reply:
            asked.on_reply(reply, arrays)

    def _matrix(self, message: ask.GetMatrix) -> tuple[ask.MatrixReply, dict[str, NDArray[Any]]]:
        n = self.length
        rows = message.rows if message.rows != (0, 0) else (0, n)
        cols = message.cols if message.cols != (0, 0) else (0, n)
        whole = self.matrix(message.view)
        part = whole[slice(*rows), slice(*cols)]
        signed = message.view.stage in SIGNED
        low, high = float(np.nanmin(part, initial=np.inf)), float(np.nanmax(part, initial=-np.inf))
        levels = Levels.spanning(low, high, scale=message.scale, signed=signed, fixed=message.fixed)
        if message.levels is not None:
            levels = Levels(low=message.levels[0], high=message.levels[1], scale=message.scale, signed=signed)
        pixels = levels.pixels(part)
        height, width = min(message.height, part.shape[0]), min(message.width, part.shape[1])
        pooled = (height, width) != part.shape
        if pooled:
            pixels = pool(pool(pixels, height, 0), width, 1)
        arrays: dict[str, NDArray[Any]] = {"pixels": pixels}
        if not pooled and pixels.size <= MOST_VALUES:
            arrays["values"] = part
        reply = ask.MatrixReply(
            rows=rows, cols=cols, pooled=pooled, low=levels.low, high=levels.high, data_low=low, data_high=high,
            scale=message.scale, signed=signed, boundary=0, run_id=1, length=n, ms=1.0,
        )  # fmt: skip
        return reply, arrays

    def _export(self, message: FileRequest, on_part: Callable[..., None] | None) -> ExportReply:
        """A figure of the size asked for, one colour; tables are the name of their format."""
        files = []
        for name in message.formats:
            data = name.encode()
            if name == "png" and isinstance(message, DrawnRequest):
                image = QImage(
                    round(message.width * message.dpi), round(message.height * message.dpi), QImage.Format.Format_RGB32
                )
                image.fill(0xFF336699)
                buffer = QBuffer()
                buffer.open(QBuffer.OpenModeFlag.WriteOnly)
                image.save(buffer, "PNG")  # type: ignore[call-overload] # the stubs say bytes
                data = bytes(buffer.data().data())
            digest = hashlib.sha256(data).hexdigest()
            file_name = f"{message.stem}.{name}"
            if on_part:
                half = len(data) // 2
                on_part(FilePart(name=file_name, offset=0, last=False), {"data": np.frombuffer(data[:half], np.uint8)})
                end = {"data": np.frombuffer(data[half:], np.uint8)}
                on_part(FilePart(name=file_name, offset=half, last=True, sha256=digest), end)
            files.append(FileInfo(name=file_name, format=name, size=len(data), sha256=digest))
        return ExportReply(files=tuple(files))

    def _thumb(self, layer: int, head: int, message: ask.GetGrid) -> NDArray[np.uint8]:
        whole = self.matrix(ask.HeadView(layer=layer, head=head, stage=message.stage))
        signed = message.stage in SIGNED
        levels = Levels.spanning(float(np.nanmin(whole)), float(np.nanmax(whole)), scale="sqrt", signed=signed)
        size = min(message.size, self.length)
        return pool(pool(levels.pixels(whole), size, 0), size, 1)


def softmax(scores: Floats) -> Floats:
    """Rows to 1 over what is not NaN."""
    top = np.exp(scores - np.nanmax(scores, axis=1, keepdims=True))
    weights: Floats = top / np.nansum(top, axis=1, keepdims=True)
    return weights


def pool(pixels: NDArray[np.uint8], count: int, axis: int) -> NDArray[np.uint8]:
    """The largest pixel of `count` equal stretches."""
    size = pixels.shape[axis]
    if count >= size:
        return pixels
    starts = (np.arange(count) * size / count).astype(np.int64)
    pooled: NDArray[np.uint8] = np.maximum.reduceat(pixels, starts, axis=axis)
    return pooled


class Bench:
    """A context around the engine, with a run of `n` tokens of which the last `decoded` were generated."""

    def __init__(self, folder: Path, theme: Theme, info: ModelInfo | None = None) -> None:
        self.engine = InProcessEngine(info=info or model_info())
        self.settings = Settings(folder / "settings.json", writable=False)
        self.selection, self.notify = Selection(), Notifier()
        self.session = Session(self.engine, self.selection, self.settings, self.notify)  # type: ignore[arg-type]
        self.ctx = AppContext(
            engine=self.engine, session=self.session, selection=self.selection, settings=self.settings,  # type: ignore[arg-type]
            theme=theme, commands=CommandRegistry(), notify=self.notify,
        )  # fmt: skip

    def panel(self) -> AttentionPanel:
        return AttentionPanel(self.ctx)

    def open(self) -> None:
        """The model is there."""
        self.session.desk.model = self.engine.info
        self.session.desk.status = EngineStatus.READY
        self.selection.set_model(self.engine.info)
        self.session.changed.emit(Topic.MODEL)

    def run(self, n: int, decoded: int = 0, *, run_id: int = 1) -> None:
        """A run of `n` tokens."""
        self.open()
        pieces = [WORDS[i % len(WORDS)] for i in range(n)]
        prompt = n - decoded
        tokens = tuple(Token(id=i, piece=piece, start=i, end=i + 1) for i, piece in enumerate(pieces[:prompt]))
        nodes = tuple(
            Node(
                id=i, parent=i - 1, position=i, token_id=i, piece=pieces[i], logprob=-1.0, p=0.5, entropy=1.0,
                draw=0.5, ms=10.0, settings=SamplerSettings(),
            )
            for i in range(prompt, n)
        )  # fmt: skip
        state = RunState(
            run_id=run_id, n_prompt=prompt, path=tuple(node.id for node in nodes), current=n - 1, length=n, n_ctx=8192,
            nodes=nodes, text="", memory=MEMORY, prefill_ms=1.0,
        )  # fmt: skip
        self.engine.length = n
        self.session.book.begin(PrefillReply(state=state, tokens=tokens, text=""))
        self.selection.set_length(n)
        self.session.changed.emit(Topic.RUN)


def shown(qtbot: QtBot, bench: Bench, size: tuple[int, int] = (760, 540)) -> AttentionPanel:
    """The panel, on the screen."""
    panel = bench.panel()
    qtbot.addWidget(panel)
    panel.resize(*size)
    panel.show()
    qtbot.waitExposed(panel)
    return panel


def settled(qtbot: QtBot, panel: AttentionPanel, bench: Bench) -> None:
    """Until the matrix in view is drawn and nothing is under way."""

    def done() -> bool:
        heat = panel.main.heat
        return not bench.engine.waiting and bool(heat.tiles) and panel.settled

    qtbot.waitUntil(done, timeout=4000)
