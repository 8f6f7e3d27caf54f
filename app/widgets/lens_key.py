"""What the colours and the stripes of the lens's cells mean, on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.widgets.colour_bar import BarText, bar_width, draw_bar, scale_words

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours

BAR_LENGTH, SHORT_BAR = 96.0, 64.0
STRIPE = 3.0
CELL = 16.0


class LensKey(QWidget):
    """At the right the colour bar of the probability, at the left the stripe of what came next, where it is drawn."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._table: Colours = np.zeros(256, np.uint32)
        self.stripes = False
        self._short = False
        self.bar = BarText(values=(0.0, 0.5, 1.0), scale=f"p · {scale_words('linear', fixed=True)}", brief="p")
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
            self.updateGeometry()
            self.update()

    def set_short(self, *, short: bool) -> None:
        """As wide as it needs to be, to stand beside other things; or a line of its own."""
        if short != self._short:
            self._short = short
            across = QSizePolicy.Policy.Fixed if short else QSizePolicy.Policy.Expanding
            self.setSizePolicy(across, QSizePolicy.Policy.Fixed)
            self.updateGeometry()
            self.update()

    def needed_width(self) -> int:
        """Px of the short form with all its words and the stripe."""
        words = QFontMetricsF(self._theme.font("hint")).horizontalAdvance(tr("came next"))
        return round(1 + CELL + 6 + words + 12 + bar_width(self._theme, self.bar, SHORT_BAR) + 2)

    def sizeHint(self) -> QSize:
        width = self.needed_width() if self._short else 200
        return QSize(width, QFontMetricsF(self._theme.font("hint")).height().__ceil__() + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.needed_width() if self._short else 80, self.sizeHint().height())

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
        length = SHORT_BAR if self._short else min(BAR_LENGTH, rect.width() / 4)
        draw_bar(painter, theme, rect.adjusted(end, 0, 0, 0), self._table, self.bar, length)
