"""Operations as cards in running order: name, formula, a small picture of the result, its shape and length."""

from __future__ import annotations

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
from app.plain import tip as plain_tip
from app.widgets.crisp_text import draw_crisp

if TYPE_CHECKING:
    from app.theme import Theme
    from app.widgets.heatmap_image import Colours

WIDTH, HEIGHT, GAP, ARROW = 158, 78, 6, 10
LEAST_WIDTH = 124
"""Px at 100 % text of a card that all columns of the window have no room to give WIDTH: formulas stand in brief."""
LEAST_HEIGHT, FOOT_FROM = 56, 66
"""Px at 100 % text of a card in a low dock, so that a second row is seen whole: its picture is half as high, and from
which height on it has its foot, whose figures are those of the operation's own view."""
PADDING, BESIDE = 8.0, 8.0
"""Px inside a card's edges; px between what stands at the left and at the right of a line."""
INFO = 16.0
MARK = 5.0
Key = Qt.Key


@dataclass(frozen=True, kw_only=True, eq=False)
class Card:
    """`picture` uint8 (h, w) pixels of a colour map, 0 masked; `marked`: a row of it to point at, -1 for none, and
    `mark` what that row is. `brief`: the formula where the whole of it does not fit on a line. `foot`: extremes and
    length, three blanks apart."""

    title: str
    formula: str
    shape: str
    foot: str
    picture: NDArray[np.uint8]
    signed: bool
    marked: int = -1
    mark: str = ""
    brief: str = ""


