"""The run as the app knows it: engine state, model, prompt, tokens, nodes, sampler, distribution. Owns no widget.

Every method asks the engine and returns at once; `changed` then says which topic is new. What is here survives the
engine: after a crash `restart_engine` opens the same model and makes the same run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app.i18n import tr
from app.state.aside import Aside
from app.state.example import point_at_example
from app.state.lost_run import LostRun
from app.state.model_desk import EngineStatus, ModelDesk
from app.state.prompt_state import PromptState, nothing_typed
from app.state.remedies import Remedies
from app.state.run_book import PathToken, RunBook
from app.state.run_facts import PromptStats, RunFacts
from app.state.run_files import RunFiles
from app.state.sampler_state import SamplerState
from app.state.topics import Topic as Topic  # noqa: PLC0414 - whoever knows a session knows its topics
from app.state.under_way import Phase, UnderWay, stop_words
from model.protocol.engine_requests import HelloReply, SelfCheckReply
from model.protocol.run_file_requests import OpenRunReply
from model.protocol.run_requests import (
    Branch,
    DistributionReply,
    Prefill,
    PrefillPart,
    PrefillReply,
    Restore,
    Seek,
    Step,
    StepPart,
)
from model.protocol.values import MemoryInfo, ModelInfo, Node, RunState, SamplerSettings, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.engine import EngineClient
    from app.notify import Notifier
    from app.selection import Selection
    from app.settings import Settings
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Progress

MAX_STEPS_WAITING = 64


class Session(QObject):
    """State of the run and the ways to change it. `changed` carries a Topic."""

    changed = Signal(object)
    modelAbsent = Signal(str)  # why; empty: the default model has not been fetched

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
        self.prefilled_text = ""
        self.under_way, self.aside = UnderWay(self), Aside(self)
        self.desk = ModelDesk(engine, settings, notify, self.under_way, self)
        self.prompt = PromptState(engine, self)
        self.sampling = SamplerState(engine, self)
        self.facts = RunFacts(engine, self.aside, self)
        self.files = RunFiles(self)
        self.remedies = Remedies(self)
        self.book = RunBook()
        self._steps_wanted = 0
        self.lost = LostRun(self)
        self.prompt.changed.connect(lambda: self.changed.emit(Topic.PROMPT))
        self.sampling.settingsChanged.connect(lambda: self.changed.emit(Topic.SAMPLER))
        self.sampling.distributionChanged.connect(lambda: self.changed.emit(Topic.DISTRIBUTION))
        self.facts.memoryChanged.connect(lambda: self.changed.emit(Topic.MEMORY))
        self.facts.promptStatsChanged.connect(lambda: self.changed.emit(Topic.PROMPT_STATS))
        self.facts.selfCheckChanged.connect(lambda: self.changed.emit(Topic.SELF_CHECK))
        self.under_way.changed.connect(lambda: self.changed.emit(Topic.PROGRESS))
        self.desk.statusChanged.connect(lambda: self.changed.emit(Topic.ENGINE))
        self.desk.absent.connect(self.modelAbsent)
        self.desk.lost.connect(self._on_lost)
        self.desk.opened.connect(self._on_opened)

    # what is asked most

    @property
    def engine_status(self) -> EngineStatus:
        return self.desk.status

    @property
    def hello(self) -> HelloReply | None:
        """Who the engine is, once it has said so."""
        return self.desk.hello

    @property
    def model(self) -> ModelInfo | None:
        """The open model; kept while its engine is gone."""
        return self.desk.model

    @property
    def source(self) -> str:
        """What was opened: a path, a hub id, a catalogue name; empty for the default."""
        return self.desk.source

    @property
    def phase(self) -> Phase:
        return self.under_way.phase

    @property
    def progress(self) -> Progress | None:
        """How far what is under way is, where it says so."""
        return self.under_way.progress

    @property
    def progress_title(self) -> str:
        """What is under way, in words."""
        return self.under_way.title

    @property
    def run(self) -> RunState | None:
        """Where the current run stands, None before the first prefill."""
        return self.book.state

    @property
    def run_id(self) -> int | None:
        """The engine's id of the current run."""
        return self.run.run_id if self.run else None

    @property
    def run_text(self) -> str:
        """The text of the current path."""
        return self.book.text

    @property
    def prompt_tokens(self) -> tuple[Token, ...]:
        """The prompt's tokens as they were prefilled."""
        return self.book.prompt_tokens

    @property
    def nodes(self) -> dict[int, Node]:
        """Every decode node of the run's tree by id."""
        return self.book.nodes

    @property
    def length(self) -> int:
        """Positions of the current path."""
        return self.book.length

    @property
    def n_prompt(self) -> int:
        return self.book.n_prompt

    @property
    def current_node(self) -> int:
        """The current node's id, -1 without a run."""
        return self.book.current

    @property
    def prompt_text(self) -> str:
        """The text being typed."""
        return self.prompt.text

    @property
    def live_tokens(self) -> Sequence[Token]:
        """Its tokens, a little later."""
        return self.prompt.tokens

    @property
    def sampler(self) -> SamplerSettings:
        return self.sampling.settings

    @property
    def distribution(self) -> DistributionReply | None:
        """The next token's distribution at the current node."""
        return self.sampling.distribution

    @property
    def memory(self) -> MemoryInfo | None:
        return self.facts.memory

    @property
    def prompt_stats(self) -> PromptStats | None:
        """What the model expected of the prompt, once it has been computed."""
        return self.facts.prompt_stats

    @property
    def self_check(self) -> SelfCheckReply | None:
        """The proof of the run's numbers, once it has been made."""
        return self.facts.self_check

    @property
    def busy(self) -> bool:
        """Whether a request that Stop would end is under way."""
        return self.under_way.busy

    @property
    def can_run(self) -> bool:
        """Whether there is a model to run, and an engine that does."""
        ready = self.engine_status is EngineStatus.READY and self.desk.loaded
        return ready and self.model is not None and not self.model.recorded

    @property
    def can_look(self) -> bool:
        """Whether there is a model or a record of one, and an engine that holds the run, if one is shown."""
        return self.desk.loaded and self.engine_status is EngineStatus.READY and self.lost.held

    @property
    def can_go_on(self) -> bool:
        """Whether there is a run that can have more tokens."""
        return self.run is not None and self.can_run and self.can_look

    @property
    def decode_ms(self) -> float:
        """Median wall time of the decode steps on the path, ms; 0 without any."""
        return self.book.decode_ms

    @property
    def prefill_ms(self) -> float:
        return self.run.prefill_ms if self.run else 0.0

    def path_tokens(self) -> tuple[PathToken, ...]:
        """Every position of the current path, prompt first."""
        return self.book.path

    def path_nodes(self) -> tuple[Node, ...]:
        """The decode nodes of the current path, in order."""
        return self.book.path_nodes()

    def nodes_ahead(self) -> tuple[Node, ...]:
        """The nodes that were left by going back, in order."""
        return self.book.nodes_ahead()

    def branches_after(self, node: int) -> tuple[Node, ...]:
        """The nodes made after `node`, oldest first."""
        return self.book.children(node)

    # engine and model

    def start(self, source: str = "") -> None:
        """Starts the engine and opens `source`, or the model used last, or the default."""
        self.desk.first_source = source
        self.engine.start()

    def open_model(self, source: str) -> None:
        """Opens a model; the one that is open stays until the new one is whole. "" is the default model."""
        self.desk.open(source)

    def restart_engine(self) -> None:
        """Starts a new engine; model, prompt, tokens, nodes and settings come back."""
        self.engine.restart(self.settings.values.engine_command)

    # prompt

    def set_prompt(self, text: str) -> None:
        """The text being typed; its tokens follow."""
        self.prompt.set_text(text)
        if text:
            self.notify.unsay(nothing_typed())

    def prefill(self, *, truncate: bool = False, then_steps: int = 0, greedy: bool = False) -> None:
        """Starts a new run on the prompt, then takes `then_steps` steps."""
        if not self.can_run or self.busy:
            return
        if not self.prompt_text:
            self.notify.say(nothing_typed())
            return
        prompt = self.prompt
        if self.model and self.prompt_excess and not truncate:
            self.remedies.refuse_long(prompt.count, self.model.n_ctx)
            return
        chunk = self.settings.values.prefill_chunk
        message = Prefill(
            text=prompt.text, add_special=prompt.add_special, chat=prompt.chat, truncate=truncate,
            chunk=chunk, visible=chunk > 0,
        )  # fmt: skip
        self._prefill(message, then_steps, SamplerSettings(temperature=0.0) if greedy else self.sampler)

    def _prefill(self, message: Prefill, then_steps: int, settings: SamplerSettings) -> bool:
        """Starts it, where nothing else is under way; says whether it did. Again later it is the same prompt, whatever
        has been typed by then."""
        if not self.can_run or self.busy:
            self.notify.say(tr("Stop what is under way first.") if self.busy else tr("No model is open."))
            return False
        self.lost.begins(lambda: self._prefill(message, then_steps, settings))

        def done(reply: PrefillReply, _arrays: Arrays) -> None:
            self.under_way.end()
            self.lost.made()
            self.prefilled_text = message.text
            self.new_run(reply)
            if words := stop_words(reply.state):
                self.notify.say(words)
            elif then_steps:
                self._step(then_steps, settings)

        self.ask_prefill(tr("Prefilling"), message, done, self._on_prefill_error)
        return True

    @property
    def prompt_excess(self) -> int:
        """How many tokens of the typed prompt the context has no room for, as far as it has been tokenised."""
        if self.model is None or self.prompt.stale:
            return 0
        return max(0, self.prompt.count - self.model.n_ctx)

    # run control

    def step(self, n: int = 1) -> None:
        """Decodes `n` more tokens; where the run was stepped back and nothing was changed since, goes forward."""
        if not self.can_go_on:
            return
        if self.busy:
            if self.phase is Phase.DECODE and not self.under_way.to_end:
                self._steps_wanted = min(self._steps_wanted + n, MAX_STEPS_WAITING)
            return
        if n == 1 and self.forward():
            return
        self._step(n, self.sampler)

    def run_until_end(self) -> None:
        """Decodes until the end of the text, the end of the context, or Stop."""
        if self.run is not None and self.can_go_on and not self.busy:
            self._ask_state(Step(n=max(1, self.run.n_ctx - self.run.length), settings=self.sampler), to_end=True)

    def back(self) -> None:
        """To the token before; never runs the model."""
        if self.run and self.run.path:
            self.seek(self.book.parent(self.current_node))

    def forward(self) -> bool:
        """To the token that was left by going back, if the sampler is as it was; says whether it went."""
        child = self.book.forward_from(self.current_node, self.sampling.version)
        if child is None or self.busy:
            return False
        self.seek(child)
        return True

    def first(self) -> None:
        """To the end of the prompt."""
        if self.run and self.run.path:
            self.seek(self.n_prompt - 1)

    def last(self) -> None:
        """As far forward as this branch has been."""
        self.seek(self.book.last_from(self.current_node))

    def seek(self, node: int) -> None:
        """To any node of the tree, or to the last prompt token; never runs the model unless it was dropped."""
        if self.run is None or not self.can_look or self.busy or node == self.current_node:
            return
        self.book.leave_for(node, self.sampling.version)
        self._ask_state(Seek(node=node))

    def duplicate(self) -> None:
        """The current token once more, as a branch of its own, to go on from differently."""
        if self.run is not None and self.run.path and self.can_go_on and not self.busy:
            node = self.nodes[self.current_node]
            again = Branch(node=node.parent, token_id=node.token_id, settings=node.settings, again=True)
            self._ask_state(again)

    def branch(self, node: int, token_id: int) -> None:
        """Appends a token of the person's choice after `node`."""
        if self.can_go_on and not self.busy:
            self._ask_state(Branch(node=node, token_id=token_id, settings=self.sampler))

    def stop(self) -> None:
        """Asks what is under way to stop; says so at once."""
        self._steps_wanted = 0
        if self.under_way.cancel():
            self.notify.say(tr("Stopping …"))

    # sampler

    def set_sampler(self, **changes: Any) -> None:
        """Changes sampler settings; the distribution follows without a forward pass. Raises BadValueError."""
        self.sampling.set(**changes)

    # answers

    def _on_lost(self) -> None:
        """The engine is gone: what it held is remembered, what was under way is over."""
        self.lost.take()
        self._steps_wanted = 0
        self.prompt.set_ready(False)
        self.under_way.end()

    def _on_opened(self, first: bool, same: bool) -> None:
        self.remedies.use_kept_budget()
        self.selection.set_model(self.model)
        self.changed.emit(Topic.MODEL)
        self.prompt.set_ready(True)
        self.lost.opened(first=first, same=same)

    def ask_prefill(
        self,
        title: str,
        message: Prefill | Restore,
        done: Callable[[PrefillReply, Arrays], None],
        failed: Callable[[ErrorInfo], None],
    ) -> None:
        """Has a run made; `done` takes it, `failed` what goes wrong."""
        pending = self.engine.request(
            message,
            on_reply=done,
            on_part=self._on_chunk if isinstance(message, Prefill) else None,
            on_progress=self.under_way.on_progress,
            on_error=failed,
        )
        self.notify.clear()
        self.under_way.begin(Phase.PREFILL, title, pending)

    def _on_chunk(self, part: PrefillPart, _arrays: Arrays) -> None:
        """A visible prefill has read more of the prompt."""
        if part.state.run_id != self.run_id:
            self.facts.forget()
        self.book.take_chunk(part)
        self._after_state()
        self.changed.emit(Topic.RUN)

    def _on_prefill_error(self, error: ErrorInfo) -> None:
        self.under_way.end()
        self.notify.engine_error(tr("The prompt was not prefilled"), error, *self.remedies.of(error, self.lost.redo))
        if error.code == "cancelled":
            self.notify.say(tr("Prefill stopped."))
        self.lost.stopped()

    def take_run(self, reply: OpenRunReply) -> None:
        """The run of a file is the current one from now on."""
        self.lost.made()
        self.prefilled_text = reply.prompt
        self.selection.set_model(self.model)
        self.prompt.take(reply.prompt, reply.text, reply.tokens)
        self.changed.emit(Topic.MODEL)
        self.new_run(PrefillReply(state=reply.state, tokens=reply.tokens, text=reply.text))

    def clear_run(self) -> None:
        """There is no run any more."""
        self.book.clear()
        self.facts.forget()
        self.sampling.clear()
        self.selection.set_length(0)
        self.changed.emit(Topic.RUN)

    def new_run(self, reply: PrefillReply) -> None:
        """The run that the engine has just made is the current one from now on."""
        first = self.run is None
        self.book.begin(reply)
        self._after_state()
        self.changed.emit(Topic.RUN)
        if first:
            point_at_example(self)
        self.facts.new_run(reply.state.run_id)

    def _after_state(self) -> None:
        if self.run is None:
            return
        self.facts.set_memory(self.run.memory)
        self.selection.set_length(self.run.length)
        self.changed.emit(Topic.NODE)
        self.sampling.look_at(self.run.run_id, self.run.current)

    def _step(self, n: int, settings: SamplerSettings) -> None:
        self._ask_state(Step(n=n, settings=settings))

    def _ask_state(self, message: Step | Seek | Branch, *, to_end: bool = False) -> None:
        def done(state: RunState, _arrays: Arrays) -> None:
            self.under_way.end()
            self.book.take(state)
            self._after_state()
            if words := stop_words(state):
                self.notify.say(words)
            wanted, self._steps_wanted = self._steps_wanted, 0
            if wanted and not state.stop:
                self._step(wanted, self.sampler)

        pending = self.engine.request(message, on_reply=done, on_part=self._on_step_part, on_error=self._on_step_error)
        # Going back and forth runs no model: nothing to tell, and it ends before a person sees it.
        title = "" if isinstance(message, Seek) else tr("Decoding")
        self.under_way.begin(self.phase if isinstance(message, Seek) else Phase.DECODE, title, pending, to_end=to_end)

    def _on_step_part(self, part: StepPart, _arrays: Arrays) -> None:
        """A token has come while more are being decoded: it is shown at once."""
        self.book.take_part(part)
        self._after_state()

    def _on_step_error(self, error: ErrorInfo) -> None:
        self._steps_wanted = 0
        self.under_way.end()
        self.notify.engine_error(tr("The step did not happen"), error, *self.remedies.of(error, self.step))
