"""Tokens as chips in running text: thousands of them in one painted widget, linked by hover and selection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from app.i18n import tr
from app.widgets.flow import Flow, flow
from app.widgets.pointed_sheet import PointedSheet
from app.widgets.token_groups import Group, Groups, Pieces

if TYPE_CHECKING:
    from app.theme import Theme

GAP, ROW_GAP, TIGHT_GAP, PADDING, RADIUS = 4, 4, 2, 4, 4
SIGN, SIGN_GAP, SIGN_EDGE = 4.0, 2.0, 2.5
"""Px inside the sign of a branch, after it, and round it in its chip."""
LEAST_ROWS = 2
EDGE = 0.5
"""Opacity of the amber edge of tokens that are others than in another branch."""
Key = Qt.Key


def sign_words() -> str:
    """What the sign of a branch says."""
    return tr("branch")


class TokenStrip(PointedSheet[int]):
    """Signals carry positions; `tokenHovered` -1 when the mouse left. Setters emit nothing.

    Rows show whole or not at all: it scrolls from row to row. Keys: arrows, Home, End, Page keys move the cursor and
    select; Enter selects what is under it again.
    """

    tokenHovered = Signal(int)
    tokenClicked = Signal(int)

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, label, parent)
        self._pieces = Pieces.of(())
        self._ids: Sequence[int] = ()
        self._groups = Groups.taken(())
        self._first_decode: int | None = None
        self._differs: int | None = None
        self._widths: dict[str, float] = {}
        self._tints: NDArray[np.float32] | None = None
        self._tint_colour = "green"
        self._selected: int | None = None
        self._marked = (0, 0)
        self._flow: Flow | None = None
        self._least_rows = LEAST_ROWS
        self._gap = ROW_GAP
        """Px between rows: fewer where that shows one row more of those that have no room."""
        self._first, self._top = 0, 0.0
        """The row that is drawn at the top, and px of the rows above it."""
        self.verticalScrollBar().valueChanged.connect(self._scroll)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        theme.changed.connect(self._restyle)

    # state → widget

    def set_tokens(
        self,
        pieces: Sequence[str],
        *,
        ids: Sequence[int] = (),
        first_decode: int | None = None,
        groups: Sequence[Group] = (),
        follow: bool = False,
    ) -> None:
        """Pieces as drawn; ids for the tips; from `first_decode` on they are generated. `follow`: where there are more
        of them than before, the last comes into sight."""
        grew = follow and len(pieces) > len(self._pieces)
        self._pieces, self._ids, self._groups = Pieces.of(pieces), ids, Groups.taken(groups)
        self._first_decode = first_decode
        self._selected = self._inside(self._selected)
        self.hovered = self._inside(self.hovered)
        self._relayout()
        if grew:
            self.reveal(len(pieces) - 1)

    def measure(self, pieces: Sequence[str]) -> None:
        """Finds how wide pieces are that will be shown."""
        metrics = QFontMetricsF(self._theme.font("mono"))
        for piece in set(pieces).difference(self._widths):
            self._widths[piece] = metrics.horizontalAdvance(piece)

    def set_tints(self, strengths: NDArray[np.float32] | None, colour: str = "green") -> None:
        """How strongly each token is tinted, 0 … 1 (NaN: not); `colour` is a token of the theme."""
        self._tints, self._tint_colour = strengths, colour
        self.viewport().update()

    def set_selected(self, index: int | None, *, reveal: bool = True) -> None:
        index = self._inside(index)
        if index != self._selected:
            self._selected = index
            self._describe(index)
            if index is not None and reveal:
                self.reveal(index)
            self.viewport().update()

    def reveal(self, index: int) -> None:
        """Scrolls a token into sight."""
        tops, row = self._layout().tops, self._layout().row_of(index)
        bar, shown = self.verticalScrollBar(), self.rows_shown()
        if row < shown.start:
            bar.setValue(round(tops[row]))
        elif row >= shown.stop:
            bar.setValue(round(tops[self._first_before(row)]))

    def set_hovered(self, index: int | None) -> None:
        index = self._inside(index)
        if index != self.hovered:
            self.hovered = index
            self.viewport().update()

    def set_marked(self, first: int, end: int) -> None:
        """Tokens first … end - 1 are covered by the selection in the text."""
        if (first, end) != self._marked:
            self._marked = (first, end)
            self.viewport().update()

    def set_differs(self, first: int | None) -> None:
        """From this position on the text differs from another branch: its first token has a sign that says so, and all
        of them a ground and an edge in their colour."""
        if first != self._differs:
            self._differs = first
            self._relayout()

    # geometry

    def chip_rect(self, index: int) -> QRectF:
        """Where chip `index` is drawn, in the viewport."""
        layout = self._layout()
        row = layout.row_of(index)
        bottom = float(layout.tops[row + 1]) - self._gap - self._top
        height = self._chip_height()
        return QRectF(layout.left_of(index), bottom - height, float(layout.width[index]), height)

    def sign_rect(self) -> QRectF:
        """Where the sign of the branch is drawn, in the viewport; null without one."""
        if self._differs is None or not 0 <= self._differs < len(self._pieces):
            return QRectF()
        chip = self.chip_rect(self._differs)
        width = self._sign_width(self._differs) - SIGN_GAP
        return QRectF(chip.left() + SIGN_EDGE, chip.top() + SIGN_EDGE, width, chip.height() - 2 * SIGN_EDGE)

    def thing_at(self, point: QPointF) -> int | None:
        if not len(self._pieces):
            return None
        thing = self._layout().at(point.x(), point.y() + self._top)
        return thing if thing is not None and self._layout().row_of(thing) in self.rows_shown() else None

    def rows_shown(self) -> range:
        """The rows that show whole from the first one in sight; at least that one."""
        tops, first = self._layout().tops, self._first
        end = int(np.searchsorted(tops[1:], tops[first] + self.viewport().height() + self._gap, side="right"))
        return range(first, min(max(end, first + 1), len(tops) - 1))

    def rows_in(self, height: int) -> int:
        """Rows of tokens without characters over them that show whole in so many px, one at least."""
        return max(1, int((height + TIGHT_GAP) // (self._chip_height() + TIGHT_GAP)))

    def height_of(self, rows: int) -> int:
        """Px that so many of these rows take."""
        return math.ceil(rows * (self._chip_height() + ROW_GAP) - ROW_GAP)

    def content_height(self) -> int:
        """Height of all rows at the present width."""
        return round(self._layout().height) if self._pieces else 0

    def sizeHint(self) -> QSize:
        return QSize(260, round(3 * (self._chip_height() + ROW_GAP)))

    def minimumSizeHint(self) -> QSize:
        rows = self._least_rows
        return QSize(80, self.height_of(1) if rows == 1 else round(rows * (self._chip_height() + ROW_GAP)))

    def set_least_rows(self, rows: int) -> None:
        """Rows that it asks for at least."""
        self._least_rows = rows
        self.updateGeometry()

    # events

    def paintEvent(self, _event: QPaintEvent) -> None:
        if not len(self._pieces):
            return
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font("mono"))
        layout = self._layout()
        rows = self.rows_shown()
        if not rows:
            return
        first, end = int(layout.starts[rows.start]), int(layout.starts[rows.stop])
        for index in range(first, end):
            self._paint_chip(painter, index)
        for group in self._groups.between(first, end):
            self._paint_group(painter, group)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """What was in sight stays so: the end, or the first token that was, and the selected one before these."""
        bar = self.verticalScrollBar()
        at_end, first = 0 < bar.maximum() == bar.value(), 0
        seen = False
        if self._pieces:
            tops, selected = self._layout().tops, self._selected
            first = int(self._layout().starts[self._first])
            row = -1 if selected is None else self._layout().row_of(selected)
            seen = self._first <= row and tops[row + 1] - self._gap - self._top <= event.oldSize().height()
        self._relayout()
        if at_end:
            bar.setValue(bar.maximum())
        elif bar.value() and first < len(self._pieces):
            bar.setValue(round(self._layout().tops[self._layout().row_of(first)]))
        if seen and self._selected is not None:
            self.reveal(self._selected)

    def choose(self, thing: int) -> None:
        self.set_selected(thing, reveal=False)
        self.tokenClicked.emit(thing)

    def say_hovered(self, thing: int | None) -> None:
        self.tokenHovered.emit(-1 if thing is None else thing)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        target = self._target(Key(event.key())) if self._pieces else None
        if target is None:
            event.ignore()
            return
        if target != self._selected or event.key() in (Key.Key_Return, Key.Key_Enter):
            self.set_selected(target)
            self.tokenClicked.emit(target)

    def tip_of(self, thing: int) -> str:
        """Position and id of a token, and that it begins a branch."""
        said = tr("position {position:,}", position=thing)
        if thing < len(self._ids):
            said = tr("position {position:,} · id {id}", position=thing, id=self._ids[thing])
        if thing == self._differs:
            said += "\n" + tr("from here on the text is another than in the other branches")
        return said

    def tip_rect(self, thing: int) -> QRect:
        return self.chip_rect(thing).toRect()

    # inside

    def _target(self, key: Key) -> int | None:
        last = len(self._pieces) - 1
        here = self._selected
        if key in (Key.Key_Home, Key.Key_End):
            return 0 if key == Key.Key_Home else last
        if key in (Key.Key_Return, Key.Key_Enter):
            return here
        page = max(1, len(self.rows_shown()) - 1)
        vertical = {Key.Key_Up: -1, Key.Key_Down: 1, Key.Key_PageUp: -page, Key.Key_PageDown: page}.get(key)
        sideways = {Key.Key_Left: -1, Key.Key_Right: 1}.get(key)
        if vertical is None and sideways is None:
            return None
        if here is None:
            return 0
        if sideways is not None:
            return min(max(here + sideways, 0), last)
        return self._layout().vertical(here, vertical or 0)

    def _paint_chip(self, painter: QPainter, index: int) -> None:
        colours = self._theme.palette
        rect = self.chip_rect(index)
        differs = self._differs is not None and index >= self._differs
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.hover if index == self.hovered else colours.amber_tint if differs else colours.raised)
        painter.drawRoundedRect(rect, RADIUS, RADIUS)
        if differs:
            edge = QColor(colours.amber)
            edge.setAlphaF(EDGE)
            painter.setPen(QPen(edge, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
            painter.setPen(Qt.PenStyle.NoPen)
        strength = self._strength(index)
        if strength > 0:
            tint = QColor(getattr(colours, self._tint_colour))
            tint.setAlphaF(0.08 + 0.5 * strength)
            painter.setBrush(tint)
            painter.drawRoundedRect(rect, RADIUS, RADIUS)
        if self._marked[0] <= index < self._marked[1]:
            painter.setBrush(colours.accent_tint)
            painter.drawRoundedRect(rect, RADIUS, RADIUS)
        if index in {self._selected, self.hovered}:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            chosen = index == self._selected
            painter.setPen(
                QPen(colours.accent if chosen else colours.secondary, 1.5 if chosen and self.hasFocus() else 1)
            )
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), RADIUS, RADIUS)
        generated = self._first_decode is not None and index >= self._first_decode
        sign = self._sign_width(index)
        if sign:
            self._paint_sign(painter, self.sign_rect())
        painter.setPen(colours.amber if generated else colours.text)
        inside = rect.adjusted(PADDING + sign, 0, -PADDING + 1, 0)
        piece = self._pieces[index]
        if self._widths[piece] > inside.width() + 0.5:
            piece = painter.fontMetrics().elidedText(piece, Qt.TextElideMode.ElideMiddle, int(inside.width()))
        painter.drawText(inside, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, piece)

    def _paint_sign(self, painter: QPainter, rect: QRectF) -> None:
        """The word "branch" on amber, before the first token that is another one there."""
        colours = self._theme.palette
        painter.save()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.amber)
        painter.drawRoundedRect(rect, RADIUS - 1, RADIUS - 1)
        painter.setPen(colours.panel)
        painter.setFont(self._theme.font("hint"))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, sign_words())
        painter.restore()

    def _sign_width(self, index: int) -> float:
        """Px of the sign and the gap after it, 0 on all tokens but the first that differs."""
        if index != self._differs:
            return 0.0
        return QFontMetricsF(self._theme.font("hint")).horizontalAdvance(sign_words()) + 2 * SIGN + SIGN_GAP

    def _paint_group(self, painter: QPainter, group: Group) -> None:
        """The characters over their bytes, with a bracket."""
        colours, layout = self._theme.palette, self._layout()
        for row in range(layout.row_of(group.first), layout.row_of(group.last) + 1):
            first = max(group.first, int(layout.starts[row]))
            last = min(group.last, int(layout.starts[row + 1]) - 1)
            rect = self.chip_rect(first).united(self.chip_rect(last))
            y = rect.top() - 3.5
            painter.setPen(QPen(colours.secondary, 1))
            painter.drawPolyline(
                [
                    QPointF(rect.left() + 2.5, y + 2),
                    QPointF(rect.left() + 2.5, y),
                    QPointF(rect.right() - 2.5, y),
                    QPointF(rect.right() - 2.5, y + 2),
                ]
            )
            room = QRectF(rect.left(), y - self._head_height() + 3, max(rect.width(), 14), self._head_height() - 3)
            painter.setPen(colours.text)
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter, group.text)

    def _strength(self, index: int) -> float:
        if self._tints is None or index >= len(self._tints):
            return 0.0
        strength = float(self._tints[index])
        return min(strength, 1.0) if strength > 0 else 0.0

    def _layout(self) -> Flow:
        if self._flow is None:
            widths, distinct = self._widths, self._pieces.distinct
            self.measure(distinct)
            each = np.fromiter((widths[piece] for piece in distinct), np.float64, len(distinct)) + 2 * PADDING
            taken = each[self._pieces.kind] if len(distinct) else np.empty(0)
            if self._differs is not None and self._differs < len(taken):
                taken[self._differs] += self._sign_width(self._differs)
            glue, tall = self._groups.members()
            self._flow = flow(
                taken,
                line=max(20.0, self.viewport().width() - 1.0),
                gap=GAP,
                row_height=self._chip_height(),
                row_gap=self._gap,
                glue=glue,
                tall=tall,
                extra=self._head_height(),
            )
        return self._flow

    def _relayout(self) -> None:
        self._flow, self._gap = None, ROW_GAP
        bar, height, chip = self.verticalScrollBar(), self.viewport().height(), self._chip_height()
        if self._pieces and self._layout().height - ROW_GAP > height:
            loose, tight = ((height + gap) // (chip + gap) for gap in (ROW_GAP, TIGHT_GAP))
            if tight > loose:
                self._flow, self._gap = self._layout().closer(ROW_GAP - TIGHT_GAP), TIGHT_GAP
        bar.setPageStep(height)
        bar.setSingleStep(round(chip + self._gap))
        rows = len(self._layout().tops) - 1 if self._pieces else 0
        bar.setRange(0, round(self._layout().tops[self._first_before(rows - 1)]) if rows else 0)
        self._scroll()

    def _first_before(self, row: int) -> int:
        """The first row from which on `row` is still whole."""
        tops = self._layout().tops
        least = tops[row + 1] - self._gap - self.viewport().height()
        return min(row, int(np.searchsorted(tops[:-1], least, side="left")))

    def _scroll(self) -> None:
        """Draws from the row on that the scroll bar's value is in."""
        tops = self._layout().tops
        at = self.verticalScrollBar().value() + 0.5
        self._first = max(0, int(np.searchsorted(tops[:-1], at, side="right")) - 1) if self._pieces else 0
        self._top = float(tops[self._first]) if self._pieces else 0.0
        self.viewport().update()

    def _chip_height(self) -> float:
        return float(self._theme.px(20))

    def _head_height(self) -> float:
        return float(self._theme.px(19))

    def _describe(self, index: int | None) -> None:
        text = "" if index is None else f"{self._pieces[index]}, {self.tip_of(index)}"
        self.setAccessibleDescription(text)

    def _inside(self, index: int | None) -> int | None:
        return index if index is not None and 0 <= index < len(self._pieces) else None

    def _restyle(self) -> None:
        self._widths.clear()
        self._relayout()
