"""What mouse and keys do with a plot of things in order, one of them pointed at and one chosen."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QEvent, QPointF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from app.theme import Theme

PAGE = 10


class CursorPlot(QWidget):
    """`positionHovered` (-1: none) and `positionClicked` carry positions; arrows, Page keys, Home and End choose. The
    chosen one is `cursor_at`; it and `hovered` are None for none. Setters take -1 for that too, and emit nothing."""

    positionHovered = Signal(int)
    positionClicked = Signal(int)
    click_moves: ClassVar[bool] = True
    """Whether a click moves the cursor here; else its owner does, who knows where the click leads."""
    scrubs: ClassVar[bool] = False
    """Whether a press that is held clicks every position the mouse then comes over."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.cursor_at: int | None = None
        self.hovered: int | None = None
        self._held: int | None = None
        self.setAccessibleName(label)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.redraw)

    # for subclasses

    @property
    @abstractmethod
    def count(self) -> int:
        """How many positions there are."""

    @abstractmethod
    def position_at(self, point: QPointF) -> int | None:
        """The position a point of the widget is on."""

    @abstractmethod
    def words(self, position: int | None) -> str:
        """What is read out of a position; of None: of the whole."""

    def line_step(self) -> int:
        """How far Up and Down go; 0: they are not the plot's."""
        return 0

    def redraw(self) -> None:
        """Everything anew, as when the theme changed."""
        self.update()

    # state → widget

    def set_cursor(self, position: int | None) -> None:
        """The chosen position."""
        position = None if position is None or position < 0 else position
        if position != self.cursor_at:
            self.cursor_at = position
            self.describe(position)
            self.update()

    def set_hovered(self, position: int | None) -> None:
        """The position pointed at, here or elsewhere."""
        position = None if position is None or position < 0 else position
        if position != self.hovered:
            self.hovered = position
            self.describe(self.cursor_at if position is None else position)
            self.update()

    def describe(self, position: int | None) -> None:
        """Reads a position out."""
        self.setAccessibleDescription(self.words(position if position is not None and position < self.count else None))

    # events

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        position = self.position_at(event.position())
        self._point(position)
        if self._held is None or not event.buttons() & Qt.MouseButton.LeftButton:
            self._held = None
        elif position is not None and position != self._held:
            self._held = position
            self._click(position)

    def leaveEvent(self, event: QEvent) -> None:
        self._point(None)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        position = self.position_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and position is not None:
            self._held = position if self.scrubs else None
            self._click(position)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._held = None
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = self.count - 1
        here = -1 if self.cursor_at is None else self.cursor_at
        line = self.line_step()
        targets = {
            Qt.Key.Key_Left: here - 1, Qt.Key.Key_Right: here + 1,
            Qt.Key.Key_PageUp: here - PAGE, Qt.Key.Key_PageDown: here + PAGE,
            Qt.Key.Key_Home: 0, Qt.Key.Key_End: last,
        }  # fmt: skip
        if line and here - line >= 0:
            targets[Qt.Key.Key_Up] = here - line
        if line and here + line <= last:
            targets[Qt.Key.Key_Down] = here + line
        target = targets.get(Qt.Key(event.key()))
        if target is None or last < 0:
            event.ignore()
            return
        self.set_cursor(min(max(target, 0), last))
        self.positionClicked.emit(self.cursor_at)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    # inside

    def _click(self, position: int) -> None:
        if self.click_moves:
            self.set_cursor(position)
        self.positionClicked.emit(position)

    def _point(self, position: int | None) -> None:
        if position != self.hovered:
            self.set_hovered(position)
            self.positionHovered.emit(-1 if position is None else position)
