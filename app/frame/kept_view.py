"""What a person has arranged in a panel and no state knows: it is found again in the panel that takes its place.

Zoom of heat maps at once, before anything is asked for; how far sheets and tables are scrolled, the row of a
table and the sizes of splitters that were moved, once the new panel has its size and is drawn. Pages, switches,
boxes and what is chosen are the panels' own (`Panel.carry`).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QAbstractItemView, QAbstractScrollArea, QScrollBar, QSplitter, QWidget

from app.frame.widget_path import Step, widgets_of
from app.widgets.fact_table import FactTable
from app.widgets.heatmap import HeatMap
from app.widgets.lens_grid import LensGrid

if TYPE_CHECKING:
    from app.panels.base import Panel

MOVED = "moved by hand"
"""The property of a splitter whose handle a person has dragged: the sizes of others are the layout's."""
LOOK_MS, MOST_SECONDS = 16, 2.0
"""How often it is looked whether the panel is drawn, and after how long it is as drawn as it gets."""
Path = tuple[Step, ...]


def keep_view(before: Panel, now: Panel) -> None:
    """Gives `now` what is arranged in `before`, which it takes the place of."""
    old, new = widgets_of(before), widgets_of(now)
    kept = before.findChild(KeptView)
    wanted = kept.wanted if kept is not None else {}  # of a panel that has not been seen since the last change
    for path, widget in old.items():
        other = new.get(path)
        if other is None or other is widget or type(other) is not type(widget):
            continue
        if isinstance(widget, HeatMap) and isinstance(other, HeatMap):
            if all(widget.shape) and not widget.view.is_whole(widget.shape):
                other.set_shape(*widget.shape)
                other.set_view(widget.view)
        elif (place := _place(widget)) is not None:
            wanted[path] = place
    if wanted:
        KeptView(now, wanted)


class KeptView(QObject):
    """`wanted`: of widgets by their way, sizes of a splitter, or across, down and the row of what is scrolled. It goes
    when they have been set for good, at the first paint and when the panel is drawn, or at once with the panel."""

    def __init__(self, panel: Panel, wanted: dict[Path, tuple[int, ...]]) -> None:
        super().__init__(panel)
        self.wanted = wanted
        self._panel, self._end = panel, 0.0
        self._look = QTimer(self)
        self._look.setInterval(LOOK_MS)
        self._look.timeout.connect(self._look_whether_drawn)
        panel.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint and watched is self._panel:  # a panel out of sight costs nothing
            self._panel.removeEventFilter(self)
            self._end = time.monotonic() + MOST_SECONDS
            QTimer.singleShot(0, self, self._set)
            self._look.start()
        return False

    def _look_whether_drawn(self) -> None:
        if self._panel.settled or time.monotonic() > self._end:
            self._look.stop()
            self._set()
            self.deleteLater()

    def _set(self) -> None:
        widgets, moved = widgets_of(self._panel), False
        for path, place in self.wanted.items():
            widget = widgets.get(path)
            if isinstance(widget, QSplitter):
                if widget.count() == len(place) and widget.sizes() != list(place):
                    widget.setSizes(list(place))
                    widget.setProperty(MOVED, True)
                    moved = True
            elif isinstance(widget, QAbstractScrollArea):
                _scroll(widget, *place)
        if moved:
            self._panel.mark("view")


# inside


def _place(widget: QWidget) -> tuple[int, ...] | None:
    """What there is to be kept of a widget; None: nothing a person has done."""
    if isinstance(widget, QSplitter):
        return (*widget.sizes(),) if widget.property(MOVED) else None
    if not isinstance(widget, QAbstractScrollArea):
        return None
    row = widget.currentIndex().row() if isinstance(widget, FactTable) else -1
    across, down = (bar.value() for bar in _bars(widget))
    return (across, down, row) if across or down or row >= 0 else None


def _bars(area: QAbstractScrollArea) -> tuple[QScrollBar, QScrollBar]:
    return area.horizontalScrollBar(), area.verticalScrollBar()


def _scroll(area: QAbstractScrollArea, across: int, down: int, row: int) -> None:
    if isinstance(area, LensGrid):
        area.scroll_back(across, down)
        return
    if isinstance(area, FactTable) and row >= 0 and not area.currentIndex().isValid():
        area.set_current(row)
    if isinstance(area, QAbstractItemView):
        area.doItemsLayout()  # else its bars end where the rows did before these came
    for bar, value in zip(_bars(area), (across, down), strict=True):
        bar.setValue(value)
