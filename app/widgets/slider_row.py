"""One setting on one line: label, slider, number box with its reset inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QSlider, QToolButton, QWidget

from app.i18n import tr
from app.widgets.mapping import Mapping, Number
from app.widgets.number_box import BUTTON, NumberBox

if TYPE_CHECKING:
    from app.theme import Theme

TRAVEL = 10_000
"""Places of the slider: more than it has pixels."""
HANDLE = 12
NARROW = 250
"""Px at 100 % text of a row whose slider needs every px."""
NARROW_SPACING = 4
LEAST_SLIDER = 30
"""Px at 100 % text of a slider under which it has a line of its own."""
PAGE = 10
_STEPS = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Down: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_Up: 1,
    Qt.Key.Key_PageDown: -PAGE,
    Qt.Key.Key_PageUp: PAGE,
}


class TravelSlider(QSlider):
    """A slider that jumps to where it is pressed, and leaves what a key step means to its owner."""

    stepped = Signal(int)
    to_end = Signal(bool)
    travelled = Signal(float)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._theme = theme
        self.mark: float | None = None
        """A second place on it, 0 … 1, that can't be moved."""
        self.setRange(0, TRAVEL)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(120, self._theme.px(22))

    def minimumSizeHint(self) -> QSize:
        # It gives way to the words and numbers beside it, which grow with the text.
        return QSize(max(44, round(70 / self._theme.text_scale)), self._theme.px(22))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._go(event.position().x())
            event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._go(event.position().x())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def wheelEvent(self, event: QWheelEvent) -> None:
        # A panel that scrolls must not change a setting under the mouse: the wheel acts on a focused slider only.
        steps = round(event.angleDelta().y() / 120)
        if self.hasFocus() and steps:
            self.stepped.emit(steps)
            event.accept()
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = _STEPS.get(Qt.Key(event.key()))
        if steps is not None:
            self.stepped.emit(steps)
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self.to_end.emit(event.key() == Qt.Key.Key_End)
        else:
            event.ignore()

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if not self.isEnabled():
            painter.setOpacity(0.45)
        handle, grown = self._handle, self._theme.text_scale
        middle, span = self.height() / 2, self.width() - handle
        at = handle / 2 + span * self.value() / TRAVEL
        painter.setBrush(colours.track)
        painter.drawRoundedRect(QRectF(handle / 2, middle - 2 * grown, span, 4 * grown), 2 * grown, 2 * grown)
        painter.setBrush(colours.accent)
        painter.drawRoundedRect(
            QRectF(handle / 2, middle - 2 * grown, at - handle / 2, 4 * grown), 2 * grown, 2 * grown
        )
        if self.mark is not None:
            painter.setBrush(colours.amber)
            painter.drawRect(self.mark_rect())
            painter.setBrush(colours.accent)
        if self.hasFocus():
            painter.setOpacity(0.35)
            painter.drawEllipse(QRectF(at - 9 * grown, middle - 9 * grown, 18 * grown, 18 * grown))
            painter.setOpacity(1)
        painter.setBrush(colours.knob)
        painter.drawEllipse(QRectF(at - handle / 2, middle - handle / 2, handle, handle))

    def mark_rect(self) -> QRectF:
        """Where the mark is drawn."""
        grown, span = self._theme.text_scale, self.width() - self._handle
        at = self._handle / 2 + span * (self.mark or 0.0)
        return QRectF(round(at - grown), round(self.height() / 2 - 7 * grown), round(2 * grown), round(14 * grown))

    @property
    def _handle(self) -> int:
        return self._theme.px(HANDLE)

    def _go(self, x: float) -> None:
        travel = (x - self._handle / 2) / max(1, self.width() - self._handle)
        self.travelled.emit(min(max(travel, 0.0), 1.0))


