"""Curves, the CDF, the candidates' table, bars, tiles, the readout and the grid of heads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTableView
from pytestqt.qtbot import QtBot

from app.panels.step_table import StepRow, StepTable
from app.theme import Theme
from app.widgets.bar_plot import BarPlot
from app.widgets.bar_table import BarTable
from app.widgets.candidate_table import TOKEN_BRIEF, TOKEN_LEAST, CandidateTable, probability
from app.widgets.cdf_plot import CdfPlot
from app.widgets.data_table import Column, DataTable
from app.widgets.growth_plot import BESIDE, Growth, GrowthPlot
from app.widgets.head_grid import HeadGrid
from app.widgets.head_grid_layout import by_layer, by_rank
from app.widgets.info_button import InfoButton
from app.widgets.readout import Readout
from app.widgets.sign_colours import SIGNS, bar_colour
from app.widgets.stage_tiles import StageTiles, percent
from app.widgets.table_style import Look, LookModel
from app.widgets.thumbnails import fit_stack
from model.colormaps import colormap_for, lut
from model.protocol.values import Candidate

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
Key = Qt.Key


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("light")


def candidates(n: int = 10) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(rank=i, id=100 + i, piece=f"·w{i}", logit=9.0 - i, p_raw=0.5 / (i + 1), p=0.6 if i < 3 else 0.0)
        for i in range(n)
    )


def look_of(table: QTableView, row: int, column: int) -> Look:
    model = table.model()
    assert isinstance(model, LookModel)
    return model.look(row, column)


def colour_of(table: QTableView, row: int, column: int) -> str:
    return (look_of(table, row, column).bars or ())[0][1]


def test_candidates_show_their_numbers_and_answer_clicks_and_keys(qtbot: QtBot, theme: Theme) -> None:
    table = CandidateTable(theme)
    qtbot.addWidget(table)
    table.resize(420, 260)
    rows = candidates()
    table.set_candidates(rows, rows[1])
    table.show()
    qtbot.waitExposed(table)
    activated: list[int] = []
    selected: list[int] = []
    table.candidateActivated.connect(activated.append)
    table.candidateSelected.connect(selected.append)
    model = table.model()
    assert model.rowCount() == 10
    assert model.index(1, 1).data() == "·w1"
    assert model.index(1, 6).data() == "0.6000"
    assert model.index(5, 6).data() == "0"
    ghost, solid = look_of(table, 1, 3).bars or ()
    assert ghost[0] == pytest.approx(0.25 / 0.6)
    assert solid == (1.0, "amber")
    at = table.visualRect(model.index(2, 1)).center()
    QTest.mouseClick(table.viewport(), LEFT, NONE, at)
    assert selected == [102]
    QTest.keyClick(table, Key.Key_Down)
    QTest.keyClick(table, Key.Key_Return)
    assert activated == [103]
    table.select_id(101)
    assert selected == [102, 103]
    assert table.candidate(table.currentIndex().row()).id == 101


@pytest.mark.parametrize("width", [180, 240, 300, 420, 700])
def test_candidate_columns_fit_the_table(qtbot: QtBot, theme: Theme, width: int) -> None:
    table = CandidateTable(theme)
    qtbot.addWidget(table)
    table.resize(width, 200)
    table.set_candidates(candidates(40))
    table.show()
    qtbot.waitExposed(table)
    shown = [c for c in range(table.model().columnCount()) if not table.isColumnHidden(c)]
    total = sum(table.columnWidth(c) for c in shown)
    assert total <= table.viewport().width() + (40 if width < 240 else 0)
    assert {1, 6} <= set(shown)
    if width >= 220:  # the narrowest the panel gets
        assert table.columnWidth(1) >= theme.px(TOKEN_LEAST if width >= 400 else TOKEN_BRIEF)
        assert 0 in shown
    hidden = [c for c in (4, 5, 2) if c not in shown]
    assert hidden == [4, 5, 2][: len(hidden)]


@pytest.mark.parametrize(("width", "shown"), [(190, False), (223, True), (300, True)])
def test_the_step_tables_entropy_gives_way_to_the_token(qtbot: QtBot, theme: Theme, width: int, shown: bool) -> None:
    table = StepTable(theme)
    qtbot.addWidget(table)
    table.resize(width, 90)
    steps = [StepRow(node=n, step=n, piece=f"·token{n}", p=0.5, entropy=1.0, ms=55.0) for n in range(40)]
    table.set_rows(steps[:10], 9)
    table.show()
    qtbot.waitExposed(table)
    assert table.isColumnHidden(3) != shown
    assert table.columnWidth(1) >= theme.px(72 if width == 300 else 50)
    table.set_rows(steps, 39)  # many at once: the last one is in sight all the same
    row = table.visualRect(table.model().index(39, 1))
    assert table.viewport().rect().contains(row.center())
    table.resize(width, 60)
    assert table.viewport().rect().contains(table.visualRect(table.model().index(39, 1)).center())


def test_a_steps_probability_is_the_figure_of_the_candidates(qtbot: QtBot, theme: Theme) -> None:
    table = StepTable(theme)
    qtbot.addWidget(table)
    ps = (0.5, 0.0311, 0.00096, 4.7e-8, 3e-120, 0.0)
    table.set_rows([StepRow(node=n, step=n + 1, piece="·a", p=p, entropy=1.0, ms=55.0) for n, p in enumerate(ps)], 0)
    table.resize(223, 200)
    table.show()
    said = [str(table.model().index(row, 2).data()) for row in range(len(ps))]
    assert said == ["0.500", "0.031", "1e-03", "5e-08", "3e-120", "0"] == [probability(p, 3) for p in ps]
    metrics = QFontMetricsF(theme.font("table"))
    assert table.columnWidth(2) + 1 >= max(map(metrics.horizontalAdvance, said)) + 6


def test_a_layout_off_the_scale_says_so_beside_the_plot(qtbot: QtBot, theme: Theme) -> None:
    plot = GrowthPlot(theme)
    qtbot.addWidget(plot)
    plot.resize(420, 160)
    made = Growth(
        length=100, n_prompt=90, used=100_000, chunk_ends=(90,), grown=((0, 128_000),), per_token=1000,
        layouts=(("MHA", 3000), ("MQA", 500)),
    )  # fmt: skip
    plot.set_growth(made)
    (mha, left_at, words), (mqa, end, plain) = plot.layout_words()
    assert (mha, mqa, end, plain) == (3000, 500, 100, "MQA")
    assert left_at * 3000 == pytest.approx(1.1 * 128_000)  # where it meets the upper edge
    assert words == "MHA ↑ 300 KB"
    metrics = QFontMetricsF(theme.font("hint"))
    assert plot.plot_rect().right() + BESIDE + max(map(metrics.horizontalAdvance, (words, plain))) <= plot.width()
    plot.show()
    qtbot.waitExposed(plot)
    assert not plot.grab().isNull()
    assert plot.toolTip() == ""
    plot.resize(180, 160)  # where the bytes left the plot a stub
    assert [line for _, _, line in plot.layout_words()] == ["MHA ↑", "MQA"]
    assert plot.plot_rect().width() >= 0.4 * plot.width()
    assert plot.toolTip() == "MHA ↑ 300 KB · MQA"


def test_negative_bars_of_a_table_are_at_the_other_side_of_a_line(qtbot: QtBot, theme: Theme) -> None:
    table = DataTable(theme, "shares")
    qtbot.addWidget(table)
    bars = Column(name="", bars=np.array([1.0, -0.5, 0.25], np.float32), colours=SIGNS)
    table.set_columns([Column(name="n", texts=["a", "b", "c"]), bars])
    table.resize(300, 160)
    table.show()
    qtbot.waitExposed(table)
    seen, colours = table.viewport().grab().toImage(), [bar_colour(theme.palette, name).name() for name in SIGNS]
    ends = []
    for row, colour in ((0, colours[0]), (1, colours[1]), (2, colours[0])):
        place = table.visualRect(table.model().index(row, 1))
        y = place.center().y() + 2
        inked = [x for x in range(place.left(), place.right()) if seen.pixelColor(x, y).name() == colour]
        ends.append((inked[0], inked[-1]))
        inside = place.width() - 4
        assert len(inked) == pytest.approx(inside * (1.0, 0.5, 0.25)[row] / 1.5, abs=2)
    assert ends[1][1] <= ends[0][0] and abs(ends[0][0] - ends[2][0]) <= 1
    plain = Column(name="", bars=np.array([0.5, 0.25], np.float32))
    table.set_columns([Column(name="n", texts=["a", "b"]), plain])
    assert look_of(table, 0, 1).zero == 0 and look_of(table, 0, 1).bars == ((0.5, "accent"),)


def test_signed_bars_have_the_ends_of_the_signed_heat_maps(qtbot: QtBot, theme: Theme) -> None:
    blue, gold = (QColor(*lut(colormap_for("viridis", signed=True))[at].tolist()[:3]) for at in (1, 255))
    assert blue.blue() > blue.red()
    plot = BarPlot(theme, "shares")
    qtbot.addWidget(plot)
    plot.resize(300, 160)
    plot.set_values(np.array([2.0, -2.0], np.float32), ["a", "b"])
    area, seen = plot.plot_rect(), plot.grab().toImage()
    for x, share, colour in ((0.25, 0.25, gold), (0.75, 0.75, blue)):
        at = QPoint(round(area.left() + area.width() * x), round(area.top() + area.height() * share))
        assert seen.pixelColor(at).name() == colour.name()
    bars = Column(name="", bars=np.array([1.0, -1.0], np.float32), colours=SIGNS)
    table = DataTable(theme, "shares")
    qtbot.addWidget(table)
    table.set_columns([Column(name="n", texts=["a", "b"]), bars])
    tokens = [colour_of(table, row, 1) for row in (0, 1)]
    assert [bar_colour(theme.palette, token).name() for token in tokens] == [gold.name(), blue.name()]
    rows = BarTable(theme, "Row")
    qtbot.addWidget(rows)
    for values, signed, names in (
        ([1.0, -1.0], False, ["positive", "negative"]),
        ([1.0, 0.5], True, ["positive", "positive"]),
        ([1.0, 0.5], False, ["accent", "accent"]),
    ):
        rows.set_values(["a", "b"], np.array(values, np.float32), signed=signed)
        assert [colour_of(rows, row, 2) for row in (0, 1)] == names


def test_a_table_shows_whole_figures_or_scrolls(qtbot: QtBot, theme: Theme) -> None:
    table = DataTable(theme, "pairs")
    qtbot.addWidget(table)
    names = ("λ, positions", "dims", "q angle", "adds to q·k")
    columns = [Column(name=name, texts=["0.08058", "1"], gives_way=name == "dims") for name in names]
    metrics, titles = QFontMetricsF(theme.font("table")), QFontMetricsF(theme.font("hint"))
    for width in (120, 190, 230, 500):
        table.resize(width, 120)
        table.show()
        table.set_columns(columns)
        hidden = [names[i] for i in range(4) if table.isColumnHidden(i)]
        assert hidden == ([] if width == 500 else ["dims"])
        for i, name in enumerate(names):
            if name not in hidden:
                needed = max(metrics.horizontalAdvance("0.08058"), titles.horizontalAdvance(name)) + 10
                assert table.columnWidth(i) >= needed
        scrolls = sum(map(table.columnWidth, range(4))) > table.viewport().width()
        assert (table.horizontalScrollBar().maximum() > 0) == scrolls == (width < 230)


def test_probabilities_keep_what_means_something() -> None:
    assert [probability(p) for p in (0, 1, 0.43215, 0.00012, 3.2e-7)] == ["0", "1.0000", "0.4321", "0.0001", "3e-07"]
    assert percent(1.0) == "100 %"
    assert percent(0.99999) == "> 99.9 %"
    assert percent(0.971) == "97.1 %"


def test_a_readout_takes_the_longest_form_that_fits(qtbot: QtBot, theme: Theme) -> None:
    line = Readout(theme)
    qtbot.addWidget(line)
    whole, brief = (
        (("draw u = 0.0150 → would pick ", "secondary"), ("·it", "strong")),
        (("→ ", "text"), ("·it", "strong")),
    )
    line.set_parts(whole, brief)
    line.resize(600, 20)
    assert line.shown() == whole
    line.resize(80, 20)
    assert line.shown() == brief
    assert line.text() == "draw u = 0.0150 → would pick ·it"


@pytest.mark.parametrize("height", [90, 103, 117, 160])
def test_the_step_table_cuts_no_row(qtbot: QtBot, theme: Theme, height: int) -> None:
    table = StepTable(theme)
    qtbot.addWidget(table)
    table.resize(300, height)
    table.set_rows([StepRow(node=n, step=n, piece="·a", p=0.5, entropy=1.0, ms=55.0) for n in range(40)], 39)
    table.show()
    qtbot.waitExposed(table)
    assert table.viewport().height() % table.rowHeight(0) == 0
    assert table.rowViewportPosition(table.rowAt(1)) == 0


@pytest.mark.parametrize("kind", [StepTable, CandidateTable])
def test_no_row_is_cut_while_a_table_becomes_lower_and_higher(
    qtbot: QtBot, theme: Theme, kind: type[StepTable | CandidateTable]
) -> None:
    """The rows once had the room that the header of the size before left them, and the last of them was cut."""
    table = kind(theme)
    qtbot.addWidget(table)
    if isinstance(table, StepTable):
        table.set_rows([StepRow(node=n, step=n, piece="·a", p=0.5, entropy=1.0, ms=55.0) for n in range(40)], 39)
    else:
        table.set_candidates(candidates(40), None)
    table.resize(300, 160)
    table.show()
    qtbot.waitExposed(table)
    least = table.minimumHeight()
    for height in (*range(160, least, -1), *range(least, 160), 118, 117, 121, 117):
        table.resize(300, height)
        assert table.viewport().height() % table.rowHeight(0) == 0, height
        assert table.viewport().height() + table.horizontalHeader().height() == height


def test_the_cdfs_steps_fill_the_plot(qtbot: QtBot, theme: Theme) -> None:
    for count in (1, 5, 40, 4096):
        tokens = np.arange(1, count + 1)
        plot = CdfPlot(theme)
        qtbot.addWidget(plot)
        plot.resize(280, 96)
        plot.set_cdf(np.cumsum(np.full(count, 1 / count)), tokens, draw=0.4, place=int(0.4 * count), label="·x")
        edges = plot.edges()
        assert edges[0] == 0
        assert edges[-1] == pytest.approx(1)
        assert (np.diff(edges) > 0).all()
        assert not plot.grab().isNull()
        assert "0.4000" in plot.accessibleDescription()


def test_an_empty_cdf_is_no_error(qtbot: QtBot, theme: Theme) -> None:
    plot = CdfPlot(theme)
    qtbot.addWidget(plot)
    assert not plot.grab().isNull()


def test_bars_are_sorted_and_masked_ones_left_out(qtbot: QtBot, theme: Theme) -> None:
    table = BarTable(theme, "Row")
    qtbot.addWidget(table)
    table.resize(240, 200)
    values = np.array([0.1, np.nan, 0.7, -0.3], dtype=np.float32)
    table.set_values(["a", "b", "c", "d"], values, name="weight", first_decode=3)
    model = table.model()
    assert [model.index(row, 1).data() for row in range(model.rowCount())] == ["c", "a", "d"]
    assert colour_of(table, 2, 2) == "negative"
    clicked: list[int] = []
    table.positionClicked.connect(clicked.append)
    table.show()
    qtbot.waitExposed(table)
    QTest.mouseClick(table.viewport(), LEFT, NONE, table.visualRect(model.index(0, 1)).center())
    assert clicked == [2]


def test_tiles_stand_in_one_row_or_are_lines_of_a_list(qtbot: QtBot, theme: Theme) -> None:
    tiles = StageTiles(theme)
    qtbot.addWidget(tiles)
    tiles.set_stages([("vocabulary", 49_152, 1.0), ("top-k", 40, 0.97), ("top-p", 5, 0.89), ("min-p", 5, 0.89)])
    assert tiles.heightForWidth(400) < tiles.heightForWidth(200) == tiles.heightForWidth(90)
    tiles.resize(200, tiles.heightForWidth(200))
    picture = tiles.grab().toImage()
    raised = theme.palette.raised.rgb()
    corners = [(100, 2), (3, 40), (197, picture.height() - 6), (100, picture.height() - 2)]
    assert all(picture.pixel(*corner) == raised for corner in corners)  # one ground: no tile stands alone
    assert "49,152" in tiles.accessibleDescription()


def test_a_readout_is_plain_text(qtbot: QtBot, theme: Theme) -> None:
    line = Readout(theme)
    qtbot.addWidget(line)
    line.set_parts([("query ", "secondary"), ("<b>x</b>", "strong")])
    assert line.text() == "query <b>x</b>"
    height = line.sizeHint().height()
    line.set_parts([])
    assert line.sizeHint().height() == height


def test_the_info_popup_opens_inside_the_screen_and_closes(qtbot: QtBot, theme: Theme) -> None:
    button = InfoButton(theme, "Attention", "One.\n\nTwo <i>not markup</i>.")
    qtbot.addWidget(button)
    button.show()
    qtbot.waitExposed(button)
    popup = button.open()
    assert button.screen().availableGeometry().contains(popup.geometry())
    QTest.keyClick(popup, Key.Key_Escape)
    assert not popup.isVisible()


@given(st.integers(1, 80), st.integers(1, 64), st.sampled_from([1, 2, 4, 8]), st.integers(120, 900))
def test_each_head_has_its_place_in_the_grid(n_layers: int, n_heads: int, group: int, width: int) -> None:
    layout = by_layer((n_layers, n_heads), group, width=width, height=500, left=20, header=30, gap=3)
    for layer, head in ((0, 0), (n_layers - 1, n_heads - 1), (n_layers // 2, n_heads // 2)):
        rect = layout.rect(layer, head)
        assert layout.at(rect.center()) == (layer, head)
        assert QRectF(0, 0, layout.width, layout.height).contains(rect)
    rights = [layout.rect(0, head).right() for head in range(n_heads)]
    assert all(layout.rect(0, head + 1).left() >= right for head, right in enumerate(rights[:-1]))


def test_heads_by_rank_put_the_largest_first_and_nan_last() -> None:
    metric = np.array([[0.1, 0.9], [np.nan, 0.5]], dtype=np.float32)
    layout = by_rank(metric, width=200, side=30, label=14)
    found = [layout.at(layout.rect(*head).center()) for head in ((0, 1), (1, 1), (0, 0), (1, 0))]
    assert found == [(0, 1), (1, 1), (0, 0), (1, 0)]
    assert layout.moved((0, 1), 0, 1) == (1, 1)
    assert layout.moved((1, 0), 0, 1) == (1, 0)
    lefts = [layout.rect(*head).left() for head in ((0, 1), (1, 1), (0, 0), (1, 0))]
    assert lefts == sorted(lefts)


def test_a_grid_shows_what_came_and_asks_for_the_rest(qtbot: QtBot, theme: Theme) -> None:
    grid = HeadGrid(theme)
    qtbot.addWidget(grid)
    grid.resize(220, 200)
    grid.set_shape(30, 9, 3)
    grid.set_lut(lut("viridis"))
    grid.show()
    qtbot.waitExposed(grid)
    missing = grid.missing()
    assert 0 < len(missing) < 30
    grid.set_selected(missing[-1], 0)
    assert grid.missing()[0] == missing[-1]
    for layer in grid.missing():
        grid.set_layer(layer, np.full((9, 5, 5), 200, dtype=np.uint8))
    assert grid.missing() == ()
    wanted: list[None] = []
    grid.layersWanted.connect(lambda: wanted.append(None))
    grid.verticalScrollBar().setValue(grid.verticalScrollBar().maximum())
    assert wanted
    assert 29 in grid.missing()
    colour = grid.grab().toImage()
    assert not colour.isNull()
    grid.make_stale()
    assert set(grid.missing()) >= set(grid.missing())
    assert grid.thing_at(QPointF(2, 2)) is None


@given(st.integers(1, 60), st.integers(1, 60))
def test_thumbnails_keep_the_strongest_pixel(size: int, side: int) -> None:
    stack = np.random.default_rng(size * 61 + side).integers(0, 256, (3, size, size)).astype(np.uint8)
    small = fit_stack(stack, (side, side))
    assert small.shape == (3, side, side)
    np.testing.assert_array_equal(small.max(axis=(1, 2)), stack.max(axis=(1, 2)) if side <= size else small.max((1, 2)))


def test_three_stages_stand_beside_one_another_in_the_narrowest_panel(qtbot: QtBot, theme: Theme) -> None:
    tiles = StageTiles(theme)
    qtbot.addWidget(tiles)
    tiles.set_stages((("vocabulary", 49_152, 1.0), ("top-k", 40, 0.9), ("top-p", 23, 0.8)))
    one_row = tiles.heightForWidth(220)
    assert tiles.heightForWidth(205) == one_row
    assert tiles.heightForWidth(1000) < one_row  # the shares beside the counts
    assert tiles.heightForWidth(150) > one_row


def test_a_table_paints_again_only_what_says_something_else(qtbot: QtBot, theme: Theme) -> None:
    table = CandidateTable(theme)
    qtbot.addWidget(table)
    rows = [
        Candidate(id=i, piece=f"w{i}", rank=i, logit=-float(i), p_raw=0.4 / (i + 1), p=0.5 / (i + 1)) for i in range(4)
    ]
    table.set_candidates(rows)
    changed: list[int] = []
    table.model().dataChanged.connect(
        lambda first, last, _roles: changed.extend(range(first.column(), last.column() + 1))
    )
    table.set_candidates(rows)
    assert changed == []
    table.set_candidates([replace(row, p=row.p / 2) for row in rows])
    assert changed == [3, 6]  # bars and final: no rank, token, id, logit or raw probability
