"""Colour maps against their sources, and colour scales against their formulas."""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.colormaps import LOG_RANGE, Levels, colormap_for, lut
from model.errors import BadValueError, UnknownNameError
from model.protocol.attention_requests import Scale


@pytest.mark.parametrize("name", ["viridis", "cividis"])
def test_tables_are_matplotlibs(name: str) -> None:
    ours, theirs = lut(name)[1:, :3].astype(int), mpl.colormaps[name](np.linspace(0, 1, 255), bytes=True)[:, :3]
    assert np.abs(ours - theirs.astype(int)).max() <= 4  # theirs takes the nearest of 256 colours, ours interpolates
    assert np.abs(ours[[0, -1]] - theirs[[0, -1]].astype(int)).max() <= 1  # it truncates to 8 bits, we round


@pytest.mark.parametrize("name", ["CET-CBL1", "CET-CBD1"])
def test_cet_tables_are_pyqtgraphs(name: str) -> None:
    colormap = pytest.importorskip("pyqtgraph.colormap")
    theirs = colormap.get(name).getLookupTable(nPts=255, alpha=False)
    at = np.linspace(27, 242, 255) * 254 / 255 if name == "CET-CBL1" else np.arange(255)  # the part that is used
    wanted = np.stack([np.interp(at, np.arange(255), theirs[:, channel]) for channel in range(3)], axis=1)
    assert np.abs(lut(name)[1:, :3] - wanted).max() <= 1.5


def test_one_signed_maps_grow_lighter_and_signed_ones_are_lightest_in_the_middle() -> None:
    luma = np.array([0.2126, 0.7152, 0.0722])
    for name in ("viridis", "cividis", "CET-CBL1"):
        assert (np.diff((lut(name)[1:, :3] @ luma)[::8]) > 0).all()
    middle = int(np.argmax(lut("CET-CBD1")[1:, :3] @ luma))
    assert abs(middle - 127) <= 3


def test_row_zero_is_the_masked_colour() -> None:
    assert lut("viridis", (1, 2, 3, 4))[0].tolist() == [1, 2, 3, 4]
    assert lut("viridis").shape == (256, 4)


def test_the_map_fits_the_sign() -> None:
    assert colormap_for("cividis", signed=False) == "cividis"
    assert colormap_for("cividis", signed=True) == "CET-CBD1"
    assert colormap_for("CET-CBD1", signed=False) == "viridis"
    with pytest.raises(UnknownNameError, match="viridis"):
        colormap_for("virids", signed=False)


@pytest.mark.parametrize("scale", ["linear", "sqrt", "log"])
@pytest.mark.parametrize("signed", [False, True])
def test_place_and_value_are_inverse(scale: Scale, signed: bool) -> None:
    levels = Levels.spanning(-3.0 if signed else 0.0, 7.0, scale=scale, signed=signed)
    at = np.linspace(0, 1, 41)
    # float32 logarithms; the steepest scale, signed log, magnifies their rounding most
    assert np.allclose(levels.place(levels.value(at)), at, atol=2e-5)
    assert levels.value(np.array([0.0, 1.0])) == pytest.approx([levels.low, levels.high])


def test_formulas() -> None:
    values = np.array([0.0, 0.25, 1.0, 2.0, math.nan], dtype=np.float32)
    assert Levels(low=0, high=1).place(values)[:4].tolist() == [0, 0.25, 1, 1]
    assert Levels(low=0, high=1, scale="sqrt").place(values)[:4].tolist() == [0, 0.5, 1, 1]
    log = Levels.spanning(0, 1, scale="log").place(values)[:4]
    assert log == pytest.approx([0, 1 + math.log(0.25) / -math.log(LOG_RANGE), 1, 1], abs=1e-6)
    signed = Levels.spanning(-1, 0.25, signed=True)
    assert signed.place(np.array([-1, 0, 0.25, 1])).tolist() == [0, 0.5, 0.625, 1]


def test_pixels_keep_masked_cells_apart() -> None:
    pixels = Levels(low=0, high=1).pixels(np.array([[0.0, 1.0], [np.nan, 5.0]], dtype=np.float32))
    assert pixels.tolist() == [[1, 255], [0, 255]]
    assert pixels.dtype == np.uint8


@given(st.lists(st.floats(width=32, allow_infinity=True), min_size=1), st.sampled_from(["linear", "sqrt", "log"]))
def test_any_data_has_levels_and_pixels(data: list[float], scale: Scale) -> None:
    values = np.array(data, dtype=np.float32)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (math.nan, math.nan)
    for signed in (False, True):
        levels = Levels.spanning(low, high, scale=scale, signed=signed)
        with np.errstate(all="ignore"):
            pixels = levels.pixels(values)
        assert ((pixels == 0) == np.isnan(values)).all()


def test_bad_levels_are_refused_with_a_sentence() -> None:
    with pytest.raises(BadValueError, match="levels"):
        Levels(low=1, high=1)
    with pytest.raises(BadValueError, match="-x and x"):
        Levels(low=0, high=1, signed=True)
    with pytest.raises(BadValueError, match="positive"):
        Levels(low=0, high=1, scale="log")
