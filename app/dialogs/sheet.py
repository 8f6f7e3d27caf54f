"""A dialog that fits its screen: what it says is scrolled where that is higher, its buttons stay in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMargins, QObject, QSize, QTimer
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QDialog,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.frame.whole_edge import WholeEdge

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent, QShowEvent

    from app.theme import Theme

MARGINS = QMargins(20, 18, 20, 16)
KEPT = 48
"""Px of the screen that no dialog takes: its frame, and a little of what is behind it."""


class Sheet(QDialog):
    """A subclass fills `column`, which is scrolled, and `foot`, which is not. It takes the size its words need, anew
    when the text changes its size or there is more to say; a person may make it another."""

    def __init__(
        self, theme: Theme, parent: QWidget | None = None, *, width: float = 0, widest: float = 0, spacing: int = 10
    ) -> None:
        """`width`: px at 100 % text it has at least, `widest`: at most (0: as many as its words need)."""
        super().__init__(parent)
        self._theme, self._width, self._widest, self._fitted = theme, width, widest, QSize()
        self.content = QWidget()
        self.content.setObjectName("sheet-content")
        self.column = QVBoxLayout(self.content)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(spacing)
        self.scroller = QScrollArea()
        self.scroller.setWidgetResizable(True)
        self.scroller.setFrameShape(QScrollArea.Shape.NoFrame)  # its px would be missing from what is wanted
        self.scroller.setWidget(self.content)
        self.scroller.viewport().setAutoFillBackground(False)
        self.content.setAutoFillBackground(False)
        self.edge = WholeEdge(self.scroller, self.content, theme, ground="window")
        self.foot = QHBoxLayout()
        outer = self._outer = QVBoxLayout(self)
        outer.setContentsMargins(MARGINS)
        outer.setSpacing(max(spacing, 10))
        outer.addWidget(self.scroller, 1)
        outer.addLayout(self.foot)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(0)
        self._later.timeout.connect(self.fit)
        self.content.installEventFilter(self)
        theme.changed.connect(self._fit_later)

    def wanted(self) -> QSize:
        """Px its words need, and what is round them; never more than the screen has."""
        room = self.screen().availableGeometry().size() - QSize(KEPT, KEPT)
        around = QSize(MARGINS.left() + MARGINS.right(), MARGINS.top() + MARGINS.bottom())
        around += QSize(0, self._outer.spacing() + self.foot.sizeHint().height())
        words, foot = self.content.minimumSizeHint().width(), self.foot.minimumSize().width()
        width = max(self._theme.px(self._width), max(words, foot) + around.width())
        if self._widest:
            preferred = max(width, self.content.sizeHint().width() + around.width())
            width = min(preferred, self._theme.px(self._widest))
        width = min(width, room.width())
        height = self._height(width - around.width())
        if height + around.height() > room.height():  # a bar beside the words takes its width from them
            bar = self.scroller.verticalScrollBar().sizeHint().width()
            width = min(width + bar, room.width())
            height = self._height(width - around.width() - bar)
        return QSize(width, min(height + around.height(), room.height()))

    def fit(self) -> None:
        """Takes the size it needs, where that is another than before; then it is all on the screen."""
        self.ensurePolished()
        self.column.activate()
        wanted = self.wanted()
        if wanted != self._fitted:
            self._fitted = wanted
            self.scroller.setMinimumWidth(wanted.width() - MARGINS.left() - MARGINS.right())
            self._outer.activate()  # or the least width of before holds
            self.resize(wanted)
            if self.isVisible():
                self._stay_on_screen()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.content and event.type() is QEvent.Type.LayoutRequest:
            self._fit_later()
        if event.type() is QEvent.Type.Resize:
            self.edge.look_again()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.edge.look_again()

    def showEvent(self, event: QShowEvent) -> None:
        self.fit()
        self.scroller.setAccessibleName(self.windowTitle())
        super().showEvent(event)  # which puts it over its parent
        self._stay_on_screen()
        if self.focusWidget() in {None, self.scroller}:
            self._to_first_field()

    def _to_first_field(self) -> None:
        """What is typed goes into the first field, where there is one, and not to the place that scrolls."""
        for field in self.content.findChildren(QWidget):
            if isinstance(field, QLineEdit | QComboBox | QAbstractSpinBox) and field.isEnabled() and field.isVisible():
                field.setFocus()
                return

    def _fit_later(self) -> None:
        self._later.start()

    def _height(self, width: int) -> int:
        if self.column.hasHeightForWidth():
            return self.column.totalHeightForWidth(width)
        return self.content.sizeHint().height()

    def _stay_on_screen(self) -> None:
        room, frame = self.screen().availableGeometry(), self.frameGeometry()
        left = max(room.left(), min(frame.left(), room.right() + 1 - frame.width()))
        top = max(room.top(), min(frame.top(), room.bottom() + 1 - frame.height()))
        if (left, top) != (frame.left(), frame.top()):
            self.move(left, top)
