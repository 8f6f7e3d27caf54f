"""Docks always have room in their area: where the panels together need more than there is, each may be narrower and
lower than its panel needs, and the panel is scrolled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QSize, QTimer, Signal

from app.frame.docks import DockArea, PanelDock

if TYPE_CHECKING:
    from app.theme import Theme

AGAIN_MS = 300
"""After the shares have followed what changed."""


class DockRoom(QObject):
    """Watches `area`. `changed`: what the docks need at least has changed, their shares may follow."""

    changed = Signal()

    def __init__(self, area: DockArea, docks: Mapping[str, PanelDock], theme: Theme) -> None:
        super().__init__(area)
        self._area, self._docks, self._theme = area, docks, theme
        self.squeezed = False
        self._needed = QSize()
        self._standing: object = None
        self._look = QTimer(self)
        self._look.setSingleShot(True)
        self._look.setInterval(0)
        self._look.timeout.connect(self.fit)
        self._tried = False
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.setInterval(AGAIN_MS)
        self._again.timeout.connect(self._try_again)
        area.installEventFilter(self)
        area.resized.connect(self.look_again)
        theme.changed.connect(self.look_again)
        for dock in docks.values():
            dock.dockLocationChanged.connect(self._rearranged)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._area and event.type() is QEvent.Type.LayoutRequest:
            self._look.start()
        return super().eventFilter(watched, event)

    def look_again(self) -> None:
        """The room, or what the docks need, may be another."""
        self._tried = False
        self._look.start()

    def _try_again(self) -> None:
        # A panel may ask for less once it stands in less room: some have another form for that.
        if self.squeezed and not self._tried:
            self._tried = True
            self._squeeze(squeezed=False)
            self._look.start()

    def fit(self) -> None:
        """Squeezes the docks where the area is too small for what they need, and lets them be where it is not."""
        room, least = self._area.size(), self._area.minimumSizeHint()
        if not self.squeezed:
            if not _holds(room, least):
                self._needed, self._standing = least, self._state()
                self._squeeze(squeezed=True)
                self._again.start()
        elif _holds(room, self._needed) or self._standing != self._state():
            self._squeeze(squeezed=False)  # what they need now is looked at when they have said it
        self._settle()

    def _rearranged(self) -> None:
        self._standing = None
        self._look.start()

    def _state(self) -> object:
        """What the docks' needs depend on, beside what is in them."""
        there = [name for name, dock in self._docks.items() if not dock.isHidden() and not dock.isFloating()]
        return there, self._theme.text_scale

    def _squeeze(self, *, squeezed: bool) -> None:
        self.squeezed = squeezed
        for dock in self._docks.values():
            dock.scroller.set_squeezed(squeezed)
        self.changed.emit()

    def _settle(self) -> None:
        # Qt leaves a dock as large as it had to be a moment ago, when what it needs at least becomes less afterwards.
        inside = self._area.contentsRect()
        for dock in self._docks.values():
            stands = dock.isVisible() and not dock.isFloating() and not dock.visibleRegion().isEmpty()
            layout = self._area.layout()
            if layout is not None and stands and not inside.contains(dock.geometry()):
                layout.invalidate()
                layout.activate()
                return


def _holds(room: QSize, least: QSize) -> bool:
    return room.width() >= least.width() and room.height() >= least.height()
