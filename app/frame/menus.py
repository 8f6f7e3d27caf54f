"""The menu bar, drawn from the commands; what is enabled and checked is read when a menu opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QLabel, QMenuBar

from app.i18n import tr
from app.widgets.tick_menu import TickMenu

if TYPE_CHECKING:
    from app.commands import Command, CommandRegistry
    from app.theme import Theme

MENUS = ("File", "Run", "View", "Model", "Help")
Fill = Callable[[TickMenu], None]


class MenuBar(QMenuBar):
    """Menus are filled each time they open, so they are never stale and cost nothing at start."""

    def __init__(self, theme: Theme, commands: CommandRegistry) -> None:
        super().__init__()
        self._theme, self._commands = theme, commands
        self._more: dict[str, Fill] = {}
        self._name = QLabel("Decoderscope")
        self._name.setTextFormat(Qt.TextFormat.PlainText)
        self._name.setContentsMargins(4, 0, 10, 0)
        self._name.setFont(theme.font("title"))
        self.setCornerWidget(self._name, Qt.Corner.TopLeftCorner)
        self.menus: Mapping[str, TickMenu] = {name: self._add(name) for name in MENUS}
        theme.changed.connect(self._restyle)

    def extend(self, name: str, fill: Fill) -> None:
        """Entries of menu `name` that are no commands: recent models, panels."""
        self._more[name] = fill

    def retranslate(self) -> None:
        for name, menu in self.menus.items():
            menu.setTitle(tr(name))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._align()

    def _align(self) -> None:
        """The name on the line of the menus' words: Qt leaves it where it was when the text grows."""
        item = self.actionGeometry(self.actions()[0])
        self._name.setGeometry(self._name.x(), item.y(), self._name.width(), item.height())

    def _restyle(self) -> None:
        self._name.setFont(self._theme.font("title"))
        self.setCornerWidget(self._name, Qt.Corner.TopLeftCorner)  # makes room for it anew
        QTimer.singleShot(0, self, self._align)

    def _add(self, name: str) -> TickMenu:
        menu = TickMenu(self, tr(name))
        self.addMenu(menu)
        menu.aboutToShow.connect(lambda: self._fill(name, menu))
        return menu

    def _fill(self, name: str, menu: TickMenu) -> None:
        menu.clear()
        mine = sorted((c for c in self._commands if c.menu == name and not c.hidden), key=lambda c: c.group)
        if name in self._more:
            self._more[name](menu)
        for at, (_, group) in enumerate(groupby(mine, key=lambda c: c.group)):
            if at or name in self._more:
                menu.addSeparator()
            for command in group:
                target = menu.submenu(tr(command.submenu)) if command.submenu else menu
                target.addAction(self._action(command, target))

    def _action(self, command: Command, parent: TickMenu) -> QAction:
        from app.keys import shortcut_text  # noqa: PLC0415 - after the first paint

        # Keys are bound by the key router; here they are only shown.
        keys = shortcut_text(command)
        action = QAction(f"{command.label}\t{keys}" if keys else command.label, parent)
        action.setEnabled(command.enabled())
        if command.checked is not None:
            action.setCheckable(True)
            action.setChecked(command.checked())
            if command.submenu:  # of these one is chosen
                parent.choices.addAction(action)
        action.triggered.connect(lambda _checked=False: self._commands.run(command.id))
        return action
