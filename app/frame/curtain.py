"""A picture of what a dock showed, over what is made in its place, until that is drawn: nothing flashes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QScrollArea, QWidget

if TYPE_CHECKING:
    from app.panels.base import Panel

LOOK_MS, MOST_SECONDS = 16, 0.3
"""How often it is looked whether the panel is drawn, and after how long it is shown as it is."""


class Curtain(QWidget):
    """Lies over `scroller` from when it is made until `panel` has drawn all that it asked for."""

    def __init__(self, scroller: QScrollArea) -> None:
        super().__init__(scroller.parentWidget())
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._picture, self._size, self._scroller = scroller.grab(), scroller.size(), scroller
        self._panel: Panel | None = None
        self._end = 0.0
        self._look = QTimer(self)
        self._look.setInterval(LOOK_MS)
        self._look.timeout.connect(self._lift_when_drawn)
        self.setGeometry(scroller.geometry())
        self.show()
        self.raise_()

    def fall_over(self, panel: Panel) -> None:
        """What it waits for."""
        self._panel, self._end = panel, time.monotonic() + MOST_SECONDS
        self._look.start()

    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).drawPixmap(0, 0, self._picture)

    def _lift_when_drawn(self) -> None:
        drawn = self._panel is None or self._panel.settled
        if drawn or time.monotonic() > self._end or self._scroller.size() != self._size:
            self._look.stop()
            self.hide()
            self.deleteLater()
