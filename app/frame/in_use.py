"""Which panel is in use: the one clicked or focused last, by its tab too; the attention where none is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint
from PySide6.QtWidgets import QApplication, QWidget

if TYPE_CHECKING:
    from app.frame.docks import PanelDock
    from app.panels.base import Panel

DEFAULT = "attention"


class PanelInUse(QObject):
    """Told of presses of the mouse and of tabs; follows the focus by itself. `docks`: those there are now, by id."""

    def __init__(self, docks: Callable[[], Mapping[str, PanelDock]], parent: QObject) -> None:
        super().__init__(parent)
        self._docks, self._id = docks, DEFAULT
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._on_focus)

    @property
    def panel(self) -> Panel:
        """The panel that exports and copies are of."""
        docks = self._docks()
        dock = docks.get(self._id)
        return (dock if dock is not None and dock.isVisible() else docks[DEFAULT]).panel

    def press(self, place: QPoint) -> None:
        """The mouse was pressed at this point of the screen."""
        self._on_focus(None, QApplication.widgetAt(place))

    def choose(self, dock: PanelDock) -> None:
        """Its tab was clicked."""
        self._id = dock.panel.panel_id

    def reset(self) -> None:
        """The window itself is in use."""
        self._id = DEFAULT

    def _on_focus(self, _old: QWidget | None, now: QWidget | None) -> None:
        if now is None:
            return
        for name, dock in self._docks().items():
            if dock is now or dock.isAncestorOf(now):
                self._id = name
                return
