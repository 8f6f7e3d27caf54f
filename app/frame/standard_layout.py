"""The standard layout keeps its shares of the window whatever size that takes, until a person makes it their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from PySide6.QtCore import QObject, QSize, Qt, QTimer

from app.frame.dock_room import DockRoom
from app.frame.docks import Crowding, DockArea, PanelDock, by_areas, place, share_space

SETTLE_MS = 120


class StandardLayout(QObject):
    """Places `docks` in `area`. `crowding`: how little room there is.

    `own`: a person has moved a separator, floated or dragged a dock, or brought a layout; it is then left alone. A dock
    that only floated, and is back in its place, made nothing one's own.
    """

    def __init__(self, area: DockArea, docks: Mapping[str, PanelDock], crowding: Callable[[], Crowding]) -> None:
        super().__init__(area)
        self._area, self._docks, self._crowding = area, docks, crowding
        self.own = self._floated = False
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
            dock.topLevelChanged.connect(self._on_floating)

    @property
    def in_force(self) -> bool:
        """Whether the docks stand as the standard has them: all there, none floating, nothing made one's own."""
        return not self.own and not any(dock.isHidden() or dock.isFloating() for dock in self._docks.values())

    def make_own(self) -> None:
        """From here on sizes are the person's."""
        self.own, self._floated = True, False

    def _on_floating(self, floating: bool) -> None:
        if floating and not self.own:
            self.own = self._floated = True
        elif self._floated:
            self._settle.start()

    def look_again(self) -> None:
        """What the docks need may be another."""
        self.room.look_again()
        self._settle.start()

    def place(self) -> None:
        """Every dock in its standard place; their shares once the area has the size it will have."""
        self.own = self._floated = False
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
        if self._floated and self._placed_as is not None and stands(self._area, self._docks, self._placed_as):
            self.own = self._floated = False
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


def stands(area: DockArea, docks: Mapping[str, PanelDock], crowding: Crowding) -> bool:
    """Whether the docks stand beside, below and behind one another as `place` puts them, whatever their sizes."""
    if any(dock.isHidden() or dock.isFloating() for dock in docks.values()):
        return False
    groups = by_areas(docks, crowding)
    rects = {}
    for name, owners in groups.items():
        if any({dock, *area.tabifiedDockWidgets(dock)} != set(owners) for dock in owners):
            return False
        front = [dock.geometry() for dock in owners if area.rect().contains(dock.geometry().center())]
        if len(front) != 1:
            return False
        rects[name] = front[0]
    row = [rects[name] for name in ("left", "center", "right") if name in rects]
    left, under, bottom = (rects.get(name) for name in ("left", "left_below", "bottom"))
    if any(before.right() >= after.left() for before, after in pairwise(row)):
        return False
    if left and under and (left.left(), left.right()) != (under.left(), under.right()):
        return False
    if left and under and left.bottom() >= under.top():
        return False
    if bottom and any(rect.bottom() >= bottom.top() for rect in rects.values() if rect is not bottom):
        return False
    return not bottom or not row or (bottom.left(), bottom.right()) == (row[0].left(), row[-1].right())
