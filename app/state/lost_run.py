"""What an engine that is gone held: the run on the screen, kept until another engine has made it again. The run of an
earlier window comes back by the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.amounts import tokens
from app.engine import LOST
from app.i18n import tr
from app.notify import Trouble, WayOut
from app.state.example import show_example
from app.state.model_desk import EngineStatus
from app.state.under_way import Phase
from model.protocol.run_requests import PrefillReply, Restore

if TYPE_CHECKING:
    from app.session import Session
    from app.state.run_book import Kept
    from model.protocol.framing import Arrays
    from model.protocol.values import ModelInfo
    from model.protocol.wire import ErrorInfo

UNSERVED = frozenset({LOST, "no_model", "no_run"})
"""Errors of a question about a run that no engine holds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Return:
    """A run on its way back. `source`: of the model that it wants; `sha256`: of the weights that drew its tokens, ""
    where that is not known, and `computed` in which number format and where; `ended`: told once whether it is back."""

    kept: Kept
    source: str
    sha256: str = ""
    computed: str = ""
    ended: Callable[[bool], None] | None = None


def computed(model: ModelInfo) -> str:
    """Number format and device, which the last digits of every number go by."""
    return f"{model.dtype} · {model.device}"


def not_held() -> str:
    """What is said of a run that is only shown."""
    return tr("The run on the screen is not in the engine: nothing more can be read from it.")


def no_model() -> str:
    """What is said of an engine without the model that is shown."""
    return tr("The engine has no model: the one that was open could not be opened again, so nothing can be run.")


def not_back() -> str:
    """The title of what hinders a run from coming back."""
    return tr("The run was not brought back")


def positions(kept: Kept) -> int:
    """How many positions of the context a run needs: those of its longest branch."""
    return max((len(kept.ids), *(node.position + 1 for node in kept.nodes)))


