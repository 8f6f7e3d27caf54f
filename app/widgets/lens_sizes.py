"""How large the lens's cells are: arithmetic, without a widget. Pairs are (across, down); cells are seen whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.theme import Theme

CELL_WIDTH, CELL_HEIGHT = 74, 19
TIGHT_WIDTH, TIGHT_HEIGHT = 57, 18
"""Px at 100 % text of a cell where not all have room: seven letters of a token."""
LEAST_WIDTH, LEAST_HEIGHT = 7, 3
WORD_WIDTH, WORD_HEIGHT = 0.6, 0.8
"""Shares of a cell's full size from which it has a word."""
LEAST_CELLS = 4.0
"""Zooming in ends when so few cells fill the axis that has more of them."""
SLACK = 0.01
"""Of a px, for what rounding leaves of a room that is shared."""
Pair = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """`room` in px for `counts` cells; `full`, `tight`: px of a cell with all the room it can use, and of one that
    shares it with more than fit."""

    room: Pair
    counts: tuple[int, int]
    full: Pair
    tight: Pair

    @classmethod
    def of(cls, theme: Theme, room: Pair, counts: tuple[int, int]) -> Sizes:
        """At the theme's size of text."""
        px = theme.px
        full, tight = (px(CELL_WIDTH), px(CELL_HEIGHT)), (px(TIGHT_WIDTH), px(TIGHT_HEIGHT))
        return cls(room=room, counts=counts, full=full, tight=tight)

    def cell(self, zoom: float, *, overview: bool) -> Pair:
        """Of a cell, so many times larger than with words, or than in the overview."""
        whole = self._shared((LEAST_WIDTH, LEAST_HEIGHT), self.full)
        if overview and zoom == 1.0:
            return whole
        base = whole if overview else self.tight
        least = (max(base[0] * zoom, whole[0]), max(base[1] * zoom, whole[1])) if zoom != 1.0 else base
        size = self._shared(least, (max(self.full[0], least[0]), max(self.full[1], least[1])))
        return (_in_px(size[0]), _in_px(size[1])) if self.with_words(size) else size

    def with_words(self, cell: Pair) -> bool:
        """Whether a cell of this size has a word, and a stripe."""
        return cell[0] >= self.full[0] * WORD_WIDTH and cell[1] >= self.full[1] * WORD_HEIGHT

    def zoom_ends(self, *, overview: bool) -> Pair:
        """The least zoom, with the whole in sight or cells as small as they get, and the most."""
        whole = self._shared((LEAST_WIDTH, LEAST_HEIGHT), self.full)
        base = whole if overview else self.tight
        least = min(whole[0] / base[0], whole[1] / base[1], 1.0)
        return least, max(self.room[0] / LEAST_CELLS / base[0], self.room[1] / LEAST_CELLS / base[1], 1.0)

    def seen(self, cell: Pair) -> tuple[int, int]:
        """How many cells of this size are seen at once."""
        across, down = (int((room + SLACK) / side) for room, side in zip(self.room, cell, strict=True))
        return min(max(across, 1), self.counts[0]), min(max(down, 1), self.counts[1])

    def _shared(self, least: Pair, most: Pair) -> Pair:
        (x, y), (across, down) = self.room, self.counts
        return _share(x, across, least[0], most[0]), _share(y, down, least[1], most[1])


def _share(room: float, count: int, least: float, most: float) -> float:
    """Px of a cell so that `count` of them have `room`, or where that is under `least` a whole number of them."""
    if count * least > room:
        return max(room, least) / max(int(room // least), 1)
    return min(room / max(count, 1), most)


def _in_px(size: float) -> float:
    return float(max(int(size + SLACK), 1))
