"""The run's branches as a small tree: a lane a branch, a dot a token, a click goes there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.branches import Place, beside, lay_out
from app.i18n import tr
from app.plain import tip as plain_tip

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.values import Node

LANE, DOT, MARGIN = 16, 3.5, 8
MAX_LANES = 8
LOW_LANE, LEAST_HEIGHT, MOST_HEIGHT = 6, 20, 24
"""Px of a lane, and of all of them, where the tree stands in a line of text."""


class BranchTree(QWidget):
    """`nodeClicked` carries a node id. The current path is amber, other branches are grey.

    Keys: arrows choose a node, Enter goes there.
    """

    nodeClicked = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._nodes: Mapping[int, Node] = {}
        self._places: tuple[Place, ...] = ()
        self._path: frozenset[int] = frozenset()
        self._current = -1
        self._low, self._lanes, self._steps, self._branch = False, 1, 1, 1
        self.chosen: int | None = None
        """The node that the arrows have come to; None: the current one."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Branches"))
        theme.changed.connect(self.update)

    def set_tree(self, nodes: Mapping[int, Node], n_prompt: int, path: tuple[int, ...], current: int,
                 ahead: int = -1) -> None:  # fmt: skip
        """Shows a run's tree; hides itself while there is one branch only. `ahead`: the last node of the branch that
        was left by going back along it, -1 for none."""
        if nodes != self._nodes:
            self._nodes = dict(nodes)
            self._places = lay_out(nodes, n_prompt)
            self._lanes = max((place.lane for place in self._places), default=0) + 1
            self._steps = max((place.step for place in self._places), default=1)
            self.updateGeometry()
        if current != self._current or self.chosen not in nodes:
            self.chosen = None
        self._path, self._current = frozenset(path), current
        end = ahead if ahead >= 0 else current
        self._branch = next((place.lane for place in self._places if place.node == end), 0) + 1
        self.setVisible(self.lanes > 1)
        self._describe()
        self.update()

    def set_low(self, *, low: bool) -> None:
        """Whether it stands in a line of text: all its lanes have the height of that, or a little more."""
        if low != self._low:
            self._low = low
            self.updateGeometry()
            self.update()

    @property
    def lanes(self) -> int:
        """How many branches there are."""
        return self._lanes

    def branch_words(self) -> str:
        """Which branch of how many the run is on."""
        return tr("branch {n} of {all}", n=self._branch, all=self.lanes)

    def height_as(self, *, low: bool) -> int:
        """Px it takes in a line of text, or below one."""
        px, lanes = self._theme.px, min(self.lanes, MAX_LANES)
        if not low:
            return px(LANE) * lanes + 6
        return min(max(px(LOW_LANE) * lanes + 4, px(LEAST_HEIGHT)), px(MOST_HEIGHT))

    def sizeHint(self) -> QSize:
        return QSize(120, self.height_as(low=self._low))

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.sizeHint().height())

    def point(self, place: Place) -> QPointF:
        """The middle of a node's dot."""
        return QPointF(MARGIN + self._gap * place.step, self._middle(place.lane))

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours, painter = self._theme.palette, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        points = {place.node: self.point(place) for place in self._places}
        root, dot = QPointF(MARGIN, self._middle(0)), min(DOT, self._lane * 0.4, max(self._gap * 0.42, 1.2))
        for on_path in (False, True):
            painter.setPen(QPen(colours.amber if on_path else colours.secondary, 1.5))
            for place in self._places:
                if (place.node in self._path) is on_path:
                    start, end = points.get(place.parent, root), points[place.node]
                    painter.drawPolyline([start, QPointF(start.x() + (end.x() - start.x()) / 2, end.y()), end])
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.green)
        half = min(4.0, dot + 0.5)
        painter.drawRoundedRect(QRectF(root.x() - half, root.y() - half, 2 * half, 2 * half), 2, 2)
        for place in self._places:
            painter.setBrush(colours.amber if place.node in self._path else colours.secondary)
            painter.drawEllipse(points[place.node], dot, dot)
        if self._current in points:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colours.text, 1.5))
            painter.drawEllipse(points[self._current], dot + 2, dot + 2)
        chosen = self._at_keys()
        if self.hasFocus() and chosen is not None:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colours.accent, 1.5))
            middle, half = points[chosen], dot + 4
            painter.drawRoundedRect(QRectF(middle.x() - half, middle.y() - half, 2 * half, 2 * half), 3, 3)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position())
        if place is not None and event.button() is Qt.MouseButton.LeftButton:
            self.nodeClicked.emit(place.node)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        ways = {
            Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
        }  # fmt: skip
        key, here = Qt.Key(event.key()), self._at_keys()
        if here is None or key not in {*ways, Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            event.ignore()
        elif key in ways:
            steps, lanes = ways[key]
            self.chosen = beside(self._places, here, steps=steps, lanes=lanes)
            self._describe()
            self.update()
        else:
            self.nodeClicked.emit(here)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = self._at(QPointF(event.pos()))
            words = self.branch_words() if place is None else self._words(place)
            QToolTip.showText(event.globalPos(), plain_tip(words), self)
            return True
        return super().event(event)

    @property
    def _lane(self) -> float:
        """Px from one lane to the next."""
        return min((self.height() - (4 if self._low else 6)) / self.lanes, self._theme.px(LANE))

    @property
    def _gap(self) -> float:
        """Px from one step to the next."""
        return min(18.0, (self.width() - 2 * MARGIN) / max(1, self._steps))

    def _middle(self, lane: int) -> float:
        return (2 if self._low else 3) + self._lane * (lane + 0.5)

    def _words(self, place: Place) -> str:
        return tr("step {n}: {piece}", n=place.step, piece=self._nodes[place.node].piece)

    def _at_keys(self) -> int | None:
        """The node that the keys are at: the chosen one, else the current one, else the first."""
        known = self._nodes
        return next((node for node in (self.chosen, self._current, *sorted(known)[:1]) if node in known), None)

    def _describe(self) -> None:
        chosen = next((place for place in self._places if place.node == self.chosen), None)
        self.setAccessibleDescription(self.branch_words() if chosen is None else self._words(chosen))

    def _at(self, where: QPointF) -> Place | None:
        near = min(self._places, key=lambda place: (self.point(place) - where).manhattanLength(), default=None)
        return near if near and (self.point(near) - where).manhattanLength() < LANE else None
