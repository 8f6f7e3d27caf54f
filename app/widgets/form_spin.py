"""Number fields of dialogs: the style sheet's frame, and two arrows that can be clicked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSpinBox, QWidget

from app.widgets.chevron import draw_chevron

if TYPE_CHECKING:
    from app.theme import Theme

HEIGHT = 28
INSET = 5
"""Px before the text, as the style sheet gives to other fields; it does not reach into this one."""
ARROWS_MIDDLE = 11.0
APART = 4.5
"""Px from the middle of the field up and down to the arrows', at 100 % text."""
StepFlag = QAbstractSpinBox.StepEnabledFlag


def _paint_arrows(box: FormSpin | FormDoubleSpin, theme: Theme) -> None:
    painter = QPainter(box)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    size = 0.85 * theme.text_scale
    can, x, apart = box.stepEnabled(), box.width() - ARROWS_MIDDLE * theme.text_scale, APART * theme.text_scale
    for flag, side in ((StepFlag.StepUpEnabled, -1), (StepFlag.StepDownEnabled, 1)):
        alive = box.isEnabled() and bool(can & flag)
        colour = theme.palette.secondary if alive else theme.palette.disabled
        painter.setOpacity(1.0 if alive else 0.5)
        draw_chevron(painter, colour, QPointF(x, box.height() / 2 + side * apart), up=side < 0, size=size)


class FormSpin(QSpinBox):
    """Whole numbers."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.lineEdit().setTextMargins(INSET, 0, 0, 0)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self._theme.px(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), self._theme.px(HEIGHT))

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():  # a dialog that scrolls must not change what is under the mouse
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        _paint_arrows(self, self._theme)


class FormDoubleSpin(QDoubleSpinBox):
    """Numbers with decimals."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.lineEdit().setTextMargins(INSET, 0, 0, 0)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self._theme.px(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), self._theme.px(HEIGHT))

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():  # a dialog that scrolls must not change what is under the mouse
            super().wheelEvent(event)
        else:
            event.ignore()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        _paint_arrows(self, self._theme)
