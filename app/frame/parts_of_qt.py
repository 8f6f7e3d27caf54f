"""The names of buttons that Qt makes by itself: it gives some of them none, and the others one in the language in which
they were made, which they keep when that is changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QAbstractButton, QLineEdit

from app.i18n import tr

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

NAMED_BY_QT = {
    "qt_dockwidget_floatbutton": ("QDockWidget", "Float"),
    "qt_dockwidget_closebutton": ("QDockWidget", "Close"),
    "ScrollLeftButton": ("QTabBar", "Scroll Left"),
    "ScrollRightButton": ("QTabBar", "Scroll Right"),
}
"""Object name in Qt → where Qt's own catalogue has its name."""


def name_parts_of_qt(window: QWidget) -> None:
    """Names all of them in the language in force."""
    for button in window.findChildren(QAbstractButton):
        part = button.objectName()
        if part in NAMED_BY_QT:
            button.setAccessibleName(QCoreApplication.translate(*NAMED_BY_QT[part]))
        elif part in {"qt_toolbar_ext_button", "qt_menubar_ext_button"}:
            button.setAccessibleName(tr("More"))
        elif part == "qt_tableview_cornerbutton":
            button.setAccessibleName(tr("Select all"))
        elif isinstance(button.parent(), QLineEdit) and not (button.accessibleName() or button.text()):
            button.setAccessibleName(tr("Clear"))
