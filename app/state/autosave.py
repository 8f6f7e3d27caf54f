"""What a crash of the window would lose, on disk every few seconds: prompt, run and sampler; offered at the next start.

A clean close removes the file. It holds one frame (model/protocol/framing.py), so its limits and its reading are
those of the engine's stream; the numbers of a run are made again by the engine from its tokens and draws.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.i18n import tr
from app.notify import WayOut
from app.small_files import NotAFileError, read_small, write_atomically
from app.state.model_desk import is_run_file
from app.state.place import MAX_WINDOWS, lock_path, take_lock
from app.state.run_book import Kept
from model.protocol.errors import DecoderscopeError
from model.protocol.framing import FrameDecoder, encode_frame
from model.protocol.values import Node, SamplerSettings
from model.protocol.wire import event_frame, read_value

if TYPE_CHECKING:
    from app.notify import Notifier
    from app.session import Session

log = logging.getLogger("decoderscope.app")
EVERY_MS = 10_000
NAME, LOST_NAME = "unsaved.dscope-window", "lost.dscope-window"  # of the first window; see `numbered`
MAX_BYTES = 17 * 2**20
EVENT = "window.saved"
_PROMPT = re.compile(rb'"prompt":\s*("(?:[^"\\]|\\.)*")')
"""The first such field of a frame's header: within a text its quotes would be escaped."""
TOPICS = frozenset({"PROMPT", "RUN", "NODE", "SAMPLER", "MODEL"})


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A window's work. `source`: of the model, "" for the default; `ids` empty without a run."""

    source: str
    prompt: str
    add_special: bool
    chat: bool
    sampler: SamplerSettings
    ids: tuple[int, ...] = ()
    text: str = ""
    nodes: tuple[Node, ...] = ()
    current: int = -1

    @property
    def kept(self) -> Kept | None:
        """The run, if there was one."""
        return Kept(ids=self.ids, text=self.text, nodes=self.nodes, current=self.current) if self.ids else None


def saved_of(session: Session) -> Saved:
    """What `session` would lose now."""
    run = session.book.kept()
    prompt = session.prompt
    return Saved(
        source=session.source, prompt=prompt.text, add_special=prompt.add_special, chat=prompt.chat,
        sampler=session.sampler, ids=run.ids if run else (), text=run.text if run else "",
        nodes=run.nodes if run else (), current=run.current if run else -1,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """What an earlier window left and nobody can read: kept at `path`. `prompt` where that alone could be."""

    path: Path
    why: str
    prompt: str = ""


class UnreadableSavedError(DecoderscopeError):
    """A file that holds no window's work."""

    code = "unreadable_autosave"


def decode_saved(raw: bytes) -> Saved:
    """The work in a file's bytes. Raises DecoderscopeError."""
    frames = FrameDecoder().feed(raw)
    if not frames:
        raise UnreadableSavedError(tr("it ends after {n} bytes, before its frame does", n=f"{len(raw):,}"))
    return read_value(frames[0].header.get("data"), Saved)


def read_saved(path: Path) -> Saved:
    """The work of a window at `path`. Raises OSError and DecoderscopeError."""
    return decode_saved(read_small(path, MAX_BYTES))


def readable_prompt(raw: bytes) -> str:
    """The prompt in the bytes of a damaged file, "" where it can't be made out."""
    found = _PROMPT.search(raw)
    try:
        return str(json.loads(found[1])) if found else ""
    except ValueError:
        return ""


class Autosave(QObject):
    """Saves `session` into `folder` every ten seconds in which it changed. `close` ends it and removes the file."""

    def __init__(
        self, session: Session, folder: Path, notify: Notifier, parent: QObject | None = None, *, number: int = 1
    ) -> None:
        super().__init__(parent)
        self._session, self._notify = session, notify
        self.path = folder / numbered(NAME, number)
        self._changed = self._told = False
        self._writing: threading.Thread | None = None
        self._refused = ""
        self._timer = QTimer(self)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self.save)
        self._timer.start()
        session.changed.connect(self._on_change)

    def _on_change(self, topic: object) -> None:
        self._changed = self._changed or str(topic) in TOPICS

    def save(self) -> None:
        """Saves what changed, on a thread of its own: a disk may take its time."""
        if self._refused and not self._told:
            self._told = True
            why = self._refused
            self._notify.tell(tr("Your work can't be kept against a crash: {why}. It is tried again.", why=why))
        if not self._changed or (self._writing is not None and self._writing.is_alive()):
            return
        self._changed = False
        saved = saved_of(self._session)  # frozen values: the thread may take its time with them too
        self._writing = threading.Thread(target=self._write, args=(saved,), name="autosave", daemon=True)
        self._writing.start()

    def _write(self, saved: Saved) -> None:
        try:
            write_atomically(self.path, encode_frame(event_frame(EVENT, saved)))
        except (OSError, DecoderscopeError) as error:
            log.warning("the autosave failed: %s", error)
            self._refused, self._changed = (getattr(error, "strerror", None) or str(error)), True
        else:
            self._refused, self._told = "", False

    def wait(self) -> None:
        """Until what is being written is written."""
        if self._writing is not None:
            self._writing.join()

    def close(self) -> None:
        """A clean end: nothing was lost."""
        self._timer.stop()
        self.wait()
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s can't be removed: %s", self.path, error)


