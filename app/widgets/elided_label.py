"""A label that gives way where there is no room."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy


class ElidedLabel(QLabel):
    """Plain text that gives way: said in brief, then elided where there is no room, whole in its tool tip."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self._briefer: tuple[str, ...] = ()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def set_forms(self, text: str, *briefer: str) -> None:
        """The text, and what stands for it where it has no room, ever shorter."""
        self._briefer = briefer
        self.setText(text)
        self.update()

    def shown(self) -> str:
        """What there is room for: the last form cut, where not even that fits."""
        return self.shown_in(self.width())

    def shown_in(self, room: int) -> str:
        """The same of so many px."""
        metrics = self.fontMetrics()

        def cut(text: str) -> str:
            return "\n".join(metrics.elidedText(line, Qt.TextElideMode.ElideRight, room) for line in text.split("\n"))

        forms = (self.text(), *self._briefer)
        return next((form for form in forms if cut(form) == form), cut(forms[-1]))

    def minimumSizeHint(self) -> QSize:
        return QSize(20, super().minimumSizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), self.alignment() | Qt.AlignmentFlag.AlignVCenter, self.shown())
