"""What a cell of the block walk's picture is, in words and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.i18n import tr
from app.panels.attention_copy import number, table_text
from app.panels.block_walk_words import axis_name
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_table import pointed
from app.widgets.readout import Part
from app.widgets.ticks import figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.panels.block_walk_texts import OpWords
    from app.widgets.folding import Floats, Folded
    from app.widgets.heatmap_table import MatrixTable
    from model.protocol.walk_requests import WalkAxis, WalkOp, WalkReply


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
    """A heat map whose `teller` has the words of its readout, the longest form first."""

    teller: Callable[[], list[tuple[Part, ...]]] | None = None

    def readout(self, *, brief: int = 0) -> list[Part]:
        forms = self.teller() if self.teller is not None and not self._message else []
        return list(forms[min(brief, len(forms) - 1)]) if forms else []


def cell_parts(heat: HeatMap, op: WalkOp, axes: tuple[WalkAxis, WalkAxis], folded: Folded | None) -> list[Part]:
    """Of the cell pointed at, else the chosen one: what its row and its column are, and its value. `axes`: what rows
    and columns count; `folded`: the one row that the cells are lines of."""
    cell = heat.hovered or heat.selected
    if cell is None:
        return []
    parts: list[Part] = []
    if folded is not None:
        index = folded.index(*cell)
        if index is None:
            return []
        step = op.shape[0] / folded.count
        parts += [(f"{axis_name(op.cols)} ", "secondary"), (f"{int(index * step):,}   ", "strong")]
    else:
        for axis, at, labels in zip(axes, cell, (heat.row_axis, heat.col_axis), strict=True):
            if axis == "one":
                continue
            parts.append((f"{axis_name(axis)} ", "secondary"))
            if axis in ("key", "position"):
                parts.append((labels.piece(at) + " ", "strong"))
            parts.append((f"{at:,}   ", "strong"))
    value = heat.value_of(cell)
    hidden = value is not None and np.isnan(value)
    words = "…" if value is None else tr("hidden by the mask") if hidden else figure(value, 6)
    parts.append((words, "secondary" if hidden or value is None else "strong"))
    return parts
