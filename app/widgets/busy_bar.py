"""A bar of what is under way: how far it is, or one piece that goes to and fro while nobody knows."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QProgressBar, QStyle

if TYPE_CHECKING:
    from app.theme import Theme

PIECE, ROUND_MS, FRAME_MS = 0.34, 1800, 33
"""The piece's share of the bar; ms to and fro; ms between two places of it."""


class BusyBar(QProgressBar):
    """As `QProgressBar` without a text; a range of 0 … 0: nobody knows how far it is."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setTextVisible(False)
        self._clock = QTimer(self)
        self._clock.setInterval(FRAME_MS)
        self._clock.timeout.connect(self.update)

    @property
    def busy(self) -> bool:
        return self.maximum() <= self.minimum()

    def piece(self, now: float) -> QRectF:
        """What is filled, `now` in ms: always one piece and whole inside the bar."""
        width, height = float(self.width()), float(self.height())
        if not self.busy:
            share = (self.value() - self.minimum()) / (self.maximum() - self.minimum())
            return QRectF(0, 0, width * min(max(share, 0.0), 1.0), height)
        long = max(width * PIECE, height)
        share = (1 - math.cos(2 * math.pi * now / ROUND_MS)) / 2 if self._moves else 0.5
        return QRectF((width - long) * share, 0, long, height)

    @property
    def _moves(self) -> bool:
        return bool(self.style().styleHint(QStyle.StyleHint.SH_Widget_Animate, None, self))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        whole, radius = QRectF(self.rect()), self.height() / 2
        painter.setBrush(self._theme.palette.track)
        painter.drawRoundedRect(whole, radius, radius)
        piece = self.piece(time.monotonic() * 1000)
        if piece.width() > 0:
            piece.setWidth(max(piece.width(), piece.height()))  # a circle at least, so that its ends are round
            painter.setBrush(self._theme.palette.accent)
            painter.drawRoundedRect(piece, radius, radius)
        if self.busy and self._moves and not self._clock.isActive():
            self._clock.start()
        elif not self.busy:
            self._clock.stop()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._clock.stop()
