"""A spin box over Python numbers: 64-bit whole numbers and floats alike, checked as they are typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent, QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QToolButton, QWidget

from app.widgets.mapping import Mapping, Number

if TYPE_CHECKING:
    from app.theme import Theme

StepFlag = QAbstractSpinBox.StepEnabledFlag
BUTTON = 16
"""Px at 100 % text of a button inside."""


class NumberBox(QAbstractSpinBox):
    """`edited` carries a value the user typed (Enter, or leaving the box) or stepped to; setting one emits nothing."""

    edited = Signal(object)

    def __init__(
        self,
        theme: Theme,
        mapping: Mapping,
        *,
        decimals: int,
        off: str = "",
        font: str = "ui",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme, self._font = theme, font
        self._mapping, self._decimals, self._off = mapping, decimals, off
        self._value: Number = mapping.default
        self._button: QToolButton | None = None
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.setFrame(False)
        self.editingFinished.connect(self._take_text)
        theme.changed.connect(self._restyle)
        self._restyle()
        self._show()

    def value(self) -> Number:
        return self._value

    def set_value(self, value: Number) -> None:
        """Shows `value`, also where the slider does not reach."""
        self._value = value
        self._show()
        self._place()

    def set_mapping(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._show()

    def text_of(self, value: Number) -> str:
        """`value` as it is shown: thousands separated, the off value by its word."""
        if self._off and value == self._mapping.bottom:
            return self._off
        return f"{int(value):,}" if self._mapping.whole else f"{value:,.{self._decimals}f}"

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def set_button(self, button: QToolButton) -> None:
        """A button at the left inside the frame; it takes room while it is shown."""
        self._button = button
        button.setParent(self)
        button.setStyleSheet("min-height: 0; padding: 0;")
        self._place()

    def _place(self) -> None:
        left = 6
        if self._button is not None:
            self._button.setGeometry(2, 2, self._theme.px(BUTTON), self.height() - 4)
            left = left if self._button.isHidden() else self._theme.px(BUTTON) + 2
        self.lineEdit().setGeometry(self.rect().adjusted(left, 1, -6, -1))

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self.isEnabled():
            painter.setOpacity(0.5)
        painter.setBrush(colours.window)
        painter.setPen(QPen(colours.accent if self.hasFocus() else colours.line, 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)

    def _restyle(self) -> None:
        font = self._theme.font(self._font)
        self.setFont(font)
        # The frame is painted here; what the style sheet gives to fields of forms would not fit in a compact row. The
        # size of the text stands with it: a font that is only set is lost when the application's style sheet changes.
        style = f"background: transparent; border: none; padding: 0; min-height: 0; font-size: {font.pixelSize()}px;"
        self.lineEdit().setStyleSheet(style)  # though it may be the same: another theme's sheet took the size away
        self._place()
        self.update()

    def stepBy(self, steps: int) -> None:
        self._take_text()
        self._change(self._mapping.stepped(self._value, steps))
        self.selectAll()

    def stepEnabled(self) -> StepFlag:
        flags = StepFlag.StepNone
        if self._value < self._mapping.high:
            flags |= StepFlag.StepUpEnabled
        if self._value > self._mapping.bottom:
            flags |= StepFlag.StepDownEnabled
        return flags

    def validate(self, text: str, pos: int) -> tuple[QValidator.State, str, int]:
        state = QValidator.State.Acceptable if self._parsed(text) is not None else QValidator.State.Intermediate
        return state, text, pos

    def fixup(self, _text: str) -> str:
        return self.text_of(self._value)

    def _parsed(self, text: str) -> Number | None:
        text = text.strip().replace(",", "").replace("\u202f", "").replace("_", "")
        if self._off and text == self._off:
            return self._mapping.bottom
        try:
            number: Number = int(text) if self._mapping.whole else float(text)
        except ValueError:
            return None
        return self._mapping.clamp(number) if number == number and abs(number) != float("inf") else None  # noqa: PLR0124

    def _take_text(self) -> None:
        typed = self._parsed(self.lineEdit().text())
        # What is shown is rounded: text that still reads the same is no edit.
        if typed is not None and self.text_of(typed) != self.text_of(self._value):
            self._change(typed)
        else:
            self._show()

    def _change(self, value: Number) -> None:
        if value != self._value:
            self._value = value
            self._show()
            self.edited.emit(value)

    def _show(self) -> None:
        text = self.text_of(self._value)
        if self.lineEdit().text() != text:
            self.lineEdit().setText(text)
