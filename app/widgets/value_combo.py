"""A combo box that shows its value first and what kind it is in a quieter voice: "Head 8  KV 2"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QComboBox, QSizePolicy, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.widgets.chevron import draw_chevron

if TYPE_CHECKING:
    from app.theme import Theme

NOTE = Qt.ItemDataRole.UserRole + 1
KEY = Qt.ItemDataRole.UserRole
PADDING, ARROW, NOTE_GAP = 8.0, 17.0, 5.0


@dataclass(frozen=True, kw_only=True)
class Choice:
    """`key`: what it stands for; `text`, `note`: as shown; `short`: what the closed box shows of a text that is much
    longer than the others, where it has no room for all of it; `brief`: what it shows where it has no room for that
    either, the shortest last."""

    key: object
    text: str
    note: str = ""
    short: str = ""
    brief: tuple[str, ...] = ()
    enabled: bool = True


class ChoiceDelegate(QStyledItemDelegate):
    """A line of the open list, painted as the closed box is."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, _option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        width = _width(self._theme, index.data(Qt.ItemDataRole.DisplayRole), index.data(NOTE) or "")
        return QSize(round(width + 2 * PADDING), self._theme.px(24))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, self._theme.palette.accent_tint)
        enabled = bool(index.flags() & Qt.ItemFlag.ItemIsEnabled)
        rect = QRectF(option.rect).adjusted(PADDING, 0, -PADDING, 0)
        text, note = index.data(Qt.ItemDataRole.DisplayRole), index.data(NOTE) or ""
        draw_choice(painter, self._theme, rect, text, note, enabled=enabled)


class ValueCombo(QComboBox):
    """`keyChosen` carries the key the user chose; `set_key` emits nothing."""

    keyChosen = Signal(object)

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._choices: tuple[Choice, ...] = ()
        self._height = 28
        self._brief = False
        self.setAccessibleName(label)
        self.setToolTip(label)
        self.setItemDelegate(ChoiceDelegate(theme, self))
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setMaxVisibleItems(24)
        self.activated.connect(lambda row: self.keyChosen.emit(self._choices[row].key))
        theme.changed.connect(self._restyle)

    def set_choices(self, choices: Sequence[Choice]) -> None:
        """Replaces the list; what was chosen stays chosen where it still exists."""
        if tuple(choices) == self._choices:
            return
        key = self.key()
        self._choices = tuple(choices)
        blocked = self.blockSignals(True)
        self.clear()
        for row, choice in enumerate(self._choices):
            self.addItem(choice.text, choice.key)
            self.setItemData(row, choice.note, NOTE)
            if not choice.enabled:
                self.setItemData(row, 0, Qt.ItemDataRole.UserRole - 1)
        self.set_key(key)
        self.blockSignals(blocked)
        self._restyle()

    def set_compact(self) -> None:
        """Two px lower than others, where height is dear."""
        self._height = 26
        self.setProperty("compact", True)
        self._restyle()

    def set_brief(self, brief: bool) -> None:
        """Whether the closed box asks for no more room than its brief texts need."""
        if brief != self._brief:
            self._brief = brief
            self.updateGeometry()

    def shown_text(self) -> str:
        """What the closed box says of its choice in the room it has."""
        row = self.currentIndex()
        if not 0 <= row < len(self._choices):
            return ""
        choice, room = self._choices[row], self._text_rect().width() + 1
        texts = [text for text in (choice.text, choice.short, *choice.brief) if text]
        return next((text for text in texts if _width(self._theme, text, "") <= room), texts[-1])

    def key(self) -> object:
        row = self.currentIndex()
        return self._choices[row].key if 0 <= row < len(self._choices) else None

    def set_key(self, key: object) -> None:
        """Shows a choice; emits nothing."""
        row = next((i for i, choice in enumerate(self._choices) if choice.key == key), 0)
        if row != self.currentIndex():
            blocked = self.blockSignals(True)
            self.setCurrentIndex(row)
            self.blockSignals(blocked)
            self.update()
            if self._brief:
                self.updateGeometry()

    def sizeHint(self) -> QSize:
        choices = self._choices
        if self._brief:  # a word beside numbers asks for its room when it is chosen
            choices = tuple(c for row, c in enumerate(choices) if row == self.currentIndex() or len(c.brief) > 1)
        widest = max((self._asked_width(choice) for choice in choices), default=40.0)
        return QSize(round(widest + 2 * PADDING + ARROW * self._theme.text_scale), self._theme.px(self._height))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _asked_width(self, choice: Choice) -> float:
        if self._brief and choice.brief:
            return _width(self._theme, choice.brief[0], "")
        return _width(self._theme, choice.short or choice.text, choice.note)

    def _text_rect(self) -> QRectF:
        return QRectF(self.rect()).adjusted(PADDING, 0, -ARROW * self._theme.text_scale, 0)

    def _restyle(self) -> None:
        if any(choice.short for choice in self._choices):  # the open list has room for the whole texts
            widest = max(_width(self._theme, choice.text, choice.note) for choice in self._choices)
            self.view().setMinimumWidth(round(widest + 2 * PADDING) + 4)
        self.updateGeometry()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # Letters are shortcuts of the window; only keys that move through the list are the box's own.
        if event.text().isprintable() and event.text().strip():
            event.ignore()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self.isEnabled():
            painter.setOpacity(0.5)
        painter.setBrush(colours.hover if self.underMouse() and self.isEnabled() else colours.raised)
        painter.setPen(QPen(colours.accent if self.hasFocus() else colours.line, 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        row = self.currentIndex()
        if 0 <= row < len(self._choices):
            draw_choice(painter, self._theme, self._text_rect(), self.shown_text(), self._choices[row].note)
        grown = self._theme.text_scale
        middle = QPointF(self.width() - (ARROW / 2 + 3) * grown, self.height() / 2 + 0.5)
        draw_chevron(painter, colours.secondary, middle, size=grown)


def draw_choice(painter: QPainter, theme: Theme, rect: QRectF, text: str, note: str, *, enabled: bool = True) -> None:
    """The value, then its note in the hint font."""
    painter.setFont(theme.font("ui"))
    painter.setPen(theme.palette.text if enabled else theme.palette.disabled)
    metrics = QFontMetricsF(theme.font("ui"))
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width() + 1)
    painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, shown)
    if note and _width(theme, text, note) <= rect.width() + 1:
        width = metrics.horizontalAdvance(text) + NOTE_GAP
        painter.setFont(theme.font("hint"))
        painter.setPen(theme.palette.secondary if enabled else theme.palette.disabled)
        painter.drawText(
            rect.adjusted(width, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, note
        )


def _width(theme: Theme, text: str, note: str) -> float:
    width = QFontMetricsF(theme.font("ui")).horizontalAdvance(text)
    return width + (NOTE_GAP + QFontMetricsF(theme.font("hint")).horizontalAdvance(note) if note else 0.0)
