"""What a right click on a heat map offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QMenu

from app.i18n import tr

if TYPE_CHECKING:
    from app.widgets.heatmap import HeatMap


def open_menu(heat: HeatMap, at: QPoint) -> QMenu:
    """Copy, table, zoom. The owner of the map answers the signals."""
    menu = QMenu(heat)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    cell = heat.hovered or heat.selected
    copy_cell = menu.addAction(tr("Copy value"), lambda: heat.copyWanted.emit("cell"))
    copy_row = menu.addAction(tr("Copy row"), lambda: heat.copyWanted.emit("row"))
    menu.addAction(tr("Copy matrix in view"), lambda: heat.copyWanted.emit("matrix"))
    copy_cell.setEnabled(cell is not None)
    copy_row.setEnabled(cell is not None)
    menu.addSeparator()
    menu.addAction(tr("Show as table"), heat.tableWanted.emit)
    whole = menu.addAction(tr("Show whole matrix"), heat.reset_view)
    whole.setEnabled(not heat.view.is_whole(heat.shape))
    menu.popup(at)
    return menu
