"""The colours of printed figures: the window's two palettes, and one without a ground. The only literals in model/."""

from __future__ import annotations

from dataclasses import dataclass

from model.colormaps import Rgba
from model.protocol.export_requests import FigureTheme


@dataclass(frozen=True, kw_only=True)
class Palette:
    """`#rrggbb`, and RGBA where a pixel is meant. `ground` None: transparent."""

    ground: str | None
    text: str
    secondary: str
    line: str
    accent: str
    amber: str
    green: str
    masked: Rgba
    ghost: str
    """Bars in the background: what was there before."""
    hatch: str
    """The lines across masked cells."""

    @property
    def masked_hex(self) -> str:
        """The masked colour as `#rrggbbaa`."""
        return "#" + bytes(self.masked).hex()


_LIGHT = Palette(
    ground="#ffffff",
    text="#1b1f27",
    secondary="#5b6472",
    line="#c9ced6",
    accent="#1769d2",
    amber="#b25e00",
    green="#1c7f4b",
    masked=(0xEC, 0xEE, 0xF1, 0xFF),
    ghost="#c9d3e0",
    hatch="#c3c8d0",
)
_DARK = Palette(
    ground="#1b1e24",
    text="#e6e8ec",
    secondary="#9aa3b2",
    line="#3d4450",
    accent="#5aa9ff",
    amber="#ffb454",
    green="#62d196",
    masked=(0x2A, 0x2F, 0x38, 0xFF),
    ghost="#414a59",
    hatch="#4a5160",
)
_TRANSPARENT = Palette(
    ground=None,
    text=_LIGHT.text,
    secondary=_LIGHT.secondary,
    line=_LIGHT.line,
    accent=_LIGHT.accent,
    amber=_LIGHT.amber,
    green=_LIGHT.green,
    masked=(0x80, 0x88, 0x94, 0x26),
    ghost=_LIGHT.ghost,
    hatch=_LIGHT.hatch,
)
ON_DARK, ON_LIGHT = "#ffffff", "#14161a"
"""Text upon a data colour."""
PALETTES: dict[FigureTheme, Palette] = {"light": _LIGHT, "dark": _DARK, "transparent": _TRANSPARENT}
