"""What the window shows before its panels are made; light, because it is painted before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.frame.to_come import TO_COME
from app.i18n import tr

if TYPE_CHECKING:
    from app.theme import Theme

SHORT_WINDOW, LOW_WINDOW = 740, 480
"""Px of the window's height at 100 % text under which there is no row of panels below, nor two in one column."""
EDGE, TITLE, TAB, TAB_SIDES, TIGHT_SIDES = 8, 34, 32, 11.0, 4.5
LEFT, RIGHT, TOP, PROMPT = 0.21, 0.24, 0.67, 0.47 / 0.90
LEAST_LEFT, LEAST_RIGHT = (74, 185), 235
"""The standard layout's sizes and shares (frame/docks.py), which is not imported yet; of the least at the left the
second part grows with the text."""
ICON, GAP, SIDE = 28, 10, 24
"""As an empty panel has them."""
BELOW = ("kv", "rope", "feed_forward", "block_walk", "lens", "model")


class StartPage(QWidget):
    """The panels' places in the standard layout with their names and what will stand there, and what is going on.
    `own`: the layout is a person's own, of which nothing is known yet: one place without a name."""

    def __init__(self, theme: Theme, *, own: bool = False) -> None:
        super().__init__()
        self._theme, self._own = theme, own
        self.painted: Callable[[], None] | None = None

    def places(self, *, short: bool, low: bool) -> list[tuple[QRectF, tuple[str, ...]]]:
        """The frames and the panels in each, the one in front first. `short`, `low`: as in `docks.Crowding`."""
        width, height, room = self.width(), self.height(), self.width() - 4 * EDGE
        if self._own:
            return [(QRectF(EDGE, EDGE, width - 2 * EDGE, height - 2 * EDGE), ())]
        fixed, grows = LEAST_LEFT
        left = max(int(room * LEFT), fixed + self._theme.px(grows))
        right = max(int(room * RIGHT), LEAST_RIGHT)
        top = height - 2 * EDGE if short else round(height * TOP)
        column, found = QRectF(EDGE, EDGE, left, top), list[tuple[QRectF, tuple[str, ...]]]()
        if low:
            found.append((column, ("prompt", "timeline")))
        else:
            part = round((top - EDGE) * PROMPT)
            found.append((QRectF(EDGE, EDGE, left, part), ("prompt",)))
            found.append((column.adjusted(0, part + EDGE, 0, 0), ("timeline",)))
        centre = QRectF(left + 2 * EDGE, EDGE, room - left - right, top)
        found.append((centre, ("attention", *BELOW) if short else ("attention",)))
        found.append((QRectF(width - right - EDGE, EDGE, right, top), ("sampling",)))
        if not short:
            found.append((QRectF(EDGE, top + 2 * EDGE, width - 2 * EDGE, height - top - 3 * EDGE), BELOW))
        return found

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours, px, window = self._theme.palette, self._theme.px, self.window().height()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), colours.window)
        for frame, panels in self.places(short=window < px(SHORT_WINDOW), low=window < px(LOW_WINDOW)):
            painter.setPen(QPen(colours.line, 1))
            painter.setBrush(colours.panel)
            painter.drawRoundedRect(frame.adjusted(0.5, 0.5, -0.5, -0.5), EDGE, EDGE)
            body = QRectF(frame)
            if panels:
                body.setTop(frame.top() + self._paint_titles(painter, frame, panels))
            self._paint_to_come(painter, body, panels)
        if self.painted is not None:
            painted, self.painted = self.painted, None
            painted()
            self.update()  # with its icons

    def _paint_titles(self, painter: QPainter, frame: QRectF, panels: Sequence[str]) -> int:
        """A title, or tabs; px of height."""
        colours, tabs = self._theme.palette, len(panels) > 1
        high = TAB if tabs else self._theme.px(TITLE)
        left, line = frame.left() + (EDGE if tabs else 12), round(frame.top()) + high - 0.5
        painter.setPen(QPen(colours.line, 1))
        painter.drawLine(QPointF(frame.left() + 1, line), QPointF(frame.right() - 1, line))
        painter.setFont(self._theme.font("ui" if tabs else "title"))
        metrics, titles = QFontMetricsF(painter.font()), [tr(TO_COME[panel].title) for panel in panels]
        widths, sides = [metrics.horizontalAdvance(title) for title in titles], TAB_SIDES if tabs else 0.0
        if sum(widths) + 2 * sides * len(widths) > frame.right() - left:
            left, sides = frame.left(), min(sides, TIGHT_SIDES)
        for at, (title, width) in enumerate(zip(titles, widths, strict=True)):
            wide = width + 2 * sides
            if at and left + wide > frame.right():
                break
            painter.setPen(colours.secondary if at else colours.text)
            place = QRectF(left + sides, frame.top(), width + 1, high)
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)
            if tabs and not at:
                painter.fillRect(QRectF(left, line - 1.5, wide, 2), colours.accent)
            left += wide
        return high

    def _paint_to_come(self, painter: QPainter, body: QRectF, panels: Sequence[str]) -> None:
        """Icon and line in the middle, where the panel will have them."""
        leads = not panels or panels[0] == "attention"
        icon = "engine" if leads else TO_COME[panels[0]].icon
        words = tr("Starting the engine …") if leads else tr(TO_COME[panels[0]].words)
        side = self._theme.px(ICON)
        painter.setFont(self._theme.font("ui" if leads else "hint"))
        room, flags = body.adjusted(SIDE, SIDE, -SIDE, -SIDE), Qt.AlignmentFlag.AlignHCenter | Qt.TextFlag.TextWordWrap
        text = QFontMetricsF(painter.font()).boundingRect(room, int(flags), words)
        top = body.center().y() - (side + GAP + text.height()) / 2
        if self.painted is None:  # after the first paint, which their renderer would hold up
            pixmap = self._theme.pixmap(icon, "disabled", ICON, self.devicePixelRatioF())
            painter.drawPixmap(QPointF(body.center().x() - side / 2, top), pixmap)
        painter.setPen(self._theme.palette.secondary)
        painter.drawText(QRectF(room.left(), top + side + GAP, room.width(), text.height()), int(flags), words)
