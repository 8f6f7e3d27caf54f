"""That a drawing was stopped, over what is drawn of it, and the way to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QPainter, QPaintEvent

from app.i18n import tr
from app.widgets.notice_line import Notice, NoticeLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QWidget

    from app.theme import Theme

MOST = 420
"""Px of its width at 100 % text."""


class StoppedNote(NoticeLine):
    """Low over `over`, whose cells keep their room, and `away` px at 100 % text from its sides. `wanted`: to go on."""

    def __init__(self, theme: Theme, over: QWidget, *, away: int) -> None:
        self._over, self._away = over, away
        super().__init__(theme, over)
        over.installEventFilter(self)

    def say(self, texts: Sequence[str], tip: str) -> None:
        """How far it came, the whole sentence first; `tip`: what going on would do."""
        notice = Notice(key="stopped", texts=(*texts, tr("Stopped.")), action=(tr("Go on"), tip))
        self.set_notices([notice])
        self._place()

    def forget(self) -> None:
        """Nothing is stopped any more."""
        self.set_notices([])

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._place()
        return bool(super().eventFilter(watched, event))

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self._theme.palette.panel)
        super().paintEvent(event)

    def _place(self) -> None:
        over, px = self._over, self._theme.px
        width = min(over.width() - 2 * px(self._away), px(MOST))
        top = (over.height() - self.height()) * 2 // 3
        self.setGeometry((over.width() - width) // 2, top, width, self.height())
        self.raise_()

    def _restyle(self) -> None:
        super()._restyle()
        self._place()
