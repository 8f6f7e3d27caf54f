"""What every part of the window is given: the shared state and services, and nothing global."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.commands import CommandRegistry
    from app.engine import EngineClient
    from app.notify import Notifier
    from app.selection import Selection
    from app.session import Session
    from app.settings import Settings
    from app.theme import Theme


@dataclass(frozen=True, kw_only=True)
class AppContext:
    """The engine client, the run and the selection as the app knows them, preferences, colours, commands, notices."""

    engine: EngineClient
    session: Session
    selection: Selection
    settings: Settings
    theme: Theme
    commands: CommandRegistry
    notify: Notifier
