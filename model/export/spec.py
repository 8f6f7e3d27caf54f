"""How a figure is to be made: size, resolution, theme. Refused before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from model.colormaps import colormap_for
from model.errors import BadValueError
from model.protocol.export_requests import DrawnRequest, FigureTheme, figure_pixels

PictureFormat = Literal["png", "svg", "pdf"]
PICTURE_FORMATS: tuple[PictureFormat, ...] = ("png", "svg", "pdf")

MIN_INCHES, MAX_INCHES = 0.5, 200.0
MIN_DPI, MAX_DPI = 20, 2_400
POINTS = 72.0
"""Points an inch."""


@dataclass(frozen=True, kw_only=True)
class FigureSpec:
    """`width` × `height` inches at `dpi`. Raises BadValueError or FigureTooLargeError."""

    width: float = 7.0
    height: float = 6.0
    dpi: int = 200
    theme: FigureTheme = "light"
    colormap: str = "viridis"

    def __post_init__(self) -> None:
        sides = {"width": self.width, "height": self.height}
        bad = [name for name, inches in sides.items() if not MIN_INCHES <= inches <= MAX_INCHES]  # NaN is one
        if bad:
            found = tuple(sides[name] for name in bad)
            limits = f"{MIN_INCHES:g} to {MAX_INCHES:g} inches" + " each" * (len(bad) > 1)
            raise BadValueError(" and ".join(bad), found if len(bad) > 1 else found[0], limits)
        if not MIN_DPI <= self.dpi <= MAX_DPI:
            raise BadValueError("dpi", self.dpi, f"{MIN_DPI} to {MAX_DPI}")
        figure_pixels(self.width, self.height, self.dpi)

    @classmethod
    def of(cls, message: DrawnRequest) -> FigureSpec:
        """What a request asks for. Raises UnknownNameError for its colour map too."""
        colormap_for(message.colormap, signed=False)
        return cls(
            width=message.width, height=message.height, dpi=message.dpi, theme=message.theme, colormap=message.colormap
        )

    @property
    def pixels(self) -> tuple[int, int]:
        """(wide, high)."""
        return figure_pixels(self.width, self.height, self.dpi)
