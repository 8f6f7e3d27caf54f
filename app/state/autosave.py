"""What a crash of the window would lose, on disk every few seconds: prompt, run and sampler; offered at the next start.

A clean close removes the file. It holds one frame (model/protocol/framing.py), so its limits and its reading are
those of the engine's stream; the numbers of a run are made again by the engine from its tokens and draws.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.i18n import tr
from app.notify import WayOut
from app.small_files import read_small, write_atomically
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
NAME, LOST_NAME = "unsaved.dscope-window", "lost.dscope-window"
MAX_BYTES = 17 * 2**20
EVENT = "window.saved"
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


def read_saved(path: Path) -> Saved | None:
    """What an earlier window left at `path`; None where nothing is, or nothing that can be read (which is logged)."""
    try:
        if not path.is_file():
            return None
        frames = FrameDecoder().feed(read_small(path, MAX_BYTES))
        return read_value(frames[0].header.get("data"), Saved) if frames else None
    except (OSError, DecoderscopeError) as error:
        log.warning("%s can't be read: %s", path, error)
        return None


class Autosave(QObject):
    """Saves `session` into `folder` every ten seconds in which it changed. `close` ends it and removes the file."""

    def __init__(self, session: Session, folder: Path, notify: Notifier, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._notify = session, notify
        self.path = folder / NAME
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


def take_lost(folder: Path) -> Saved | None:
    """What a window that did not close left in `folder`, moved aside so that this one's file doesn't replace it."""
    left, lost = folder / NAME, folder / LOST_NAME
    try:
        if left.is_file():
            left.replace(lost)
        else:
            return None
    except OSError as error:
        log.warning("%s can't be moved: %s", left, error)
        return None
    return read_saved(lost)


class BringBack(QObject):
    """Offers what an earlier window lost; `start` brings it back: prompt and sampler at once, then model and run."""

    def __init__(self, saved: Saved, session: Session, notify: Notifier, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._saved, self._session = saved, session
        self._asked = self._waiting = False
        n = len(saved.ids) + len(saved.nodes)
        text = tr("The last window ended without being closed. Its prompt and its run of {n} tokens were kept.", n=n)
        notify.propose(text, WayOut(label=tr("Bring them back"), run=self.start))
        session.changed.connect(self._go_on)

    def start(self) -> None:
        """Stops what is under way and brings the earlier window's work back."""
        session, saved = self._session, self._saved
        session.set_prompt(saved.prompt)
        session.prompt.set_options(add_special=saved.add_special, chat=saved.chat)
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
                session.open_model(saved.source)
            return
        self._waiting = False
        if saved.kept is not None and session.can_run:  # a recorded run is there already
            session.restore(saved.kept)
