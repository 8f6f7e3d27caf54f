"""The lower edge of a panel that is scrolled: what would be sliced there is covered; a mark says that more follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, QTimer
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractItemView, QAbstractScrollArea, QLabel, QScrollArea, QWidget

from app.widgets.chevron import draw_chevron
from app.widgets.label_lines import line_ends

if TYPE_CHECKING:
    from app.theme import Theme

MOST = 0.4
"""Of the height in sight may be covered: rather a plot that is cut than nothing."""
MARKED = 9
"""Px at 100 % text from which the cover has room for its mark."""
SLIVER = 40
"""Px at 100 % text: less of a map or plot than this says nothing and is covered; more of it is left in sight."""


class WholeEdge(QWidget):
    """Covers, in the colour of what is behind the panel, the part in sight of what goes on under the edge.
    A click brings that up."""

    def __init__(self, scroller: QScrollArea, panel: QWidget, theme: Theme, *, ground: str = "panel") -> None:
        super().__init__(scroller.viewport())
        self._scroller, self._panel, self._theme, self._ground = scroller, panel, theme, ground
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(0)
        self._later.timeout.connect(self._place)
        scroller.verticalScrollBar().valueChanged.connect(self.look_again)
        scroller.viewport().installEventFilter(self)  # bars come and go after the words have their size
        self.hide()

    def set_panel(self, panel: QWidget) -> None:
        """Another panel is scrolled from now on."""
        self._panel = panel
        self.look_again()

    def look_again(self) -> None:
        """Takes its place anew, once the layouts have theirs."""
        if not self._later.isActive():
            self._later.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:
            self.look_again()
        return super().eventFilter(watched, event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        bar = self._scroller.verticalScrollBar()
        bar.setValue(bar.value() + max(1, self.y() - self._theme.px(8)))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), getattr(self._theme.palette, self._ground))
        if self.height() >= self._theme.px(MARKED):
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            middle = QPointF(QRectF(self.rect()).center().x(), self.height() - self._theme.px(MARKED) / 2)
            draw_chevron(painter, self._theme.palette.secondary, middle, size=self._theme.text_scale)

    def _place(self) -> None:
        view = self._scroller.viewport()
        edge = view.height() - self._panel.y()  # in the panel's coordinates
        cut = (
            edge
            if edge >= self._panel.height()
            else lowest_whole(self._panel, self._panel, edge, self._theme.px(SLIVER))
        )
        covered = edge - cut
        if not 0 < covered <= MOST * view.height():
            self.hide()
            return
        self.setGeometry(0, view.height() - covered, view.width(), covered)
        self.show()
        self.raise_()


def lowest_whole(panel: QWidget, within: QWidget, edge: int, sliver: int) -> int:
    """The lowest y, up to `edge`, over which no row or line in `within` is sliced, nor a picture of which less than
    `sliver` is in sight; all in the panel's coordinates."""
    cut = edge
    for part in within.children():
        if isinstance(part, QWidget) and part.isVisible() and not part.isWindow():
            top = part.mapTo(panel, QPoint()).y()
            if top < edge < top + part.height():
                cut = min(cut, _cut(panel, part, top, edge, sliver))
    return cut


def _cut(panel: QWidget, part: QWidget, top: int, edge: int, sliver: int) -> int:
    if isinstance(part, QAbstractItemView):
        inside = part.viewport().mapTo(panel, QPoint()).y()
        row = part.indexAt(QPoint(4, edge - inside)) if edge > inside else None
        if row is None:
            return top
        rect = part.visualRect(row)
        first = part.indexAt(QPoint(4, 0))
        if not row.isValid() or rect.top() <= max(0, part.visualRect(first).top()):
            return top if row.isValid() else edge
        return inside + rect.top() if rect.bottom() + inside >= edge else edge
    if isinstance(part, QLabel):
        return top + max((end for end in line_ends(part) if top + end <= edge), default=0)
    inner = [child for child in part.children() if isinstance(child, QWidget) and child.isVisible()]
    if inner and not isinstance(part, QAbstractScrollArea):
        return lowest_whole(panel, part, edge, sliver)
    return top if edge - top < sliver else edge
