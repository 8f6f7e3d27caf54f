"""A table's header whose titles are underlined in the colour of what is drawn for them, as a legend would be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QHeaderView, QWidget

if TYPE_CHECKING:
    from app.theme import Theme

THICKNESS, PADDING = 3.0, 5.0


class SwatchHeader(QHeaderView):
    """`swatches`: colour tokens by column."""

    def __init__(self, theme: Theme, swatches: Mapping[int, str], parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme, self._swatches = theme, dict(swatches)

    def swatch(self, column: int, rect: QRect) -> QRectF:
        """Where a column's swatch lies under its title; a null rectangle where there is none."""
        model = self.model()
        text = str(model.headerData(column, self.orientation()) or "") if model is not None else ""
        if column not in self._swatches or not text:
            return QRectF()
        metrics = QFontMetricsF(self.font())
        width = min(metrics.horizontalAdvance(text), rect.width() - 2.0)
        side = model.headerData(column, self.orientation(), Qt.ItemDataRole.TextAlignmentRole)
        right = not side & Qt.AlignmentFlag.AlignLeft
        left = rect.right() + 1 - PADDING - width if right else rect.left() + PADDING
        y = rect.center().y() + metrics.height() / 2 + 1
        return QRectF(left, min(y, rect.bottom() + 1 - THICKNESS), width, THICKNESS)

    def paintSection(self, painter: QPainter, rect: QRect, logicalIndex: int) -> None:
        painter.save()
        super().paintSection(painter, rect, logicalIndex)
        painter.restore()
        place = self.swatch(logicalIndex, rect)
        if not place.isNull():
            painter.fillRect(place, getattr(self._theme.palette, self._swatches[logicalIndex]))
