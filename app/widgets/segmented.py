"""A segmented control: a few choices side by side, one chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QSizePolicy, QWidget

from app.widgets.crisp_text import draw_crisp

if TYPE_CHECKING:
    from app.theme import Theme

HEIGHT = 28
RADIUS = 6.0
PADDING = 8
_MOVES = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}


class Segment(QAbstractButton):
    """One choice."""

    def __init__(self, theme: Theme, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.setText(text)
        self.setCheckable(True)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.first = self.last = False

    def sizeHint(self) -> QSize:
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + 2 * PADDING, self._theme.px(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # The row decides what an arrow does; a button's own way with them depends on where its neighbours lie.
        if Qt.Key(event.key()) in _MOVES:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self.isEnabled():
            painter.setOpacity(0.45)
        # Neighbours share a hairline: every segment but the last reaches half a pixel over its right edge.
        outline = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5 if self.last else 0.5, -0.5)
        shape = _shape(outline, first=self.first, last=self.last)
        fill: QColor = colours.raised if self.underMouse() and self.isEnabled() else colours.panel
        painter.setBrush(colours.accent if self.isChecked() else fill)
        painter.setPen(QPen(colours.accent if self.isChecked() else colours.line, 1))
        painter.drawPath(shape)
        if self.hasFocus():
            inner = QRectF(self.rect()).adjusted(3, 3, -3, -3)
            painter.setPen(QPen(colours.accent_text if self.isChecked() else colours.accent, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(inner, 3, 3)
        painter.setPen(colours.accent_text if self.isChecked() else colours.text)
        metrics = self.fontMetrics()
        left = (self.width() - metrics.horizontalAdvance(self.text())) / 2
        draw_crisp(painter, QPointF(left, (self.height() + metrics.ascent() - metrics.descent()) / 2), self.text())


class Segmented(QWidget):
    """`items`: (key, text) pairs. `keyChanged` is the user's choice; `set_key` emits nothing. Arrows choose."""

    keyChanged = Signal(str)

    def __init__(
        self,
        theme: Theme,
        items: Sequence[tuple[str, str]],
        *,
        label: str,
        tips: Mapping[str, str] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(label)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._group = QButtonGroup(self)
        self._segments: dict[str, Segment] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for index, (key, text) in enumerate(items):
            segment = Segment(theme, text, self)
            segment.first, segment.last = index == 0, index == len(items) - 1
            segment.setAccessibleName(f"{label}: {text}")
            segment.setToolTip((tips or {}).get(key, ""))
            self._segments[key] = segment
            self._group.addButton(segment, index)
            row.addWidget(segment)
            segment.clicked.connect(lambda _checked=False, key=key: self._choose(key))
        self._key = items[0][0]
        self._segments[self._key].setChecked(True)
        theme.changed.connect(self._restyle)

    def key(self) -> str:
        return self._key

    def set_key(self, key: str) -> None:
        """Shows `key` as chosen; emits nothing."""
        self._key = key
        self._segments[key].setChecked(True)

    def set_enabled(self, key: str, enabled: bool) -> None:
        self._segments[key].setEnabled(enabled)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        move = _MOVES.get(Qt.Key(event.key()))
        if move is None:
            event.ignore()
            return
        keys = [key for key, segment in self._segments.items() if segment.isEnabled()]
        at = keys.index(self._key) + move
        if 0 <= at < len(keys):
            self._segments[keys[at]].setFocus(Qt.FocusReason.TabFocusReason)
            self.set_key(keys[at])
            self.keyChanged.emit(keys[at])

    def _restyle(self) -> None:
        for segment in self._segments.values():
            segment.updateGeometry()
        self.update()

    def _choose(self, key: str) -> None:
        if key != self._key:
            self._key = key
            self.keyChanged.emit(key)


def _shape(rect: QRectF, *, first: bool, last: bool) -> QPainterPath:
    """A rectangle with the corners of a row's ends rounded."""
    path = QPainterPath()
    left, right = (RADIUS if first else 0.0), (RADIUS if last else 0.0)
    path.moveTo(rect.left() + left, rect.top())
    path.lineTo(rect.right() - right, rect.top())
    if last:
        path.arcTo(QRectF(rect.right() - 2 * right, rect.top(), 2 * right, 2 * right), 90, -90)
        path.lineTo(rect.right(), rect.bottom() - right)
        path.arcTo(QRectF(rect.right() - 2 * right, rect.bottom() - 2 * right, 2 * right, 2 * right), 0, -90)
    else:
        path.lineTo(rect.right(), rect.bottom())
    path.lineTo(rect.left() + left, rect.bottom())
    if first:
        path.arcTo(QRectF(rect.left(), rect.bottom() - 2 * left, 2 * left, 2 * left), 270, -90)
        path.lineTo(rect.left(), rect.top() + left)
        path.arcTo(QRectF(rect.left(), rect.top(), 2 * left, 2 * left), 180, -90)
    path.closeSubpath()
    return path
