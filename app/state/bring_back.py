"""The work of windows that ended without being closed: kept under names that nothing replaces, offered at every start
until a person has brought it back or discarded it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QDateTime, QLocale, QObject, Qt, Signal

from app.amounts import tokens
from app.i18n import tr
from app.notify import WayOut
from app.plain import one_line
from app.small_files import read_small
from app.state.autosave import MAX_BYTES, NAME, Saved, decode_saved, numbered, readable_prompt, remove
from app.state.lost_run import Return
from app.state.model_desk import EngineStatus, is_run_file
from app.state.place import MAX_WINDOWS, lock_path, take_lock
from model.protocol.errors import DecoderscopeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from app.notify import Notifier
    from app.session import Session

log = logging.getLogger("decoderscope.app")
LOST, DISCARDED = "lost", "discarded.dscope-window"
MAX_LOST = 24  # works kept at once; the oldest then gives way, which is told
BEGINNING = 40  # characters of a prompt in a menu
AT_ONCE_BYTES = 2**18  # read in about ten milliseconds


@dataclass(frozen=True, kw_only=True)
class Left:
    """A file that a window left. `number`: see Lost."""

    path: Path
    number: int = 1


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """What an earlier window left and nobody can read: kept at `path`. `prompt` where that alone could be."""

    path: Path
    why: str
    prompt: str = ""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A window's work, kept at `path`. `number`: the window's, where it ended just now. `when`: seconds since 1970."""

    saved: Saved
    path: Path
    when: float
    number: int = 1

    @property
    def n_tokens(self) -> int:
        return len(self.saved.ids) + len(self.saved.nodes)

    @property
    def words(self) -> str:
        """The beginning of its prompt, tokens and time, on one line."""
        text = one_line(self.saved.prompt, BEGINNING)
        time_of = QDateTime.fromSecsSinceEpoch(int(self.when))
        when = QLocale().toString(time_of, QLocale.FormatType.ShortFormat)
        return tr("“{text}”, run of {tokens}, {when}", text=text, tokens=tokens(self.n_tokens), when=when)


def offer_lost(
    folder: Path, own: int, session: Session, notify: Notifier, claim: Callable[[Path], None] | None = None
) -> None:
    """Offers what windows that are no longer there left in `folder`: at once, or a little later where reading it takes
    long. `own`: this one's number, which is locked. `claim`: told the file of what was brought back."""
    earlier = [Left(path=path) for path in sorted(folder.glob(f"{LOST}*.dscope-window"))]
    left = [*filter(None, (_move(folder, number) for number in _ended(folder, own))), *earlier]
    reading = Reading(session)
    reading.ended.connect(lambda found: _offer_found(found, session, notify, claim))
    reading.begin(left)


def _offer_found(
    found: list[Lost | Unreadable], session: Session, notify: Notifier, claim: Callable[[Path], None] | None
) -> None:
    for each in found:
        if isinstance(each, Unreadable):
            tell_unreadable(each, session, notify)
    lost = sorted((each for each in found if isinstance(each, Lost)), key=lambda each: each.when, reverse=True)
    remove(*(each.path for each in lost if each.saved.example_only))  # nothing that this window doesn't show itself
    lost = [each for each in lost if not each.saved.example_only]
    for each in lost[MAX_LOST:]:
        words = tr("More than {n} windows' works were kept: the oldest is gone, {work}.", n=MAX_LOST, work=each.words)
        notify.tell(words)
        remove(each.path)
    if lost:
        BringBack(tuple(lost[:MAX_LOST]), session, notify, session, claim=claim)


class Reading(QObject):
    """Reads files of earlier windows, on a thread of its own where they are large: runs of thousands of tokens take
    longer than the window may stand still."""

    ended = Signal(object)  # list[Lost | Unreadable]

    def begin(self, left: Sequence[Left]) -> None:
        """Reads them and says what they hold."""
        if sum(_size(each.path) for each in left) <= AT_ONCE_BYTES:
            self._read(left)
        else:
            threading.Thread(target=self._read, args=(left,), name="earlier work", daemon=True).start()

    def _read(self, left: Sequence[Left]) -> None:
        found = [*filter(None, (_read(each) for each in left))]
        with contextlib.suppress(RuntimeError):  # the window was closed meanwhile: the files stay for the next one
            self.ended.emit(found)
            self.deleteLater()


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0  # whoever reads it says so


