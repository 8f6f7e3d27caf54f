"""A line for a path: without the focus its beginning and its end are read, whatever lies between."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLineEdit, QStyle, QStyleOptionFrame, QWidget

from app.plain import tip as plain_tip

INSIDE = 2
"""Px that Qt leaves at both sides of the text of a line."""


class PathEdit(QLineEdit):
    """Says a path that is longer than itself with an ellipsis until it is written in; its tip says all of it."""

    def __init__(self, path: str = "", parent: QWidget | None = None) -> None:
        super().__init__(path, parent)
        self.textChanged.connect(self._tell)
        self._tell(path)

    def shown(self) -> str:
        """What is read of the path."""
        if self.hasFocus():
            return self.text()
        room = self._contents().width() - 2 * INSIDE
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, room)

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = self.shown()
        if shown == self.text():
            super().paintEvent(event)
            return
        painter, option = QPainter(self), self._option()
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_PanelLineEdit, option, painter, self)
        painter.setPen(self.palette().text().color())
        place = self._contents().adjusted(INSIDE, 0, -INSIDE, 0)
        painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)

    def _tell(self, path: str) -> None:
        self.setToolTip(plain_tip(path))

    def _option(self) -> QStyleOptionFrame:
        option = QStyleOptionFrame()
        self.initStyleOption(option)
        return option

    def _contents(self) -> QRect:
        return self.style().subElementRect(QStyle.SubElement.SE_LineEditContents, self._option(), self)
