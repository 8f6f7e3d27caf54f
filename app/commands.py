"""Commands as values. Menus, toolbar, palette and the sheet of keys are all drawn from one registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QObject, Signal

from app.i18n import tr

Menu = Literal["File", "Run", "View", "Model", "Help", ""]
KeyKind = Literal["global", "letter", "unclaimed"]
"""How a key is taken: `global` always (it has Ctrl, or is a function key); `letter` unless a text field has the focus;
`unclaimed` only when the focused widget had no use for it (arrows, Home, End, Space, Enter, Backspace, Esc)."""


def _always() -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Command:
    """One thing a person can do. `title` is English, translated where shown; `shortcuts` in Qt's portable spelling."""

    id: str
    title: str
    run: Callable[[], None]
    shortcuts: tuple[str, ...] = ()
    keys: KeyKind = "global"
    menu: Menu = ""
    group: int = 0
    enabled: Callable[[], bool] = _always
    checked: Callable[[], bool] | None = None
    submenu: str = ""
    hidden: bool = False

    @property
    def label(self) -> str:
        """The title in the current language."""
        return tr(self.title)

    @property
    def whole_label(self) -> str:
        """The title outside its menu: with what it is a choice of."""
        return f"{tr(self.submenu)}: {self.label}" if self.submenu and self.checked is not None else self.label


class CommandRegistry(QObject):
    """The commands in the order they were added; `changed` when one was added or removed, `refreshed` when enabled
    states may have changed."""

    changed = Signal()
    refreshed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._commands: dict[str, Command] = {}

    def __iter__(self) -> Iterator[Command]:
        return iter(tuple(self._commands.values()))

    def __contains__(self, command_id: str) -> bool:
        return command_id in self._commands

    def __getitem__(self, command_id: str) -> Command:
        return self._commands[command_id]

    def add(self, *commands: Command) -> None:
        """Adds commands; an id that exists is replaced in place."""
        for command in commands:
            self._commands[command.id] = command
        self.changed.emit()

    def remove(self, *command_ids: str) -> None:
        for command_id in command_ids:
            self._commands.pop(command_id, None)
        self.changed.emit()

    def can(self, command_id: str) -> bool:
        """Whether a command exists and is enabled."""
        command = self._commands.get(command_id)
        return command is not None and command.enabled()

    def run(self, command_id: str) -> bool:
        """Runs a command if it is enabled; says whether it did."""
        if not self.can(command_id):
            return False
        self._commands[command_id].run()
        return True
