"""Asks how many steps to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.dialogs.ask import AskDialog
from app.i18n import tr
from app.widgets.form_spin import FormSpin

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

    from app.settings import Settings
    from app.theme import Theme

FIRST, MOST = 16, 100_000


class StepsDialog(AskDialog):
    """Begins with the answer of last time. `take` is given the number."""

    def __init__(
        self, theme: Theme, settings: Settings, take: Callable[[int], None], parent: QWidget | None = None
    ) -> None:
        self._settings, self._take = settings, take
        kept = settings.panel("run").get("steps")
        self.box = FormSpin(theme)
        self.box.setRange(1, MOST)
        self.box.setValue(kept if isinstance(kept, int) else FIRST)
        super().__init__(theme, tr("Step N times"), tr("Steps to take"), self.box, tr("Step"), parent)
        self.box.selectAll()
        self.accepted.connect(self._chosen)

    def _chosen(self) -> None:
        n = self.box.value()
        self._settings.update_panel("run", steps=n)
        self._take(n)
