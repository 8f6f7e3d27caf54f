"""Another language while the window is open: each panel is made again, the bars and titles say their words anew.

A piece a turn of the event loop: first the new panels of those in sight, still unseen, then bars and titles, and at
once each new panel in its dock; then those behind other tabs. Docks, bars and all state stay where they are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.frame.dock_making import commands_of_panel, make_panel
from app.frame.parts_of_qt import name_parts_of_qt
from app.frame.turns import Turns

if TYPE_CHECKING:
    from app.panels.base import Panel
    from app.window import MainWindow


class OtherLanguage(QObject):
    """Says everything in `window` anew, each time that the language in force is another."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._made: dict[str, Panel] = {}
        self._turns = Turns(self)

    def begin(self) -> None:
        """Begins anew where one change is still under way."""
        self.end()
        docks = self._window.docks
        in_sight = [name for name, dock in docks.items() if dock.panel.seen()]
        behind = [name for name in docks if name not in in_sight]
        for name in in_sight:
            self._turns.add(partial(self._make, name), partial(self._make_ready, name))
        self._turns.add(self._window.retranslate)
        self._turns.add(*(partial(self._place, name) for name in in_sight), gently=True)
        for name in behind:
            self._turns.add(partial(self._make, name), partial(self._make_ready, name))
            self._turns.add(partial(self._place, name), gently=True)
        self._turns.add(self._window.standard.look_again, partial(name_parts_of_qt, self._window))

    def end(self) -> None:
        """What is not said anew yet stays as it is."""
        self._turns.drop()
        for panel in self._made.values():
            panel.deleteLater()
        self._made = {}

    def _make(self, name: str) -> None:
        panel = make_panel(type(self._window.docks[name].panel), self._window)
        if panel is not None:  # else the one there is shows the same, in another language
            self._made[name] = panel

    def _make_ready(self, name: str) -> None:
        if name in self._made:
            self._made[name].make_ready()

    def _place(self, name: str) -> None:
        panel = self._made.pop(name, None)
        if panel is not None:
            self._window.docks[name].set_panel(panel)
            self._window.registry.add(*commands_of_panel(panel))
