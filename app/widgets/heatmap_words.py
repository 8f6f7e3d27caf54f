"""A cell of a heat map in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.i18n import tr
from app.widgets.readout import brief_piece
from app.widgets.ticks import figure

if TYPE_CHECKING:
    from app.widgets.heatmap_axes import Axis
    from app.widgets.readout import Part


LEAST_WORDS = 6
"""The briefest way to say a cell: its value."""


def cell_words(
    cell: tuple[int, int], value: float | None, names: tuple[str, str, str], axes: tuple[Axis, Axis], brief: int
) -> list[Part]:
    """Both tokens, both positions, the exact value (None: not known yet, NaN: hidden). `names`: what a row, a column
    and a value are called. `brief`, where room is short: 1, with less of a gap; 2, without the words for row and
    column; 3, without any; 4, with the beginnings of the tokens; 5, without these; 6, without positions: the value."""
    row, col, name = (f"{word} " if brief < most else "" for word, most in zip(names, (2, 2, 3), strict=True))
    hidden = value is not None and math.isnan(value)
    words = "…" if value is None else tr("hidden by the mask") if hidden else figure(value, 6)
    gap = " " if brief else "   "
    said = (words, "secondary" if hidden else "strong")
    if brief >= LEAST_WORDS:
        return [*[("", "secondary")] * 7, said]
    query, key = (brief_piece(axis.piece(i), brief) for axis, i in zip(axes, cell, strict=True))
    return [
        (row, "secondary"), (query, "strong"), (f" ({axes[0].number(cell[0])}) → ", "secondary"),
        (col, "secondary"), (key, "strong"), (f" ({axes[1].number(cell[1])}){gap}", "secondary"),
        (name, "secondary"), said,
    ]  # fmt: skip
