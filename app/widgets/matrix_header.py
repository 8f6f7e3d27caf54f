"""What stands beside the rows and over the columns of a matrix: names of cells, some of them made as they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QHeaderView, QTableView

if TYPE_CHECKING:
    from app.theme import Theme

PADDING = 5
MEASURED = 512
"""Names of more sections are not measured: they take all the room they may have."""


class Counted(Sequence[str]):
    """ "dim 0", "dim 8", …: `count` names of a word and every `stride`-th number."""

    def __init__(self, word: str, count: int, stride: int = 1) -> None:
        self._word, self._count, self._stride = word, count, stride

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        numbers = range(self._count)[index]
        if isinstance(numbers, range):
            return [self._name(number) for number in numbers]
        return self._name(numbers)

    def _name(self, number: int) -> str:
        return f"{self._word} {number * self._stride}"


class NameHeader(QHeaderView):
    """Tokens and numbers in the font of tokens, those of the current cell bold, generated ones amber; too long ones are
    elided. A dashed line stands before the first generated one, as on the map."""

    first_decode: int | None = None

    def __init__(self, theme: Theme, orientation: Qt.Orientation, table: QTableView) -> None:
        super().__init__(orientation, table)
        self._theme, self._table = theme, table

    def longest(self) -> float:
        """Px that the widest name takes; infinity where they are too many to measure."""
        count = self.count()
        if count > MEASURED:
            return float("inf")
        metrics = QFontMetricsF(self._theme.font("mono_small", bold=True))
        names = {self._name(section) for section in range(count)}
        return max((metrics.horizontalAdvance(name) for name in names), default=0.0) + 2 * PADDING + 1

    def paintSection(self, painter: QPainter, rect: QRect, section: int) -> None:
        current = self._table.currentIndex()
        across = self.orientation() == Qt.Orientation.Horizontal
        chosen = current.isValid() and section == (current.column() if across else current.row())
        font = self._theme.font("mono_small", bold=chosen)
        metrics, room = QFontMetricsF(font), rect.width() - 2 * PADDING
        text = metrics.elidedText(self._name(section), Qt.TextElideMode.ElideRight, room + 1)
        painter.setFont(font)
        colours = self._theme.palette
        generated = self.first_decode is not None and section >= self.first_decode
        painter.setPen(colours.amber if generated else colours.text if chosen else colours.secondary)
        baseline = rect.center().y() + (metrics.ascent() - metrics.descent()) / 2 + 0.5
        painter.drawText(QPointF(rect.right() + 1 - PADDING - metrics.horizontalAdvance(text), baseline), text)

    def decode_at(self) -> int | None:
        """Px of the viewport at which generated rows or columns begin; None where that is not in sight."""
        first = self.first_decode
        if not first or first >= self.count():
            return None
        at = self.sectionViewportPosition(first)
        size = self.viewport().size()
        return (
            at
            if 0 < at < (size.width() if self.orientation() == Qt.Orientation.Horizontal else size.height())
            else None
        )

    def _name(self, section: int) -> str:
        return str(self.model().headerData(section, self.orientation()) or "")
