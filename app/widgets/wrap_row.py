"""Widgets on a line that goes on below where the width ends, as words of a text do."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QSizePolicy, QWidget

SPACING, LINE_SPACING = 6, 4
LEAST_GROWING = 120
"""Px a widget that takes what a line has left needs to stand on it, if it does not ask for more."""


class WrapRow(QLayout):
    """Widgets keep their order. What a line has left goes to its growing widgets, else before the widgets added since
    `add_gap`, so that these end at the right where all stand on one line. One that folds has the least it needs where
    all do not stand on one line else."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._growing: set[int] = set()
        self._folding: set[int] = set()
        self._folded = False
        self._gap: int | None = None
        self.setContentsMargins(0, 0, 0, 0)

    def add(self, widget: QWidget, *, grows: bool = False, folds: bool = False) -> None:
        """Puts a widget at the end."""
        if grows:
            self._growing.add(len(self._items))
        if folds:
            self._folding.add(len(self._items))
        self.addWidget(widget)

    def add_gap(self) -> None:
        """What is added from here on stands at the right."""
        self._gap = len(self._items)

    # QLayout

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        lines = self._lines(width)
        return sum(self._height(line) for line in lines) + LINE_SPACING * max(len(lines) - 1, 0)

    def sizeHint(self) -> QSize:
        shown, self._folded = self._shown(), False
        return QSize(self._needed(shown), self._height(shown))

    def minimumSize(self) -> QSize:
        self._folded = True
        widths = [self._width(index) for index in self._shown()]
        return QSize(max(widths, default=0), self.sizeHint().height())

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        top = rect.top()
        for line in self._lines(rect.width()):
            height, left = self._height(line), rect.left()
            spare = max(0, rect.width() - self._needed(line))
            growing = [index for index in line if index in self._growing]
            for index in line:
                item = self._items[index]
                width = min(self._width(index), rect.width())
                if index in growing:
                    width += spare // len(growing)
                elif not growing and self._gap is not None and index == max(self._gap, line[0]) and line[0] < self._gap:
                    left += spare
                size = QSize(width, min(item.sizeHint().height(), height))
                item.setGeometry(QRect(QPoint(left, top + (height - size.height()) // 2), size))
                left += width + SPACING
            top += height + LINE_SPACING

    # inside

    def _shown(self) -> list[int]:
        return [index for index, item in enumerate(self._items) if not item.isEmpty()]

    def _width(self, index: int) -> int:
        item = self._items[index]
        width = (item.minimumSize() if self._folded and index in self._folding else item.sizeHint()).width()
        return max(LEAST_GROWING, width) if index in self._growing else width

    def _needed(self, line: list[int]) -> int:
        return sum(self._width(index) for index in line) + SPACING * max(len(line) - 1, 0)

    def _height(self, line: list[int]) -> int:
        return max((self._items[index].sizeHint().height() for index in line), default=0)

    def _lines(self, width: int) -> list[list[int]]:
        """The numbers of the items on each line; hidden ones are on none."""
        lines: list[list[int]] = []
        shown, self._folded = self._shown(), False
        self._folded = self._needed(shown) > width
        for index in shown:
            if lines and self._needed([*lines[-1], index]) <= width:
                lines[-1].append(index)
            else:
                lines.append([index])
        return lines


def wrap(holder: QWidget) -> None:
    """Lets the widget of a row be as narrow as it is made and as high as its lines then are."""
    policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)  # fixed it would stay one line
    policy.setHeightForWidth(True)
    holder.setSizePolicy(policy)
