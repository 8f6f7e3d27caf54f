"""Says in red, once a run, that the model's own numbers are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.i18n import tr

if TYPE_CHECKING:
    from app.notify import Notifier
    from app.session import Session


class NumberAlarm(QObject):
    """Looks at every distribution that comes: nothing can be sampled from logits that are NaN."""

    def __init__(self, session: Session, notify: Notifier) -> None:
        super().__init__(session)
        self._session, self._notify = session, notify
        self._told: int | None = None
        session.changed.connect(self._on_change)

    def _on_change(self, topic: object) -> None:
        if str(topic) != "DISTRIBUTION":
            return
        reply, run = self._session.distribution, self._session.run_id
        if reply is not None and reply.nan_logits and run != self._told:
            self._told = run
            n, step = f"{reply.nan_logits:,}", self._session.length
            self._notify.warn(
                tr(
                    "{n} logits after token {step} are not numbers (NaN or infinite): no token can be drawn.",
                    n=n,
                    step=step,
                )
            )
