"""A dock dragged out by its tab: it floats under the mouse, and Qt moves it from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QCursor, QMouseEvent
from PySide6.QtWidgets import QApplication, QTabBar, QWidget

if TYPE_CHECKING:
    from app.frame.docks import PanelDock

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
AWAY = 3
"""Drags long beyond the bar: nearer to it a tab changes its place among the others."""
GRIP = 80
"""Px from the left of the title, at the most, where the mouse holds it."""


class TabDrag(QObject):
    """Qt does the same where docks are dragged in groups, and ends the process when some have been dragged out one
    after another (6.11)."""

    def __init__(self, bar: QTabBar, dock: Callable[[], PanelDock | None]) -> None:
        """`dock`: that of the tab in front, which a press on a tab brings there."""
        super().__init__(bar)
        self._bar, self._dock, self._pressed = bar, dock, False
        bar.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QMouseEvent):
            return False
        at = event.position().toPoint()
        if event.type() is QEvent.Type.MouseButtonPress:
            self._pressed = event.button() is LEFT and self._bar.tabAt(at) >= 0
        elif event.type() is QEvent.Type.MouseButtonRelease:
            self._pressed = False
        elif event.type() is QEvent.Type.MouseMove and self._pressed and event.buttons() & LEFT:
            away = AWAY * QApplication.startDragDistance()
            if not self._bar.rect().adjusted(-away, -away, away, away).contains(at):
                self._pressed = False
                self._let_go(event)
                QTimer.singleShot(0, self._carry)
                return True
        return False

    def _let_go(self, event: QMouseEvent) -> None:
        """The tab is no longer moved among the others."""
        release(self._bar, self._bar.rect().center(), event.globalPosition().toPoint())

    def _carry(self) -> None:
        dock = self._dock()
        if dock is not None and QApplication.mouseButtons() & LEFT:
            carry(dock, QCursor.pos())


def carry(dock: PanelDock, mouse: QPoint) -> None:
    """Floats a dock under the mouse, whose left button is down, and hands it to Qt as if its title had been taken."""
    dock.setFloating(True)
    grip = QPoint(min(GRIP, dock.width() // 3), dock.bar.height() // 2)
    dock.move(mouse - grip)
    for kind, way in (
        (QEvent.Type.MouseButtonPress, QPoint(0, 0)),
        (QEvent.Type.MouseMove, QPoint(0, 2 * QApplication.startDragDistance())),
        (QEvent.Type.MouseMove, QPoint(0, 0)),
    ):
        button = LEFT if kind is QEvent.Type.MouseButtonPress else NONE
        here = QPointF(grip + way)
        event = QMouseEvent(kind, here, QPointF(mouse + way), button, LEFT, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(dock, event)


def release(widget: QWidget, at: QPoint, on_screen: QPoint) -> None:
    """The left button goes up over a widget, at a point of it."""
    up, key = QEvent.Type.MouseButtonRelease, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(widget, QMouseEvent(up, QPointF(at), QPointF(on_screen), LEFT, NONE, key))
