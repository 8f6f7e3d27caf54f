"""A menu whose chosen entries have the tick of a check box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QActionGroup, QPainter, QPaintEvent
from PySide6.QtWidgets import QMenu, QWidget

from app.theme import active
from app.widgets.check_box import BOX, draw_box, draw_tick

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

INDENT = 9
"""Px from the entry's left edge to the box; the style sheet leaves the room for it."""


class TickMenu(QMenu):
    """What is on or off has a box; of an exclusive group the chosen one has a tick. Submenus made by `add_menu` and
    `submenu` are of its kind."""

    def __init__(self, parent: QWidget | None = None, title: str = "") -> None:
        super().__init__(title, parent)
        self.choices = QActionGroup(self)
        """Entries of which one is chosen."""

    def add_menu(self, title: str) -> TickMenu:
        """A submenu at the end."""
        made = TickMenu(self, title)
        super().addMenu(made)
        return made

    def submenu(self, title: str) -> TickMenu:
        """The submenu of that title; made at the end where there is none."""
        for action in self.actions():
            made = action.menu()
            if isinstance(made, TickMenu) and made.title() == title:
                return made
        return self.add_menu(title)

    def clear(self) -> None:
        """With its submenus, which Qt would keep."""
        made = [menu for action in self.actions() if isinstance(menu := action.menu(), TickMenu)]
        super().clear()
        for menu in made:
            menu.deleteLater()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        marked = [action for action in self.actions() if action.isCheckable() and action.isVisible()]
        if not marked:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for action in marked:
            self._paint_mark(painter, action)

    def _paint_mark(self, painter: QPainter, action: QAction) -> None:
        theme, group = active(), action.actionGroup()
        side = theme.px(BOX)
        place = self.actionGeometry(action)
        box = QRectF(place.left() + INDENT, place.center().y() + 0.5 - side / 2, side, side)
        painter.setOpacity(1.0 if action.isEnabled() else 0.45)
        if group is None or not group.isExclusive():
            draw_box(painter, theme.palette, box, checked=action.isChecked(), lit=False)
        elif action.isChecked():
            draw_tick(painter, theme.palette.accent, box)