class OpCards(QAbstractScrollArea):
    """Rows are scrolled whole and fill the height: the scroll bar counts rows.

    `cardChosen` on click and arrows, `cardOpened` on Enter, a double click and the chosen card's words for it,
    `infoWanted` (index, where) on ⓘ.
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
        self._chosen, self._hovered = 0, -1
        self._on_open = False
        self._rows_seen = 0
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
        before = len(self._cards)
        self._cards, self._tables = tuple(cards), tables
        self._images = {}
        if before != len(self._cards):
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
        height = self._whole()[1]
        top = (row - self.verticalScrollBar().value()) * (height + GAP)
        return QRectF(col * (width + GAP + ARROW), top, width, height).adjusted(0.5, 0.5, -0.5, -0.5)

    def formula_line(self, index: int) -> str:
        """A card's formula on one line: whole, else in brief, else cut; the tip has all of it."""
        card, font = self._cards[index], QFontMetricsF(self._theme.font("mono_small"))
        room = self._card_width() - 2 * PADDING - 1
        shown = card.formula
        if card.brief and font.horizontalAdvance(shown) > room:
            shown = card.brief
        return font.elidedText(shown, Qt.TextElideMode.ElideRight, room)

    def corner_words(self, card: Card) -> str:
        """What stands in a card's corner: its mark and shape, the shape, or nothing, as its title leaves room. A name
        cut short is no name; the shape is in the operation's own view too."""
        title = QFontMetricsF(self._theme.font("ui", bold=True)).horizontalAdvance(card.title)
        room = self._card_width() - 1 - 2 * PADDING - self._theme.px(INFO) - 8 - title
        hints = QFontMetricsF(self._theme.font("hint"))
        said = (f"{card.mark} · {card.shape}" if card.mark else card.shape, card.shape)
        return next((words for words in said if hints.horizontalAdvance(words) <= room), "")

    def low_line(self, index: int) -> tuple[str, str]:
        """Where a card is too low for its foot: the formula, and what of the foot is at its right. A formula in brief
        gives way to figures that had no room."""
        card, hints = self._cards[index], QFontMetricsF(self._theme.font("hint"))
        mono, room = QFontMetricsF(self._theme.font("mono_small")), self._card_width() - 1 - 2 * PADDING - BESIDE
        tight = (card.brief or card.formula).replace(" / ", "/").replace(" ⊙ ", "⊙")
        for formula in filter(None, (self.formula_line(index), card.brief, tight)):
            for part in card.foot.split("   "):
                if mono.horizontalAdvance(formula) + hints.horizontalAdvance(part) <= room:
                    return formula, part
        return self.formula_line(index), ""

    def foot_line(self, index: int) -> str:
        """What of the foot is written, no figure cut: the chosen card's leaves room for the way into it."""
        card, hints = self._cards[index], QFontMetricsF(self._theme.font("hint"))
        room = self._card_width() - 1 - 2 * PADDING
        if index == self._chosen:
            room -= hints.horizontalAdvance(self.open_words()) + BESIDE
        forms = (card.foot, card.foot.replace("   ", " "), card.foot.split("   ")[0])
        return next((form for form in forms if hints.horizontalAdvance(form) <= room), "")

    @staticmethod
    def open_words() -> str:
        """What the chosen card says of the way into it: a click on it, or the key."""
        return tr("Open {key}", key="⏎")

    def open_rect(self) -> QRectF:
        """Where the chosen card says so, in the viewport; null where no card is or it is too low."""
        rect = self.card_rect(self._chosen) if 0 <= self._chosen < len(self._cards) else QRectF()
        if rect.height() + 1 < self._theme.px(FOOT_FROM):
            return QRectF()
        hints, margin = QFontMetricsF(self._theme.font("hint")), self._margin(rect)
        width, height = hints.horizontalAdvance(self.open_words()), hints.height()
        return QRectF(rect.right() - PADDING - width, rect.bottom() - margin - height, width, height)

    def card_at(self, point: QPointF) -> int:
        for index in range(len(self._cards)):
            if self.card_rect(index).contains(point):
                return index
        return -1

    def sizeHint(self) -> QSize:
        return QSize(3 * self._theme.px(WIDTH), 2 * self._theme.px(HEIGHT) + GAP)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(WIDTH), self._theme.px(HEIGHT) + 2)

    def least_width(self) -> int:
        """Px in which all of a card is still said, formulas in brief."""
        return self._theme.px(LEAST_WIDTH)

    # events

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        first = self.verticalScrollBar().value()
        in_sight = first <= self._chosen // self.columns < first + self._rows_seen
        self._relayout()
        if in_sight and self._cards:  # and stays so, in fewer rows
            self._reveal(self._chosen)

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
        on_open = self._opens(event.position())
        if on_open != self._on_open:
            self._on_open = on_open
            shape = Qt.CursorShape.PointingHandCursor if on_open else Qt.CursorShape.ArrowCursor
            self.viewport().setCursor(shape)
            self.viewport().update()

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(-1)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.card_at(event.position())
        if event.button() != Qt.MouseButton.LeftButton or index < 0:
            return
        if self._opens(event.position()):
            self.cardOpened.emit(index)
            return
        self._choose(index)
        if self._info_rect(self.card_rect(index)).contains(event.position()):
            self.infoWanted.emit(index, self.viewport().mapToGlobal(event.position().toPoint()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        index = self.card_at(event.position())
        if (
            index >= 0
            and not self._opens(event.position())
            and not self._info_rect(self.card_rect(index)).contains(event.position())
        ):
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
        margin = self._margin(rect)
        inside = rect.adjusted(PADDING, margin, -PADDING, -margin)
        ui, hint, mono = theme.font("ui", bold=True), theme.font("hint"), theme.font("mono_small")
        hints = QFontMetricsF(hint)
        line = QRectF(inside.left(), inside.top(), inside.width(), QFontMetricsF(ui).height())
        corner = self.corner_words(card)
        taken = hints.horizontalAdvance(corner)
        self._text(painter, line.adjusted(0, 0, -taken - self._theme.px(INFO) - 8, 0), card.title, ui, colours.text)
        self._text(
            painter, line.adjusted(0, 0, -self._theme.px(INFO) - 2, 0), corner, hint, colours.secondary, right=True
        )
        self._paint_info(painter, self._info_rect(rect))
        line = QRectF(inside.left(), line.bottom() + 1, inside.width(), QFontMetricsF(mono).height())
        low = rect.height() + 1 < theme.px(FOOT_FROM)
        formula, value = self.low_line(index) if low else (self.formula_line(index), "")
        self._text(painter, line, formula, mono, colours.text)
        foot = QRectF(inside.left(), inside.bottom() - hints.height(), inside.width(), hints.height())
        if not low:
            self._text(painter, foot, self.foot_line(index), hint, colours.secondary)
            if chosen:
                voice = colours.text if self._on_open else colours.accent
                self._text(painter, self.open_rect(), self.open_words(), hint, voice)
        else:
            foot.moveTop(inside.bottom() + 3)
            self._text(painter, line, value, hint, colours.secondary, right=True)
        picture = QRectF(inside.left(), line.bottom() + 3, inside.width(), max(foot.top() - line.bottom() - 6, 2))
        if card.marked >= 0:
            picture.adjust(MARK - 1, 0, 1 - MARK, 0)  # the marks stand inside the card, not at its edge
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.drawImage(picture, self._image(index, card))
        frame = QColor(colours.secondary)
        frame.setAlphaF(0.4)
        painter.setPen(QPen(frame, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(picture.adjusted(-1, -1, 0, 0))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if card.marked >= 0:
            height = picture.height() / card.picture.shape[0]
            y = picture.top() + (card.marked + 0.5) * height
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.text)
            for edge, out in ((picture.left() - 2, -1), (picture.right() + 2, 1)):  # beside the row, not over it
                corners = [QPointF(edge, y), QPointF(edge + out * MARK, y - 3.5), QPointF(edge + out * MARK, y + 3.5)]
                painter.drawPolygon(corners)
        if index + 1 < len(self._cards) and (index + 1) % self.columns:
            middle = QPointF(rect.right() + (GAP + ARROW) / 2, rect.center().y())
            painter.setPen(QPen(colours.secondary, 1.3))
            painter.drawPolyline([middle + QPointF(-2, -4), middle + QPointF(2, 0), middle + QPointF(-2, 4)])

    def _margin(self, rect: QRectF) -> int:
        """Px over and under what a card says: the pictures of a low row need them more."""
        return 5 if rect.height() + 1 >= self._theme.px(HEIGHT) else 3

    def _opens(self, point: QPointF) -> bool:
        rect = self.open_rect()
        return not rect.isNull() and rect.adjusted(-4, -4, PADDING, 4).contains(point)

    def _paint_info(self, painter: QPainter, rect: QRectF) -> None:
        painter.setPen(QPen(self._theme.palette.secondary, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.save()
        painter.translate(rect.center())
        painter.scale(self._theme.text_scale, self._theme.text_scale)
        painter.drawEllipse(QPointF(), 5.5, 5.5)
        painter.drawLine(QPointF(0, -0.5), QPointF(0, 2.8))
        painter.drawPoint(QPointF(0, -2.8))
        painter.restore()

    def _info_rect(self, rect: QRectF) -> QRectF:
        side = self._theme.px(INFO)
        return QRectF(rect.right() - PADDING - side + 3, rect.top() + 4, side, side)

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
            self.viewport().setToolTip(plain_tip(self._tip(self._cards[index])) if index >= 0 else "")
            self.viewport().update()

    def _tip(self, card: Card) -> str:
        return "\n".join(filter(None, (card.formula, card.foot, card.mark and f"▸ ◂  {card.mark}")))

    def _relayout(self) -> None:
        rows, bar = -(-len(self._cards) // self.columns), self.verticalScrollBar()
        count = self._rows_seen = self._whole()[0]
        bar.setPageStep(max(count, 1))
        bar.setSingleStep(1)
        bar.setRange(0, max(rows - count, 0))
        self.viewport().update()

    def _whole(self) -> tuple[int, int]:
        """How many rows are seen whole, and how high each is: of two, it is rather both than the height they like."""
        least, good, room = self._theme.px(LEAST_HEIGHT), self._theme.px(HEIGHT), self.viewport().height() + GAP
        rows = -(-len(self._cards) // self.columns)
        count = min(max(room // (good + GAP), min(room // (least + GAP), 2), 1), max(rows, 1))
        height = max(room // count - GAP, least)
        return count, min(height, good) if count == rows else height

    def _card_width(self) -> float:
        columns = self.columns
        return (self.viewport().width() - (columns - 1) * (GAP + ARROW)) / columns

    def _reveal(self, index: int) -> None:
        row, bar = index // self.columns, self.verticalScrollBar()
        bar.setValue(min(max(bar.value(), row - self._whole()[0] + 1), row))

    def _describe(self) -> None:
        if 0 <= self._chosen < len(self._cards):
            card = self._cards[self._chosen]
            self.setAccessibleDescription(f"{card.title}: {card.formula}, {card.shape}, {card.foot}")
