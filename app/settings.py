"""Preferences on disk, and nothing else touches them: one JSON file in the user's configuration folder.

A file that is corrupt or from a newer version is kept as a backup beside itself and replaced by the defaults, with a
notice; so is a single field that can't be what it says. A folder that cannot be written is tolerated: preferences then
last as long as the window.
"""

from __future__ import annotations

import base64
import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.i18n import tr
from app.small_files import read_small, write_atomically

VERSION = 1
SAVE_DELAY_MS = 400
MAX_RECENT = 10
MAX_BYTES = 4 * 2**20
MAX_THREADS = 1024
MAX_NAMED, MAX_SHOWN = 5, 40  # of a file's bad fields and characters, in a notice


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """Everything that is remembered between starts. `layouts` and `geometry` are base64 of Qt's own states."""

    version: int = VERSION
    theme: str = "system"
    language: str = ""
    text_scale: float = 1.0
    geometry: str = ""
    layout: str = ""
    layouts: dict[str, str] = field(default_factory=dict)
    closed_panels: tuple[str, ...] = ()
    recent_models: tuple[str, ...] = ()
    engine_command: tuple[str, ...] = ()
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    prefill_chunk: int = 0  # tokens of a visible prefill chunk; 0: in one go
    budget_bytes: int = 0  # what a run may keep; 0: the engine's own choice
    last_folder: str = ""
    toured: bool = False
    panels: dict[str, dict[str, Any]] = field(default_factory=dict)


class Settings(QObject):
    """The preferences in force. `changed`: frozenset of the field names that changed."""

    changed = Signal(object)
    noticed = Signal()
    """`notices` has more to say."""

    def __init__(self, path: Path | None = None, *, writable: bool = True, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path or default_path()
        self.notices: list[str] = []
        self._writable = writable
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_DELAY_MS)
        self._timer.timeout.connect(self.save)
        self.values = self._load()

    def update(self, **changes: Any) -> None:
        """Replaces fields and saves soon."""
        changed = frozenset(name for name, value in changes.items() if getattr(self.values, name) != value)
        if changed:
            self.values = replace(self.values, **changes)
            self._timer.start()
            self.changed.emit(changed)

    def panel(self, panel_id: str) -> dict[str, Any]:
        """What a panel remembers."""
        return dict(self.values.panels.get(panel_id, {}))

    def update_panel(self, panel_id: str, **changes: Any) -> None:
        self.update(panels={**self.values.panels, panel_id: {**self.panel(panel_id), **changes}})

    def add_recent(self, source: str) -> None:
        """Puts a model source first in the list of recent ones."""
        rest = tuple(item for item in self.values.recent_models if item != source)
        self.update(recent_models=(source, *rest)[:MAX_RECENT])

    @property
    def writable(self) -> bool:
        """Whether this window writes the preferences: not where another does, nor on a read-only disk."""
        return self._writable

    def forbid_writing(self, reason: str) -> None:
        """From now on nothing is written; `reason` is shown once."""
        self._writable = False
        self.notices.append(reason)
        self.noticed.emit()

    def save(self) -> None:
        """Writes now, whole or not at all; a folder that cannot be written gives one notice."""
        self._timer.stop()
        if not self._writable:
            return
        try:
            write_atomically(self.path, self._encoded())
        except OSError as error:
            self.forbid_writing(
                tr(
                    "Preferences can't be saved ({path}: {why}); they last until the window closes.",
                    path=str(self.path), why=error.strerror or str(error),
                )
            )  # fmt: skip

    def _encoded(self) -> bytes:
        """The file's content: what differs from the defaults, and the version. ASCII, whose escapes also hold the lone
        surrogates of names of files that are not UTF-8."""
        defaults = asdict(Preferences())
        changed = {name: value for name, value in asdict(self.values).items() if value != defaults[name]}
        return json.dumps({"version": VERSION, **changed}, indent=1).encode("ascii")

    def _load(self) -> Preferences:
        try:
            raw = read_small(self.path, MAX_BYTES)
        except FileNotFoundError:
            return Preferences()
        except OSError as error:
            if os.path.lexists(self.path):  # no file, too large, not ours to read: never written over
                return self._set_aside(error.strerror or str(error))
            self.notices.append(tr("Preferences can't be read: {why}. The defaults are used.", why=error))
            return Preferences()
        import msgspec  # noqa: PLC0415 - 18 ms that a first start saves before its first paint

        try:
            # json and not msgspec, which refuses the escape of a lone surrogate
            content = json.loads(raw.decode("utf-8"), parse_constant=_number, parse_float=_number)
            version = msgspec.convert(content, _Version).version
            if version > VERSION:
                return self._set_aside(tr("it was written by a newer version"))
            return self._with_defaults_for_bad_fields(msgspec.convert(content, Preferences), raw)
        except (msgspec.ValidationError, RecursionError, ValueError) as error:  # ValueError: no UTF-8, no JSON
            return self._set_aside(str(error))

    def _with_defaults_for_bad_fields(self, values: Preferences, raw: bytes) -> Preferences:
        """Other fields stay as they are; the file as it was is kept beside it."""
        defaults = Preferences()
        fields = [name for name, sound in SOUND.items() if not sound(getattr(values, name))]
        layouts = {name: layout for name, layout in values.layouts.items() if _is_qt_state(layout)}
        bad = [*fields, *(f"layouts[{name[:MAX_SHOWN]!a}]" for name in values.layouts if name not in layouts)]
        if not bad:
            return values
        backup = self._backup
        try:
            write_atomically(backup, raw)
        except OSError:
            self._writable = False  # never write over what could not be kept
            backup = self.path
        self.notices.append(
            tr(
                "In the preferences {fields} can't be used; the defaults are, and the file is kept as {path}.",
                fields=", ".join(bad[:MAX_NAMED]) + (" …" if len(bad) > MAX_NAMED else ""), path=str(backup),
            )
        )  # fmt: skip
        return replace(values, layouts=layouts, **{name: getattr(defaults, name) for name in fields})

    @property
    def _backup(self) -> Path:
        return self.path.with_name(f"{self.path.stem}.backup-{time.strftime('%Y%m%d-%H%M%S')}{self.path.suffix}")

    def _set_aside(self, reason: str) -> Preferences:
        backup = self._backup
        try:
            self.path.replace(backup)
        except OSError:
            self._writable = False  # never write over what could not be kept
            backup = self.path
        self.notices.append(
            tr(
                "The preferences file can't be used ({why}). It is kept as {path}; the defaults are used.",
                why=reason, path=str(backup),
            )
        )  # fmt: skip
        return Preferences()


