"""What a cell of the block walk's picture is, in words and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.i18n import tr
from app.panels.attention_copy import number, table_text
from app.panels.block_walk_words import axis_name
from app.widgets.colour_bar import BarText, bar_width, scale_words
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_boundary import key_width
from app.widgets.heatmap_layout import BAR_SHORT, READOUT_LEAST, STRIP_GAP
from app.widgets.heatmap_table import pointed
from app.widgets.readout import BEGINNINGS, Part, brief_piece, parts_width
from app.widgets.ticks import figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QResizeEvent

    from app.panels.block_walk_texts import OpWords
    from app.theme import Theme
    from app.widgets.folding import Floats, Folded
    from app.widgets.heatmap_table import MatrixTable
    from model.colormaps import Levels
    from model.protocol.walk_requests import WalkAxis, WalkOp, WalkReply

LEAST = 4
"""The briefest way to say a cell: its value."""
TOKENS = ("key", "position")
LEAST_READOUT = 190.0
"""Px at 100 % text of one token or dimension and a value."""
TOKEN, VALUE = "·toke ", "-0.0123456"
"""What a cell's readout has at most of a token's beginning and of digits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What is drawn: the operation, its array (rows, cols), and the walk it is of."""

    walk: WalkReply
    op: WalkOp
    values: Floats
    words: OpWords


def copied(what: str, heat: HeatMap, table: MatrixTable, found: tuple[list[str], list[str], Floats] | None) -> str:
    """A cell, a row or all in sight ("cell", "row", "matrix"), exact, of the table where that is seen; of the map
    `found`, its rows, columns and values. Empty where no cell is chosen or its number is not here."""
    cell, (rows, cols) = pointed(heat, table)
    if what != "matrix":
        if cell is None:
            return ""
        rows = (cell[0], cell[0] + 1)
    if table.isVisible():
        cols = {"cell": (cell[1], cell[1] + 1) if cell else cols, "row": (0, table.blocks.columnCount())}.get(
            what, cols
        )
        values = table.blocks.values(rows, cols)
        names = [[table.blocks.name(at, across=across) for at in range(*span)]
                 for across, span in ((False, rows), (True, cols))]  # fmt: skip
        if values is None:
            return ""
        return number(float(values[0, 0])) if what == "cell" else table_text(names[0], names[1], values)
    if what == "cell" and cell is not None:
        value = heat.value_of(cell)
        return "" if value is None else number(value)
    if found is None or what == "matrix":
        return "" if found is None else table_text(*found)
    at = rows[0] - heat.tiles[-1].rows[0]
    return table_text([found[0][at]], found[1], found[2][at][None]) if 0 <= at < len(found[0]) else ""


class ResultMap(HeatMap):
    """A heat map whose `teller` has the words of its readout, the longest form first, and whose colour bar has fewer
    words where the readout needs the room."""

    teller: Callable[[], list[tuple[Part, ...]]] | None = None
    bars: tuple[BarText, ...] = ()

    def set_bars(self, bars: tuple[BarText, ...]) -> None:
        """What the colour bar may print, the longest first."""
        self.bars = bars
        self._choose_bar()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._choose_bar()

    def _choose_bar(self) -> None:
        """The longest that leaves room for the readout and the words of the decode line, else for the readout; where
        even the shortest has a line of its own, the longest that this holds."""
        if not self.bars:
            return
        room, key, scale = float(self.width()), key_width(self), self.theme.text_scale
        if self.options.readout and self._bar_width(self.bars[-1]) + STRIP_GAP + READOUT_LEAST * scale <= room:
            room -= self.options.key_beside * scale + STRIP_GAP
        rooms = [room - key - STRIP_GAP, room] if key else [room]
        self.set_bar(next(
            (bar for room in rooms for bar in self.bars if self._bar_width(bar) <= room),
            self.bars[-1],
        ))  # fmt: skip

    def _bar_width(self, bar: BarText) -> float:
        """Px of a bar as long as it is beside a readout (heatmap_layout)."""
        words = bar_width(self.theme, bar, 0.0)
        room = self.width() - words - STRIP_GAP - READOUT_LEAST * self.theme.text_scale
        return words + min(max(room, BAR_SHORT), self.options.bar_length)

    def readout(self, *, brief: int = 0) -> list[Part]:
        forms = self.teller() if self.teller is not None and not self._message else []
        return list(forms[min(brief, len(forms) - 1)]) if forms else []


def bar_texts(levels: Levels, *, pooled: bool, beyond: bool) -> tuple[BarText, ...]:
    """What the colour bar may print, the longest first. `beyond`: there are values outside the levels."""
    words = [scale_words(levels.scale, fixed=False)]
    words += [tr("beyond it: dark")] * beyond + [tr("strongest of each pixel")] * pooled
    values = levels.low, float(levels.value(np.array([0.5]))[0]), levels.high
    return tuple(
        BarText(values=values, scale=" · ".join(words[:count]), beyond=beyond) for count in range(len(words), 0, -1)
    )


def readout_room(theme: Theme, op: WalkOp | None, axes: tuple[WalkAxis, WalkAxis], shape: tuple[int, int]) -> float:
    """Px at 100 % text that any cell's readout needs at most with the beginnings of tokens."""
    if op is None:
        return LEAST_READOUT
    words = ""
    for axis, count in zip(axes, shape, strict=True):
        if axis != "one":
            words += f"{axis_name(axis)} " + TOKEN * (axis in TOKENS) + f"{max(count, *op.shape):,} "
    return max(LEAST_READOUT, parts_width(theme, [(words + VALUE, "strong")]) / theme.text_scale)


def cell_forms(
    heat: HeatMap, op: WalkOp, axes: tuple[WalkAxis, WalkAxis], folded: Folded | None
) -> list[tuple[Part, ...]]:
    """`cell_parts`, the longest form first; the last is the value."""
    return [tuple(cell_parts(heat, op, axes, folded, brief=brief)) for brief in range(LEAST + 1)]


def cell_parts(
    heat: HeatMap, op: WalkOp, axes: tuple[WalkAxis, WalkAxis], folded: Folded | None, *, brief: int = 0
) -> list[Part]:
    """Of the cell pointed at, else the chosen one: what its row and its column are, and its value. `axes`: what rows
    and columns count; `folded`: the one row that the cells are lines of. `brief`: 1, with less of a gap; 2, with the
    beginnings of tokens; 3, without the axes' names; 4, the value."""
    cell = heat.hovered or heat.selected
    if cell is None:
        return []
    parts: list[Part] = []
    gap = " " if brief else "   "

    def name(axis: WalkAxis) -> str:
        return f"{axis_name(axis)} " if brief < LEAST - 1 else ""

    if folded is not None:
        index = folded.index(*cell)
        if index is None:
            return []
        step = op.shape[0] / folded.count
        parts += [(name(op.cols), "secondary"), (f"{int(index * step):,}{gap}", "strong")]
    else:
        for axis, at, labels in zip(axes, cell, (heat.row_axis, heat.col_axis), strict=True):
            if axis == "one":
                continue
            parts.append((name(axis), "secondary"))
            if axis in TOKENS:
                parts.append((brief_piece(labels.piece(at), BEGINNINGS if brief > 1 else 0) + " ", "strong"))
            parts.append((f"{at:,}{gap}", "strong"))
    value = heat.value_of(cell)
    hidden = value is not None and np.isnan(value)
    words = "…" if value is None else tr("hidden by the mask") if hidden else figure(value, 6)
    said = (words, "secondary" if hidden or value is None else "strong")
    return [said] if brief >= LEAST else [*parts, said]
