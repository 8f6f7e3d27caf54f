"""Names and what they are, a line each: the numbers beside a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip

if TYPE_CHECKING:
    from app.theme import Theme

LEADING = 2
"""Px under the letters of a line, which the last can do without."""


@dataclass(frozen=True, kw_only=True)
class Fact:
    """`voice`: a colour of the theme, or "strong". `tip`: the whole story, shown where the mouse rests."""

    name: str
    value: str
    voice: str = "text"
    tip: str = ""


class FactList(QWidget):
    """As many lines as there is room for, closer to one another where that shows all; where not all have room, the
    wheel and the arrow keys scroll, and the last line says how many are left, which its tool tip has. A value that does
    not fit beside its name goes under it where there is room for all, else it is elided and whole in its tool tip."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.facts: tuple[Fact, ...] = ()
        self._first = 0
        self._grows = False
        self.setAccessibleName(label)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self._restyle)

    def set_grows(self, *, grows: bool) -> None:
        """Whether it asks for the height in which every value is whole."""
        if grows != self._grows:
            self._grows = grows
            self.setMinimumHeight(0)
            self._grow()

    def set_facts(self, facts: Sequence[Fact]) -> None:
        if tuple(facts) != self.facts:
            self.facts = tuple(facts)
            self.setAccessibleDescription(self.text())
            self._grow()
            self._scroll(0)

    def text(self) -> str:
        """All of it, a line each."""
        return "\n".join(f"{fact.name}: {fact.value}" for fact in self.facts)

    def line_height(self) -> float:
        return QFontMetricsF(self._theme.font("table")).height() + LEADING

    def sizeHint(self) -> QSize:
        return QSize(240, round(self.line_height() * 8))

    def minimumSizeHint(self) -> QSize:
        return QSize(130, round(self.line_height() * 5))

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            pitch, places = self._placed()
            facts, y = self.facts[self._first :], event.pos().y()
            at = next((i for i, (top, lines) in enumerate(places) if 0 <= y - top < lines * pitch), -1)
            left = facts[at:] if at == len(places) - 1 and len(places) < len(facts) else ()
            fact = facts[at] if at >= 0 else None
            text = (fact.tip or f"{fact.name}: {fact.value}") if fact else ""
            if left:
                text = "\n".join(f"{fact.name}: {fact.value}" for fact in left)
            QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        return bool(super().event(event))

    def resizeEvent(self, _event: QResizeEvent) -> None:
        self._grow()
        self._scroll(0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = event.angleDelta().y()
        if not self._hides or not steps:
            event.ignore()
            return
        self._scroll(-1 if steps > 0 else 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        way = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()), 0)
        if way and self._hides:
            self._scroll(way)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, colours = QPainter(self), self._theme.palette
        plain, strong = self._theme.font("table"), self._theme.font("table", bold=True)
        metrics = QFontMetricsF(plain)
        column = self._column(metrics)
        (pitch, places), facts = self._placed(), self.facts[self._first :]
        for at, (fact, (top, lines)) in enumerate(zip(facts, places, strict=False)):
            baseline = top + metrics.ascent() + 1
            painter.setFont(plain)
            painter.setPen(colours.secondary)
            if at == len(places) - 1 and len(places) < len(facts):
                painter.drawText(QPointF(0, baseline), tr("… {n} more", n=len(facts) - at))
                break
            name = metrics.elidedText(
                fact.name, Qt.TextElideMode.ElideRight, (column if lines == 1 else self.width()) - 6
            )
            painter.drawText(QPointF(0, baseline), name)
            painter.setFont(strong if fact.voice == "strong" else plain)
            painter.setPen(getattr(colours, "text" if fact.voice == "strong" else fact.voice))
            x = column if lines == 1 else 8.0
            room = self.width() - x
            height = (lines - 1 or 1) * pitch
            if lines == 1:
                value = QFontMetricsF(painter.font()).elidedText(fact.value, Qt.TextElideMode.ElideRight, room)
                painter.drawText(QPointF(x, baseline), value)
            else:
                place = QRectF(x, top + pitch, room, height)
                painter.drawText(place, Qt.TextFlag.TextWordWrap, fact.value)
        if self.hasFocus():
            painter.setPen(colours.accent)
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))

    def _restyle(self) -> None:
        self._grow()
        self.update()

    def _grow(self) -> None:
        if self._grows:
            self.setMinimumHeight(math.ceil(sum(self._wanted()) * self.line_height()))

    def _column(self, metrics: QFontMetricsF) -> float:
        widest = max((metrics.horizontalAdvance(fact.name) for fact in self.facts), default=0.0)
        return min(widest + 10, self.width() * 0.5)

    @property
    def _hides(self) -> bool:
        """Whether not all have room."""
        return len(self._placed()[1]) < len(self.facts)

    def _scroll(self, by: int) -> None:
        """Up or down by so many facts, as far as there are more."""
        self._first += by
        whole = self._whole(self.line_height() - LEADING)
        self._first = max(0, min(self._first, len(self.facts) - whole)) if self._hides else 0
        # It is stopped at by Tab where there is something to scroll.
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if self._hides else Qt.FocusPolicy.NoFocus)
        self.update()

    def _whole(self, pitch: float) -> int:
        """How many lines have room."""
        last = pitch - (self.line_height() - LEADING)
        return max(int((self.height() + last) / pitch), 1)

    def _wanted(self) -> list[int]:
        """Lines of each fact where there is room for all."""
        metrics = QFontMetricsF(self._theme.font("table"))
        strong = QFontMetricsF(self._theme.font("table", bold=True))
        column, wanted = self._column(metrics), []
        for fact in self.facts:
            width = (strong if fact.voice == "strong" else metrics).horizontalAdvance(fact.value)
            fits = width <= self.width() - column and metrics.horizontalAdvance(fact.name) <= column - 6
            wanted.append(1 if fits else 1 + -int(-width // max((self.width() - 8) * 0.92, 1)))
        return wanted

    def _placed(self) -> tuple[float, list[tuple[float, int]]]:
        """Px from a line to the next, and top and lines of each fact that is seen, from the first in sight on; where
        these are not all, the last is of those that are left."""
        loose = self.line_height()
        wanted, tight = self._wanted(), loose - LEADING
        pitch = next((p for p in (loose, tight) if sum(wanted) <= self._whole(p)), 0.0)
        if not pitch:
            wanted = [1] * len(self.facts)
            pitch = next((p for p in (loose, tight) if len(wanted) <= self._whole(p)), 0.0)
        if not pitch:
            pitch = tight
            wanted = wanted[self._first :][: self._whole(tight)]
        places, top = [], 0.0
        for lines in wanted:
            places.append((top, lines))
            top += lines * pitch
        return pitch, places