@dataclass(frozen=True)
class _Version:
    version: int = VERSION


def _number(text: str) -> float:
    """A number of the file; ValueError for NaN and for what no float holds."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:MAX_SHOWN]} is no number that can be kept")
    return value


def _is_qt_state(text: str) -> bool:
    """Whether it is base64, as Qt's states are kept. What Qt then makes of the bytes, Qt checks."""
    try:
        base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error, or not ASCII
        return False
    return True


SOUND: dict[str, Callable[[Any], bool]] = {
    "theme": {"system", "light", "dark"}.__contains__,
    "geometry": _is_qt_state,
    "layout": _is_qt_state,
    "threads": range(MAX_THREADS + 1).__contains__,
    "prefill_chunk": range(2**31).__contains__,
    "budget_bytes": range(2**63).__contains__,
}
"""What must hold of a field beyond its type."""


def default_path() -> Path:
    """settings.json in the user's configuration folder; DECODERSCOPE_CONFIG names another folder."""
    return config_folder() / "settings.json"


def config_folder() -> Path:
    """The user's configuration folder for this program; it may not exist."""
    named = os.environ.get("DECODERSCOPE_CONFIG")
    if named:
        return Path(named)
    from platformdirs import user_config_path  # noqa: PLC0415 - 17 ms that a named folder saves

    return user_config_path("decoderscope", appauthor=False)


def log_folder() -> Path:
    """Where the log file goes; it may not exist."""
    named = os.environ.get("DECODERSCOPE_CONFIG")
    if named:
        return Path(named)
    from platformdirs import user_log_path  # noqa: PLC0415

    return user_log_path("decoderscope", appauthor=False)
