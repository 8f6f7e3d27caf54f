"""Lines over any x: the word of a mark, and what the axes are called."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSizeF
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.free_place import crosses, free_place
from app.widgets.line_axes import BESIDE, NAMED_FROM, strokes
from app.widgets.line_bars import BAR_SHARE
from app.widgets.line_frame import tick_labels
from app.widgets.line_legend import GAP, figures_of
from app.widgets.line_plot import Line, LinePlot, Mark
from app.widgets.ticks import figure, named_ticks, short


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("light")


@pytest.mark.parametrize("size", [(200, 110), (300, 150), (620, 400)])
@pytest.mark.parametrize("at", [0, 3, 9, 18])
def test_the_word_of_a_mark_lies_on_no_line(qtbot: QtBot, theme: Theme, size: tuple[int, int], at: int) -> None:
    plot = LinePlot(theme, "Score", zero=False)
    qtbot.addWidget(plot)
    plot.resize(*size)
    x = np.arange(19, dtype=np.float32)
    lines = [np.cos(x / 4), np.cos(x / 5) + 0.1, np.full(19, 0.4), 1 - x / 12]
    plot.set_lines([Line(name=str(i), x=x, y=y.astype(np.float32)) for i, y in enumerate(lines)])
    plot.set_marks([Mark(x=at, y=float(lines[0][at]), text="6.158")])
    (place,) = plot.mark_places()
    frame = plot.frame()
    if place is not None:
        across = np.array([frame.px(float(v)) for v in x], dtype=np.float32)
        curves = [(across, frame.py(line.y)) for line in plot.lines]
        assert not any(crosses(curve, place) for curve in curves)
        assert frame.plot.contains(place)
    assert not plot.grab().isNull()


@pytest.mark.parametrize("size", [(150, 100), (200, 130), (300, 150)])
def test_the_word_of_a_mark_stands_beside_bars_where_there_is_a_place(
    qtbot: QtBot, theme: Theme, size: tuple[int, int]
) -> None:
    plot = LinePlot(theme, "Activation function", x_name="gate")
    qtbot.addWidget(plot)
    plot.resize(*size)
    x = np.linspace(-5, 3, 200, dtype=np.float32)
    y = x / (1 + np.exp(-x))
    bins = np.linspace(-3, 1.5, 48, dtype=np.float32)
    bars = Line(name="neurons", x=bins, y=np.exp(-(bins**2)).astype(np.float32), style="bars")
    plot.set_lines([Line(name="SiLU", x=x, y=y), bars])
    plot.set_marks([Mark(x=0.9, y=0.64, text="0.640")])
    (place,) = plot.mark_places()
    frame = plot.frame()
    assert place is not None
    for middle, height in zip(bins.tolist(), bars.y.tolist(), strict=True):
        top = frame.plot.bottom() - height * frame.plot.height() * BAR_SHARE
        covered = place.left() < frame.px(middle) < place.right() and place.bottom() > top and height > 0.02
        assert not covered, middle


def test_a_word_goes_where_nothing_is_or_nowhere() -> None:
    plot, size, at = QRectF(0, 0, 200, 100), QSizeF(40, 12), QPointF(100, 50)
    x = np.array([0, 200], dtype=np.float32)
    free = free_place(at, size, plot, [])
    assert free is not None
    assert free.bottom() < at.y()
    assert free.left() > at.x()
    over = (x, np.array([45, 45], dtype=np.float32))
    under = free_place(at, size, plot, [over])
    assert under is not None
    assert under.top() > at.y()
    full = [(x, np.full(2, y, dtype=np.float32)) for y in range(0, 101, 8)]
    assert free_place(at, size, plot, full) is None
    steep = (np.array([110, 111], dtype=np.float32), np.array([0, 100], dtype=np.float32))
    beside = free_place(at, size, plot, [steep])
    assert beside is not None
    assert beside.right() < at.x()


def test_what_is_counted_has_whole_ticks_and_names() -> None:
    names = {-1.0: "emb."}
    assert named_ticks(-1, 2, 12, names, whole=True) == [(-1, "emb."), (0, "0"), (1, "1"), (2, "2")]
    assert named_ticks(-1, 29, 6, names, whole=True)[:3] == [(-1, "emb."), (0, "0"), (5, "5")]
    assert named_ticks(0, 2, 12, names, whole=False)[1][0] == 0.2
    assert named_ticks(3, 3, 12, {}, whole=True) == []


def test_the_place_with_a_name_is_read_out_by_it(qtbot: QtBot, theme: Theme) -> None:
    plot = LinePlot(theme, "Rank", x_name="layer", whole=True, x_names={-1.0: "emb."})
    qtbot.addWidget(plot)
    plot.resize(300, 150)
    plot.set_lines([Line(name="rank", x=np.arange(-1, 3, dtype=np.float32), y=np.ones(4, dtype=np.float32))])
    plot.set_cursor(-1.0)
    assert plot.accessibleDescription().startswith("layer emb.:")
    plot.set_cursor(1.0)
    assert plot.accessibleDescription().startswith("layer 1")
    assert not plot.grab().isNull()


@given(st.lists(st.floats(-900_000, 900_000, width=32), min_size=1, max_size=40))
def test_room_is_kept_for_the_longest_figure(values: list[float]) -> None:
    y = np.array(values, np.float32)
    widest = max((short(float(value)) for value in y), key=len)
    assert len(Line(name="", x=y, y=y).widest) >= len(widest)


@pytest.mark.parametrize(("width", "scale"), [(700, 2.0), (300, 1.0)])
def test_lines_of_the_key_grow_with_the_text_where_no_name_loses_its_row(
    qtbot: QtBot, theme: Theme, width: int, scale: float
) -> None:
    theme.set_text_scale(2.0)
    plot = LinePlot(theme, "Rank", zero=False)
    qtbot.addWidget(plot)
    plot.resize(width, 150)
    x = np.arange(3, dtype=np.float32)
    y = np.array([0.5, 0.5, 0.5], np.float32)
    plot.set_lines([Line(name="rank, 1", x=x, y=y), Line(name="p", x=x, y=y, colour="red", dashed=True)])
    legend = plot.legend()
    assert legend.scale == scale and all(legend.shows(line) for line in plot.lines)
    entry, picture = legend.entries[1].rect, plot.grab().toImage()
    ground = range(round(entry.left()), round(entry.left() + 13 * scale) + 3)
    rows = [[picture.pixelColor(at, row).red() > picture.pixelColor(at, row).green() + 90 for at in ground]
            for row in range(round(entry.top()), round(entry.bottom()))]  # fmt: skip
    dashes = "".join("#" if here else " " for here in max(rows, key=sum)).split()
    assert len(dashes) == 2 and abs(len(dashes[0]) - len(dashes[1])) <= 1


def test_names_and_figures_of_the_key_stand_apart(qtbot: QtBot, theme: Theme) -> None:
    plot = LinePlot(theme, "Score", zero=False)
    qtbot.addWidget(plot)
    plot.resize(300, 200)
    x = np.arange(3, dtype=np.float32)
    plot.set_lines([
        Line(name=name, x=x, y=np.array(y, np.float32))
        for name, y in (("this model", [1, -0.676, 1]), ("base ×10", [1, -0.0763, 1]), ("no position", [1, 1.11, 1]))
    ])  # fmt: skip
    metrics = QFontMetricsF(theme.font("hint"))
    for entry, after in itertools.pairwise(plot.legend().entries):
        (line,) = entry.lines
        figures = max((short(float(value)) for value in line.y), key=metrics.horizontalAdvance)
        end = entry.rect.left() + 18 + metrics.horizontalAdvance(f"{line.name} {figures}")
        assert after.rect.top() > entry.rect.top() or after.rect.left() - end >= 10


@pytest.mark.parametrize("height", [120, 135, 190])
def test_every_line_of_a_low_plot_is_in_its_legend(qtbot: QtBot, theme: Theme, height: int) -> None:
    plot = LinePlot(theme, "Score", x_name="distance", y_name="q·k/√d", right_name="sinusoidal", titled=True)
    qtbot.addWidget(plot)
    plot.resize(300, height)
    x = np.arange(19, dtype=np.float32)
    names = ("this model", "base ×10", "no position", "sinusoidal")
    plot.set_lines(
        [Line(name=name, x=x, y=np.cos(x / (5 + i)), right=name == names[-1]) for i, name in enumerate(names)]
    )
    assert {line.name for line in plot.lines if plot.legend().shows(line)} == set(names)
    assert plot.frame().plot.height() >= 36, "and its shape is still seen"


@pytest.mark.parametrize("size", [(240, 130), (218, 120), (400, 150)])
@pytest.mark.parametrize("last", [30.0, 1000.0])
def test_every_tick_has_its_words_under_it(qtbot: QtBot, theme: Theme, size: tuple[int, int], last: float) -> None:
    plot = LinePlot(theme, "Norms", x_name="layer", y_name="norm", whole=True, titled=True)
    qtbot.addWidget(plot)
    plot.resize(*size)
    x = np.linspace(0, last, 31, dtype=np.float32)
    plot.set_lines([Line(name="stream", x=x, y=np.sqrt(x))])
    frame, metrics = plot.frame(), QFontMetricsF(theme.font("hint"))
    found = plot._x_ticks(frame, metrics)
    labels = tick_labels(frame, metrics, found, plot.width())
    assert [text for _, text in labels] == [text for _, text in found], "the last one has its room"
    for (left, text), (value, _) in zip(labels, found, strict=True):
        assert left + metrics.horizontalAdvance(text) / 2 == pytest.approx(frame.px(value), abs=1)
    assert labels[-1][0] + metrics.horizontalAdvance(labels[-1][1]) <= plot.width()


def test_the_last_number_under_the_plot_lies_on_none_beside_it(qtbot: QtBot, theme: Theme) -> None:
    plot = LinePlot(theme, "Score", x_name="distance", y_name="score", right_name="share", whole=True, titled=True)
    qtbot.addWidget(plot)
    plot.resize(440, 170)
    x = np.arange(19, dtype=np.float32)
    plot.set_lines([Line(name="a", x=x, y=x), Line(name="b", x=x, y=(x / 18).astype(np.float32), right=True)])
    frame, metrics = plot.frame(), QFontMetricsF(theme.font("hint"))
    left, text = tick_labels(frame, metrics, plot._x_ticks(frame, metrics), plot.width())[-1]
    assert text == "18"
    assert left + metrics.horizontalAdvance(text) <= frame.plot.right() + BESIDE
    assert frame.plot.right() + BESIDE + metrics.horizontalAdvance("0.5") <= plot.width()


def test_the_word_of_a_mark_keeps_off_the_line_of_zero(qtbot: QtBot, theme: Theme) -> None:
    plot = LinePlot(theme, "Activation function", x_name="gate")
    qtbot.addWidget(plot)
    plot.resize(160, 100)
    x = np.linspace(-6, 6, 200, dtype=np.float32)
    plot.set_lines([Line(name="SiLU", x=x, y=x / (1 + np.exp(-x)))])
    for at in np.linspace(-5, 5, 41).tolist():
        y = at / (1 + math.exp(-at))
        plot.set_marks([Mark(x=at, y=y, text="0.859")])
        (place,), frame = plot.mark_places(), plot.frame()
        zero = float(frame.py(np.zeros(1, np.float32))[0])
        assert place is None or not place.top() <= zero <= place.bottom(), at


@pytest.mark.parametrize("height", [90, 130, 200, 400])
@pytest.mark.parametrize("top", [0.05, 0.31, 0.76, 0.99])
def test_numbers_of_a_right_axis_reach_near_its_end(qtbot: QtBot, theme: Theme, height: int, top: float) -> None:
    plot = LinePlot(theme, "Rank", log=True, x_name="layer", y_name="rank", right_name="p")
    qtbot.addWidget(plot)
    plot.resize(420, height)
    x = np.arange(30, dtype=np.float32)
    share = (np.abs(np.sin(x / 4)) * top).astype(np.float32)
    plot.set_lines([Line(name="rank", x=x, y=1 + x * 900), Line(name="p", x=x, y=share, right=True)])
    frame, line = plot.frame(), QFontMetricsF(theme.font("hint")).height()
    marks = frame.right_ticks
    assert marks[0] == 0 and 2 <= len(marks) <= 5
    gaps = -np.diff(frame.py(np.array(marks, dtype=np.float32), right=True))
    assert min(gaps) >= line
    if height >= 130:
        assert marks[-1] >= 0.6 * frame.right[1]


NAMES = ("this model", "linear ×4", "YaRN ×4", "llama3 ×8", "base ×10", "NTK ×4", "no position", "sinusoidal", "more")


def many(count: int) -> list[Line]:
    x = np.arange(19, dtype=np.float32)
    names = [NAMES[i] if i < len(NAMES) else f"what-if {i}" for i in range(count)]
    return [
        Line(name=name, x=x, y=np.cos(x / (5 + i)) - 2 * i, right=name == "sinusoidal", tip=f"about {name}")
        for i, name in enumerate(names)
    ]


@pytest.mark.parametrize("size", [(360, 155), (438, 232), (620, 300)])
@pytest.mark.parametrize("count", [1, 2, 4, 7, 9, 30])
def test_many_lines_take_no_height_from_the_plot(qtbot: QtBot, theme: Theme, size: tuple[int, int], count: int) -> None:
    plot = LinePlot(theme, "Score", x_name="distance", y_name="q·k/√d", right_name="sinusoidal", titled=True)
    qtbot.addWidget(plot)
    plot.resize(*size)
    plot.set_lines(many(count))
    frame, legend, line = plot.frame(), plot.legend(), QFontMetricsF(theme.font("hint")).height()
    # Two rows of names, half a line over the plot, the figures under it and what x is called.
    assert frame.plot.height() >= size[1] - 4.5 * line - 6 and frame.plot.width() >= 110
    assert {id(each) for entry in legend.entries for each in entry.lines} == {id(each) for each in plot.lines}
    for entry in legend.entries:
        assert QRectF(plot.rect()).contains(entry.rect) and not entry.rect.intersects(frame.plot)
    for first, second in itertools.combinations(legend.entries, 2):
        assert not first.rect.intersects(second.rect)
    assert not plot.grab().isNull()


def test_a_line_that_is_pointed_at_stands_out_and_says_what_it_is(qtbot: QtBot, theme: Theme) -> None:
    plot = LinePlot(theme, "Score", x_name="distance", y_name="q·k/√d", right_name="sinusoidal", titled=True)
    qtbot.addWidget(plot)
    plot.resize(360, 155)
    plot.show()
    plot.set_lines(many(30))
    plot.set_cursor(7.0)

    def point(at: QPoint) -> None:
        QTest.mouseMove(plot.windowHandle(), at)
        QApplication.processEvents()

    plain, entries = plot.grab().toImage(), plot.legend().entries
    yarn = plot.lines[2]
    point(entries[2].rect.center().toPoint())
    assert plot.pointed is yarn and plot.grab().toImage() != plain
    assert plot.toolTip() == f"YaRN ×4 {figure(yarn.at(7.0))}\nabout YaRN ×4"
    point(entries[-1].rect.center().toPoint())
    assert plot.pointed is None and entries[-1].name == f"{len(entries[-1].lines)} more"
    assert all(line.name in plot.toolTip() for line in plot.lines[len(entries) - 1 :])
    last, frame = plot.lines[-1], plot.frame()
    point(QPointF(frame.px(9.0), float(frame.py(last.y[9:10])[0])).toPoint())
    assert plot.pointed is last and plot.toolTip() == last.name  # it has no place of its own in the legend
    point(QPointF(frame.px(9.0), float(frame.py(yarn.y[9:10])[0])).toPoint())
    assert plot.pointed is yarn and plot.toolTip() == ""
    plot.leaveEvent(QEvent(QEvent.Type.Leave))
    assert plot.pointed is None


@pytest.mark.parametrize("right", ["", "cosine"])
def test_an_axis_is_named_on_its_side(qtbot: QtBot, theme: Theme, right: str) -> None:
    """The name of the left axis stood over the right end of the plot."""
    plot = LinePlot(theme, "Norms", x_name="layer", y_name="norm", right_name=right, titled=True)
    qtbot.addWidget(plot)
    plot.resize(420, 300)
    x = np.arange(31, dtype=np.float32)
    plot.set_lines([Line(name="", x=x, y=np.sqrt(x)), Line(name="", x=x, y=x, right=True)])
    metrics, image = QFontMetricsF(theme.font("hint")), plot.grab().toImage()
    ground, high = image.pixelColor(0, image.height() - 1), int(metrics.height())
    inked = [x for x in range(image.width()) if any(image.pixelColor(x, y) != ground for y in range(high))]
    wide = metrics.horizontalAdvance("norm")
    assert inked[0] < 3 and any(x > wide * 0.7 for x in inked if x <= wide + 1)
    assert (max(inked) > 380) == bool(right) and not [x for x in inked if wide + 2 < x < 340]
    plot.set_lines([Line(name="stream", x=x, y=np.sqrt(x))])
    [entry] = plot.legend().entries
    assert entry.rect.left() >= wide + GAP and entry.rect.top() == 0


@pytest.mark.parametrize("titled", [True, False])
@pytest.mark.parametrize("height", [NAMED_FROM - 1, NAMED_FROM, 300])
def test_x_is_named_under_the_figures_where_the_plot_is_high_enough(
    qtbot: QtBot, theme: Theme, height: int, titled: bool
) -> None:
    plot = LinePlot(theme, "Norms", x_name="layer", y_name="norm", whole=True, titled=titled)
    qtbot.addWidget(plot)
    plot.resize(260, height)
    x = np.arange(31, dtype=np.float32)
    plot.set_lines([Line(name="stream", x=x, y=np.sqrt(x))])
    frame, metrics, below = plot.frame(), QFontMetricsF(theme.font("hint")), height >= NAMED_FROM
    assert plot._heading == ("norm by layer" if titled and not below else "norm")
    under = height - frame.plot.bottom()
    assert under >= metrics.height() * (2 if below else 1)
    picture, ground = plot.grab().toImage(), plot.grab().toImage().pixelColor(0, height - 1)
    last = range(int(height - metrics.height()) + 2, height - 1)
    middle = range(round(frame.plot.center().x()) - 8, round(frame.plot.center().x()) + 8)
    assert any(picture.pixelColor(x, y) != ground for x in middle for y in last) or not below
    if below:  # no figure gives way to the name
        found = plot._x_ticks(frame, metrics)
        assert found[-1][1] == "30" and tick_labels(frame, metrics, found, 260)[-1][1] == "30"


@pytest.mark.parametrize("high", [64.0, 700.0, 49_152.0])
@pytest.mark.parametrize("height", [110, 150, 260, 420])
def test_a_logarithmic_axis_is_read_by_powers_of_ten(qtbot: QtBot, theme: Theme, height: int, high: float) -> None:
    plot = LinePlot(theme, "Rank", log=True, x_name="layer", y_name="rank", right_name="p")
    qtbot.addWidget(plot)
    plot.resize(420, height)
    x = np.arange(30, dtype=np.float32)
    plot.set_lines([Line(name="rank", x=x, y=np.geomspace(1, high, 30).astype(np.float32))])
    frame, line = plot.frame(), QFontMetricsF(theme.font("hint")).height()
    assert frame.ticks[0] == 1.0 and sum(f"{value:.0e}"[0] == "1" for value in frame.ticks) >= 2
    assert {f"{value:.0e}"[0] for value in frame.ticks} <= {"1", "2", "5"}
    assert min(-np.diff(frame.py(np.array(frame.ticks, np.float32)))) >= line
    between = strokes(frame)
    assert not set(between) & {10.0**power for power in range(6)} and between
    assert {2.0, 5.0} <= set(between)
    picture = plot.grab().toImage()
    for value in between:
        y = int(float(frame.py(np.array([value], np.float32))[0]))
        at = round(frame.plot.left()) + 2
        assert any(picture.pixelColor(at, y + off) != picture.pixelColor(at, 0) for off in (-1, 0, 1))


def test_figures_under_the_plot_stand_apart_and_are_as_many_as_fit(qtbot: QtBot, theme: Theme) -> None:
    plot = LinePlot(theme, "Function", x_name="gate")
    qtbot.addWidget(plot)
    metrics = QFontMetricsF(theme.font("hint"))
    for width in (120, 170, 300, 700):
        plot.resize(width, 150)
        x = np.linspace(-3.4567, 3.8765, 200, dtype=np.float32)
        plot.set_lines([Line(name="SiLU", x=x, y=x)])
        frame = plot.frame()
        found = plot._x_ticks(frame, metrics)
        assert len(found) >= 2
        ends = [(frame.px(value) - metrics.horizontalAdvance(text) / 2,
                 frame.px(value) + metrics.horizontalAdvance(text) / 2) for value, text in found]  # fmt: skip
        assert all(after[0] - before[1] >= 9 for before, after in itertools.pairwise(ends))


def test_figures_beside_names_have_digits_alike_and_counts_none_after_the_point(theme: Theme) -> None:
    x = np.arange(4, dtype=np.float32)
    scores = Line(name="NTK ×4", x=x, y=np.array([-2.998, -3.18, 0.5, 0], dtype=np.float32))
    assert [figures_of(scores, scores.at(at)) for at in range(4)] == ["-3.00", "-3.18", "0.500", "0"]
    ranks = Line(name="rank", x=x, y=np.array([3, 1, 12_000, np.nan], dtype=np.float32))
    assert [figures_of(ranks, ranks.at(at)) for at in range(3)] == ["3", "1", "12,000"]
    metrics = QFontMetricsF(theme.font("hint"))
    for line in (scores, ranks):
        widest = metrics.horizontalAdvance(line.widest)
        assert all(metrics.horizontalAdvance(figures_of(line, line.at(at))) <= widest + 0.01 for at in range(3))
