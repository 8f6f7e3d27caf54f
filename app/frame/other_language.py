"""Another language while the window is open: each panel is made again, the bars and titles say their words anew.

A panel a turn of the event loop: first the new ones of those in sight, still unseen, then bars and titles, and at once
each new panel in its dock; then those behind other tabs. Docks, bars and all state stay where they are.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.export.run_commands import export_command
from app.frame.turns import Turns

if TYPE_CHECKING:
    from app.commands import Command
    from app.context import AppContext
    from app.panels.base import Panel
    from app.window import MainWindow


def commands_of_panel(panel: Panel) -> tuple[Command, ...]:
    """All that a docked panel can be told."""
    return (*panel.commands(), export_command(panel))


class OtherLanguage(QObject):
    """Says everything in `window` anew, each time that the language in force is another."""

    def __init__(self, window: MainWindow, ctx: AppContext) -> None:
        super().__init__(window)
        self._window, self._ctx = window, ctx
        self._made: dict[str, Panel] = {}
        self._turns = Turns(self)

    def begin(self) -> None:
        """Begins anew where one change is still under way."""
        self.end()
        docks = self._window.docks
        in_sight = [name for name, dock in docks.items() if dock.panel.seen()]
        behind = [name for name in docks if name not in in_sight]
        self._turns.add(*(partial(self._make, name) for name in in_sight))
        self._turns.add(self._window.retranslate)
        self._turns.add(*(partial(self._place, name) for name in in_sight), gently=True)
        for name in behind:
            self._turns.add(partial(self._make, name))
            self._turns.add(partial(self._place, name), gently=True)
        self._turns.add(self._window.standard.look_again)

    def end(self) -> None:
        """What is not said anew yet stays as it is."""
        self._turns.drop()
        for panel in self._made.values():
            panel.deleteLater()
        self._made = {}

    def _make(self, name: str) -> None:
        try:
            self._made[name] = type(self._window.docks[name].panel)(self._ctx)
        except Exception:  # noqa: BLE001 - the one there is shows the same, in another language
            sys.excepthook(*sys.exc_info())

    def _place(self, name: str) -> None:
        panel = self._made.pop(name, None)
        if panel is not None:
            self._window.docks[name].set_panel(panel)
            self._window.registry.add(*commands_of_panel(panel))
