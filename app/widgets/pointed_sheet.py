"""A painted sheet that scrolls, of things that can be pointed at: what the mouse does with it, its tips, its focus."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from PySide6.QtCore import QEvent, QPointF, QRect, Qt
from PySide6.QtGui import QFocusEvent, QHelpEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractScrollArea, QToolTip, QWidget

if TYPE_CHECKING:
    from app.theme import Theme

Thing = TypeVar("Thing")


class PointedSheet(QAbstractScrollArea, Generic[Thing]):
    """`hovered`: the thing under the mouse, or pointed at elsewhere. A click chooses one."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.hovered: Thing | None = None
        self.setAccessibleName(label)
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)

    # for subclasses

    @abstractmethod
    def thing_at(self, point: QPointF) -> Thing | None:
        """The thing a point of the viewport is on."""

    @abstractmethod
    def choose(self, thing: Thing) -> None:
        """A thing was clicked."""

    @abstractmethod
    def say_hovered(self, thing: Thing | None) -> None:
        """The mouse is on another thing: tells it to whoever listens."""

    def tip_of(self, thing: Thing) -> str:  # noqa: ARG002
        """The tip over a thing; none unless a subclass has one."""
        return ""

    def tip_rect(self, thing: Thing) -> QRect:  # noqa: ARG002
        """Where the mouse may move without the tip going away."""
        return QRect()

    # events

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(self.thing_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._point(None)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        thing = self.thing_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and thing is not None:
            self.choose(thing)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            thing = self.thing_at(QPointF(event.pos()))
            if thing is None:
                QToolTip.hideText()
            else:
                QToolTip.showText(event.globalPos(), self.tip_of(thing), self.viewport(), self.tip_rect(thing))
            return True
        if event.type() == QEvent.Type.Leave:
            self._point(None)
        return super().viewportEvent(event)

    # inside

    def _point(self, thing: Thing | None) -> None:
        if thing != self.hovered:
            self.hovered = thing
            self.viewport().update()
            self.say_hovered(thing)
