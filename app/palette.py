"""The command palette: type a few letters, Enter runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr
from app.keys import shortcut_text

if TYPE_CHECKING:
    from app.commands import Command, CommandRegistry
    from app.theme import Theme

WIDTH, ROW, ROWS = 520, 28, 12
_MOVES = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: ROWS, Qt.Key.Key_PageUp: -ROWS}


class CommandPalette(QWidget):
    """A popup over the window's top with a field and the commands that match."""

    def __init__(self, theme: Theme, commands: CommandRegistry, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("command-palette")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._theme, self._commands = theme, commands
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        self.field = QLineEdit()
        self.field.setPlaceholderText(tr("Type a command"))
        self.field.setAccessibleName(tr("Type a command"))
        self.list = QListWidget()
        self.list.setItemDelegate(_Delegate(theme, self.list))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setUniformItemSizes(True)
        column.addWidget(self.field)
        column.addWidget(self.list)
        self.field.textChanged.connect(self._filter)
        self.field.installEventFilter(self)
        self.list.itemClicked.connect(self._run)
        self._filter("")

    def open_over(self, window: QWidget) -> None:
        """Shows it centred under the window's top."""
        width = min(self._theme.px(WIDTH), window.width() - 32)
        self.resize(width, self._theme.px(ROW) * ROWS + self._theme.px(52))
        corner = window.mapToGlobal(window.rect().topLeft())
        self.move(corner.x() + (window.width() - width) // 2, corner.y() + 72)
        self.show()
        self.field.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            key = Qt.Key(event.key())
            if key in _MOVES:
                row = min(max(self.list.currentRow() + _MOVES[key], 0), self.list.count() - 1)
                self.list.setCurrentRow(row)
                return True
            if key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                item = self.list.currentItem()
                if item is not None:
                    self._run(item)
                return True
        return super().eventFilter(watched, event)

    def _filter(self, text: str) -> None:
        self.list.clear()
        found = [(score, command) for command in self._commands if (score := match(text, command)) is not None]
        for _, command in sorted(found, key=lambda pair: pair[0]):
            item = QListWidgetItem(command.whole_label)
            item.setData(Qt.ItemDataRole.UserRole, command.id)
            item.setData(Qt.ItemDataRole.UserRole + 1, shortcut_text(command))
            item.setSizeHint(QSize(0, self._theme.px(ROW)))
            if not command.enabled():
                item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEnabled)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _run(self, item: QListWidgetItem) -> None:
        command_id = item.data(Qt.ItemDataRole.UserRole)
        if self._commands.can(command_id):
            self.close()
            self._commands.run(command_id)


class _Delegate(QStyledItemDelegate):
    """Title at the left, keys at the right."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        keys = index.data(Qt.ItemDataRole.UserRole + 1)
        super().paint(painter, option, index)
        rect: QRect = option.rect.adjusted(0, 0, -12, 0)
        painter.save()
        painter.setFont(self._theme.font("hint"))
        painter.setPen(self._theme.palette.secondary)
        painter.drawText(rect, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, keys)
        painter.restore()


def match(text: str, command: Command) -> tuple[int, int] | None:
    """How well a command matches: words first, then letters in order; None when it does not."""
    wanted = text.lower().strip()
    for title in (command.whole_label.lower(), command.title.lower(), command.id):
        if not wanted:
            return (0, 0)
        at = title.find(wanted)
        if at >= 0:
            return (0 if at == 0 or title[at - 1] in " .:" else 1, at)
    title, at = command.whole_label.lower(), -1
    for letter in wanted.replace(" ", ""):
        at = title.find(letter, at + 1)
        if at < 0:
            return None
    return (2, at)