class LostRun:
    """`kept`: the run that is shown while no engine holds it. `redo`: makes once more what is being prefilled."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.kept: Kept | None = None
        self.sha256 = ""  # of the weights that drew the run's tokens
        self.computed = ""  # in which number format its numbers were, and where
        self.redo: Callable[[], object] | None = None
        self._interrupted: Callable[[], object] | None = None
        self._return: Return | None = None  # asked for
        self._expected: Return | None = None  # waits for its model
        self._before: Kept | None = None  # what a visible prefill puts another run in the place of, chunk by chunk
        session.desk.refused.connect(self._on_refused)
        session.files.failed.connect(self._on_refused)

    @property
    def held(self) -> bool:
        """Whether the engine holds what is shown."""
        return self.kept is None

    @property
    def worth(self) -> Kept | None:
        """The run that should be there again after a crash, of the engine or of the window."""
        coming = self._return.kept if self._return else None
        return coming or self._before or self._session.book.kept() or self.kept

    def begins(self, redo: Callable[[], object]) -> None:
        """A prefill begins; until it is over a crash brings back the run before it."""
        self.redo, self._before = redo, self._session.book.kept()

    def made(self) -> None:
        """The engine holds a run that it made from what was asked, and the screen shows it."""
        self.kept = self.redo = self._interrupted = self._before = None
        model = self._session.model
        self.sha256, self.computed = (model.sha256, computed(model)) if model else ("", "")
        self._withdraw()

    def take(self) -> None:
        """The engine is gone: the run is remembered, and what it was prefilling."""
        self.kept, self._before = self.worth, None
        if self._session.phase is Phase.PREFILL:
            self._interrupted = self.redo or self._interrupted  # none of its own: a run was coming back

    def opened(self, *, first: bool, same: bool) -> None:
        """A model is open. The run comes back before anything else: a prefill that was interrupted may have been what
        ended the engine, so it is only offered; it is begun again at once where there is no run."""
        session = self._session
        self._withdraw()
        busy = session.busy  # with the run file it was opened for
        coming, self._expected = self._expected or self._return, None
        if coming is not None and session.source == coming.source and not busy:
            if not same:
                self.kept = self._interrupted = None
                session.clear_run()
            self.bring(coming)
            return
        if coming is not None:
            self._give_up(coming)
        kept = self.kept or (session.book.kept() if same else None)
        if kept and same and not busy:
            self.kept = kept
            self.restore(kept)
            return
        interrupted, self._interrupted = self._interrupted, None
        if not same or busy:
            self._say_other_vocabulary(busy=busy)
            self.kept = None
            session.clear_run()
        if interrupted:
            interrupted()
        elif first:
            show_example(session)

    def restore(self, kept: Kept) -> None:
        """Makes the run that is shown again, from its tokens and draws, with the model that is open."""
        self.bring(Return(kept=kept, source=self._session.source, sha256=self.sha256, computed=self.computed))

    def expect(self, coming: Return) -> None:
        """Brings a run back as soon as the model it wants is open."""
        self._expected = coming

    def forget(self, coming: Return) -> None:
        """The model it wants does not come."""
        if self._expected is coming:
            self._expected = None

    def bring(self, coming: Return) -> None:
        """Makes a run again, from its tokens and draws, with the model that is open."""
        session, interrupted, kept = self._session, self._interrupted, coming.kept

        def done(reply: PrefillReply, _arrays: Arrays) -> None:
            session.under_way.end()
            self._return = None
            self.made()
            self.sha256 = coming.sha256 or self.sha256
            session.new_run(reply)
            self._say_back(coming.computed)
            if coming.ended is not None:
                coming.ended(True)
            if interrupted is not None:
                text = tr("The engine ended while it prefilled another prompt.")
                session.notify.propose(text, WayOut(label=tr("Prefill it again"), run=interrupted))

        self.redo = None  # what was interrupted stays what it was while the run comes back
        self._return = coming
        if (needed := positions(kept)) > (n_ctx := session.model.n_ctx if session.model else needed):
            text = tr(
                "It has {n} tokens and the model that is open takes {all}. Shorten the prompt and prefill it, or open "
                "the model as it was.",
                n=f"{needed:,}", all=f"{n_ctx:,}",
            )  # fmt: skip
            self._give_up(coming)
            session.notify.fail(Trouble(title=not_back(), message=text))
            return
        message = Restore(ids=kept.ids, text=kept.text, nodes=kept.nodes, current=kept.current)
        session.ask_prefill(tr("Restoring the run"), message, done, lambda error: self._on_error(coming, error))

    def bring_back(self) -> bool:
        """Restores the run that is shown, opening its model first where the engine has none; says whether it began."""
        session = self._session
        if self.kept is None or session.busy or session.engine_status is not EngineStatus.READY:
            session.notify.say(tr("Stop what is under way first.") if session.busy else session.engine.message)
            return False
        if not session.desk.loaded:
            session.desk.reopen()
        else:
            self.restore(self.kept)
        return True

    def stopped(self) -> None:
        """A prefill ended without a run; where the engine now holds none, says so and how to have it back."""
        self._before = None
        if not self.held and self._session.can_run:
            way = WayOut(label=tr("Bring it back"), run=self.bring_back)
            self._session.notify.propose(not_held(), way)

    def _on_error(self, coming: Return, error: ErrorInfo) -> None:
        """It did not come back. Where the engine is gone, the next one is asked again."""
        session = self._session
        session.under_way.end()
        if error.code == LOST:
            return
        self._give_up(coming)
        session.notify.engine_error(not_back(), error, *session.remedies.of(error, lambda: self.bring(coming)))
        if error.code == "cancelled":
            session.notify.say(tr("Stopped: the run was not brought back."))
        self.stopped()

    def _give_up(self, coming: Return) -> None:
        self._return = None if self._return is coming else self._return
        if coming.ended is not None:  # it is offered again; what is shown is another run
            self.kept = self._session.book.kept() if self.kept is not None else None
            coming.ended(False)

    def _say_back(self, was: str) -> None:
        """That the run is as it was, unless other weights read its tokens now, or another number format or
        device than `was`, "" where that isn't known."""
        session, model = self._session, self._session.model
        if model is None or not self.sha256 or not model.sha256 or model.sha256 == self.sha256:
            if model is None or computed(model) == was:
                session.notify.say(tr("The run is back as it was."))
            elif was:
                words = tr("The run is back with its tokens; its numbers are computed anew: {was} before, {now} now.",
                           now=computed(model), was=was)  # fmt: skip
                session.notify.say(words)
            else:
                session.notify.say(tr("The run is back with its tokens."))
            return
        session.notify.say(tr("The run is back, read by other weights."))
        text = tr(
            "The weights of {model} are not those that drew this run's tokens (SHA-256 {was} then, {now} now): the "
            "tokens are as they were, every number is that of the weights open now.",
            model=model.name, was=self.sha256[:12], now=model.sha256[:12],
        )  # fmt: skip
        session.notify.tell(text)

    def _say_other_vocabulary(self, *, busy: bool) -> None:
        session = self._session
        if self.kept is None or busy or not session.desk.reopened:
            return
        words = tr(
            "The model's vocabulary is another than before: the run of {tokens} could not be made again.",
            tokens=tokens(positions(self.kept)),
        )  # fmt: skip
        session.notify.tell(words)

    def _on_refused(self) -> None:
        """A model did not open. Where the engine has none at all, that stays to be read, with a way out."""
        session = self._session
        if session.model is None or session.desk.loaded or session.engine_status is not EngineStatus.READY:
            return
        session.notify.propose(no_model(), WayOut(label=tr("Open it again"), run=session.desk.reopen))

    def _withdraw(self) -> None:
        for text in (not_held(), no_model()):
            self._session.notify.withdraw(text)
