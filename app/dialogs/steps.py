"""Asks how many steps to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QInputDialog, QWidget

from app.i18n import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.settings import Settings

FIRST, MOST = 16, 100_000


class StepsDialog(QInputDialog):
    """Begins with the answer of last time. `take` is given the number."""

    def __init__(self, settings: Settings, take: Callable[[int], None], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings, self._take = settings, take
        kept = settings.panel("run").get("steps")
        self.setInputMode(QInputDialog.InputMode.IntInput)
        self.setWindowTitle(tr("Step N times"))
        self.setLabelText(tr("Steps to take"))
        self.setOkButtonText(tr("Step"))
        self.setCancelButtonText(tr("Cancel"))
        self.setIntRange(1, MOST)
        self.setIntValue(kept if isinstance(kept, int) else FIRST)
        self.intValueSelected.connect(self._chosen)

    def _chosen(self, n: int) -> None:
        self._settings.update_panel("run", steps=n)
        self._take(n)
