"""Curves of surprisal and entropy, and the cache's growth."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.curve_band import band
from app.widgets.curve_plot import MARK_GAP, CurvePlot, Series, extremes
from app.widgets.growth_plot import DOT, Growth, GrowthPlot

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


Key = Qt.Key


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("light")


@pytest.mark.parametrize("width", [60, 120, 180, 228, 260, 400, 700])
@pytest.mark.parametrize("count", [1, 2, 3, 11, 16, 19, 21, 97, 101, 2178])
def test_the_name_of_the_axis_stands_in_no_figure_s_place(qtbot: QtBot, theme: Theme, width: int, count: int) -> None:
    """It stood where 15 belongs, after 0, 5 and 10."""
    plot = CurvePlot(theme)
    qtbot.addWidget(plot)
    plot.resize(width, 90)
    plot.set_series((Series(name="entropy", values=np.ones(count, np.float32)),))
    metrics = QFontMetricsF(theme.font("hint"))
    words = plot.position_words()
    figures = [int(text.replace(",", "")) for _, text in words if text != "position"]
    assert figures[0] == 0 and (count == 1 or len(figures) > 1 or width < 200)
    if len(figures) > 1:  # evenly, up to the last there is
        step = figures[1]
        assert figures == list(range(0, count, step))
    for (place, _), (after, _) in pairwise(words):
        assert place.right() + 4 <= after.left()
    assert all(place.width() == metrics.horizontalAdvance(text) for place, text in words)
    room = plot.plot_rect().right() - metrics.horizontalAdvance("position")
    assert words[-1][1] == "position" or words[-1][0].right() + 6 > room


def test_a_wide_axis_has_figures_all_along_and_its_name(qtbot: QtBot, theme: Theme) -> None:
    """Of 605 positions along 1,300 px it had 0 and 500: any more of them ended where its name stands."""
    plot = CurvePlot(theme)
    qtbot.addWidget(plot)
    plot.resize(1300, 300)
    plot.set_series((Series(name="entropy", values=np.ones(605, np.float32)),))
    words = [text for _, text in plot.position_words()]
    assert len(words) > 10 and words[-2:] == ["position", "600"]


@pytest.mark.parametrize("width", [150, 400])
def test_the_lines_of_the_legend_grow_with_the_text_and_dashes_are_whole(
    qtbot: QtBot, theme: Theme, width: int
) -> None:
    theme.set_text_scale(2.0)
    plot = CurvePlot(theme)
    qtbot.addWidget(plot)
    plot.resize(width, 150)
    nothing = np.full(5, np.nan, np.float32)
    plot.set_series(
        (Series(name="a", values=nothing), Series(name="b", values=nothing, colour="red", dashed=True)),
    )
    (_, left), mark, _ = plot.legend_places()
    assert mark == 2 * (13 if width == 400 else 9)
    picture = plot.grab().toImage()
    rows = [[picture.pixelColor(x, y) == theme.palette.red for x in range(round(left), round(left + mark) + 4)]
            for y in range(30)]  # fmt: skip
    dashes = "".join("#" if here else " " for here in max(rows, key=sum)).split()
    assert len(dashes) == 2 and abs(len(dashes[0]) - len(dashes[1])) <= 1


@given(st.lists(st.floats(0, 100, width=32) | st.just(math.nan), min_size=1, max_size=600), st.data())
def test_a_band_has_the_lowest_the_mean_and_the_highest_of_every_pixel(
    values: list[float], data: st.DataObject
) -> None:
    count = len(values) + data.draw(st.integers(0, 50))
    bins = data.draw(st.integers(1, count))
    found = band(np.array(values, np.float32), count, bins)
    at = [[v for i, v in enumerate(values) if i * bins // count == each and not math.isnan(v)] for each in range(bins)]
    assert np.isnan(found.mean).tolist() == [not each for each in at]
    for name, of in (("low", min), ("high", max), ("mean", lambda each: math.fsum(each) / len(each))):
        got = getattr(found, name)
        assert got[~np.isnan(got)] == pytest.approx([of(each) for each in at if each], rel=1e-9)
    shown = np.concatenate([found.mean[run] for run in found.runs()]) if found.runs() else np.empty(0)
    assert np.isfinite(shown).all() and len(shown) == sum(map(bool, at))


def test_a_long_curves_entropy_is_read_over_the_surprisal(qtbot: QtBot, theme: Theme) -> None:
    plot = CurvePlot(theme, label="Entropy and surprisal")
    qtbot.addWidget(plot)
    plot.resize(260, 112)
    rng = np.random.default_rng(3)
    entropy, surprisal = (rng.exponential(2, 2178).astype(np.float32) for _ in range(2))
    plot.set_series((Series(name="a", values=entropy), Series(name="b", values=surprisal, colour="secondary")))
    plot.show()
    assert plot.is_banded and "9.8 positions" in plot.toolTip()
    rect, picture = plot.plot_rect(), plot.grab().toImage()
    accent, solid = theme.palette.accent, 0
    columns = range(math.ceil(rect.left()) + 2, int(rect.right()) - 2)
    for x in columns:
        pixels = (picture.pixelColor(x, y) for y in range(math.ceil(rect.top()), int(rect.bottom())))
        solid += any(abs(p.red() - accent.red()) < 40 and abs(p.blue() - accent.blue()) < 40 for p in pixels)
    assert solid > 0.9 * len(columns)
    plot.set_series((Series(name="a", values=entropy[:100]),))
    assert not plot.is_banded and not plot.toolTip()


@given(st.lists(st.floats(0, 100, width=32) | st.just(math.nan), min_size=1, max_size=3000), st.integers(1, 300))
def test_no_peak_is_lost_to_the_pixels(values: list[float], bins: int) -> None:
    array = np.array(values, dtype=np.float32)
    kept = extremes(array, bins)
    assert (np.diff(kept) > 0).all()
    if not np.isnan(array).all():
        assert np.nanmax(array[kept]) == np.nanmax(array)
        assert np.nanmin(array[kept]) == np.nanmin(array)


def test_curves_answer_mouse_and_keys(qtbot: QtBot, theme: Theme) -> None:
    plot = CurvePlot(theme, label="Entropy")
    qtbot.addWidget(plot)
    plot.resize(300, 110)
    values = np.arange(19, dtype=np.float32)
    values[4] = np.nan
    plot.set_series([Series(name="entropy", values=values)])
    plot.set_boundary(12)
    plot.show()
    qtbot.waitExposed(plot)
    hovered: list[int] = []
    clicked: list[int] = []
    plot.positionHovered.connect(hovered.append)
    plot.positionClicked.connect(clicked.append)
    at = QPoint(round(plot.x_of(7)), 50)
    QTest.mouseMove(plot.windowHandle(), at)
    QApplication.processEvents()
    assert hovered[-1] == 7
    QTest.mouseClick(plot, LEFT, NONE, at)
    QTest.keyClick(plot, Key.Key_Right)
    assert clicked == [7, 0]
    plot.set_cursor(18)
    QTest.keyClick(plot, Key.Key_Right)
    assert clicked[-1] == 18
    assert "18" in plot.accessibleDescription()


@pytest.mark.parametrize("width", [130, 143, 180, 220, 300])
def test_every_curve_keeps_its_name(qtbot: QtBot, theme: Theme, width: int) -> None:
    plot = CurvePlot(theme, label="Entropy")
    qtbot.addWidget(plot)
    plot.resize(width, 66)
    values = np.arange(19, dtype=np.float32)
    names = ("entropy", "surprisal")
    plot.set_series([Series(name=name, values=values, dashed=name != "entropy") for name in names])
    lefts, mark, unit = plot.legend_places()
    metrics = QFontMetricsF(theme.font("hint"))
    ends = [left + mark + MARK_GAP + metrics.horizontalAdvance(n) for left, n in zip(lefts, names, strict=True)]
    assert ends[0] < lefts[1]
    assert lefts[0] >= 0
    assert ends[1] <= width
    if unit.y() < plot.plot_rect().top():
        assert ends[1] + 4 <= unit.x()
    else:
        assert unit.x() + metrics.horizontalAdvance("nats") < plot.plot_rect().left()
    assert not plot.grab().isNull()


GROWTHS = (
    Growth(length=19, n_prompt=12, used=19_000, chunk_ends=(12,), grown=((0, 64_000),), per_token=1000),
    Growth(length=101, n_prompt=100, used=101_000, chunk_ends=(100,), grown=((0, 128_000),), per_token=1000),
    Growth(length=40, n_prompt=1, used=40_000, chunk_ends=(1,), grown=((0, 64_000),), per_token=1000),
    Growth(length=12, n_prompt=12, used=12_000, chunk_ends=(12,), grown=((0, 64_000),), per_token=1000),
)


def test_a_line_that_leaves_the_plot_is_named_where_it_leaves(qtbot: QtBot, theme: Theme) -> None:
    plot = GrowthPlot(theme)
    qtbot.addWidget(plot)
    plot.resize(320, 180)
    made = replace(GROWTHS[3], length=375, n_prompt=375, used=375_000, chunk_ends=(375,), grown=((0, 400_000),),
                   layouts=(("MHA", 3000), ("MQA", 300)))  # fmt: skip
    plot.set_growth(made)
    plot.set_cursor(1)
    rect, places = plot.plot_rect(), plot.layout_places()
    # Beside the plot, so under the line of the readout, and none of them on another.
    assert [words for _, words in places] == ["MHA ↑ 1.12 MB", "MQA"]
    line = QFontMetricsF(theme.font("hint")).height()
    assert all(
        place.height() < line * 1.5 and place.left() > rect.right() + DOT + 2 for place, _ in places
    )  # clear of the dot
    assert all(place.top() >= rect.top() and place.left() > rect.right() for place, _ in places)
    assert all(a.bottom() <= b.top() for (a, _), (b, _) in pairwise(places))
    assert plot.readout(plot.width())
    assert not plot.grab().isNull()


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("size", [(300, 180), (220, 90)])
def test_the_words_of_the_phases_lie_under_the_plot(
    qtbot: QtBot, theme: Theme, growth: Growth, size: tuple[int, int]
) -> None:
    plot = GrowthPlot(theme)
    qtbot.addWidget(plot)
    plot.resize(*size)
    plot.set_growth(growth)
    words = plot.phase_words()
    decoded = growth.length - growth.n_prompt
    assert [text for _, text in words] == [f"prefill {growth.n_prompt}", *([f"decode {decoded}"] if decoded else [])]
    for place, _ in words:
        assert place.top() >= plot.plot_rect().bottom()
        assert place.bottom() <= plot.height()
        assert place.left() >= -1
        assert place.right() <= plot.width() + 1
    if decoded:
        assert words[0][0].right() < words[1][0].left()
