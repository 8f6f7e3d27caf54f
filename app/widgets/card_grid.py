"""Parts of a panel as cards: side by side where there is room, one at a time behind a switch where there is not; the
switch is a list where it is wider than the place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QMargins, QPoint, QRect, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.plain import tip as plain_tip
from app.widgets.elided_label import ElidedLabel
from app.widgets.folding_segmented import FoldingSegmented

if TYPE_CHECKING:
    from app.theme import Theme

MARGINS = QMargins(12, 8, 12, 6)
"""Of a panel whose body is a grid: at the bottom as little as tells cards from the edge."""
GAP, ROW_GAP, HEAD, TOOL_HEAD = 20, 10, 24, 28
LEAST_WIDTH = 240
"""Px at any size of text: a panel that needs more than the window has would lie over its neighbour."""
NAMED_FROM, NAMED_WIDE = 190, 180
"""Px of height at 100 % text from which a card under its switch has a caption, and of width from which it has one that
says no more than the switch."""


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A place in the grid and the cards that share it, one shown at a time. One of `fills` in front has the whole grid
    to itself and hides the other places."""

    cards: tuple[str, ...]
    row: int = 0
    col: int = 0
    rows: int = 1
    cols: int = 1
    fills: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Where cards go; `widths` and `heights` are the shares of columns and rows."""

    slots: tuple[Slot, ...]
    widths: tuple[int, ...]
    heights: tuple[int, ...] = (1,)


Planner = Callable[[float, float], Plan]
"""Width and height in px at 100 % text → where the cards go."""


class Card(QWidget):
    """A caption over a widget. `tool`: stands at the right of the caption, or of the switch; the grid places it.
    `tells`: the caption says more than the switch does, such as a formula."""

    def __init__(
        self, theme: Theme, title: str, body: QWidget, *, tool: QWidget | None = None, tells: bool = False
    ) -> None:
        super().__init__()
        self._theme, self.title, self.body, self.tool, self._tells = theme, title, body, tool, tells
        self._shared, self._inset = False, 0
        self.lead: Callable[[int], int] = lambda _height: 0
        """Given the px of its height: px at the right that a table's titles take of the caption's line, which is theirs
        then; 0 where they have a line of their own."""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        self.caption = ElidedLabel(title)
        self.caption.setProperty("role", "hint")
        column.addWidget(self.caption)
        column.addWidget(body, 1)
        theme.changed.connect(self._fit)
        self._fit()

    def set_caption(self, text: str, *briefer: str) -> None:
        """What the line over the widget says; and in its stead where it has no room, ever shorter or in more lines."""
        if text != self.caption.text():
            self.caption.set_forms(text, *briefer)
            self.caption.setToolTip(plain_tip(text))
            self._fit()

    def set_shared(self, *, shared: bool, height: int, width: int) -> None:
        """Under a switch, which names it, there is a caption only where there is the `height`, and the `width` too for
        one that tells no more."""
        px = self._theme.px
        self._shared = shared and (height < px(NAMED_FROM) or (not self._tells and width < px(NAMED_WIDE)))
        inset = 0 if shared else self.lead(height)
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        if inset and not self._inset:
            column.removeWidget(self.caption)
        elif self._inset and not inset:
            column.insertWidget(0, self.caption)
        self._inset = inset
        self._fit()

    @property
    def inset(self) -> int:
        """Px that the caption and the tool keep from the right."""
        return self._inset

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _lay_over(self) -> None:
        if self._inset:
            self.caption.setGeometry(0, 0, max(self.width() - self._inset, 0), self.caption.height())
            self.caption.raise_()

    def _fit(self) -> None:
        room = self.tool.sizeHint().width() + 8 if self.tool is not None else 0
        more = self.caption.shown_in(self.width() - room).count("\n") * self.caption.fontMetrics().lineSpacing()
        self.caption.setFixedHeight(self._theme.px(HEAD if self.tool is None else TOOL_HEAD) + more)
        self.caption.setContentsMargins(0, 0, room, 0)
        self.caption.setVisible(not self._shared and bool(self.title))
        self._lay_over()


class CardGrid(QWidget):
    """`cards`: in the order of the switches, each with its name there. `chosen` carries the card that was switched to.

    Cards, switches and tools are children of the grid and stay so; it only moves and shows them.
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme, cards: Mapping[str, tuple[Card, str]], planner: Planner, *, label: str) -> None:
        super().__init__()
        self._theme, self._planner, self._label = theme, planner, label
        self.cards = {key: card for key, (card, _) in cards.items()}
        self._names = {key: name for key, (_, name) in cards.items()}
        self._front: dict[str, int] = {}
        self._switches: dict[tuple[str, ...], FoldingSegmented] = {}
        self._plan: Plan | None = None
        self._clock = 0
        for card in self.cards.values():
            card.setParent(self)
            if card.tool is not None:
                card.tool.setParent(self)
        theme.changed.connect(self._replan)

    @property
    def plan(self) -> Plan | None:
        return self._plan

    @property
    def switches(self) -> tuple[FoldingSegmented, ...]:
        """The switches in use."""
        return tuple(self._switches[slot.cards] for slot in self._slots() if len(slot.cards) > 1)

    def show_card(self, key: str) -> None:
        """Brings a card to the front of the place it shares."""
        self._clock += 1
        self._front[key] = self._clock
        self._arrange()

    def carry(self, before: CardGrid) -> None:
        """The cards that are in front in another grid of the same ones."""
        self._front, self._clock = dict(before._front), before._clock
        self._arrange()

    def look_again(self) -> None:
        """A card needs another room."""
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._replan()

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(900), self._theme.px(190))

    def minimumSizeHint(self) -> QSize:
        return QSize(LEAST_WIDTH, self._theme.px(132))

    def _replan(self) -> None:
        scale = self._theme.text_scale
        self._plan = self._planner(self.width() / scale, self.height() / scale)
        self._arrange()

    def _arrange(self) -> None:
        """Moves everything to where the plan has it."""
        if self._plan is None:
            return
        lefts, widths = _shares(self.width(), self._plan.widths, GAP)
        tops, heights = _shares(self.height(), self._plan.heights, ROW_GAP)
        used = set()
        slots = self._slots()
        for slot in slots:
            last_col, last_row = slot.col + slot.cols - 1, slot.row + slot.rows - 1
            rect = QRect(lefts[slot.col], tops[slot.row], lefts[last_col] + widths[last_col] - lefts[slot.col],
                         tops[last_row] + heights[last_row] - tops[slot.row])  # fmt: skip
            front, place = self._in_front(slot), rect
            if front in slot.fills:
                rect = self.rect()
            shared = len(slot.cards) > 1
            below, taken = rect, 0
            if shared:
                switch = self._switch(slot.cards)
                switch.set_key(front)
                # What has the whole grid does not take the switch away from under the mouse.
                switch.setGeometry(QRect(QPoint(place.left(), rect.top()), switch.size_in(place.width())))
                switch.show()
                used.add(slot.cards)
                below, taken = rect.adjusted(0, switch.height() + 4, 0, 0), switch.width() + 8
            for key in slot.cards:
                self._put(self.cards[key], rect, below, taken, front=key == front, shared=shared)
        placed = {key for slot in slots for key in slot.cards}
        for key in self.cards.keys() - placed:
            self.cards[key].hide()
            if (tool := self.cards[key].tool) is not None:
                tool.hide()
        for cards, switch in self._switches.items():
            if cards not in used:
                switch.hide()

    def _slots(self) -> tuple[Slot, ...]:
        """The places that are seen now."""
        slots = self._plan.slots if self._plan else ()
        return next(((slot,) for slot in slots if self._in_front(slot) in slot.fills), slots)

    def _in_front(self, slot: Slot) -> str:
        return max(slot.cards, key=lambda key: self._front.get(key, 0))

    def _put(self, card: Card, rect: QRect, below: QRect, taken: int, *, front: bool, shared: bool) -> None:
        """A card `below` a switch that has `taken` px of `rect`'s first line; a tool that has no room beside that is on
        the next line."""
        card.set_shared(shared=shared, height=below.height(), width=below.width())
        if card.tool is not None:
            size, high, top = card.tool.sizeHint(), self._theme.px(TOOL_HEAD), rect.top()
            if taken and taken + size.width() > rect.width():
                top, below = below.top(), below.adjusted(0, high + 4, 0, 0)
                card.set_shared(shared=shared, height=below.height(), width=below.width())
            corner = QPoint(rect.right() + 1 - size.width() - card.inset, top + (high - size.height()) // 2)
            card.tool.setGeometry(QRect(corner, size))
            card.tool.setVisible(front)
            card.tool.raise_()
        card.setGeometry(below)
        card.setVisible(front)

    def _switch(self, cards: tuple[str, ...]) -> FoldingSegmented:
        """The switch of cards that share a place; kept, as the same places come back."""
        if cards not in self._switches:
            names = [(key, self._names[key]) for key in cards]
            switch = FoldingSegmented(self._theme, names, label=self._label, parent=self)
            switch.keyChanged.connect(self._switched)
            self._switches[cards] = switch
        return self._switches[cards]

    def _switched(self, key: str) -> None:
        self.show_card(key)
        self.chosen.emit(key)


def _shares(length: int, shares: tuple[int, ...], gap: int) -> tuple[list[int], list[int]]:
    """Where stretches of `length` px begin, and how long they are, with gaps between them."""
    room, whole = max(length - gap * (len(shares) - 1), len(shares)), sum(shares)
    edges = [room * sum(shares[:i]) // whole for i in range(len(shares) + 1)]
    starts = [edge + gap * i for i, edge in enumerate(edges[:-1])]
    return starts, [end - start for start, end in itertools.pairwise(edges)]
