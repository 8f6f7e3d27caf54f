"""The way of the Tab key through the window: what can be seen, panel by panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QScrollArea

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

TAB = Qt.FocusPolicy.TabFocus.value


class FocusOrder(QMainWindow):
    """Qt's own order is that in which widgets were made, those of panels behind another tab among them, which are
    visible in Qt and seen by nobody: keys would act there."""

    def focusNextPrevChild(self, forward: bool) -> bool:
        """To the next widget, or the one before; scrolled into sight."""
        stops = tab_stops(self)
        if not stops:
            return False
        focus = self.focusWidget()
        at = stops.index(focus) if focus in stops else (-1 if forward else 0)
        target = stops[(at + (1 if forward else -1)) % len(stops)]
        target.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
        around = target.parentWidget()
        while around is not None:
            if isinstance(around, QScrollArea):
                around.ensureWidgetVisible(target)
            around = around.parentWidget()
        return True


def tab_stops(window: QMainWindow) -> list[QWidget]:
    """What the Tab key leads to, in order: parts of the window from the top left, in each its own order."""
    found: dict[QWidget, list[QWidget]] = {}
    widget = window.nextInFocusChain()
    while widget is not window and widget is not None:
        if widget.focusPolicy().value & TAB and widget.focusProxy() is None and widget.isEnabled():
            part = _part(widget, window)
            if part is not None and widget.isVisibleTo(window) and not part.visibleRegion().isEmpty():
                found.setdefault(part, []).append(widget)
        widget = widget.nextInFocusChain()
    return [stop for part in sorted(found, key=lambda part: _place(part, window)) for stop in found[part]]


def _part(widget: QWidget, window: QMainWindow) -> QWidget | None:
    """The dock or other part of the window that holds a widget; None in a window of its own, such as a floating one."""
    around, part = widget, None
    while around is not window:
        above = around.parentWidget()
        if above is None or around.isWindow():
            return None
        if part is None and (isinstance(around, QDockWidget) or isinstance(above, QMainWindow)):
            part = around
        around = above
    return part


def _place(part: QWidget, window: QMainWindow) -> tuple[int, int]:
    corner = part.mapTo(window, QPoint(0, 0))
    return corner.y(), corner.x()
