"""A cell of a heat map in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.i18n import tr
from app.widgets.readout import BEGINNINGS, SHORT_PIECE, brief_piece, parts_width
from app.widgets.ticks import figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.theme import Theme
    from app.widgets.heatmap_axes import Axis
    from app.widgets.readout import Part


USUAL = 0.749567
"""A value of the usual length."""
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


def told_width(theme: Theme, shape: tuple[int, int], axes: tuple[Axis, Axis]) -> float:
    """Px of a line that has the beginnings of the longest tokens, their numbers and a value, whatever the cell is."""
    last = max(shape[0] - 1, 0), max(shape[1] - 1, 0)
    words = cell_words(last, USUAL, ("", "", ""), axes, BEGINNINGS)
    pieces = [("m" * min(SHORT_PIECE, axis.most_letters), "strong") for axis in axes]
    words[1], words[4] = pieces
    return parts_width(theme, words)


def folded(words: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """The words of a cell on two lines: its tokens, and its value."""
    tokens, value = list(words[:-2]), list(words[-2:])
    return [*tokens[:-1], (tokens[-1][0].rstrip(), tokens[-1][1])], value
