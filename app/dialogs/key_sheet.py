"""The sheet of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr
from app.keys import shortcut_text

if TYPE_CHECKING:
    from app.commands import CommandRegistry
    from app.theme import Theme

from app.dialogs.label import label
from app.dialogs.sheet import KEPT
from app.frame.whole_edge import WholeEdge

KEYS_RULE = (
    "Letters act while no text field has the focus; arrows, Home, End and Space belong to the focused widget first."
)
HEAT_MAP = "In a heat map"
HEAT_MAP_KEYS = (
    ("← ↑ → ↓, Home, End", "Choose another cell"),
    ("PgUp, PgDown", "A screenful of rows"),
    ("Ctrl+Home, Ctrl+End", "The first and the last cell"),
    ("Z, Shift+Z", "Zoom in, zoom out"),
    ("0", "Show the whole"),
    ("Ctrl+C", "Copy the value"),
)
"""What the focused heat map does with a key itself, whatever commands there are."""
SIDE = 20
AROUND = 2 * SIDE + 12
"""Px beside the keys: margins and a scroll bar."""


class KeySheet(QDialog):
    """Every command with keys, by menu, and the keys of a heat map."""

    def __init__(self, theme: Theme, commands: CommandRegistry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("key-sheet")
        self.setWindowTitle(tr("Keys"))
        outer = QVBoxLayout(self)
        outer.setContentsMargins(SIDE, 18, SIDE, 16)
        groups: dict[str, list[tuple[str, str]]] = {}
        for command in commands:
            if command.shortcuts and not command.hidden:
                groups.setdefault(command.menu or "View", []).append((shortcut_text(command), command.label))
        groups[HEAT_MAP] = [(keys, tr(title)) for keys, title in HEAT_MAP_KEYS]
        scroll = self._scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        self.inner = self._columns(groups, (("Run", "File", "Help"), ("View", "Model", HEAT_MAP)))
        self.ensurePolished()
        scroll.setWidget(self.inner)
        self.inner.ensurePolished()
        if self.inner.sizeHint().width() + AROUND > self.screen().availableGeometry().width() - KEPT:
            self.inner = self._columns(groups, (("Run", "View", "File", "Model", "Help", HEAT_MAP),))
            scroll.setWidget(self.inner)
        outer.setSpacing(12)
        outer.addWidget(scroll, 1)
        foot = QHBoxLayout()
        foot.setSpacing(20)
        foot.addWidget(label(tr(KEYS_RULE), "hint", wrap=True), 1)
        close = QPushButton(tr("Close"))
        close.setProperty("primary", True)
        close.setDefault(True)
        close.clicked.connect(self.accept)
        foot.addWidget(close, 0, Qt.AlignmentFlag.AlignBottom)
        outer.addLayout(foot)
        self._edge = WholeEdge(scroll, self.inner, theme, ground="window")
        self._fit(theme, self.inner)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._edge.look_again()

    def _columns(self, groups: dict[str, list[tuple[str, str]]], halves: tuple[tuple[str, ...], ...]) -> QWidget:
        """The groups of each column under one another."""
        inner = QWidget()
        columns = QHBoxLayout(inner)
        columns.setContentsMargins(0, 0, 0, 0)
        columns.setSpacing(32)
        for names in halves:
            grid = QGridLayout()
            grid.setHorizontalSpacing(16)
            grid.setVerticalSpacing(5)
            row = 0
            for name in (name for name in names if name in groups):
                grid.addWidget(label(tr(name), "title"), row, 0, 1, 2)
                for at, (keys, title) in enumerate(groups[name], start=row + 1):
                    grid.addWidget(label(keys, "mono"), at, 0, Qt.AlignmentFlag.AlignRight)
                    grid.addWidget(label(title), at, 1)
                row += len(groups[name]) + 1
                grid.setRowMinimumHeight(row, 12)
                row += 1
            grid.setRowStretch(row, 1)
            grid.setColumnStretch(1, 1)
            columns.addLayout(grid, 1)
        return inner

    def _fit(self, theme: Theme, inner: QWidget) -> None:
        """As large as all keys need, where the screen has that room; less is scrolled."""
        self.ensurePolished()
        inner.ensurePolished()
        needed, room = inner.sizeHint(), self.screen().availableGeometry()
        around = self.sizeHint().height() - self._scroll.sizeHint().height()
        width = max(theme.px(760), needed.width() + AROUND)
        self.resize(min(width, room.width() - KEPT), min(needed.height() + around + 4, room.height() - KEPT))
