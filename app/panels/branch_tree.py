"""The run's branches as a small tree: a lane a branch, a dot a token, a click goes there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.values import Node

LANE, DOT, MARGIN = 16, 3.5, 8
MAX_LANES = 8


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a node is drawn: its step (1 …) and its lane (0 …)."""

    node: int
    parent: int
    step: int
    lane: int


def lay_out(nodes: Mapping[int, Node], n_prompt: int) -> tuple[Place, ...]:
    """A first child stays on its parent's lane, every other opens a new one; parents come before children."""
    lanes: dict[int, int] = {}
    used = 0
    places: list[Place] = []
    for node in sorted(nodes.values(), key=lambda n: n.id):
        first = all(nodes[p.node].parent != node.parent for p in places)
        lane = lanes.get(node.parent, 0) if first else used + 1
        used = max(used, lane)
        lanes[node.id] = lane
        places.append(Place(node=node.id, parent=node.parent, step=node.position - n_prompt + 1, lane=lane))
    return tuple(places)


class BranchTree(QWidget):
    """`nodeClicked` carries a node id. The current path is amber, other branches are grey."""

    nodeClicked = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._nodes: Mapping[int, Node] = {}
        self._places: tuple[Place, ...] = ()
        self._path: frozenset[int] = frozenset()
        self._current = -1
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Branches"))
        theme.changed.connect(self.update)

    def set_tree(self, nodes: Mapping[int, Node], n_prompt: int, path: tuple[int, ...], current: int) -> None:
        """Shows a run's tree; hides itself while there is one branch only."""
        if len(nodes) != len(self._nodes) or nodes.keys() != self._nodes.keys():
            self._nodes = dict(nodes)
            self._places = lay_out(nodes, n_prompt)
            self.updateGeometry()
        self._path, self._current = frozenset(path), current
        self.setVisible(self.lanes > 1)
        self.setAccessibleDescription(tr("{n} branches", n=self.lanes))
        self.update()

    @property
    def lanes(self) -> int:
        """How many branches there are."""
        return max((place.lane for place in self._places), default=0) + 1

    def sizeHint(self) -> QSize:
        return QSize(120, self._theme.px(LANE) * min(self.lanes, MAX_LANES) + 6)

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.sizeHint().height())

    def point(self, place: Place) -> QPointF:
        """The middle of a node's dot."""
        steps = max((p.step for p in self._places), default=1)
        gap = min(18.0, (self.width() - 2 * MARGIN) / max(1, steps))
        return QPointF(MARGIN + gap * place.step, 3 + self._theme.px(LANE) * (place.lane + 0.5))

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours, painter = self._theme.palette, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        points = {place.node: self.point(place) for place in self._places}
        root = QPointF(MARGIN, 3 + self._theme.px(LANE) * 0.5)
        for on_path in (False, True):
            painter.setPen(QPen(colours.amber if on_path else colours.ghost, 1.5))
            for place in self._places:
                if (place.node in self._path) is on_path:
                    start, end = points.get(place.parent, root), points[place.node]
                    painter.drawPolyline([start, QPointF(start.x() + (end.x() - start.x()) / 2, end.y()), end])
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.green)
        painter.drawRoundedRect(QRectF(root.x() - 4, root.y() - 4, 8, 8), 2, 2)
        for place in self._places:
            painter.setBrush(colours.amber if place.node in self._path else colours.ghost)
            painter.drawEllipse(points[place.node], DOT, DOT)
        if self._current in points:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colours.text, 1.5))
            painter.drawEllipse(points[self._current], DOT + 2, DOT + 2)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._at(event.position())
        if place is not None and event.button() is Qt.MouseButton.LeftButton:
            self.nodeClicked.emit(place.node)

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            place = self._at(QPointF(event.pos()))
            if place is None:
                QToolTip.hideText()
            else:
                node = self._nodes[place.node]
                text = tr("step {n}: {piece}", n=place.step, piece=node.piece)
                QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        return super().event(event)

    def _at(self, where: QPointF) -> Place | None:
        near = min(self._places, key=lambda place: (self.point(place) - where).manhattanLength(), default=None)
        return near if near and (self.point(near) - where).manhattanLength() < LANE else None
