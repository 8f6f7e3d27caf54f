"""Long work in pieces, one a turn of the event loop: mouse, keys and paints get in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

TURN_MS, HELD_MS = 4, 50
"""Between two pieces; and until it is looked again whether a mouse button or a menu is still held."""


class Turns(QObject):
    """Does what it is given in that order. A piece that raises is reported, and the next ones follow."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pieces: deque[tuple[Callable[[], object], bool]] = deque()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._next)

    @property
    def under_way(self) -> bool:
        """Whether anything is left to be done."""
        return bool(self._pieces)

    def add(self, *pieces: Callable[[], object], gently: bool = False) -> None:
        """Puts pieces at the end. `gently`: not while a mouse button is down or a menu is open, as they take away the
        widgets under these."""
        self._pieces.extend((piece, gently) for piece in pieces)
        if self._pieces and not self._timer.isActive():
            self._timer.start(TURN_MS)

    def drop(self) -> None:
        """What is left is not done."""
        self._pieces.clear()
        self._timer.stop()

    def _next(self) -> None:
        if not self._pieces:
            return
        piece, gently = self._pieces[0]
        if gently and (QApplication.activePopupWidget() or QApplication.mouseButtons().value):
            self._timer.start(HELD_MS)
            return
        self._pieces.popleft()
        if self._pieces:
            self._timer.start(TURN_MS)  # before it, so that whatever it raises stops nothing
        piece()
