"""Names of the lines that a map draws and has no room to name itself, beside its caption."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QPointF, QSize
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.widgets.growth_words import dashed_pen

if TYPE_CHECKING:
    from app.theme import Theme

SAMPLE, SAMPLE_GAP, ENTRY_GAP = 14.0, 5.0, 12.0


class NamedLine(NamedTuple):
    """What a line is called, and how it is drawn."""

    words: str
    dashed: bool = False


class LinesKey(QWidget):
    """A piece of each line and its name, in one line of text, as many of the first as have room; hidden where there are
    none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.lines: tuple[NamedLine, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        self.hide()
        theme.changed.connect(self.updateGeometry)

    def set_lines(self, lines: tuple[NamedLine, ...], *, room: float) -> None:
        """`room`: px of width there are for them."""
        whole, lines = lines, next(
            fitting for count in range(len(lines), -1, -1) if self._width(fitting := lines[:count]) <= room
        )  # fmt: skip
        self.setToolTip("" if lines == whole else ", ".join(line.words for line in whole))
        if lines != self.lines:
            self.lines = lines
            self.setAccessibleName(", ".join(line.words for line in lines))
            self.setVisible(bool(lines))
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._width(self.lines), round(QFontMetricsF(self._theme.font("hint")).height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def _width(self, lines: tuple[NamedLine, ...]) -> int:
        metrics = QFontMetricsF(self._theme.font("hint"))
        entries = (SAMPLE + SAMPLE_GAP + metrics.horizontalAdvance(line.words) for line in lines)
        return round(sum(entries) + ENTRY_GAP * max(len(lines) - 1, 0)) + 2 if lines else 0

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, amber = QPainter(self), self._theme.palette.amber
        font = self._theme.font("hint")
        painter.setFont(font)
        metrics = QFontMetricsF(font)
        x, baseline = 0.0, (self.height() + metrics.ascent() - metrics.descent()) / 2
        y = round(baseline - metrics.xHeight() / 2)
        for line in self.lines:
            painter.setPen(dashed_pen(amber, 2.0, (2.5, 1.5) if line.dashed else ()))
            painter.drawLine(QPointF(x, y), QPointF(x + SAMPLE, y))
            painter.setPen(amber)
            x += SAMPLE + SAMPLE_GAP
            painter.drawText(QPointF(x, baseline), line.words)
            x += metrics.horizontalAdvance(line.words) + ENTRY_GAP


def longest_fitting(texts: tuple[str, ...], metrics: QFontMetricsF, room: float) -> str:
    """The first of texts, longest first, that `room` px hold; the last where none does."""
    return next((text for text in texts if metrics.horizontalAdvance(text) <= room), texts[-1])
