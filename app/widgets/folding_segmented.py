"""A segmented control that is a list where the width ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.widgets.segmented import Segmented
from app.widgets.value_combo import Choice, ValueCombo

if TYPE_CHECKING:
    from app.theme import Theme


class FoldingSegmented(Segmented):
    """As `Segmented`; it takes no more than its segments need and no less than its list."""

    def __init__(
        self,
        theme: Theme,
        items: Sequence[tuple[str, str]],
        *,
        label: str,
        tips: Mapping[str, str] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(theme, items, label=label, tips=tips, parent=parent)
        self.list = ValueCombo(theme, label, self)
        self._items = tuple(items)
        self.list.set_choices([Choice(key=key, text=text) for key, text in items])
        self.list.keyChosen.connect(self._picked)
        self.list.hide()
        self.folded = False
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def set_key(self, key: str) -> None:
        super().set_key(key)
        self.list.set_key(key)

    def set_enabled(self, key: str, enabled: bool) -> None:
        super().set_enabled(key, enabled)
        self.list.set_choices([
            Choice(key=key, text=text, enabled=self._segments[key].isEnabled()) for key, text in self._items
        ])  # fmt: skip

    def sizeHint(self) -> QSize:
        sizes = [segment.sizeHint() for segment in self._segments.values()]
        return QSize(sum(size.width() for size in sizes), max(size.height() for size in sizes))

    def minimumSizeHint(self) -> QSize:
        needed, folded = self.sizeHint(), self.list.sizeHint().width()
        return QSize(min(needed.width(), folded), needed.height())

    def size_in(self, width: int) -> QSize:
        """What it takes of so many px."""
        return self.sizeHint() if self.sizeHint().width() <= width else self.minimumSizeHint()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()

    def _restyle(self) -> None:
        super()._restyle()
        self.updateGeometry()
        self._fold()

    def _fold(self) -> None:
        self.folded = self.width() < self.sizeHint().width()
        self.list.setGeometry(0, 0, min(self.width(), self.list.sizeHint().width()), self.height())
        for segment in self._segments.values():
            segment.setVisible(not self.folded)
        self.list.setVisible(self.folded)

    def _choose(self, key: str) -> None:
        self.list.set_key(key)
        super()._choose(key)

    def _picked(self, key: object) -> None:
        self._segments[str(key)].setChecked(True)
        self._choose(str(key))