class SliderRow(QWidget):
    """`valueChanged` carries each new value the user chose, once; `set_value` (state → widget) never emits."""

    valueChanged = Signal(object)

    def __init__(
        self,
        theme: Theme,
        label: str,
        mapping: Mapping,
        *,
        decimals: int = 2,
        off: str = "",
        tip: str = "",
        label_width: int = 84,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._theme, self._mapping = theme, mapping
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._label = QLabel(label, self)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._slider = TravelSlider(theme, self)
        self._box = NumberBox(theme, mapping, decimals=decimals, off=off, font="table", parent=self)
        self._reset = QToolButton()
        self._reset.setText("↺")
        self._reset.setProperty("flat", True)
        self._box.set_button(self._reset)
        self._label_width, self._dense = label_width, False
        self._label.setBuddy(self._slider)
        self._row = QGridLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setVerticalSpacing(0)
        self._folded: bool | None = None
        self._place_slider(folded=False)
        self.set_label(label, tip)
        self._slider.travelled.connect(lambda travel: self._choose(self._mapping.value(travel)))
        self._slider.stepped.connect(lambda steps: self._choose(self._mapping.stepped(self.value(), steps)))
        self._slider.to_end.connect(lambda end: self._choose(self._mapping.high if end else self._mapping.bottom))
        self._box.edited.connect(self._choose)
        self._reset.clicked.connect(lambda: self._choose(self._mapping.default))
        self._value: Number = mapping.default
        self._used: Number | None = None
        self._tip = tip
        theme.changed.connect(self._restyle)
        self._restyle()
        self.set_value(mapping.default)

    def value(self) -> Number:
        return self._value

    def set_value(self, value: Number) -> None:
        """Shows `value` without emitting; a value beyond the slider's range stays as it is in the box."""
        self._value = value
        self._slider.setValue(round(self._mapping.travel(value) * TRAVEL))
        is_default = value == self._mapping.default
        self._reset.setEnabled(not is_default)
        self._reset.setVisible(not is_default)
        self._box.set_value(value)
        self._fit_box()
        self._show_used()

    def set_used(self, value: Number | None) -> None:
        """What the last token was made with, marked on the slider where it is another value than the slider's."""
        if value != self._used:
            self._used = value
            self._show_used()

    def _show_used(self) -> None:
        """Mark, tip and what is read out."""
        used, told = self._used, [self._box.text_of(self._value)]
        apart = used is not None and used != self._value
        mark = self._mapping.travel(used) if apart and used is not None else None
        words = ""
        if mark is not None and used is not None:
            words = tr("Amber: the last token was made with {value}", value=self._box.text_of(used))
            told.append(words)
        if mark != self._slider.mark:
            self._slider.mark = mark
            self._slider.update()
        self.setToolTip("\n".join(filter(None, (self._tip, words))))
        self._slider.setAccessibleDescription(" · ".join(told))

    def set_mapping(self, mapping: Mapping) -> None:
        """Another range or default, as when a model with another vocabulary is opened."""
        self._mapping = mapping
        self._box.set_mapping(mapping)
        self.set_value(self._value)

    def set_dense(self, dense: bool) -> None:
        """Less height, where a panel needs it for something else."""
        if dense != self._dense:
            self._dense = dense
            self._restyle()

    def set_label(self, label: str, tip: str = "") -> None:
        """The label, and the name every part is read out by."""
        self._label.setText(label)
        self._tip = tip
        self.setToolTip(tip)
        self._slider.setAccessibleName(label)
        self._box.setAccessibleName(label)
        self._reset.setAccessibleName(tr("Reset {label}", label=label))
        self._reset.setToolTip(tr("Back to {value}", value=self._box.text_of(self._mapping.default)))

    def least_width(self) -> int:
        """Px of the narrowest row that says all: the slider then stands under its words."""
        return self._label.minimumWidth() + NARROW_SPACING + self._box_width(narrow=True)

    def minimumSizeHint(self) -> QSize:
        """What the narrowest row needs, however wide it is: a box that is wider as there is room asks for none."""
        width = self._label.minimumWidth() + self._slider.minimumSizeHint().width() + self._box_width(narrow=True)
        return QSize(width + 2 * NARROW_SPACING, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_box()

    def _choose(self, value: Number) -> None:
        value = self._mapping.clamp(value)
        changed = value != self._value
        self.set_value(value)
        if changed:
            self.valueChanged.emit(value)

    def _restyle(self) -> None:
        palette = self._reset.palette()
        palette.setColor(QPalette.ColorRole.ButtonText, self._theme.palette.secondary)
        self._reset.setPalette(palette)
        self._box.setFixedHeight(self._theme.px(20 if self._dense else 24))
        self._label.setFont(self._theme.font("ui"))
        named = QFontMetrics(self._label.font()).horizontalAdvance(self._label.text())
        self._label.setMinimumWidth(max(self._theme.px(self._label_width), named))
        self._fit_box()
        self._slider.updateGeometry()
        self._slider.update()

    def _fit_box(self) -> None:
        """As wide as a vocabulary's size, on a narrow row as a share with its reset; wider only while number and reset
        need more."""
        narrow = self.width() < self._theme.px(NARROW)
        self._box.setFixedWidth(self._box_width(narrow=narrow))
        spacing = NARROW_SPACING if narrow else 6
        self._row.setHorizontalSpacing(spacing)
        room = self.width() - self._label.minimumWidth() - self._box.width() - 2 * spacing
        self._place_slider(folded=room < self._theme.px(LEAST_SLIDER))
        both = self._box.minimumHeight() + self._slider.sizeHint().height()
        self.setFixedHeight(both if self._folded else self._theme.px(21 if self._dense else 26))

    def _place_slider(self, *, folded: bool) -> None:
        """Between label and box, or under both."""
        if folded == self._folded:
            return
        self._folded = folded
        for part in (self._label, self._slider, self._box):
            self._row.removeWidget(part)
        self._row.addWidget(self._label, 0, 0)
        self._row.addWidget(self._box, 0, 2)
        self._row.addWidget(self._slider, *((1, 0, 1, 3) if folded else (0, 1)))
        self._row.setColumnStretch(1, 1)

    def _box_width(self, *, narrow: bool) -> int:
        metrics, button = QFontMetrics(self._theme.font("table")), self._theme.px(BUTTON) + 2
        reset = button if self._value != self._mapping.default else 6
        needed = metrics.horizontalAdvance(self._box.text_of(self._value)) + reset + 8
        least = metrics.horizontalAdvance("0.00") + button + 8 if narrow else metrics.horizontalAdvance("00,000") + 16
        return max(least, needed)
