"""Masked cells are told from every value, in every map and theme, by more than their colour."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from app.theme import Theme
from app.widgets.heatmap_image import Hatch, Tile, colour_table, render
from app.widgets.heatmap_view import View
from model.colormaps import ONE_SIGNED, SIGNED, Levels, lut
from model.export.palette import PALETTES
from tests.model.export.examples import attention

Floats = NDArray[np.float64]
APART, HATCHED = 10.0, 8.0
"""CIEDE2000 between colours that stand for different things, and between a hatch's two: 2 to 3 are seen side by side,
10 at a glance."""


def lab(colours: object) -> Floats:
    """CIELAB (…, 3) under D65 of sRGB 0 … 255 (IEC 61966-2-1)."""
    c = np.asarray(colours, float) / 255
    c = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                       [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip
    xyz = c @ to_xyz.T / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def ciede2000(one: Floats, other: Floats) -> Floats:
    """Sharma, Wu and Dalal, "The CIEDE2000 color-difference formula", Color Research and Application 30(1), 2005."""
    l1, a1, b1 = np.moveaxis(one, -1, 0)
    l2, a2, b2 = np.moveaxis(other, -1, 0)
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = h2 - h1
    turn = np.where(c1 * c2 == 0, 0, np.where(turn > 180, turn - 360, np.where(turn < -180, turn + 360, turn)))
    both = h1 + h2
    hue = np.where(np.abs(h1 - h2) <= 180, both / 2, np.where(both < 360, both / 2 + 180, both / 2 - 180))
    hue = np.where(c1 * c2 == 0, both, hue)
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = (
        1 - 0.17 * np.cos(np.radians(hue - 30)) + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6)) - 0.20 * np.cos(np.radians(4 * hue - 63))
    )  # fmt: skip
    dl = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * t)
    rotation = (
        -np.sin(np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2)))) * 2 * np.sqrt(chroma**7 / (chroma**7 + 25**7))
    )
    apart: Floats = np.sqrt(np.maximum(dl**2 + dc**2 + dh**2 + rotation * dc * dh, 0))
    return apart


def rgb(colour: QColor | str) -> list[int]:
    colour = QColor(colour)
    return [colour.red(), colour.green(), colour.blue()]


def surfaces(qapp: QApplication) -> dict[str, dict[str, list[int]]]:
    """The grounds of the window's and of the figures' themes, masked cells and the hatch on these."""
    del qapp
    found = {}
    for name in ("dark", "light"):
        p = Theme(name).palette
        found[f"window {name}"] = {"ground": rgb(p.panel), "behind": rgb(p.window), "masked": rgb(p.masked),
                                   "hatch": rgb(p.ghost)}  # fmt: skip
        f = PALETTES[name]
        assert f.ground is not None
        found[f"figure {name}"] = {"ground": rgb(f.ground), "masked": list(f.masked[:3]), "hatch": rgb(f.hatch)}
    return found


def test_the_measure_is_the_published_one() -> None:
    """Rows 1, 4, 7, 13, 17, 25 and 33 of the table in the paper."""
    for one, other, wanted in (
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425), ((50, -1.3802, -84.2814), (50, 0, -82.7485), 1.0000),
        ((50, 0, 0), (50, -1, 2), 2.3669), ((50, -0.0010, 2.4900), (50, 0.0009, -2.4900), 4.8045),
        ((50, 2.5, 0), (73, 25, -18), 27.1492), ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
    ):  # fmt: skip
        assert float(ciede2000(np.array(one, float), np.array(other, float))) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("name", [*ONE_SIGNED, *SIGNED])
def test_a_map_stands_off_masked_cells_and_grounds(qapp: QApplication, name: str) -> None:
    colours = lab(lut(name)[1:, :3])
    # The middle of a signed map is zero and has next to no colour: the hatch alone tells it from masked cells.
    kept = colours if name in ONE_SIGNED else colours[[0, -1]]
    for where, palette in surfaces(qapp).items():
        for kind in palette.keys() - {"hatch"}:
            least = float(ciede2000(kept, lab(palette[kind])[np.newaxis]).min())
            assert least >= APART, (where, kind, least)
        apart = float(ciede2000(lab(palette["masked"]), lab(palette["hatch"])))
        assert apart >= HATCHED, (where, "hatch", apart)


@pytest.mark.parametrize("ratio", [1, 2])
def test_masked_cells_are_hatched_and_no_others_are(ratio: int) -> None:
    values = attention(19)
    tile = Tile(pixels=Levels.spanning(0.0, 1.0).pixels(values), rows=(0, 19), cols=(0, 19))
    table, hatch = (
        colour_table(lut("CET-CBD1"), QColor("#202020")),
        Hatch(colour=0xFF808080, step=7 * ratio, thick=ratio),
    )
    side = 19 * 12 * ratio
    _image, colours = render([tile], View.whole(20, 19), (side, side * 20 // 19), table, hatch)
    hidden = np.repeat(np.repeat(np.isnan(values), 12 * ratio, axis=0), 12 * ratio, axis=1)
    cells, beyond = colours[:side], colours[side:]
    assert set(np.unique(cells[hidden])) == {table[0], hatch.colour}
    assert np.mean(cells[hidden] == hatch.colour) == pytest.approx(1 / 7, abs=0.01)
    assert hatch.colour not in cells[~hidden]
    assert set(np.unique(beyond)) == {table[0]}, "what is not known yet has no hatch"
