"""The way of the Tab key through the window: what can be seen, panel by panel."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QScrollArea, QWidget

TAB = Qt.FocusPolicy.TabFocus.value


class FocusOrder(QMainWindow):
    """Qt's own order is that in which widgets were made, those of panels behind another tab among them, which are
    visible in Qt and seen by nobody: keys would act there."""

    def focusNextPrevChild(self, forward: bool) -> bool:
        """To the next widget, or the one before; scrolled into sight. From one that was hidden, for which Qt asks too,
        as Qt does: what is near."""
        stops, focus = tab_stops(self), self.focusWidget()
        if not stops or (focus not in stops and focus not in {None, self}):
            return super().focusNextPrevChild(forward)
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
    # Not by nextInFocusChain: Python would then take each widget for a part of the one before, gone when that is.
    for widget in window.findChildren(QWidget):
        if widget.focusPolicy().value & TAB and widget.focusProxy() is None and widget.isEnabled():
            part = _part(widget, window)
            if part is not None and widget.isVisibleTo(window) and not part.visibleRegion().isEmpty():
                found.setdefault(part, []).append(widget)
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
