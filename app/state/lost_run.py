"""What an engine that is gone held: the run on the screen, kept until another engine has made it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.engine import LOST
from app.i18n import tr
from app.notify import WayOut
from app.state.example import show_example
from app.state.under_way import Phase
from model.protocol.run_requests import PrefillReply, Restore

if TYPE_CHECKING:
    from app.session import Session
    from app.state.run_book import Kept
    from model.protocol.framing import Arrays

UNSERVED = frozenset({LOST, "no_model", "no_run"})
"""Errors of a question about a run that no engine holds."""


class LostRun:
    """`kept`: the run that is shown while no engine holds it. `redo`: makes once more what is being prefilled."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.kept: Kept | None = None
        self.redo: Callable[[], None] | None = None
        self._interrupted: Callable[[], None] | None = None

    @property
    def held(self) -> bool:
        """Whether the engine holds what is shown."""
        return self.kept is None

    def made(self) -> None:
        """The engine holds a run that it made from what was asked, and the screen shows it."""
        self.kept = self.redo = self._interrupted = None

    def take(self) -> None:
        """The engine is gone: the run is remembered, and what it was prefilling."""
        session = self._session
        self.kept = session.book.kept() or self.kept
        if session.phase is Phase.PREFILL:
            self._interrupted = self.redo

    def opened(self, *, first: bool, same: bool) -> None:
        """A model is open. The run comes back before anything else: a prefill that was interrupted may have been what
        ended the engine, so it is only offered; it is begun again at once where there is no run."""
        session = self._session
        kept = self.kept or (session.book.kept() if same else None)
        busy = session.busy  # with the run file it was opened for
        if kept and same and not busy:
            self.kept = kept
            self.restore(kept)
            return
        interrupted, self._interrupted = self._interrupted, None
        if not same or busy:
            self.kept = None
            session.clear_run()
        if interrupted:
            interrupted()
        elif first:
            show_example(session)

    def restore(self, kept: Kept) -> None:
        """Makes a run again, from its tokens and draws, with the model that is open."""
        session, interrupted = self._session, self._interrupted

        def done(reply: PrefillReply, _arrays: Arrays) -> None:
            session.under_way.end()
            self.made()
            session.new_run(reply)
            session.notify.say(tr("The run is back as it was."))
            if interrupted is not None:
                text = tr("The engine ended while it prefilled another prompt.")
                session.notify.propose(text, WayOut(label=tr("Prefill it again"), run=interrupted))

        self.redo = None  # what was interrupted stays what it was while the run comes back
        message = Restore(ids=kept.ids, text=kept.text, nodes=kept.nodes, current=kept.current)
        session.ask_prefill(tr("Restoring the run"), message, done)

    def bring_back(self) -> None:
        """Restores the run that is shown, where nothing else is under way."""
        if self.kept is not None and self._session.can_run and not self._session.busy:
            self.restore(self.kept)

    def stopped(self) -> None:
        """A prefill ended without a run; where the engine now holds none, says so and how to have it back."""
        if not self.held and self._session.can_run:
            text = tr("The run on the screen is not in the engine: nothing more can be read from it.")
            self._session.notify.propose(text, WayOut(label=tr("Bring it back"), run=self.bring_back))