def numbered(name: str, number: int) -> str:
    """The name a file has for the window with this number (place.py)."""
    stem, dot, suffix = name.partition(".")
    return name if number == 1 else f"{stem}-{number}{dot}{suffix}"


def offer_lost(folder: Path, own: int, session: Session, notify: Notifier) -> None:
    """Offers what windows that are no longer there left in `folder`. `own`: this one's number, which is locked."""
    for number in range(1, MAX_WINDOWS + 1):
        if os.path.lexists(folder / numbered(NAME, number)):
            try:
                lock = None if number == own else take_lock(lock_path(folder, number))
            except NotAFileError as error:
                log.warning("%s: %s", error.filename, error.strerror)
                continue
            if number == own or lock is not None:
                _offer(take_lost(folder, number), number, session, notify)
            if lock is not None:
                lock.unlock()


def _offer(lost: Saved | Unreadable | None, number: int, session: Session, notify: Notifier) -> None:
    if isinstance(lost, Unreadable):
        tell_unreadable(lost, session, notify)
    elif lost is not None and (lost.kept or lost.prompt != session.prompt.text):
        BringBack(lost, session, notify, session, number=number)


def take_lost(folder: Path, number: int = 1) -> Saved | Unreadable | None:
    """What a window that did not close left in `folder`, moved aside so that this one's file doesn't replace it; what
    can't be read under a name that nothing replaces."""
    left, lost = folder / numbered(NAME, number), folder / numbered(LOST_NAME, number)
    if not os.path.lexists(left):
        return None
    raw = b""
    try:
        raw = read_small(left, MAX_BYTES)
        saved = decode_saved(raw)
    except (OSError, DecoderscopeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        return Unreadable(path=_keep(left), why=why, prompt=readable_prompt(raw))
    try:
        left.replace(lost)
    except OSError:
        _keep(left)
    return saved


def _keep(left: Path) -> Path:
    """Moves a file to a name of its own; where it is now."""
    stem = f"unreadable-{time.strftime('%Y%m%d-%H%M%S')}"
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
    if left.prompt and left.prompt != session.prompt.text:
        text = tr("Of what the last window left only the prompt can be read ({why}). The file is kept as {path}.")
        way = WayOut(label=tr("Bring the prompt back"), run=lambda: session.set_prompt(left.prompt))
        notify.propose(_filled(text, left), way)
    else:
        notify.tell(_filled(tr("What the last window left can't be read ({why}). It is kept as {path}."), left))


def _filled(text: str, left: Unreadable) -> str:
    return text.replace("{why}", left.why).replace("{path}", str(left.path))


class BringBack(QObject):
    """Offers what an earlier window lost; `start` brings it back: prompt and sampler at once, then model and run."""

    def __init__(
        self, saved: Saved, session: Session, notify: Notifier, parent: QObject | None = None, *, number: int = 1
    ) -> None:
        super().__init__(parent)
        self._saved, self._session = saved, session
        self._asked = self._waiting = False
        n = len(saved.ids) + len(saved.nodes)
        text = tr("The last window ended without being closed. Its prompt and its run of {n} tokens were kept.", n=n)
        if number > 1:
            text = tr(
                "Window {number} ended without being closed. Its prompt and its run of {n} tokens were kept.",
                number=number, n=n,
            )  # fmt: skip
        notify.propose(text, WayOut(label=tr("Bring them back"), run=self.start))
        session.changed.connect(self._go_on)

    def start(self) -> None:
        """Stops what is under way and brings the earlier window's work back."""
        session, saved = self._session, self._saved
        self._put_prompt()
        session.set_sampler(**asdict(saved.sampler))
        self._waiting = True
        session.stop()
        self._go_on()

    def _go_on(self) -> None:
        session, saved = self._session, self._saved
        if not self._waiting or session.busy or not session.can_look:
            return
        if session.model is None or session.source != saved.source:
            if self._asked:
                self._waiting = False  # it can't be opened, and that has been said
            else:
                self._asked = True
                if is_run_file(saved.source):
                    self._wait_for_run_file()
                session.open_model(saved.source)
            return
        self._waiting = False
        if saved.kept is not None and session.can_run:  # a recorded run is there already
            session.lost.restore(saved.kept)

    def _wait_for_run_file(self) -> None:
        """The file brings its run, and the prompt that was recorded: the typed one is put back once it is open."""
        self._waiting = False
        self._session.files.opened.connect(self._on_run_file)
        self._session.files.failed.connect(self._on_run_file)

    def _on_run_file(self, _reply: object = None) -> None:
        self._session.files.opened.disconnect(self._on_run_file)
        self._session.files.failed.disconnect(self._on_run_file)
        self._put_prompt()

    def _put_prompt(self) -> None:
        self._session.set_prompt(self._saved.prompt)
        self._session.prompt.set_options(add_special=self._saved.add_special, chat=self._saved.chat)
