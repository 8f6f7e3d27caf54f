"""What the colours and the stripes of the lens's cells mean, on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.widgets.colour_bar import BarText, draw_bar, scale_words

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours

BAR_LENGTH = 96.0
STRIPE = 3.0
CELL = 16.0


class LensKey(QWidget):
    """At the right the colour bar of the probability, at the left the stripe of what came next, where it is drawn."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._table: Colours = np.zeros(256, np.uint32)
        self.stripes = False
        self.bar = BarText(values=(0.0, 0.5, 1.0), scale=f"p · {scale_words('linear', fixed=True)}")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def set_table(self, table: Colours) -> None:
        """The colours of the cells."""
        self._table = table
        self.update()

    def set_stripes(self, *, shown: bool) -> None:
        """Whether the cells are large enough to bear stripes."""
        if shown != self.stripes:
            self.stripes = shown
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, QFontMetricsF(self._theme.font("hint")).height().__ceil__() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, theme, rect = QPainter(self), self._theme, QRectF(self.rect())
        metrics, end = QFontMetricsF(theme.font("hint")), 0.0
        if self.stripes:
            words = tr("came next")
            painter.setFont(theme.font("hint"))
            cell = QRectF(1, 1, CELL, rect.height() - 2)
            painter.fillRect(cell, QColor.fromRgb(int(self._table[1])))
            painter.fillRect(QRectF(3, 3, STRIPE, rect.height() - 6), Qt.GlobalColor.white)
            painter.setPen(theme.palette.secondary)
            baseline = rect.center().y() + (metrics.ascent() - metrics.descent()) / 2
            painter.drawText(QPointF(cell.right() + 6, baseline), words)
            end = cell.right() + 6 + metrics.horizontalAdvance(words) + 12
        draw_bar(painter, theme, rect.adjusted(end, 0, 0, 0), self._table, self.bar, min(BAR_LENGTH, rect.width() / 4))
