"""The run as the app knows it: engine state, model, prompt, tokens, nodes, sampler, distribution. Owns no widget.

Every method asks the engine and returns at once; `changed` then says which topic is new. What is here survives the
engine: after a crash `restart_engine` opens the same model and makes the same run again.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from PySide6.QtCore import QObject, QTimer, Signal

from app.i18n import tr
from app.notify import WayOut
from model.protocol.engine_requests import (
    GetMemory,
    GetModel,
    HelloReply,
    OpenModel,
    SelfCheck,
    SelfCheckReply,
)
from model.protocol.run_requests import (
    Branch,
    DistributionReply,
    GetDistribution,
    GetPromptStats,
    Prefill,
    PrefillReply,
    PromptStatsReply,
    Restore,
    Seek,
    Step,
    StepPart,
    Tokenize,
    TokenizeReply,
)
from model.protocol.values import MemoryInfo, ModelInfo, Node, RunState, SamplerSettings, Token

if TYPE_CHECKING:
    from app.engine import EngineClient, Pending
    from app.notify import Notifier
    from app.selection import Selection
    from app.settings import Settings
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Progress

EXAMPLE_PROMPT = "The animal didn't cross the street because it was too tired"
EXAMPLE_STEPS = 7
EXAMPLE_VIEW = (13, 8)  # layer, head where "it" reads "animal" on the default model
EXAMPLE_CELL = (8, 1)
TOKENIZE_DELAY_MS = 120
LONG_TOKENIZE_DELAY_MS = 350
LONG_TEXT = 20_000
MAX_STEPS_WAITING = 64
ABSENT_CODES = frozenset({"absent", "model_absent", "no_default_model", "not_fetched"})


class Topic(StrEnum):
    """What may change."""

    ENGINE = "ENGINE"
    MODEL = "MODEL"
    PROMPT = "PROMPT"
    RUN = "RUN"
    NODE = "NODE"
    SAMPLER = "SAMPLER"
    DISTRIBUTION = "DISTRIBUTION"
    PROMPT_STATS = "PROMPT_STATS"
    MEMORY = "MEMORY"
    PROGRESS = "PROGRESS"
    SELF_CHECK = "SELF_CHECK"


class EngineStatus(StrEnum):
    """What the engine's process is doing, as a person would say it."""

    OFF = "off"
    STARTING = "starting"
    READY = "ready"
    LOST = "lost"
    SILENT = "silent"


class Phase(StrEnum):
    """What the session is doing."""

    IDLE = "idle"
    OPENING = "opening"
    PREFILL = "prefill"
    DECODE = "decode"
    READY = "ready"


@dataclass(frozen=True, kw_only=True)
class PathToken:
    """One position of the current path. `node` is its node id (a prompt token's is its position)."""

    position: int
    id: int
    piece: str
    kind: Literal["prompt", "decode"]
    node: int
    part: bool = False