def _ended(folder: Path, own: int) -> Iterator[int]:
    """The numbers of the windows that left work and are no longer there; each is locked until the next is asked for."""
    for number in range(1, MAX_WINDOWS + 1):
        if not os.path.lexists(folder / numbered(NAME, number)):
            continue
        try:
            lock = None if number == own else take_lock(lock_path(folder, number))
        except OSError as error:
            log.warning("%s: %s", error.filename, error.strerror)
            continue
        if number == own or lock is not None:
            yield number
        if lock is not None:
            lock.unlock()


def take_lost(folder: Path, number: int = 1) -> Lost | Unreadable | None:
    """What a window that did not close left in `folder`, moved to a name that nothing replaces."""
    left = _move(folder, number)
    return None if left is None else _read(left)


def _move(folder: Path, number: int) -> Left | None:
    """Moves what a window left away, before this one's own work takes its name; only who holds its lock may."""
    path = folder / numbered(NAME, number)
    return Left(path=_keep(path, f"{LOST}-{number}"), number=number) if os.path.lexists(path) else None


def _read(left: Left) -> Lost | Unreadable | None:
    """The work in a file; what can't be read is moved away from there. None where another window has just taken it."""
    raw, path = b"", left.path
    try:
        raw = read_small(path, MAX_BYTES)
        return Lost(saved=decode_saved(raw), path=path, when=path.stat().st_mtime, number=left.number)
    except (OSError, DecoderscopeError) as error:
        if not os.path.lexists(path):
            return None
        why = getattr(error, "strerror", None) or str(error)
        return Unreadable(path=_keep(path, "unreadable"), why=why, prompt=readable_prompt(raw))


def _keep(left: Path, word: str) -> Path:
    """Moves a file to a name of its own; where it is now."""
    stem = f"{word}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (left.with_name(f"{stem}{n}{left.suffix}") for n in ("", *(f"-{n}" for n in range(2, 1000))))
    kept = next((path for path in names if not os.path.lexists(path)), left)
    try:
        left.rename(kept)
    except OSError as error:
        log.warning("%s can't be moved: %s", left, error)
        return left
    return kept


def tell_unreadable(left: Unreadable, session: Session, notify: Notifier) -> None:
    """Says that an earlier window's work can't be read and where it is; offers the prompt where it could be."""
    of_it = {"why": left.why, "path": str(left.path)}
    if left.prompt and left.prompt != session.prompt.text:
        text = tr(
            "Of what the last window left only the prompt can be read ({why}). The file is kept as {path}.", **of_it
        )
        way = WayOut(label=tr("Bring the prompt back"), run=lambda: session.set_prompt(left.prompt))
        notify.propose(text, way)
    else:
        notify.tell(tr("What the last window left can't be read ({why}). It is kept as {path}.", **of_it))


