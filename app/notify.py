"""Messages to the person: one line for the status bar, notices that stay until read, errors with their way out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from model.protocol.wire import ErrorInfo

log = logging.getLogger("decoderscope.app")
TAKEN_BACK = frozenset({"cancelled", "superseded"})
"""A view that got one of these and is still wanted is asked for again."""
QUIET_CODES = TAKEN_BACK | {"engine_lost"}


@dataclass(frozen=True, kw_only=True)
class WayOut:
    """A button of an error or a notice: what it says and does; a notice's stays where `run` returns False, for nothing
    could be done. `choices`: a menu in the place of `run`."""

    label: str
    run: Callable[[], object]
    choices: tuple[WayOut, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """An error as shown: a title, the sentence (what, where, why, what to do), text to copy, buttons. `expanded`: the
    text is seen at once. Two that say the same are equal, whatever their buttons."""

    title: str
    message: str
    details: str = ""
    ways_out: tuple[WayOut, ...] = field(default=(), compare=False)
    expanded: bool = False


class Notifier(QObject):
    """Collects what is to be said; the window shows it. `messages` keeps the last ones for the log panel."""

    message = Signal(object)  # str; as an object, so that Words stay what they are
    complaint = Signal(object)
    notice = Signal(object)
    alarm = Signal(object)
    offer = Signal(object, object)  # the text, a tuple of WayOut
    withdrawn = Signal(object)
    trouble = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.last = ""

    def say(self, text: str) -> None:
        """A line for the status bar."""
        self.last = text
        log.info("%s", text)
        self.message.emit(text)

    def complain(self, text: str) -> None:
        """A line for the status bar in red: something was not done. It stays until it is closed or another comes."""
        self.last = text
        log.warning("%s", text)
        self.complaint.emit(text)

    def unsay(self, text: str) -> None:
        """Takes a line back that no longer holds, where it was the last one."""
        if self.last == text:
            self.last = ""
            self.message.emit("")

    def clear(self) -> None:
        """What was said last is over: something new has begun."""
        self.message.emit("")

    def tell(self, text: str) -> None:
        """A notice that stays until it is closed."""
        log.warning("%s", text)
        self.notice.emit(text)

    def warn(self, text: str) -> None:
        """A notice in red: numbers on the screen can't be what they should be."""
        log.error("%s", text)
        self.alarm.emit(text)

    def propose(self, text: str, *ways: WayOut) -> None:
        """A notice with buttons, which close it; in the place of one that says the same."""
        log.info("%s", text)
        self.offer.emit(text, ways)

    def withdraw(self, text: str) -> None:
        """What was proposed with this text is over."""
        self.withdrawn.emit(text)

    def fail(self, trouble: Trouble) -> None:
        """An error dialog."""
        log.error("%s: %s\n%s", trouble.title, trouble.message, trouble.details)
        self.last = trouble.message
        self.trouble.emit(trouble)

    def engine_error(self, title: str, error: ErrorInfo, *ways_out: WayOut) -> None:
        """An error from the engine; a cancel, a replaced request and a lost engine (it has its banner) are none."""
        if error.code not in QUIET_CODES:
            self.fail(Trouble(title=title, message=error.message, details=error.details, ways_out=ways_out))