@dataclass(frozen=True, kw_only=True)
class PromptStats:
    """What the model expected of the prompt. Arrays over its tokens: see GetPromptStats."""

    reply: PromptStatsReply
    logprob: Any
    entropy: Any
    rank: Any


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A run as it is remembered without an engine."""

    ids: tuple[int, ...]
    text: str
    nodes: tuple[Node, ...]
    current: int


class Session(QObject):
    """State of the run and the ways to change it. `changed` carries a Topic."""

    changed = Signal(object)
    modelAbsent = Signal(object)

    def __init__(
        self,
        engine: EngineClient,
        selection: Selection,
        settings: Settings,
        notify: Notifier,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.engine, self.selection, self.settings, self.notify = engine, selection, settings, notify
        self.engine_status = EngineStatus.OFF
        self.engine_message = ""
        self.phase = Phase.IDLE
        self.hello: HelloReply | None = None
        self.model: ModelInfo | None = None
        self.source = ""
        self.progress: Progress | None = None
        self.progress_title = ""
        self.prompt_text = EXAMPLE_PROMPT
        self.live_text = ""
        self.live_tokens: tuple[Token, ...] = ()
        self.live_notice = ""
        self.add_special = True
        self.chat = False
        self.run: RunState | None = None
        self.run_text = ""
        self.prompt_tokens: tuple[Token, ...] = ()
        self.nodes: dict[int, Node] = {}
        self.dropped: frozenset[int] = frozenset()
        self.prompt_stats: PromptStats | None = None
        self.memory: MemoryInfo | None = None
        self.sampler = SamplerSettings()
        self.sampler_version = 0
        self.search = ""
        self.distribution: DistributionReply | None = None
        self.cdf: Any = None
        self.self_check: SelfCheckReply | None = None
        self._path: tuple[PathToken, ...] = ()
        self._forward: dict[int, tuple[int, int]] = {}
        self._steps_wanted = 0
        self._pending: Pending | None = None
        self._lost: Kept | None = None
        self._tokenize = QTimer(self)
        self._tokenize.setSingleShot(True)
        self._tokenize.timeout.connect(self._ask_tokens)
        engine.stateChanged.connect(self._on_engine_state)

    # what is asked most

    @property
    def run_id(self) -> int | None:
        """The engine's id of the current run."""
        return self.run.run_id if self.run else None

    @property
    def length(self) -> int:
        """Positions of the current path."""
        return self.run.length if self.run else 0

    @property
    def n_prompt(self) -> int:
        return self.run.n_prompt if self.run else 0

    @property
    def current_node(self) -> int:
        """The current node's id, -1 without a run."""
        return self.run.current if self.run else -1

    @property
    def busy(self) -> bool:
        """Whether a request that Stop would end is under way."""
        return self._pending is not None

    @property
    def can_run(self) -> bool:
        """Whether there is a model to run."""
        return self.model is not None and self.engine_status is EngineStatus.READY

    @property
    def decode_ms(self) -> float:
        """Median wall time of the decode steps on the path, ms; 0 without any."""
        times = [self.nodes[node].ms for node in self.run.path if node in self.nodes] if self.run else []
        return statistics.median(times) if times else 0.0

    @property
    def prefill_ms(self) -> float:
        return self.run.prefill_ms if self.run else 0.0

    def path_tokens(self) -> tuple[PathToken, ...]:
        """Every position of the current path, prompt first."""
        return self._path

    def path_nodes(self) -> tuple[Node, ...]:
        """The decode nodes of the current path, in order."""
        return tuple(self.nodes[node] for node in self.run.path) if self.run else ()

    def children(self, node: int) -> tuple[Node, ...]:
        """The nodes made after `node`, oldest first."""
        return tuple(child for child in self.nodes.values() if child.parent == node)

    # engine and model

    def start(self) -> None:
        """Starts the engine and opens the model used last, or the default."""
        self.engine.start()

    def open_model(self, source: str, *, device: str = "", dtype: str = "") -> None:
        """Opens a model; the one that is open stays until the new one is whole. "" is the default model."""
        prefs = self.settings.values
        message = OpenModel(
            source=source,
            device=device or prefs.device,
            dtype=(dtype or prefs.dtype),  # type: ignore[arg-type] # checked by the engine
            threads=prefs.threads,
        )
        self._set_phase(Phase.OPENING)
        self._begin(
            tr("Opening the model"),
            self.engine.request(
                message,
                on_reply=lambda info, _arrays: self._on_model(info, source),
                on_progress=self._on_progress,
                on_error=lambda error: self._on_open_error(error, source),
            ),
        )

    def get_model(self, name: str) -> None:
        """Fetches a model of the catalogue, then opens it."""
        self._set_phase(Phase.OPENING)
        self._begin(
            tr("Getting the model"),
            self.engine.request(
                GetModel(name=name),
                on_reply=lambda entry, _arrays: self.open_model(entry.name),
                on_progress=self._on_progress,
                on_error=lambda error: self._on_open_error(error, name),
            ),
        )

    def restart_engine(self) -> None:
        """Starts a new engine; model, prompt, tokens, nodes and settings come back."""
        self.engine.restart()

    # prompt

    def set_prompt(self, text: str) -> None:
        """The text being typed; its tokens follow."""
        if text != self.prompt_text:
            self.prompt_text = text
            self._retokenize()
            self.changed.emit(Topic.PROMPT)

    def set_tokenizing(self, *, add_special: bool | None = None, chat: bool | None = None) -> None:
        """Whether special tokens are added and whether the text is put into the model's chat template."""
        self.add_special = self.add_special if add_special is None else add_special
        self.chat = self.chat if chat is None else chat
        self._retokenize()
        self.changed.emit(Topic.PROMPT)

    def prefill(self, *, truncate: bool = False, then_steps: int = 0, greedy: bool = False) -> None:
        """Starts a new run on the prompt, then takes `then_steps` steps."""
        if not self.can_run or self.busy:
            return
        if not self.prompt_text:
            self.notify.say(tr("The prompt is empty: type something first."))
            return
        message = Prefill(text=self.prompt_text, add_special=self.add_special, chat=self.chat, truncate=truncate)
        settings = SamplerSettings(temperature=0.0) if greedy else self.sampler

        def done(reply: PrefillReply, _arrays: Arrays) -> None:
            self._end()
            self._new_run(reply)
            if then_steps:
                self._step(then_steps, settings)

        self._set_phase(Phase.PREFILL)
        self._begin(
            tr("Prefilling"),
            self.engine.request(message, on_reply=done, on_progress=self._on_progress, on_error=self._on_prefill_error),
        )

    # run control

    def step(self, n: int = 1) -> None:
        """Decodes `n` more tokens; where the run was stepped back and nothing was changed since, goes forward."""
        if self.run is None or not self.can_run:
            return
        if self.busy:
            if self.phase is Phase.DECODE:
                self._steps_wanted = min(self._steps_wanted + n, MAX_STEPS_WAITING)
            return
        if n == 1 and self.forward():
            return
        self._step(n, self.sampler)

    def run_until_end(self) -> None:
        """Decodes until the end of the text, the end of the context, or Stop."""
        if self.run is not None and self.can_run and not self.busy:
            self._step(max(1, self.run.n_ctx - self.run.length), self.sampler)

    def back(self) -> None:
        """To the token before; never runs the model."""
        if self.run and self.run.path:
            self.seek(self.nodes[self.current_node].parent)

    def forward(self) -> bool:
        """To the token that was left by going back, if the sampler is as it was; says whether it went."""
        remembered = self._forward.get(self.current_node)
        if remembered is None or remembered[1] != self.sampler_version or self.busy:
            return False
        self.seek(remembered[0])
        return True

    def first(self) -> None:
        """To the end of the prompt."""
        if self.run and self.run.path:
            self.seek(self.n_prompt - 1)

    def last(self) -> None:
        """As far forward as this branch goes."""
        node = self.current_node
        while node in self._forward:
            node = self._forward[node][0]
        if node != self.current_node:
            self.seek(node)

    def seek(self, node: int) -> None:
        """To any node of the tree, or to the last prompt token; never runs the model unless it was dropped."""
        if self.run is None or not self.can_run or self.busy or node == self.current_node:
            return
        self._remember(node)
        self._ask_state(Seek(node=node))

    def branch(self, node: int, token_id: int) -> None:
        """Appends a token of the person's choice after `node`."""
        if self.run is not None and self.can_run and not self.busy:
            self._set_phase(Phase.DECODE)
            self._ask_state(Branch(node=node, token_id=token_id, settings=self.sampler))

    def stop(self) -> None:
        """Asks what is under way to stop; says so at once."""
        self._steps_wanted = 0
        if self._pending is not None:
            self._pending.cancel()
            self.notify.say(tr("Stopping …"))

    # sampler

    def set_sampler(self, **changes: Any) -> None:
        """Changes sampler settings; the distribution follows without a forward pass. Raises BadValueError."""
        self._set_settings(replace(self.sampler, **changes))

    def _set_settings(self, settings: SamplerSettings) -> None:
        if settings != self.sampler:
            self.sampler = settings
            self.sampler_version += 1
            self.changed.emit(Topic.SAMPLER)
            self._ask_distribution()

    def set_search(self, text: str) -> None:
        """Tokens of the vocabulary to find beside the candidates."""
        if text != self.search:
            self.search = text
            self._ask_distribution()

    # answers

    def _on_engine_state(self) -> None:
        status = EngineStatus(str(self.engine.state))
        previous, self.engine_status = self.engine_status, status
        self.engine_message = self.engine.message
        if status is EngineStatus.READY and previous is not EngineStatus.SILENT:
            self.hello = self.engine.hello
            self._restore() if self._lost or self.model else self._first_open()
        elif status in {EngineStatus.LOST, EngineStatus.OFF} and previous not in {status, EngineStatus.OFF}:
            self._keep()
        self.changed.emit(Topic.ENGINE)

    def _first_open(self) -> None:
        recent = self.settings.values.recent_models
        self.open_model(recent[0] if recent else "")

    def _keep(self) -> None:
        """The engine is gone: what it held is remembered, what was under way is over."""
        if self.run is not None:
            self._lost = Kept(
                ids=tuple(token.id for token in self.prompt_tokens),
                text=self.run_text,
                nodes=tuple(self.nodes[node] for node in sorted(self.nodes)),
                current=self.current_node,
            )
        self._steps_wanted = 0
        self._end()

    def _restore(self) -> None:
        self.open_model(self.source)

    def _on_model(self, info: ModelInfo, source: str) -> None:
        self._end()
        kept, self._lost = self._lost, None
        same = self.model is not None and self.source == source and self.model.d_vocab == info.d_vocab
        first = self.model is None
        self.model, self.source = info, source
        self.settings.add_recent(source)
        self.selection.set_model(info)
        self.self_check = None
        self.changed.emit(Topic.MODEL)
        self._retokenize()
        for warning in info.warnings:
            self.notify.tell(warning)
        if kept and same:
            self._ask_restore(kept)
            return
        if not same:
            self._clear_run()
        if first:
            self._show_example()

    def _show_example(self) -> None:
        self.selection.set_layer_head(*EXAMPLE_VIEW)
        self.prefill(then_steps=EXAMPLE_STEPS, greedy=True)

    def _ask_restore(self, kept: Kept) -> None:
        message = Restore(ids=kept.ids, text=kept.text, nodes=kept.nodes, current=kept.current)

        def done(reply: PrefillReply, _arrays: Arrays) -> None:
            self._end()
            self._new_run(reply, restored=True)
            self.notify.say(tr("The run is back as it was."))

        self._set_phase(Phase.PREFILL)
        self._begin(
            tr("Restoring the run"),
            self.engine.request(message, on_reply=done, on_progress=self._on_progress, on_error=self._on_prefill_error),
        )

    def _on_open_error(self, error: ErrorInfo, source: str) -> None:
        self._end()
        if self.model is None and (error.code in ABSENT_CODES or not source):
            self.modelAbsent.emit(error)
            return
        again = WayOut(label=tr("Try again"), run=lambda: self.open_model(source))
        self.notify.engine_error(tr("The model was not opened"), error, again)

    def _on_prefill_error(self, error: ErrorInfo) -> None:
        self._end()
        if error.code in {"context_full", "prompt_too_long", "too_long"}:
            cut = WayOut(label=tr("Cut the prompt to the context"), run=lambda: self.prefill(truncate=True))
            self.notify.engine_error(tr("The prompt is too long"), error, cut)
        else:
            self.notify.engine_error(tr("The prompt was not prefilled"), error)
        if error.code == "cancelled":
            self.notify.say(tr("Prefill stopped."))

    def _clear_run(self) -> None:
        self.run, self.run_text, self.prompt_tokens = None, "", ()
        self.nodes, self._forward, self._path = {}, {}, ()
        self.prompt_stats = self.distribution = self.cdf = None
        self.selection.set_length(0)
        self.changed.emit(Topic.RUN)
        self.changed.emit(Topic.DISTRIBUTION)

    def _new_run(self, reply: PrefillReply, *, restored: bool = False) -> None:
        first = self.run is None
        self.prompt_tokens, self.run_text = reply.tokens, reply.text
        if not restored:
            self.nodes, self._forward = {}, {}
        self.prompt_stats = None
        self._take_state(reply.state)
        self.changed.emit(Topic.RUN)
        if first and self.prompt_text == EXAMPLE_PROMPT and self.length > max(EXAMPLE_CELL):
            self.selection.set_cell(*EXAMPLE_CELL)
        self._ask_stats()

    def _take_state(self, state: RunState) -> None:
        self.run = state
        self.run_text = state.text or self.run_text
        self.nodes.update({node.id: node for node in state.nodes})
        self.dropped = frozenset(state.dropped)
        self._path = self._make_path()
        self.memory = state.memory
        self.selection.set_length(state.length)
        self.changed.emit(Topic.NODE)
        self.changed.emit(Topic.MEMORY)
        self._ask_distribution()

    def _make_path(self) -> tuple[PathToken, ...]:
        prompt = tuple(
            PathToken(position=i, id=t.id, piece=t.piece, kind="prompt", node=i, part=t.part)
            for i, t in enumerate(self.prompt_tokens)
        )
        decode = tuple(
            PathToken(position=n.position, id=n.token_id, piece=n.piece, kind="decode", node=n.id)
            for n in self.path_nodes()
        )
        return prompt + decode

    def _step(self, n: int, settings: SamplerSettings) -> None:
        self._set_phase(Phase.DECODE)
        self._ask_state(Step(n=n, settings=settings))

    def _ask_state(self, message: Step | Seek | Branch) -> None:
        def done(state: RunState, _arrays: Arrays) -> None:
            self._end()
            self._take_state(state)
            self._say_stop(state)
            wanted, self._steps_wanted = self._steps_wanted, 0
            if wanted and not state.stop:
                self._step(wanted, self.sampler)

        self._begin(
            "",
            self.engine.request(message, on_reply=done, on_part=self._on_step_part, on_error=self._on_step_error),
        )

    def _on_step_part(self, part: StepPart, _arrays: Arrays) -> None:
        """A token has come while more are being decoded: it is shown at once."""
        if self.run is None:
            return
        node = part.node
        self._forward.pop(node.parent, None)
        self._take_state(
            replace(
                self.run,
                path=(*self.run.path, node.id),
                current=node.id,
                length=part.length,
                nodes=(node,),
                text=part.text,
            )
        )

    def _on_step_error(self, error: ErrorInfo) -> None:
        self._steps_wanted = 0
        self._end()
        self.notify.engine_error(tr("The step did not happen"), error)

    def _say_stop(self, state: RunState) -> None:
        sentence = {
            "end_of_text": tr("End of text."),
            "context_full": tr("The context is full: {n} tokens is all this model can see.", n=f"{state.n_ctx:,}"),
            "cancelled": tr("Stopped."),
            "nan_logits": tr("The model's logits are not numbers (NaN): sampling stopped."),
        }.get(state.stop)
        if sentence:
            self.notify.say(sentence)

    def _remember(self, target: int) -> None:
        """Notes, for every node from the current one up to where `target`'s path joins, how to go forward again."""
        node = self.current_node
        while node in self.nodes and node != target:
            parent = self.nodes[node].parent
            self._forward[parent] = (node, self.sampler_version)
            node = parent
        node = target
        while node in self.nodes:
            parent = self.nodes[node].parent
            if parent not in self.nodes and parent != self.n_prompt - 1:
                break
            self._forward[parent] = (node, self.sampler_version)
            node = parent

    def _ask_distribution(self) -> None:
        if self.run is None or self.engine_status is not EngineStatus.READY:
            return
        run_id = self.run_id

        def done(reply: DistributionReply, arrays: Arrays) -> None:
            if self.run_id == run_id:
                self.distribution, self.cdf = reply, arrays.get("cdf")
                self.changed.emit(Topic.DISTRIBUTION)

        self.engine.request(
            GetDistribution(node=self.current_node, settings=self.sampler, search=self.search),
            on_reply=done,
            on_error=_quiet,
            slot="session.distribution",
        )

    def _ask_stats(self) -> None:
        run_id = self.run_id

        def done(reply: PromptStatsReply, arrays: Arrays) -> None:
            if self.run_id == run_id:
                self.prompt_stats = PromptStats(
                    reply=reply, logprob=arrays["logprob"], entropy=arrays["entropy"], rank=arrays["rank"]
                )
                self.changed.emit(Topic.PROMPT_STATS)

        self.engine.request(
            GetPromptStats(), on_reply=done, on_error=_quiet, slot="session.stats", priority="background"
        )

    def ask_self_check(self, *, quick: bool = True) -> None:
        """Proves the numbers of the current run against the model's own."""

        def done(reply: SelfCheckReply, _arrays: Arrays) -> None:
            self.self_check = reply
            self.changed.emit(Topic.SELF_CHECK)

        self.engine.request(
            SelfCheck(quick=quick), on_reply=done, on_error=_quiet, slot="session.check", priority="background"
        )

    def ask_memory(self) -> None:
        """Measures memory now."""

        def done(reply: MemoryInfo, _arrays: Arrays) -> None:
            self.memory = reply
            self.changed.emit(Topic.MEMORY)

        self.engine.request(GetMemory(), on_reply=done, on_error=_quiet, slot="session.memory")

    def _retokenize(self) -> None:
        long = len(self.prompt_text) > LONG_TEXT
        self._tokenize.start(LONG_TOKENIZE_DELAY_MS if long else TOKENIZE_DELAY_MS)

    def _ask_tokens(self) -> None:
        if self.model is None or self.engine_status is not EngineStatus.READY:
            return

        def done(reply: TokenizeReply, _arrays: Arrays) -> None:
            self.live_text, self.live_tokens, self.live_notice = reply.text, reply.tokens, reply.notice
            self.changed.emit(Topic.PROMPT)

        self.engine.request(
            Tokenize(text=self.prompt_text, add_special=self.add_special, chat=self.chat),
            on_reply=done,
            on_error=_quiet,
            slot="session.tokens",
        )

    # what is under way

    def _begin(self, title: str, pending: Pending) -> None:
        self._pending, self.progress_title = pending, title
        self.changed.emit(Topic.PROGRESS)

    def _end(self) -> None:
        self._pending, self.progress, self.progress_title = None, None, ""
        self._set_phase(Phase.READY if self.model else Phase.IDLE)
        self.changed.emit(Topic.PROGRESS)

    def _on_progress(self, progress: Progress) -> None:
        self.progress = progress
        self.changed.emit(Topic.PROGRESS)

    def _set_phase(self, phase: Phase) -> None:
        if phase is not self.phase:
            self.phase = phase
            self.changed.emit(Topic.PROGRESS)


def _quiet(error: ErrorInfo) -> None:
    """A view that could not be served leaves what was drawn; the next change asks again."""
    del error
