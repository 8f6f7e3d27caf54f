"""That the reading of the lens was stopped, and of which cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import tr
from app.widgets.stopped_note import StoppedNote

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.theme import Theme
    from app.widgets.lens_grid import Span

AWAY = 72
"""Px at 100 % text from the sides of the cells, where layers have their names."""


class StoppedLens(StoppedNote):
    """Stopped is what was in sight, of one state of the run, and what overlaps it, as after a change of size; cells
    elsewhere are not."""

    def __init__(self, theme: Theme, over: QWidget) -> None:
        self._seen: tuple[object, Span, Span] | None = None
        super().__init__(theme, over, away=AWAY)

    def stop(self, state: object, depths: Span, positions: Span, missing: int) -> None:
        """So many of these depths were not read."""
        self._seen = (state, depths, positions)
        n, whole = depths[1] - depths[0] - missing, depths[1] - depths[0]
        words = tr("Stopped: {n} of {all} layers in sight are read.", n=n, all=whole)
        self.say([words], tr("Read the layers that are missing"))

    def holds(self, state: object, depths: Span, positions: Span, missing: int) -> bool:
        """Whether the reading of some of these was stopped; forgets it where all others are in sight."""
        if self._seen is None:
            return False
        if self._seen[0] == state and all(
            before[0] < now[1] and now[0] < before[1]
            for before, now in zip(self._seen[1:], (depths, positions), strict=True)
        ):
            if self._seen[1:] != (depths, positions):
                self.stop(state, depths, positions, missing)
            return True
        self.forget()
        return False

    def forget(self) -> None:
        self._seen = None
        super().forget()
