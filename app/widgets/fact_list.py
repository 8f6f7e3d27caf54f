"""Names and what they are, a line each: the numbers beside a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QPainter, QPaintEvent
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
    """As many lines as there is room for; where not all have room, the last says how many are left, which its tool tip
    has. A value that does not fit beside its name goes under it where there is room for all, else it is elided and
    whole in its tool tip."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.facts: tuple[Fact, ...] = ()
        self.setAccessibleName(label)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def set_facts(self, facts: Sequence[Fact]) -> None:
        if tuple(facts) != self.facts:
            self.facts = tuple(facts)
            self.setAccessibleDescription(self.text())
            self.update()

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
            places = self._places()
            at = next(
                (i for i, (top, lines) in enumerate(places) if 0 <= event.pos().y() - top < lines * self.line_height()),
                -1,
            )
            left = self.facts[at:] if at == len(places) - 1 and len(places) < len(self.facts) else ()
            fact = self.facts[at] if at >= 0 else None
            text = (fact.tip or f"{fact.name}: {fact.value}") if fact else ""
            if left:
                text = "\n".join(f"{fact.name}: {fact.value}" for fact in left)
            QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        return bool(super().event(event))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, colours = QPainter(self), self._theme.palette
        plain, strong = self._theme.font("table"), self._theme.font("table", bold=True)
        metrics = QFontMetricsF(plain)
        column = self._column(metrics)
        places = self._places()
        for at, (fact, (top, lines)) in enumerate(zip(self.facts, places, strict=False)):
            baseline = top + metrics.ascent() + 1
            painter.setFont(plain)
            painter.setPen(colours.secondary)
            if at == len(places) - 1 and len(places) < len(self.facts):
                painter.drawText(QPointF(0, baseline), tr("… {n} more", n=len(self.facts) - at))
                break
            name = metrics.elidedText(
                fact.name, Qt.TextElideMode.ElideRight, (column if lines == 1 else self.width()) - 6
            )
            painter.drawText(QPointF(0, baseline), name)
            painter.setFont(strong if fact.voice == "strong" else plain)
            painter.setPen(getattr(colours, "text" if fact.voice == "strong" else fact.voice))
            x = column if lines == 1 else 8.0
            room = self.width() - x
            height = (lines - 1 or 1) * self.line_height()
            if lines == 1:
                value = QFontMetricsF(painter.font()).elidedText(fact.value, Qt.TextElideMode.ElideRight, room)
                painter.drawText(QPointF(x, baseline), value)
            else:
                place = QRectF(x, top + self.line_height(), room, height)
                painter.drawText(place, Qt.TextFlag.TextWordWrap, fact.value)

    def _column(self, metrics: QFontMetricsF) -> float:
        widest = max((metrics.horizontalAdvance(fact.name) for fact in self.facts), default=0.0)
        return min(widest + 10, self.width() * 0.5)

    def _places(self) -> list[tuple[float, int]]:
        """Top and lines of each fact that is seen; where these are not all, the last is of those that are left."""
        metrics = QFontMetricsF(self._theme.font("table"))
        strong = QFontMetricsF(self._theme.font("table", bold=True))
        column = self._column(metrics)
        wanted = []
        for fact in self.facts:
            width = (strong if fact.voice == "strong" else metrics).horizontalAdvance(fact.value)
            fits = width <= self.width() - column
            wanted.append(1 if fits else 1 + -int(-width // max((self.width() - 8) * 0.92, 1)))
        if sum(wanted) * self.line_height() > self.height():
            whole = int((self.height() + LEADING) / self.line_height())
            wanted = [1] * max(min(len(wanted), whole), 1)
        places, top = [], 0.0
        for lines in wanted:
            places.append((top, lines))
            top += lines * self.line_height()
        return places
