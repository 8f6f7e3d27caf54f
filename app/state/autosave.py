"""What a crash of the window would lose, on disk every few seconds: prompt, run and sampler; the next start offers it
(bring_back.py).

A clean close removes the file. It holds one frame (model/protocol/framing.py), so its limits and its reading are
those of the engine's stream; the numbers of a run are made again by the engine from its tokens and draws.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.i18n import tr
from app.small_files import read_small, write_atomically
from app.state.example import STEPS
from app.state.prompt_state import EXAMPLE_PROMPT
from app.state.run_book import Kept
from model.protocol.errors import DecoderscopeError
from model.protocol.framing import FrameDecoder
from model.protocol.in_turns import decode_event, encode_event
from model.protocol.values import Node, SamplerSettings
from model.protocol.wire import read_value

if TYPE_CHECKING:
    from app.notify import Notifier
    from app.session import Session

log = logging.getLogger("decoderscope.app")
EVERY_MS = 10_000
NAME = "unsaved.dscope-window"  # of the first window; see `numbered`
MAX_BYTES = 17 * 2**20
EVENT, LONG = "window.saved", "nodes"
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
    sha256: str = ""  # of the weights that drew the run's tokens, where known

    @property
    def kept(self) -> Kept | None:
        """The run, if there was one."""
        return Kept(ids=self.ids, text=self.text, nodes=self.nodes, current=self.current) if self.ids else None

    @property
    def example_only(self) -> bool:
        """Whether a person has done nothing yet: it is what a window shows by itself."""
        greedy = len(self.nodes) <= STEPS and all(node.settings.temperature == 0.0 for node in self.nodes)
        shown = not self.ids or (self.text.startswith(EXAMPLE_PROMPT) and greedy)
        untouched = self.prompt == EXAMPLE_PROMPT and self.add_special and not self.chat
        return shown and untouched and self.sampler == SamplerSettings()


def saved_of(session: Session) -> Saved:
    """What `session` would lose now."""
    run = session.lost.worth
    prompt = session.prompt
    return Saved(
        source=session.source, prompt=prompt.text, add_special=prompt.add_special, chat=prompt.chat,
        sampler=session.sampler, ids=run.ids if run else (), text=run.text if run else "",
        nodes=run.nodes if run else (), current=run.current if run else -1, sha256=session.lost.sha256,
    )  # fmt: skip


class UnreadableSavedError(DecoderscopeError):
    """A file that holds no window's work."""

    code = "unreadable_autosave"


def decode_saved(raw: bytes) -> Saved:
    """The work in a file's bytes. Raises DecoderscopeError."""
    if (saved := decode_event(raw, Saved, LONG, list[Node])) is not None:
        return saved
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
        self._claimed: tuple[Path, ...] = ()
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
        claimed, self._claimed = self._claimed, ()
        self._writing = threading.Thread(target=self._write, args=(saved, claimed), name="autosave", daemon=True)
        self._writing.start()

    def claim(self, path: Path) -> None:
        """This window has the work at `path` from now on: the file goes once it is in this window's own."""
        if path != self.path:  # as where nothing can be moved
            self._claimed += (path,)
            self._changed = True

    def _write(self, saved: Saved, claimed: tuple[Path, ...]) -> None:
        try:
            write_atomically(self.path, encode_event(EVENT, saved, LONG))
        except (OSError, DecoderscopeError) as error:
            log.warning("the autosave failed: %s", error)
            self._refused, self._changed = (getattr(error, "strerror", None) or str(error)), True
            self._claimed += claimed
        else:
            self._refused, self._told = "", False
            remove(*claimed)

    def wait(self) -> None:
        """Until what is being written is written."""
        if self._writing is not None:
            self._writing.join()

    def close(self) -> None:
        """A clean end: nothing was lost."""
        self._timer.stop()
        self.wait()
        remove(self.path, *self._claimed)


def remove(*paths: Path) -> None:
    """Removes files; one that stays is logged."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("%s can't be removed: %s", path, error)


def numbered(name: str, number: int) -> str:
    """The name a file has for the window with this number (place.py)."""
    stem, dot, suffix = name.partition(".")
    return name if number == 1 else f"{stem}-{number}{dot}{suffix}"
