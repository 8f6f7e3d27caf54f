"""A panel, its dock and its commands, made for a window."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from app.export.run_commands import export_command
from app.frame.docks import PanelDock
from app.panels.in_sight import bring_into_sight

if TYPE_CHECKING:
    from app.commands import Command
    from app.panels.base import Panel
    from app.window import MainWindow


def make_panel(panel_class: type[Panel], window: MainWindow) -> Panel | None:
    """The panel; None, and the reason told, where it cannot be made: it must not take the others with it."""
    assert window.ctx is not None
    try:
        return panel_class(window.ctx)
    except Exception:  # noqa: BLE001 - whatever it is
        sys.excepthook(*sys.exc_info())
        return None


def make_dock(panel_class: type[Panel], window: MainWindow) -> PanelDock | None:
    """The panel in a dock of the window's area, its commands in the registry."""
    assert window.keys is not None
    panel = make_panel(panel_class, window)
    if panel is None:
        return None
    dock = PanelDock(panel, window.theme, window.keys, window.area)
    window.registry.add(*commands_of_panel(panel))
    dock.maximiseAsked.connect(lambda: window.toggle_maximised(dock))
    return dock


def commands_of_panel(panel: Panel) -> tuple[Command, ...]:
    """All that a docked panel can be told. What changes what it shows brings it into sight, or nothing would be seen
    of it."""
    own = (_in_sight(panel, command) if command.id.endswith(".table") else command for command in panel.commands())
    return (*own, export_command(panel))


def _in_sight(panel: Panel, command: Command) -> Command:
    def run() -> None:
        if not panel.seen():
            bring_into_sight(panel)
        command.run()

    return replace(command, run=run)
