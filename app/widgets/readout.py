"""One fixed line of figures and words in several voices; plain text only, elided at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.plain import tip as plain_tip

if TYPE_CHECKING:
    from app.theme import Theme

BEGINNINGS, SHORT_PIECE = 4, 5
Part = tuple[str, str]
"""Text and its voice: "text", "secondary", "strong", or a colour of the theme ("amber", "red", "green", "accent")."""


def draw_parts(painter: QPainter, theme: Theme, parts: Sequence[Part], rect: QRectF) -> float:
    """Draws parts one after the other on one line of `rect`; returns where they end. What does not fit is elided."""
    x = rect.left()
    for text, voice in parts:
        font = _strong(theme) if voice == "strong" else theme.font("mono")
        metrics = QFontMetricsF(font)
        room = rect.right() - x
        if room <= metrics.averageCharWidth():
            break
        shown = text
        if metrics.horizontalAdvance(text) > room + 0.5:
            shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        painter.setFont(font)
        painter.setPen(getattr(theme.palette, "text" if voice == "strong" else voice))
        baseline = rect.center().y() + (metrics.ascent() - metrics.descent()) / 2
        painter.drawText(QPointF(x, baseline), shown)
        x += metrics.horizontalAdvance(shown)
        if shown != text:
            break
    return x


def parts_width(theme: Theme, parts: Sequence[Part]) -> float:
    """Px that parts take on a line."""
    plain, strong = QFontMetricsF(theme.font("mono")), QFontMetricsF(_strong(theme))
    return sum((strong if voice == "strong" else plain).horizontalAdvance(text) for text, voice in parts)


def brief_piece(piece: str, brief: int) -> str:
    """A token in a readout that is short of room: from 4 on only its beginning, from 5 on nothing."""
    if brief < BEGINNINGS:
        return piece
    return "" if brief > BEGINNINGS else piece if len(piece) <= SHORT_PIECE else piece[: SHORT_PIECE - 1] + "…"


def _strong(theme: Theme) -> QFont:
    return theme.font("mono", bold=True)


class Readout(QWidget):
    """A line of fixed height, so that what it says never moves what is around it; whole in its tool tip where it has no
    room."""

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, least: int = 120, lead: int = 0) -> None:
        """Px at 100 % text: `least`: that it asks for; `lead`: that it stands off what is before it in its line, where
        it has them."""
        super().__init__(parent)
        self._theme, self._least, self._lead = theme, least, lead
        self._parts: tuple[Part, ...] = ()
        self._shorter: tuple[tuple[Part, ...], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._restyle)

    def set_parts(self, parts: Sequence[Part], *shorter: Sequence[Part]) -> None:
        """`shorter`: what is shown instead where `parts` have no room, the longest first."""
        forms = tuple(tuple(form) for form in shorter)
        if (tuple(parts), forms) != (self._parts, self._shorter):
            self._parts, self._shorter = tuple(parts), forms
            self.setAccessibleDescription(self.text())
            self.update()

    def forms(self) -> tuple[tuple[Part, ...], ...]:
        """All it may say, the longest first."""
        return self._parts, *self._shorter

    def text(self) -> str:
        return "".join(text for text, _ in self._parts)

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(self._least), QFontMetricsF(self._theme.font("mono")).height().__ceil__() + 4)

    def minimumSizeHint(self) -> QSize:
        return QSize(20, self.sizeHint().height())

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            whole = self.shown() == self._parts and parts_width(self._theme, self._parts) <= self.width()
            QToolTip.showText(event.globalPos(), "" if whole else plain_tip(self.text()), self)
            return True
        return bool(super().event(event))

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw_parts(QPainter(self), self._theme, self.shown(), QRectF(self.rect()).adjusted(self.lead(), 0, 0, 0))

    def shown(self) -> tuple[Part, ...]:
        """The longest form that fits; where none does, the shortest."""
        forms = self.forms()
        return next((form for form in forms if parts_width(self._theme, form) <= self.width()), forms[-1])

    def lead(self) -> float:
        """Px before its words: none at the beginning of a line, and none where the words need them."""
        spare = self.width() - parts_width(self._theme, self.shown())
        return max(0.0, min(float(self._theme.px(self._lead)), spare)) if self.x() > 0 else 0.0

    def _restyle(self) -> None:
        self.updateGeometry()
        self.update()
