"""Operations as cards in running order: name, formula, a small picture of the result, its shape and length."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from app.i18n import tr
from app.widgets.crisp_text import draw_crisp

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours

WIDTH, HEIGHT, GAP, ARROW = 168, 78, 6, 10
LEAST_HEIGHT = 62
"""Px at 100 % text of a card in a low dock: its picture is half as high, so that a second row is seen whole."""
PADDING = 8.0
INFO = 16.0
MARK = 5.0
Key = Qt.Key


@dataclass(frozen=True, kw_only=True, eq=False)
class Card:
    """`picture` uint8 (h, w) pixels of a colour map, 0 masked; `marked`: a row of it to point at, -1 for none."""

    title: str
    formula: str
    shape: str
    foot: str
    picture: NDArray[np.uint8]
    signed: bool
    marked: int = -1


class OpCards(QAbstractScrollArea):
    """Rows are scrolled whole and fill the height: the scroll bar counts rows.

    `cardChosen` on click and arrows, `cardOpened` on double click and Enter, `infoWanted` (index, where) on ⓘ.
    """

    cardChosen = Signal(int)
    cardOpened = Signal(int)
    infoWanted = Signal(int, object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._cards: tuple[Card, ...] = ()
        self._tables: dict[bool, Colours] = {}
        self._images: dict[int, QImage] = {}
        self._needs: list[int] = []
        self._chosen, self._hovered = 0, -1
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)
        self.setAccessibleName(tr("Operations"))
        theme.changed.connect(self._relayout)

    # state → widget

    def set_cards(self, cards: Sequence[Card], tables: dict[bool, Colours]) -> None:
        """`tables`: colours of signed and of one-signed pictures."""
        before = [card.formula for card in self._cards]
        self._cards, self._tables = tuple(cards), tables
        self._images = {}
        if before != [card.formula for card in self._cards]:
            self._relayout()
        self._describe()
        self.viewport().update()

    def set_chosen(self, index: int) -> None:
        """Shows a card as chosen; emits nothing."""
        if index != self._chosen:
            self._chosen = index
            self._reveal(index)
            self._describe()
            self.viewport().update()

    @property
    def chosen(self) -> int:
        return self._chosen

    # geometry

    @property
    def columns(self) -> int:
        pitch = self._theme.px(WIDTH) + GAP + ARROW
        return max(1, (self.viewport().width() + GAP + ARROW) // pitch)

    def card_rect(self, index: int) -> QRectF:
        """Where a card is in the viewport."""
        width = self._card_width()
        row, col = divmod(index, self.columns)
        first = self.verticalScrollBar().value()
        heights = self._heights(first)
        if row < first:
            top = -sum(height + GAP for height in heights[row:first])
        else:
            top = sum(height + GAP for height in heights[first:row])
        return QRectF(col * (width + GAP + ARROW), top, width, heights[row]).adjusted(0.5, 0.5, -0.5, -0.5)

    def formula_lines(self, index: int) -> list[str]:
        """A card's formula as it is written there: broken at spaces, never cut."""
        font = QFontMetricsF(self._theme.font("mono_small"))
        room = self._card_width() - 2 * PADDING - 1
        lines: list[str] = []
        for word in self._cards[index].formula.split(" "):
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and font.horizontalAdvance(longer) <= room:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines

    def card_at(self, point: QPointF) -> int:
        for index in range(len(self._cards)):
            if self.card_rect(index).contains(point):
                return index
        return -1

    def sizeHint(self) -> QSize:
        return QSize(3 * self._theme.px(WIDTH), 2 * self._theme.px(HEIGHT) + GAP)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(WIDTH), self._theme.px(HEIGHT) + 2)

    # events

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._relayout()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
        shown = QRectF(self.viewport().rect())
        for index, card in enumerate(self._cards):
            rect = self.card_rect(index)
            if rect.intersects(shown):
                self._paint_card(painter, index, card, rect)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(self.card_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.card_at(event.position())
        if event.button() != Qt.MouseButton.LeftButton or index < 0:
            return
        self._choose(index)
        if self._info_rect(self.card_rect(index)).contains(event.position()):
            self.infoWanted.emit(index, self.viewport().mapToGlobal(event.position().toPoint()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        index = self.card_at(event.position())
        if index >= 0 and not self._info_rect(self.card_rect(index)).contains(event.position()):
            self.cardOpened.emit(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self._cards) - 1
        moves = {
            Key.Key_Left: self._chosen - 1, Key.Key_Right: self._chosen + 1, Key.Key_Up: self._chosen - self.columns,
            Key.Key_Down: self._chosen + self.columns, Key.Key_Home: 0, Key.Key_End: last,
        }  # fmt: skip
        target = moves.get(Key(event.key()))
        if event.key() in (Key.Key_Return, Key.Key_Enter) and last >= 0:
            self.cardOpened.emit(self._chosen)
        elif event.key() == Key.Key_I and last >= 0:
            at = self.card_rect(self._chosen).bottomLeft().toPoint()
            self.infoWanted.emit(self._chosen, self.viewport().mapToGlobal(at))
        elif target is not None and last >= 0:
            if 0 <= target <= last:
                self._choose(target)
        else:
            event.ignore()

    # inside

    def _paint_card(self, painter: QPainter, index: int, card: Card, rect: QRectF) -> None:
        colours, theme = self._theme.palette, self._theme
        chosen = index == self._chosen
        painter.setBrush(colours.accent_tint if chosen else colours.hover if index == self._hovered else colours.raised)
        painter.setPen(QPen(colours.accent if chosen else colours.line, 1))
        painter.drawRoundedRect(rect, 6, 6)
        lines, high = self.formula_lines(index), QFontMetricsF(theme.font("mono_small")).height()
        good = self._needs[index // self.columns] + theme.px(HEIGHT) - theme.px(LEAST_HEIGHT)
        margin = 5 if rect.height() + 1 >= good else 3  # the pictures of a low row need it more
        inside = rect.adjusted(PADDING, margin, -PADDING, -margin)
        ui, hint, mono = theme.font("ui", bold=True), theme.font("hint"), theme.font("mono_small")
        hints = QFontMetricsF(hint)
        shape = hints.horizontalAdvance(card.shape)
        line = QRectF(inside.left(), inside.top(), inside.width(), QFontMetricsF(ui).height())
        self._text(painter, line.adjusted(0, 0, -shape - INFO - 8, 0), card.title, ui, colours.text)
        self._text(painter, line.adjusted(0, 0, -INFO - 2, 0), card.shape, hint, colours.secondary, right=True)
        self._paint_info(painter, self._info_rect(rect))
        line.translate(0, 1)
        for text in lines:
            line = QRectF(inside.left(), line.bottom(), inside.width(), high)
            self._text(painter, line, text, mono, colours.text)
        foot = QRectF(inside.left(), inside.bottom() - hints.height(), inside.width(), hints.height())
        self._text(painter, foot, card.foot, hint, colours.secondary)
        picture = QRectF(inside.left(), line.bottom() + 3, inside.width(), max(foot.top() - line.bottom() - 6, 2))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.drawImage(picture, self._image(index, card))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if card.marked >= 0:
            height = picture.height() / card.picture.shape[0]
            y = picture.top() + (card.marked + 0.5) * height
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.text)
            for edge, out in ((picture.left() - 1, -1), (picture.right() + 1, 1)):  # beside the row, not over it
                corners = [QPointF(edge, y), QPointF(edge + out * MARK, y - 3.5), QPointF(edge + out * MARK, y + 3.5)]
                painter.drawPolygon(corners)
        if index + 1 < len(self._cards) and (index + 1) % self.columns:
            middle = QPointF(rect.right() + (GAP + ARROW) / 2, rect.center().y())
            painter.setPen(QPen(colours.secondary, 1.3))
            painter.drawPolyline([middle + QPointF(-2, -4), middle + QPointF(2, 0), middle + QPointF(-2, 4)])

    def _paint_info(self, painter: QPainter, rect: QRectF) -> None:
        painter.setPen(QPen(self._theme.palette.secondary, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        centre = rect.center()
        painter.drawEllipse(centre, 5.5, 5.5)
        painter.drawLine(centre + QPointF(0, -0.5), centre + QPointF(0, 2.8))
        painter.drawPoint(centre + QPointF(0, -2.8))

    def _info_rect(self, rect: QRectF) -> QRectF:
        return QRectF(rect.right() - PADDING - INFO + 3, rect.top() + 4, INFO, INFO)

    def _text(
        self, painter: QPainter, rect: QRectF, text: str, font: QFont, colour: QColor, *, right: bool = False
    ) -> None:
        painter.setFont(font)
        painter.setPen(colour)
        metrics = QFontMetricsF(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width() + 1)
        left = rect.right() - metrics.horizontalAdvance(shown) if right else rect.left()
        draw_crisp(painter, QPointF(left, rect.center().y() + (metrics.ascent() - metrics.descent()) / 2), shown)

    def _image(self, index: int, card: Card) -> QImage:
        if index not in self._images:
            colours = np.ascontiguousarray(self._tables[card.signed][card.picture])
            height, width = card.picture.shape
            image = QImage(colours.data, width, height, 4 * width, QImage.Format.Format_RGB32)
            self._images[index] = image.copy()
        return self._images[index]

    def _choose(self, index: int) -> None:
        if index != self._chosen:
            self.set_chosen(index)
            self.cardChosen.emit(index)

    def _hover(self, index: int) -> None:
        if index != self._hovered:
            self._hovered = index
            self.viewport().setToolTip(self._cards[index].formula if index >= 0 else "")
            self.viewport().update()

    def _relayout(self) -> None:
        line, columns = QFontMetricsF(self._theme.font("mono_small")).height(), self.columns
        lines = [len(self.formula_lines(index)) for index in range(len(self._cards))]
        most = [max(lines[first : first + columns]) for first in range(0, len(lines), columns)]
        self._needs = [math.ceil(self._theme.px(LEAST_HEIGHT) + (count - 1) * line) for count in most]
        rows, bar = len(self._needs), self.verticalScrollBar()
        whole = [self._whole(first)[0] for first in range(rows)]
        last = next((first for first, count in enumerate(whole) if first + count >= rows), 0)
        bar.setPageStep(min(whole[: last + 1], default=1))  # the least, so that no page skips a row
        bar.setSingleStep(1)
        bar.setRange(0, last)
        self.viewport().update()

    def _whole(self, first: int) -> tuple[int, int]:
        """How many rows from `first` on are seen whole, and the px each is higher than it needs."""
        room, more = self.viewport().height() + GAP, self._theme.px(HEIGHT) - self._theme.px(LEAST_HEIGHT)
        ends = list(itertools.accumulate(height + GAP for height in self._needs[first:]))
        comfortable = sum(end + more * (i + 1) <= room for i, end in enumerate(ends))
        count = max(comfortable, sum(end <= room for end in ends[:2]), min(1, len(ends)))
        if not count:
            return 0, 0
        spare = max((room - ends[count - 1]) // count, 0)
        return count, min(spare, more) if count == len(self._needs) else spare

    def _heights(self, first: int) -> list[int]:
        """Heights of all rows when `first` is at the top: those seen share what is left over."""
        count, spare = self._whole(first)
        return [need + spare * (first <= row < first + count) for row, need in enumerate(self._needs)]

    def _card_width(self) -> float:
        columns = self.columns
        return (self.viewport().width() - (columns - 1) * (GAP + ARROW)) / columns

    def _reveal(self, index: int) -> None:
        row, bar = index // self.columns, self.verticalScrollBar()
        first = min(bar.value(), row)
        while row >= first + max(self._whole(first)[0], 1):
            first += 1
        bar.setValue(first)

    def _describe(self) -> None:
        if 0 <= self._chosen < len(self._cards):
            card = self._cards[self._chosen]
            self.setAccessibleDescription(f"{card.title}: {card.formula}, {card.shape}, {card.foot}")
