"""Parts of a panel as cards: side by side where there is room, one at a time behind a switch where there is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from app.plain import tip as plain_tip
from app.widgets.elided_label import ElidedLabel
from app.widgets.segmented import Segmented

if TYPE_CHECKING:
    from app.theme import Theme

GAP, ROW_GAP, HEAD, TOOL_HEAD = 20, 10, 24, 28


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A place in the grid and the cards that share it, one shown at a time."""

    cards: tuple[str, ...]
    row: int = 0
    col: int = 0
    rows: int = 1
    cols: int = 1


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Where cards go; `widths` and `heights` are the shares of columns and rows."""

    slots: tuple[Slot, ...]
    widths: tuple[int, ...]
    heights: tuple[int, ...] = (1,)


Planner = Callable[[float, float], Plan]
"""Width and height in px at 100 % text → where the cards go."""


class Card(QWidget):
    """A caption over a widget; `tool` at the caption's right."""

    def __init__(self, theme: Theme, title: str, body: QWidget, *, tool: QWidget | None = None) -> None:
        super().__init__()
        self._theme, self.title, self.body, self.tool = theme, title, body, tool
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        self.head = QWidget()
        self._row = QHBoxLayout(self.head)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(8)
        self.caption = ElidedLabel(title)
        self.caption.setProperty("role", "hint")
        self._row.addWidget(self.caption, 1)
        column.addWidget(self.head)
        column.addWidget(body, 1)
        self.set_alone()
        theme.changed.connect(self._fit)
        self._fit()

    def set_alone(self) -> None:
        """With its caption and its tool over it."""
        if self.tool is not None:
            self._row.addWidget(self.tool, 0, Qt.AlignmentFlag.AlignVCenter)
            self.tool.show()
        self.head.setVisible(bool(self.title) or self.tool is not None)

    def set_shared(self, row: QHBoxLayout) -> None:
        """Under a switch, which names it: its tool goes into the switch's row."""
        if self.tool is not None:
            row.addWidget(self.tool, 0, Qt.AlignmentFlag.AlignVCenter)
        self.head.hide()

    def set_caption(self, text: str) -> None:
        """What the line over the widget says."""
        if text != self.caption.text():
            self.caption.setText(text)
            self.caption.setToolTip(plain_tip(text))

    def _fit(self) -> None:
        self.head.setFixedHeight(self._theme.px(HEAD if self.tool is None else TOOL_HEAD))


class CardGrid(QWidget):
    """`cards`: in the order of the switches. `chosen` carries the card a person switched to."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, cards: Mapping[str, tuple[Card, str]], planner: Planner, *, label: str) -> None:
        super().__init__()
        self._theme, self._planner, self._label = theme, planner, label
        self.cards = {key: card for key, (card, _) in cards.items()}
        self._names = {key: name for key, (_, name) in cards.items()}
        self._front: dict[str, int] = {}
        self._switches: list[Segmented] = []
        self._plan: Plan | None = None
        self._clock = 0
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(GAP)
        self._grid.setVerticalSpacing(ROW_GAP)
        self._holders: dict[Slot, QWidget] = {}
        for card in self.cards.values():
            card.setParent(self)
        theme.changed.connect(self._replan)

    @property
    def plan(self) -> Plan | None:
        return self._plan

    def show_card(self, key: str) -> None:
        """Brings a card to the front of the place it shares."""
        self._clock += 1
        self._front[key] = self._clock
        if self._plan is not None:
            self._place(self._plan)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._replan()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(900), self._theme.px(190))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(240), self._theme.px(132))

    def _replan(self) -> None:
        scale = self._theme.text_scale
        plan = self._planner(self.width() / scale, self.height() / scale)
        if plan != self._plan:
            self._plan = plan
            self._place(plan)

    def _place(self, plan: Plan) -> None:
        focused = self.focusWidget()
        for switch in self._switches:
            switch.setParent(None)
            switch.deleteLater()
        self._switches = []
        for holder in self._holders.values():
            self._grid.removeWidget(holder)
        old = list(self._holders.values())
        self._holders = {}
        for slot in plan.slots:
            holder = QWidget(self)
            column = QVBoxLayout(holder)
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(4)
            front = max(slot.cards, key=lambda key: self._front.get(key, 0))
            row = QHBoxLayout()
            row.setContentsMargins(0, 0, 0, 0)
            if len(slot.cards) > 1:
                row.addWidget(self._switch(slot, front))
                row.addStretch(1)
                column.addLayout(row)
            for key in slot.cards:
                card = self.cards[key]
                column.addWidget(card, 1)
                if len(slot.cards) > 1:
                    card.set_shared(row)
                else:
                    card.set_alone()
            self._show_front(slot, front)
            self._grid.addWidget(holder, slot.row, slot.col, slot.rows, slot.cols)
            holder.show()
            self._holders[slot] = holder
        for holder in old:
            holder.deleteLater()
        for index in range(max(self._grid.columnCount(), len(plan.widths))):
            self._grid.setColumnStretch(index, plan.widths[index] if index < len(plan.widths) else 0)
        for index in range(max(self._grid.rowCount(), len(plan.heights))):
            self._grid.setRowStretch(index, plan.heights[index] if index < len(plan.heights) else 0)
        if focused is not None and focused.isVisible():
            focused.setFocus()

    def _switch(self, slot: Slot, front: str) -> Segmented:
        items = [(key, self._names[key]) for key in slot.cards]
        switch = Segmented(self._theme, items, label=self._label)
        switch.set_key(front)
        switch.keyChanged.connect(lambda key: self._switched(slot, key))
        self._switches.append(switch)
        return switch

    def _switched(self, slot: Slot, key: str) -> None:
        self._clock += 1
        self._front[key] = self._clock
        self._show_front(slot, key)
        self.chosen.emit(key)

    def _show_front(self, slot: Slot, front: str) -> None:
        for key in slot.cards:
            card = self.cards[key]
            card.setVisible(key == front)
            if card.tool is not None:
                card.tool.setVisible(key == front)
