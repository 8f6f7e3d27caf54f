"""That the reading of the lens was stopped, over its cells, and the way to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QPainter, QPaintEvent

from app.i18n import tr
from app.widgets.notice_line import Notice, NoticeLine

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.theme import Theme
    from app.widgets.lens_grid import Span

AWAY, MOST = 72, 420
"""Px at 100 % text from the edges of what lies under it, where layers have their names, and of its width."""


class StoppedNote(NoticeLine):
    """Low over `over`, whose cells keep their room. `wanted`: to go on. Stopped is what was in sight, of one
    state of the run, and what overlaps it, as after a change of size; cells elsewhere are not."""

    def __init__(self, theme: Theme, over: QWidget) -> None:
        self._seen: tuple[object, Span, Span] | None = None
        self._over = over
        super().__init__(theme, over)
        over.installEventFilter(self)

    def stop(self, state: object, depths: Span, positions: Span, missing: int) -> None:
        """So many of these depths were not read."""
        self._seen = (state, depths, positions)
        n, whole = depths[1] - depths[0] - missing, depths[1] - depths[0]
        self.set_notices([
            Notice(
                key="stopped",
                texts=(tr("Stopped: {n} of {all} layers in sight are read.", n=n, all=whole), tr("Stopped.")),
                action=(tr("Go on"), tr("Read the layers that are missing")),
            )
        ])  # fmt: skip
        self._place()

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
        """Nothing is stopped any more."""
        self._seen = None
        self.set_notices([])

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return bool(super().eventFilter(watched, event))

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self._theme.palette.panel)
        super().paintEvent(event)

    def _place(self) -> None:
        over, px = self._over, self._theme.px
        width = min(over.width() - 2 * px(AWAY), px(MOST))
        top = (over.height() - self.height()) * 2 // 3
        self.setGeometry((over.width() - width) // 2, top, width, self.height())
        self.raise_()

    def _restyle(self) -> None:
        super()._restyle()
        self._place()
