"""What several heat maps of one scale say once: the cell, the line of the first decode row, the colour bar."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.i18n import tr
from app.widgets.colour_bar import bar_width, draw_bar
from app.widgets.heatmap_boundary import SAMPLE, SAMPLE_GAP, boundary_words, dashes, has_line
from app.widgets.readout import draw_parts, parts_width

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap import HeatMap
    from app.widgets.readout import Part

GAP, LENGTH, SHORT = 16.0, 96.0, 48.0
"""Px between the parts of the key, of its colour bar, and of one that leaves the words of the cell their room."""


class SharedKey(QWidget):
    """One line. `heat`: the map it speaks for; `names_cell`: the maps do not name the cell themselves; `barred`: its
    colour bar is that of all of them."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.heat: HeatMap | None = None
        self._names_cell = self.barred = False
        self.setAccessibleName(tr("Key of the matrices"))

    def set_heat(self, heat: HeatMap, *, names_cell: bool, barred: bool) -> None:
        if heat is not self.heat:
            heat.described.connect(self.update)
        self.heat, self._names_cell, self.barred = heat, names_cell, barred
        self.update()

    def text(self) -> str:
        """All that is written, the cell's words as far as they have room."""
        shown = self.heat.bar if self.barred and self.heat is not None else None
        bar = shown.scale if shown is not None else ""
        cell = "".join(text for text, _ in self._cell(self._cell_room())).strip()
        return " · ".join(filter(None, (cell, *self._line_words(), bar)))

    def sizeHint(self) -> QSize:
        return QSize(0, math.ceil(QFontMetricsF(self._theme.font("mono")).height()) + 2)

    def paintEvent(self, _event: QPaintEvent) -> None:
        heat = self.heat
        if heat is None or heat.bar is None:
            return
        painter, metrics = QPainter(self), QFontMetricsF(self._theme.font("hint"))
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        width = self._bar_width(heat)
        rect = QRectF(self.width() - width, 0, width, self.height())
        if self.barred:
            draw_bar(painter, self._theme, rect, heat.table, heat.bar, self._length())
        for words in self._line_words():
            left, middle = rect.left() - GAP - metrics.horizontalAdvance(words), round(self.height() / 2)
            painter.setFont(self._theme.font("hint"))
            painter.setPen(self._theme.palette.amber)
            painter.drawText(QPointF(left, middle + (metrics.ascent() - metrics.descent()) / 2), words)
            left -= SAMPLE_GAP + SAMPLE
            painter.setPen(dashes(self._theme.palette.amber))
            painter.drawLine(QPointF(left, middle), QPointF(left + SAMPLE, middle))
        room = self._cell_room()
        draw_parts(painter, self._theme, self._cell(room), QRectF(0, 0, room, self.height()))

    # inside

    def _bar_width(self, heat: HeatMap) -> float:
        return bar_width(self._theme, heat.bar, self._length()) if self.barred and heat.bar is not None else 0.0

    def _length(self) -> float:
        return LENGTH if self._cell(self._room_beside(LENGTH)) or not self._cell(self._room_beside(SHORT)) else SHORT

    def _cell_room(self) -> float:
        return self._room_beside(self._length())

    def _room_beside(self, length: float) -> float:
        """Px for the words of the cell beside a colour bar of that length."""
        metrics, bar = QFontMetricsF(self._theme.font("hint")), 0.0
        if self.barred and self.heat is not None and self.heat.bar is not None:
            bar = bar_width(self._theme, self.heat.bar, length)
        line = sum(metrics.horizontalAdvance(words) + SAMPLE + SAMPLE_GAP + GAP for words in self._line_words())
        return max(self.width() - bar - line - GAP, 0.0)

    def _line_words(self) -> list[str]:
        return [boundary_words()] if self.heat is not None and has_line(self.heat) else []

    def _cell(self, room: float) -> list[Part]:
        """Both tokens of the cell pointed at, else of the chosen one."""
        if self.heat is None or not self._names_cell:
            return []
        for brief in range(5):
            parts = self.heat.readout(brief=brief)[:-2]
            if parts_width(self._theme, parts) <= room:
                return parts
        return []
