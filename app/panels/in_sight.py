"""What is taken from a panel is taken when it is drawn: one that nobody sees has drawn and asked for nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDockWidget

from app.i18n import tr

if TYPE_CHECKING:
    from app.panels.base import Panel

LOOK_MS, LONGEST_SECONDS = 30, 20.0


def bring_into_sight(panel: Panel) -> None:
    """Opens the panel's dock and brings it before those it shares a place with."""
    dock = panel.parentWidget()
    while dock is not None and not isinstance(dock, QDockWidget):
        dock = dock.parentWidget()
    if dock is not None:
        dock.show()
        dock.raise_()


def once_drawn(panel: Panel, act: Callable[[], object]) -> None:
    """`act`, at once where the panel is seen; else when it has been brought into sight and all that it shows has come.
    Not at all where it never does, or the panel is gone."""
    if panel.seen():
        act()
        return
    bring_into_sight(panel)
    panel.ctx.notify.say(tr("Drawing …"))
    timer, until = QTimer(panel), time.monotonic() + LONGEST_SECONDS

    def look() -> None:
        drawn = panel.seen() and panel.settled
        if drawn or time.monotonic() > until:
            timer.deleteLater()
            if drawn:
                panel.ctx.notify.clear()
                act()
            else:
                panel.ctx.notify.say(tr("This panel is not drawn yet: try again when it is."))

    timer.timeout.connect(look)
    timer.start(LOOK_MS)