class BringBack(QObject):
    """Offers what earlier windows lost; `start` brings one work back: prompt and sampler at once, then model and run.
    What did not come back is offered again. `claim`: told the file of what did."""

    def __init__(
        self,
        lost: tuple[Lost, ...],
        session: Session,
        notify: Notifier,
        parent: QObject | None = None,
        *,
        claim: Callable[[Path], None] | None = None,
    ) -> None:
        super().__init__(parent)
        self._lost, self._session, self._notify, self._claim = lost, session, notify, claim
        self._wanted: Lost | None = None  # waits until nothing else is under way
        self._opening: Return | None = None  # waits for its model
        self._text = ""
        session.changed.connect(self._go_on, Qt.ConnectionType.QueuedConnection)  # whoever changes it ends first
        session.desk.refused.connect(self._on_refused)
        self._offer()

    def start(self, lost: Lost) -> bool:
        """Stops what is under way and brings an earlier window's work back; says whether it began."""
        session, saved = self._session, lost.saved
        if session.engine_status is not EngineStatus.READY or self._wanted or self._opening:
            self._notify.say(session.engine.message or tr("Stop what is under way first."))
            return False
        self._put_prompt(saved)
        session.set_sampler(**asdict(saved.sampler))
        self._wanted = lost
        session.stop()
        self._go_on()
        return True

    def discard(self, lost: Lost) -> None:
        """Offers a work no more; its file stays beside the preferences until the next one is discarded."""
        self._forget(lost)
        try:
            lost.path.replace(lost.path.with_name(DISCARDED))
        except OSError as error:
            log.warning("%s can't be moved: %s", lost.path, error)
            return
        kept = str(lost.path.with_name(DISCARDED))
        words = tr("Discarded. It is kept as {path} until another is discarded.", path=kept)
        self._notify.say(words)

    def _offer(self) -> None:
        if self._text:
            self._notify.withdraw(self._text)
        if not self._lost:
            return
        if len(self._lost) > 1:
            self._text = tr(
                "{n} windows ended without being closed. Their prompts and runs were kept.", n=len(self._lost)
            )
            self._notify.propose(
                self._text,
                WayOut(label=tr("Discard …"), run=_nothing, choices=self._choices(self.discard)),
                WayOut(label=tr("Bring back …"), run=_nothing, choices=self._choices(self.start)),
            )
            return
        [lost] = self._lost
        n = tokens(lost.n_tokens)
        self._text = tr(
            "The last window ended without being closed. Its prompt and its run of {tokens} were kept.", tokens=n
        )
        if lost.number > 1:
            self._text = tr(
                "Window {number} ended without being closed. Its prompt and its run of {tokens} were kept.",
                number=lost.number, tokens=n,
            )  # fmt: skip
        self._notify.propose(
            self._text,
            WayOut(label=tr("Discard"), run=lambda: self.discard(lost)),
            WayOut(label=tr("Bring them back"), run=lambda: self.start(lost)),
        )

    def _choices(self, act: Callable[[Lost], object]) -> tuple[WayOut, ...]:
        return tuple(WayOut(label=lost.words, run=partial(act, lost)) for lost in self._lost)

    def _go_on(self) -> None:
        session, lost = self._session, self._wanted
        if session.engine_status in {EngineStatus.LOST, EngineStatus.OFF}:
            self._give_up()  # nothing is opened later that was asked for now
            return
        if lost is None or session.busy or session.engine_status is not EngineStatus.READY:
            return
        self._wanted, saved = None, lost.saved
        there = session.desk.loaded and session.source == saved.source
        if not there and is_run_file(saved.source):
            self._open_run_file(lost)
        elif saved.kept is None and session.desk.loaded:
            self._done(lost)
        elif saved.kept is None:
            self._done(lost)
            session.open_model(saved.source)
        elif there and not session.can_run:
            self._done(lost)  # a recorded run is there already
        else:
            coming = Return(kept=saved.kept, source=saved.source, sha256=saved.sha256, ended=partial(self._ended, lost))
            if there:
                session.lost.bring(coming)
            else:
                self._opening = coming
                session.lost.expect(coming)
                session.open_model(saved.source)

    def _ended(self, lost: Lost, back: bool) -> None:
        self._opening = None
        self._done(lost) if back else self._offer()

    def _done(self, lost: Lost) -> None:
        """It is back."""
        if self._claim is not None:
            self._claim(lost.path)
        self._forget(lost)

    def _forget(self, lost: Lost) -> None:
        self._lost = tuple(each for each in self._lost if each is not lost)
        self._offer()

    def _on_refused(self) -> None:
        if self._opening is not None:
            self._give_up()

    def _give_up(self) -> None:
        """It does not come now: it is offered as before."""
        opening, wanted = self._opening, self._wanted
        self._opening = self._wanted = None
        if opening is not None:
            self._session.lost.forget(opening)
        if opening is not None or wanted is not None:
            self._offer()

    def _open_run_file(self, lost: Lost) -> None:
        """The file brings its run, and the prompt that was recorded: the typed one is put back once it is open."""
        files = self._session.files

        def opened(_reply: object) -> None:
            end()
            self._put_prompt(lost.saved)
            self._done(lost)

        def failed() -> None:
            end()
            self._put_prompt(lost.saved)
            self._offer()

        def end() -> None:
            files.opened.disconnect(opened)
            files.failed.disconnect(failed)

        files.opened.connect(opened)
        files.failed.connect(failed)
        self._session.open_model(lost.saved.source)

    def _put_prompt(self, saved: Saved) -> None:
        self._session.set_prompt(saved.prompt)
        self._session.prompt.set_options(add_special=saved.add_special, chat=saved.chat)


def _nothing() -> None:
    """The menu does it."""
