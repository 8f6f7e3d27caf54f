"""What the window shows before its panels are made; light, because it is painted before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.i18n import tr

if TYPE_CHECKING:
    from app.theme import Theme


class StartPage(QWidget):
    """What the window shows before its panels are made: the name and what is going on."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.painted: Callable[[], None] | None = None

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), colours.window)
        # The docks' places, so that the panels appear where something was already.
        width, height = self.width(), self.height()
        left, right = round(width * 0.21), round(width * 0.24)
        painter.setPen(QPen(colours.line, 1))
        painter.setBrush(colours.panel)
        half = (height - 24) / 2
        centre = QRectF(left + 16, 8, width - left - right - 32, height - 16)
        for rect in (
            QRectF(8, 8, left, half),
            QRectF(8, 16 + half, left, half),
            centre,
            QRectF(width - right - 8, 8, right, height - 16),
        ):
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        painter.setPen(colours.secondary)
        painter.setFont(self._theme.font("ui"))
        painter.drawText(centre, Qt.AlignmentFlag.AlignCenter, tr("Starting the engine …"))
        if self.painted is not None:
            painted, self.painted = self.painted, None
            painted()
