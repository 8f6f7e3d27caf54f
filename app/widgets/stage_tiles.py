"""The sampler's waterfall: one tile a stage, with the tokens and the mass that are left after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip

if TYPE_CHECKING:
    from app.theme import Theme

GAP = 4
PADDING = 6
LIST_PADDING, BAR = 4, 2
MIN_TILE = 64
"""Px at 100 % text: three of them stand beside one another in the narrowest panel."""
Stage = tuple[str, int, float]
"""Name as shown, tokens kept, mass kept (0 … 1)."""


class StageTiles(QWidget):
    """Tiles fill the width side by side; where they have no room for that, the stages are lines of one tile."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._stages: tuple[Stage, ...] = ()
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAccessibleName(tr("Tokens and mass left after each stage"))
        words = tr(
            "Tokens left after each stage, and the mass they hold: their share of the whole vocabulary's probability "
            "after repetition penalty and temperature. At temperature 0 the likeliest token holds all of it."
        )
        self.setToolTip(plain_tip(words))
        theme.changed.connect(self._restyle)

    def set_stages(self, stages: Sequence[Stage]) -> None:
        if tuple(stages) == self._stages:
            return
        height = self.heightForWidth(self.width())
        self._stages = tuple(stages)
        self.setAccessibleDescription(
            "; ".join(
                tr("{name}: {kept} tokens, {mass}", name=name, kept=f"{kept:,}", mass=percent(mass))
                for name, kept, mass in self._stages
            )
        )
        if height != self.heightForWidth(self.width()):
            self.updateGeometry()
        self.update()

    def heightForWidth(self, width: int) -> int:
        if self._is_list(width):
            return len(self._stages) * self._line_height() + 2 * LIST_PADDING
        return self._tile_height(width)

    def sizeHint(self) -> QSize:
        return QSize(280, self.heightForWidth(max(self.width(), self._least())))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._least(), self._tile_height(self.width()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        if self.heightForWidth(event.size().width()) != self.heightForWidth(event.oldSize().width()):
            self.updateGeometry()

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours, theme = self._theme.palette, self._theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        hint, strong = theme.font("hint"), theme.font("ui", bold=True)
        line, line_strong = QFontMetricsF(hint).height(), QFontMetricsF(strong).height()
        if self._is_list(self.width()):
            self._paint_list(painter, hint, strong)
            return
        columns, height = max(1, len(self._stages)), self._tile_height(self.width())
        width = (self.width() - (columns - 1) * GAP) / columns
        for index, (name, kept, mass) in enumerate(self._stages):
            tile = QRectF(index * (width + GAP), 0, width, height)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.raised)
            painter.drawRoundedRect(tile, 4, 4)
            inside = tile.adjusted(PADDING, 5, -PADDING, 0)
            painter.setFont(hint)
            painter.setPen(colours.secondary)
            room = inside.width() + PADDING - 1
            elided = QFontMetricsF(hint).elidedText(name, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QRectF(inside.left(), inside.top(), room, line), elided)
            painter.setFont(strong)
            painter.setPen(colours.text)
            painter.drawText(QRectF(inside.left(), inside.top() + line, inside.width(), line_strong), f"{kept:,}")
            painter.setFont(hint)
            painter.setPen(colours.secondary)
            if self._dense(self.width()):
                beside = QRectF(inside.left(), inside.top() + line + (line_strong - line) / 2, inside.width(), line)
                painter.drawText(beside, Qt.AlignmentFlag.AlignRight, percent(mass))
            else:
                below = QRectF(inside.left(), inside.top() + line + line_strong, inside.width(), line)
                painter.drawText(below, percent(mass))
            bar = QRectF(inside.left(), tile.bottom() - 5, inside.width(), 2)
            painter.fillRect(bar, colours.line)
            painter.fillRect(QRectF(bar.left(), bar.top(), bar.width() * mass, 2), colours.accent)

    def _paint_list(self, painter: QPainter, hint: QFont, strong: QFont) -> None:
        """A line a stage: name, count and share in columns, the share's bar under them."""
        colours, line = self._theme.palette, self._line_height()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.raised)
        painter.drawRoundedRect(QRectF(self.rect()), 4, 4)
        share = max((QFontMetricsF(hint).horizontalAdvance(percent(mass)) for _, _, mass in self._stages), default=0.0)
        named = max((QFontMetricsF(hint).horizontalAdvance(name) for name, _, _ in self._stages), default=0.0)
        counted = max(
            (QFontMetricsF(strong).horizontalAdvance(f"{kept:,}") for _, kept, _ in self._stages), default=0.0
        )
        if named + counted + share + 4 * PADDING > self.width():  # a whole name before large figures
            strong = self._theme.font("hint", bold=True)
        right, middle = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignVCenter
        for index, (name, kept, mass) in enumerate(self._stages):
            row = QRectF(PADDING, LIST_PADDING + index * line, self.width() - 2 * PADDING, line - BAR - 1)
            counts = row.adjusted(0, 0, -share - PADDING, 0)
            painter.setFont(strong)
            painter.setPen(colours.text)
            painter.drawText(counts, right, f"{kept:,}")
            room = counts.width() - QFontMetricsF(strong).horizontalAdvance(f"{kept:,}") - PADDING
            painter.setFont(hint)
            painter.setPen(colours.secondary)
            painter.drawText(row, middle, QFontMetricsF(hint).elidedText(name, Qt.TextElideMode.ElideRight, room))
            painter.drawText(row, right, percent(mass))
            bar = QRectF(row.left(), row.bottom(), row.width(), BAR)
            painter.fillRect(bar, colours.line)
            painter.fillRect(QRectF(bar.left(), bar.top(), bar.width() * mass, BAR), colours.accent)

    def _is_list(self, width: int) -> bool:
        """Whether there is no room for all tiles side by side: one alone on a second row would be an orphan."""
        return len(self._stages) > max(1, (width + GAP) // (self._least() + GAP))

    def _line_height(self) -> int:
        return round(QFontMetricsF(self._theme.font("ui", bold=True)).height() + BAR + 2)

    def _least(self) -> int:
        return self._theme.px(MIN_TILE)

    def _dense(self, width: int) -> bool:
        """Whether the share stands beside the count: two lines a tile, not three."""
        columns = max(1, len(self._stages))
        room = (width - (columns - 1) * GAP) / columns - 2 * PADDING
        hint, strong = QFontMetricsF(self._theme.font("hint")), QFontMetricsF(self._theme.font("ui", bold=True))
        return all(
            strong.horizontalAdvance(f"{kept:,}") + GAP + hint.horizontalAdvance(percent(mass)) <= room
            for _, kept, mass in self._stages
        )

    def _tile_height(self, width: int) -> int:
        hint, strong = QFontMetricsF(self._theme.font("hint")), QFontMetricsF(self._theme.font("ui"))
        return round((1 if self._dense(width) else 2) * hint.height() + strong.height() + 13)

    def _restyle(self) -> None:
        self.updateGeometry()
        self.update()


def percent(share: float) -> str:
    """A share as per cent with as many digits as mean something; never a rounded 100 for what is less."""
    if share >= 1:
        return "100 %"
    if share >= 0.9995:
        return "> 99.9 %"
    return f"{share:.1%}".replace("%", " %") if share >= 0.0005 else f"{share:.1e}"
