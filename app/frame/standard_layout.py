"""The standard layout keeps its shares of the window whatever size that takes, until a person makes it their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, QSize, Qt, QTimer

from app.frame.dock_room import DockRoom
from app.frame.docks import Crowding, DockArea, PanelDock, by_areas, place, share_space

SETTLE_MS = 120


class StandardLayout(QObject):
    """Places `docks` in `area`. `crowding`: how little room there is.

    `own`: a person has moved a separator, floated or dragged a dock, or brought a layout; it is then left alone.
    """

    def __init__(self, area: DockArea, docks: Mapping[str, PanelDock], crowding: Callable[[], Crowding]) -> None:
        super().__init__(area)
        self._area, self._docks, self._crowding = area, docks, crowding
        self.own = False
        self._placed_as: Crowding | None = None
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(SETTLE_MS)
        self._settle.timeout.connect(self._follow)
        self.room = DockRoom(area, docks, area.theme)
        self.room.changed.connect(self._settle.start)
        self._sizes: dict[PanelDock, QSize] = {}
        area.theme.changing.connect(self._remember)
        area.theme.changed.connect(self._settle.start)
        area.resized.connect(self._settle.start)
        area.separatorMoved.connect(self.make_own)
        for dock in docks.values():
            dock.topLevelChanged.connect(lambda floating: self.make_own() if floating else None)

    @property
    def in_force(self) -> bool:
        """Whether the docks stand as the standard has them: all there, none floating, nothing made one's own."""
        return not self.own and not any(dock.isHidden() or dock.isFloating() for dock in self._docks.values())

    def make_own(self) -> None:
        """From here on sizes are the person's."""
        self.own = True

    def look_again(self) -> None:
        """What the docks need may be another."""
        self.room.look_again()
        self._settle.start()

    def place(self) -> None:
        """Every dock in its standard place; their shares once the area has the size it will have."""
        self.own = False
        self._placed_as = self._crowding()
        place(self._area, self._docks, self._placed_as)
        self._settle.start(0)

    def _remember(self) -> None:
        """Sizes of one's own outlast a style sheet: between two of them separators have another width, and docks give
        up a pixel for it each time."""
        docked = [dock for dock in self._docks.values() if not dock.isFloating() and not dock.visibleRegion().isEmpty()]
        self._sizes = {} if self.in_force else {dock: dock.size() for dock in docked}

    def _follow(self) -> None:
        sizes, self._sizes = self._sizes, {}
        if not self.in_force:
            for way, lengths in (
                (Qt.Orientation.Vertical, [size.height() for size in sizes.values()]),
                (Qt.Orientation.Horizontal, [size.width() for size in sizes.values()]),
            ):
                self._area.resizeDocks(list(sizes), lengths, way)
            return
        if self._placed_as is self._crowding():
            share_space(self._area, self._docks, self._crowding())
            return
        before = {} if self._placed_as is None else by_areas(self._docks, self._placed_as)
        first = [docks[0] for docks in before.values()]
        front = [dock for dock in self._docks.values() if dock.tabbed and dock.panel.seen()]
        self.place()
        for dock in front:
            if dock not in first:  # a tab that was chosen stays in front; else the first of its new place is
                dock.raise_()
