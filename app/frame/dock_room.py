"""Docks always have room in their area: where the panels together need more than there is, each may be narrower and
lower than its panel needs, and the panel is scrolled."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
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
        self._tried = self._fitting = False
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.setInterval(AGAIN_MS)
        self._again.timeout.connect(self._try_again)
        area.installEventFilter(self)
        area.resized.connect(self._on_resized)
        theme.changed.connect(self.look_again)
        for dock in docks.values():
            dock.dockLocationChanged.connect(self._rearranged)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._area and event.type() is QEvent.Type.LayoutRequest:
            self.fit()  # Qt's layout has just been made of what the docks need: not drawn before it fits
        return super().eventFilter(watched, event)

    def look_again(self) -> None:
        """The room, or what the docks need, may be another."""
        self._tried = False
        self._look.start()

    def _on_resized(self) -> None:
        self._tried = False
        self.fit()

    def _try_again(self) -> None:
        # A panel may ask for less once it stands in less room: some have another form for that.
        if self.squeezed and not self._tried:
            self._tried = True
            self._loosen()
            self._settle()

    def fit(self) -> None:
        """Squeezes the docks where the area is too small for what they need, and lets them be where it is not."""
        if self._fitting:
            return
        self._fitting = True
        try:
            if not self.squeezed:
                if not self._fits():
                    self._squeeze(squeezed=True)
                    self._again.start()
                    self.changed.emit()
            elif _holds(self._area.size(), self._needed) or self._standing != self._state():
                self._loosen()
                self._again.start()
            self._settle()
        finally:
            self._fitting = False

    def _rearranged(self) -> None:
        self._standing = None
        self._look.start()

    def _state(self) -> object:
        """What the docks' needs depend on, beside what is in them."""
        there = [name for name, dock in self._docks.items() if not dock.isHidden() and not dock.isFloating()]
        return there, self._theme.text_scale

    def _fits(self) -> bool:
        """Whether there is room for what they need, which is noted."""
        self._needed, self._standing = self._area.minimumSizeHint(), self._state()
        return _holds(self._area.size(), self._needed)

    def _loosen(self) -> None:
        """Lets the docks be, unless they need more than there is also now."""
        self._squeeze(squeezed=False)
        if not self._fits():
            self._squeeze(squeezed=True)
        self.changed.emit()

    def _squeeze(self, *, squeezed: bool) -> None:
        """Their least sizes are others at once; where they stand is not, before the area's layout is made."""
        self.squeezed = squeezed
        for dock in self._docks.values():
            dock.scroller.set_squeezed(squeezed)
            _activate(dock)

    def _settle(self) -> None:
        # Qt leaves a dock as large as it had to be a moment ago, when what it needs at least becomes less afterwards:
        # a place is not given again while it is the last one that was wanted. Hence another one before it.
        layout, place = self._area.layout(), self._area.contentsRect()
        if layout is None:
            return
        layout.activate()
        if not self._apart():
            for dock in self._docks.values():
                _activate(dock)  # which may still be held to what it needed before
            for rect in (place.translated(1, 0), place):
                layout.setGeometry(rect)

    def _apart(self) -> bool:
        """Whether all docks in sight are inside the area and none is over another."""
        docks = [dock for dock in self._docks.values() if dock.isVisible() and not dock.isFloating()]
        places = [dock.geometry() for dock in docks if not dock.visibleRegion().isEmpty()]
        inside = self._area.contentsRect()
        return all(map(inside.contains, places)) and not any(a.intersects(b) for a, b in combinations(places, 2))


def _activate(dock: PanelDock) -> None:
    """Its least size is what it asks for now."""
    for layout in (dock.widget().layout(), dock.layout()):
        if layout is not None:
            layout.activate()


def _holds(room: QSize, least: QSize) -> bool:
    return room.width() >= least.width() and room.height() >= least.height()
