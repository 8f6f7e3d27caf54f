"""The colours of a sign: the two ends of the heat maps' signed colour map, so that a bar and a cell mean the same."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from PySide6.QtGui import QColor

from model.colormaps import SIGNED, lut

if TYPE_CHECKING:
    from app.theme import Palette

SIGNS = ("positive", "negative")
"""What bars of a signed value have in place of a colour of the palette."""


@lru_cache(maxsize=2)
def sign_colour(*, negative: bool) -> QColor:
    """The low end of the map for negative values, its high end for the others. Not to be changed: it is shared."""
    red, green, blue, _ = lut(SIGNED[0])[1 if negative else -1].tolist()
    return QColor(red, green, blue)


def bar_colour(palette: Palette, name: str) -> QColor:
    """A colour of the palette by name, or that of a sign."""
    if name in SIGNS:
        return sign_colour(negative=name == "negative")
    found: QColor = getattr(palette, name)
    return found
