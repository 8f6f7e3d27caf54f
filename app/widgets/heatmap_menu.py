"""What a right click on cells offers."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from app.i18n import tr


def open_menu(
    cells: QWidget,
    at: QPoint,
    copy: Callable[[str], object],
    *,
    at_cell: bool,
    table: Callable[[], object] | None = None,
    whole: Callable[[], object] | None = None,
    is_whole: bool = False,
) -> QMenu:
    """Copy, table, zoom; `copy` takes "cell", "row" or "matrix". `at_cell`: one is pointed at or chosen. `table` and
    `whole`: what shows the table and the whole matrix, where there is such a thing."""
    menu = QMenu(cells)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    copy_cell = menu.addAction(tr("Copy value"), lambda: copy("cell"))
    copy_cell.setShortcut(QKeySequence.StandardKey.Copy)  # said here, and done by the cells themselves
    copy_cell.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    copy_row = menu.addAction(tr("Copy row"), lambda: copy("row"))
    menu.addAction(tr("Copy matrix in view"), lambda: copy("matrix"))
    copy_cell.setEnabled(at_cell)
    copy_row.setEnabled(at_cell)
    if table is not None or whole is not None:
        menu.addSeparator()
    if table is not None:
        menu.addAction(tr("Show as table"), table)
    if whole is not None:
        menu.addAction(tr("Show whole matrix"), whole).setEnabled(not is_whole)
    menu.popup(at)
    return menu
