"""Which key does what, and who is asked first: text fields, the focused widget, then the run.

Global shortcuts are Qt's own. Letters go to commands before a table can search for them, unless text is being typed.
Arrows, Home, End, Space and the like reach a command only when no widget wanted them (the window's keyPressEvent).
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QKeyCombination, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QMouseEvent, QShortcut, QWindow
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QComboBox, QLineEdit, QPlainTextEdit, QTextEdit, QWidget

from app.commands import Command, CommandRegistry

_IGNORED = Qt.KeyboardModifier.KeypadModifier


def typing(widget: QWidget | None) -> bool:
    """Whether letters typed now belong to a text field, also to one that does not take them: a text too long to edit
    looks like any other."""
    if isinstance(widget, QComboBox):
        return widget.isEditable()
    return isinstance(widget, QLineEdit | QPlainTextEdit | QTextEdit | QAbstractSpinBox)


class KeyRouter(QObject):
    """Runs commands by key for one main window and its floating docks. `pressed`: the mouse, where on the screen."""

    pressed = Signal(QPoint)

    def __init__(self, window: QWidget, commands: CommandRegistry) -> None:
        super().__init__(window)
        self._window, self._commands = window, commands
        self._shortcuts: list[QShortcut] = []
        self._letters: dict[int, list[str]] = {}
        self._unclaimed: dict[int, list[str]] = {}
        commands.changed.connect(self._rebuild)
        self._rebuild()

    def watch(self, window: QWindow | None) -> None:
        """Letters that arrive at this native window are looked at before its widgets are."""
        if window is not None:
            window.removeEventFilter(self)
            window.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.MouseButtonPress and isinstance(event, QMouseEvent):
            self.pressed.emit(event.globalPosition().toPoint())
        if event.type() is not QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        if QApplication.activePopupWidget() or QApplication.activeModalWidget() or typing(QApplication.focusWidget()):
            return False
        return self._run(self._letters, event)

    def unclaimed(self, event: QKeyEvent) -> bool:
        """A key no widget wanted; says whether a command did. Of the keys in a text field only Esc is anyone else's:
        the field says that Enter was pressed and lets it go on."""
        if typing(QApplication.focusWidget()) and event.key() != Qt.Key.Key_Escape:
            return False
        return self._run(self._unclaimed, event) or self._run(self._letters, event)

    def _run(self, table: dict[int, list[str]], event: QKeyEvent) -> bool:
        """Of several commands with the same key the first that can: Esc stops a run, then restores a panel."""
        ids = table.get(_code(event.key(), event.modifiers()), ())
        return any(self._commands.run(command_id) for command_id in ids)

    def _rebuild(self) -> None:
        for shortcut in self._shortcuts:
            shortcut.setParent(None)
            shortcut.deleteLater()
        self._shortcuts, self._letters, self._unclaimed = [], {}, {}
        for command in self._commands:
            for keys in command.shortcuts:
                self._bind(command, keys)

    def _bind(self, command: Command, keys: str) -> None:
        sequence = QKeySequence(keys, QKeySequence.SequenceFormat.PortableText)
        if command.keys == "global":
            shortcut = QShortcut(sequence, self._window)
            shortcut.setContext(Qt.ShortcutContext.ApplicationShortcut)
            shortcut.activated.connect(lambda command_id=command.id: self._commands.run(command_id))
            self._shortcuts.append(shortcut)
        else:
            table = self._letters if command.keys == "letter" else self._unclaimed
            combination: QKeyCombination = sequence[0]  # type: ignore[index] # it is, at run time
            table.setdefault(_code(combination.key(), combination.keyboardModifiers()), []).append(command.id)


def _code(key: int | Qt.Key, modifiers: Qt.KeyboardModifier) -> int:
    return int(key) | (modifiers & ~_IGNORED).value


def shortcut_text(command: Command) -> str:
    """A command's keys as the platform writes them."""
    names = (QKeySequence(keys, QKeySequence.SequenceFormat.PortableText) for keys in command.shortcuts)
    # A language may have one word for two keys.
    return ", ".join(dict.fromkeys(name.toString(QKeySequence.SequenceFormat.NativeText) for name in names))
