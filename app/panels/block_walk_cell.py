"""What a cell of the block walk's picture is, in words and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.i18n import tr
from app.panels.block_walk_words import axis_name
from app.widgets.heatmap import HeatMap
from app.widgets.readout import Part
from app.widgets.ticks import figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.panels.block_walk_texts import OpWords
    from app.widgets.folding import Floats, Folded
    from model.protocol.walk_requests import WalkAxis, WalkOp, WalkReply


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """What is drawn: the operation, its array (rows, cols), and the walk it is of."""

    walk: WalkReply
    op: WalkOp
    values: Floats
    words: OpWords


class ResultMap(HeatMap):
    """A heat map whose `teller` has the words of its readout."""

    teller: Callable[[], list[Part]] | None = None

    def readout(self, *, brief: int = 0) -> list[Part]:
        parts = self.teller() if self.teller is not None and not self._message else []
        return [(text.replace("   ", " "), voice) for text, voice in parts] if brief else parts


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
