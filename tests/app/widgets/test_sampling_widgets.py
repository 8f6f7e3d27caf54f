"""Candidates and their bars, the distribution function, the timeline's height: what is read at small sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QFontMetricsF
from PySide6.QtWidgets import QApplication, QToolButton
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.candidate_table import (
    BAR,
    BAR_BRIEF,
    BAR_STUB,
    FINAL,
    ID,
    LOGIT,
    PADDING,
    RANK,
    RAW,
    TOKEN,
    TOKEN_BRIEF,
    TOKEN_MOST,
    TOKEN_TIGHT,
    CandidateTable,
)
from app.widgets.cdf_plot import MARK, CdfPlot
from app.widgets.mapping import Linear
from app.widgets.slider_row import SliderRow, TravelSlider
from app.widgets.swatch_header import SwatchHeader
from app.widgets.table_style import CellDelegate
from model.protocol.values import Candidate


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("dark")


def table(qtbot: QtBot, theme: Theme, width: int) -> CandidateTable:
    shown = CandidateTable(theme)
    qtbot.addWidget(shown)
    shown.resize(width, 230)
    ps = [0.3, 0.1, 0.04, *([0.02] * 20)]
    shown.set_candidates([
        Candidate(id=6000 + rank, piece=f"·word{rank}", rank=rank, logit=9.0 - rank, p_raw=p / 2, p=p)
        for rank, p in enumerate(ps)
    ])  # fmt: skip
    shown.show()
    qtbot.waitExposed(shown)
    return shown


@pytest.mark.parametrize("width", [208, 320, 427])
def test_bars_are_long_enough_to_compare_and_have_a_legend(qtbot: QtBot, theme: Theme, width: int) -> None:
    shown = table(qtbot, theme, width)
    assert shown.columnWidth(BAR) >= {208: BAR_BRIEF, 320: BAR_STUB, 427: 52}[width], "where every column is in sight"
    header = shown.horizontalHeader()
    assert isinstance(header, SwatchHeader)
    picture = header.grab().toImage()
    assert not shown.model().headerData(BAR, Qt.Orientation.Horizontal), "a column is named after its figures"
    for column, colour in ((RAW, "ghost"), (FINAL, "accent")):
        if shown.isColumnHidden(column):
            continue
        rect = QRect(header.sectionViewportPosition(column), 0, header.sectionSize(column), header.height())
        place = header.swatch(column, rect)
        assert rect.contains(place.toAlignedRect())
        assert picture.pixelColor(place.center().toPoint()).rgb() == getattr(theme.palette, colour).rgb()


def test_the_row_that_the_draw_falls_on_is_in_sight(qtbot: QtBot, theme: Theme) -> None:
    shown = table(qtbot, theme, 320)
    rows = [shown.candidate(row) for row in range(23)]
    model, far = shown.model(), replace(rows[3], id=77, rank=40_000, p=1e-6)

    def seen() -> list[int]:
        """Rows in sight, top first."""
        height = shown.viewport().height()
        found = [shown.rowAt(y) for y in range(5, height, 5)]
        return [row for at, row in enumerate(found) if at == 0 or row != found[at - 1]]

    def say(row: int) -> str:
        return str(model.index(row, 1).data())

    whole = seen()
    for pick, place in ((far, 23), (rows[20], 20), (rows[1], 1), (far, 23), (rows[22], 22)):
        shown.set_candidates([*rows, far] if pick is far else rows, pick)
        QApplication.processEvents()
        assert place in seen()
        others = [row for row in seen() if row != place]
        assert others == [row for row in whole if row != place][: len(others)]
        assert model.look(place, FINAL).voice == "amber"  # type: ignore[attr-defined]
    shown.resize(320, 500)
    QApplication.processEvents()
    assert seen()[-1] == 22 and say(22) == rows[22].piece
    activated: list[int] = []
    shown.candidateActivated.connect(activated.append)
    shown.set_candidates([*rows, far], far)
    shown.resize(320, 160)
    QApplication.processEvents()
    shown.doubleClicked.emit(shown.indexAt(QPoint(100, shown.viewport().height() - 5)))
    assert activated == [77]


@pytest.mark.parametrize("width", [208, 260, 320, 427])
def test_no_figure_is_cut(qtbot: QtBot, theme: Theme, width: int) -> None:
    """A cut power of ten reads as another number: 3e-… for 3e-12."""
    shown = CandidateTable(theme)
    qtbot.addWidget(shown)
    shown.resize(width, 230)
    shown.show()
    metrics = QFontMetricsF(theme.font("table"))
    for raw, final, logit in ((0.6, 4e-12, -8.0), (3e-38, 0.5, -1234.5), (0.0, 1e-7, 3.0)):
        shown.set_candidates([
            Candidate(id=6000 + rank, piece="·a", rank=rank, logit=logit, p_raw=raw, p=final) for rank in range(9)
        ])  # fmt: skip
        kept = [column for column in (LOGIT, RAW, FINAL) if not shown.isColumnHidden(column)]
        assert FINAL in kept
        for column in kept:
            text = shown.model().index(0, column).data()
            assert metrics.horizontalAdvance(text) + 2 * PADDING <= shown.columnWidth(column) + 1


@pytest.mark.parametrize(
    ("logits", "said"),
    [((19.34, 17.1), "19.3"), ((9.5, -3.25), "9.50"), ((-99.9, -101.4), "-100"), ((-1234.5, 0.0), "-1234")],
)
def test_every_column_has_its_place_in_the_standard_layout(
    qtbot: QtBot, theme: Theme, logits: tuple[float, float], said: str
) -> None:
    """314 px is what the table has in a window of 1400 × 900, its bar 10 of them."""
    shown = CandidateTable(theme)
    qtbot.addWidget(shown)
    shown.resize(314, 230)
    shown.show()
    shown.set_candidates([
        Candidate(id=6000 + rank, piece="·explanation", rank=rank, logit=logits[rank > 0], p_raw=0.1, p=0.2)
        for rank in range(40)
    ])  # fmt: skip
    assert not any(shown.isColumnHidden(column) for column in (RANK, TOKEN, ID, BAR, LOGIT, RAW, FINAL))
    assert shown.model().index(0, LOGIT).data() == said
    assert shown.columnWidth(BAR) >= theme.px(BAR_STUB)
    token = QFontMetricsF(theme.font("mono")).horizontalAdvance("·explanation") + 2 * PADDING
    assert shown.columnWidth(TOKEN) >= (token if logits[0] > 0 else theme.px(TOKEN_TIGHT))


def test_a_token_goes_on_into_the_blank_before_a_short_id(qtbot: QtBot, theme: Theme) -> None:
    shown = CandidateTable(theme)
    qtbot.addWidget(shown)
    shown.resize(290, 230)
    shown.show()
    rows = [
        Candidate(id=token, piece=piece, rank=rank, logit=29.6 - rank, p_raw=0.1, p=0.0)
        for rank, (token, piece) in enumerate(
            [(2, "‹|im_end|›"), (1, "‹|im_start|›"), (43_001, "‹|im_start|›"), (5, "x"), (5, "‹|im_start|› and more")]
        )
    ]
    shown.set_candidates(rows)
    model, cells = shown.model(), shown.itemDelegate()
    assert isinstance(cells, CellDelegate)
    room = shown.columnWidth(TOKEN)
    said = [cells.shown(model.index(row, TOKEN), room)[0] for row in range(5)]
    assert said[1] == "‹|im_start|›"
    assert cells.shown(model.index(1, TOKEN), room)[1] > room, "or it has room anyway"
    assert said[2].endswith("…") and len(said[4]) > len(said[2])
    metrics = QFontMetricsF(theme.font("table"))
    for row in range(5):
        width = cells.shown(model.index(row, TOKEN), room)[1]
        figure = metrics.horizontalAdvance(model.index(row, ID).data())
        assert PADDING + width + PADDING <= room + shown.columnWidth(ID) - figure - PADDING + 1

    def inked(row: int) -> bool:
        """Whether anything is drawn on the blank of an id's cell."""
        cell = shown.visualRect(model.index(row, ID))
        picture = shown.viewport().grab(QRect(cell.left(), cell.top(), 8, cell.height())).toImage()
        return len({picture.pixel(x, y) for x in range(picture.width()) for y in range(picture.height())}) > 1

    assert [inked(row) for row in (1, 3)] == [True, False]
    shown.selectRow(1)
    assert inked(1)


def test_a_token_that_is_looked_for_shows_its_raw_figure(qtbot: QtBot, theme: Theme) -> None:
    """Far down, its rank needs five digits and the raw figure is a power of ten: the bar is short before it goes."""
    shown = CandidateTable(theme)
    qtbot.addWidget(shown)
    shown.resize(302, 230)
    shown.show()
    shown.set_candidates([
        Candidate(id=29106, piece="·zebra", rank=3108, logit=6.2, p_raw=6e-8, p=0.0),
        Candidate(id=42530, piece="·zebrafish", rank=23775, logit=1.8, p_raw=8e-10, p=0.0),
    ])  # fmt: skip
    for column in (RANK, TOKEN, ID, BAR, LOGIT, RAW, FINAL):
        assert not shown.isColumnHidden(column)
    assert shown.columnWidth(BAR) >= theme.px(BAR_BRIEF)
    assert shown.columnWidth(TOKEN) >= QFontMetricsF(theme.font("mono")).horizontalAdvance("·zebrafish")


def test_bars_and_tokens_are_cut_before_a_column_goes(qtbot: QtBot, theme: Theme) -> None:
    """A pick far down has a rank of five digits and powers of ten beside it; 304 px is what a row of a scrolled table
    has in a window of 1400 × 900."""
    shown = CandidateTable(theme)
    qtbot.addWidget(shown)
    shown.show()
    rows = [
        Candidate(id=6330 + rank, piece="·explanation", rank=rank, logit=22.8 - rank, p_raw=0.155 / (1 + rank), p=4e-4)
        for rank in range(40)
    ]
    far = Candidate(id=43438, piece="·ET", rank=23_936, logit=5.1, p_raw=3e-8, p=2e-5)
    gone: list[set[int]] = []
    last = [0] * 7
    for width in range(420, 204, -4):
        shown.resize(width, 230)
        shown.set_candidates([*rows, far], far)
        room = shown.viewport().width()
        missing = {column for column in (RANK, TOKEN, ID, BAR, LOGIT, RAW, FINAL) if shown.isColumnHidden(column)}
        if not gone or missing != gone[-1]:
            if gone:  # the column that went had no room beside a bar and a token as short as they get
                bar = theme.px(BAR_BRIEF)
                assert room - sum(last) + last[BAR] + last[TOKEN] <= bar + theme.px(TOKEN_BRIEF) + 4, missing
            gone.append(missing)
        last = [0 if shown.isColumnHidden(column) else shown.columnWidth(column) for column in range(7)]
        assert not missing or room < 304
    assert gone == [set(), {LOGIT}, {LOGIT, RAW}, {LOGIT, RAW, ID}]


def test_a_short_bar_has_square_ends(qtbot: QtBot, theme: Theme) -> None:
    shown = table(qtbot, theme, 320)
    cell = shown.visualRect(shown.model().index(1, BAR))
    picture = shown.viewport().grab(cell).toImage()
    solid = [y for y in range(picture.height()) if _near(picture.pixelColor(4, y), theme.palette.accent)]
    edge = [y for y in range(picture.height()) if _near(picture.pixelColor(2, y), theme.palette.accent)]
    assert solid == edge
    assert len(solid) >= 5


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_raw_bar_is_seen_over_and_under_the_final_one_at_any_size_of_text(
    qtbot: QtBot, theme: Theme, scale: float
) -> None:
    theme.set_text_scale(scale)
    shown = table(qtbot, theme, round(320 * scale))
    picture = shown.viewport().grab(shown.visualRect(shown.model().index(0, BAR))).toImage()
    column = [picture.pixelColor(4, y) for y in range(picture.height())]
    ghost = sum(_near(colour, theme.palette.ghost) for colour in column)
    solid = sum(_near(colour, theme.palette.accent) for colour in column)
    assert ghost >= solid >= 5 * scale


def test_in_a_wide_table_the_bar_has_the_room_and_figures_stay_near_their_token(qtbot: QtBot, theme: Theme) -> None:
    shown = table(qtbot, theme, 1300)
    assert shown.columnWidth(TOKEN) <= TOKEN_MOST + 2 and shown.columnWidth(BAR) > 700


def _tinge(colour: QColor) -> int:
    """How much bluer than red it is: the accent is above 0, amber below."""
    return colour.blue() - colour.red()


def _near(one: QColor, other: QColor) -> bool:
    return max(abs(one.red() - other.red()), abs(one.green() - other.green()), abs(one.blue() - other.blue())) < 12


@pytest.mark.parametrize("height", [52, 92])
def test_the_draws_mark_stands_clear_of_the_figures_and_ranks_are_named(
    qtbot: QtBot, theme: Theme, height: int
) -> None:
    plot = CdfPlot(theme)
    qtbot.addWidget(plot)
    plot.resize(185, height)
    plot.set_cdf(np.linspace(0.3, 1.0, 23), np.arange(1, 24), draw=0.01, place=0, label="a")
    rect, metrics = plot.plot_rect(), QFontMetricsF(theme.font("hint"))
    assert rect.height() >= 28
    assert plot.height() - rect.bottom() >= metrics.height()
    picture = plot.grab().toImage()
    y = round(rect.bottom() - 0.01 * rect.height())
    mark = round(rect.left()) - MARK
    background = picture.pixelColor(0, 0)
    assert all(picture.pixelColor(x, y) == background for x in (mark - 1, mark - 2))
    below = range(round(rect.bottom()) + 4, plot.height())
    assert any(picture.pixelColor(x, y) != background for y in below for x in range(round(rect.left()), 185))


@pytest.mark.parametrize("kept", [30, 4096, 49_152])
def test_the_curve_ends_at_one_and_the_draws_line_ends_on_it(qtbot: QtBot, theme: Theme, kept: int) -> None:
    plot = CdfPlot(theme)
    qtbot.addWidget(plot)
    plot.resize(240, 92)
    place = int(kept * 0.7522)
    counts = np.unique(np.concatenate((np.geomspace(1, kept, 400).astype(np.int64), [place, place + 1, kept])))
    plot.set_cdf(counts / kept, counts, draw=0.7522, place=place, label="ET")
    assert plot.kept == kept
    assert f"{place + 1:,} of {kept:,}" in plot.toolTip() == plot.accessibleDescription()
    rect, picture = plot.plot_rect(), plot.grab().toImage()

    def is_(colour: QColor, x: float, y: float, around: int = 2) -> bool:
        offsets = range(-around, around + 1)
        return any(
            _near(picture.pixelColor(round(x) + right, round(y) + down), colour)
            for right in offsets
            for down in offsets
        )

    x = rect.left() + float(np.log1p(place + 1) / np.log1p(kept)) * rect.width()
    y = rect.bottom() - 0.7522 * rect.height()
    assert is_(theme.palette.amber, x, y), "the token it falls on"
    assert is_(theme.palette.accent, x, y, 6), "the curve there"
    assert is_(theme.palette.amber, x - 6, y) or is_(theme.palette.amber, x - 10, y), "the dashed line up to it"
    assert is_(theme.palette.accent, rect.right() - 1, rect.top())


@pytest.mark.parametrize(("draw", "height"), [(0.015, 92), (0.95, 92), (0.4, 52)])
def test_one_kept_token_is_a_line_at_one_with_the_draw_and_its_name_and_no_slab(
    qtbot: QtBot, theme: Theme, draw: float, height: int
) -> None:
    plot = CdfPlot(theme)
    qtbot.addWidget(plot)
    plot.resize(240, height)
    plot.set_cdf(np.array([1.0]), np.array([1]), draw=draw, place=0, label="·sentence")
    rect, picture = plot.plot_rect(), plot.grab().toImage()
    level, y = round(rect.top()), rect.bottom() - draw * rect.height()
    blue = [max(_tinge(picture.pixelColor(x, level + d)) for d in (-1, 0, 1)) for x in range(80, 200, 20)]
    assert min(blue) > 60, "the line at 1"
    dashes = [min(_tinge(picture.pixelColor(x, round(y) + d)) for d in (-1, 0, 1)) < -60 for x in range(60, 220)]
    assert 0.3 < np.mean(dashes) < 0.95, "the draw's line across"
    inside = [(x, y) for x in range(round(rect.left()) + 3, round(rect.right()) - 3)
              for y in range(round(rect.top()) + 3, round(rect.bottom()) - 2)]  # fmt: skip
    ink = np.mean([_tinge(picture.pixelColor(*place)) < -60 for place in inside])
    assert 0.002 < ink < 0.15, "a line and a name, not a slab"
    name = plot.name_rect()
    assert rect.top() <= name.top() and name.bottom() <= rect.bottom()
    plot.set_cdf(np.array([1.0]), np.array([1]), draw=draw, place=0, label="")
    bare = plot.grab().toImage()
    assert picture.copy(name.toAlignedRect()) != bare.copy(name.toAlignedRect()), "the name is drawn"


def test_a_narrow_row_keeps_a_slider_to_travel_and_a_reset_for_what_was_changed(qtbot: QtBot, theme: Theme) -> None:
    row = SliderRow(theme, "top-p", Linear(low=0, high=1, step=0.01, default=0.9), label_width=78)
    qtbot.addWidget(row)
    row.resize(208, 21)
    row.show()
    qtbot.waitExposed(row)
    slider, reset = row.findChild(TravelSlider), row.findChild(QToolButton)
    assert slider is not None
    assert reset is not None
    QApplication.processEvents()
    before = slider.width()
    assert before >= 70
    assert not reset.isVisible()
    row.set_value(0.8)
    QApplication.processEvents()
    assert reset.isVisible()
    assert slider.width() == before  # the knob stays under the mouse that moves it
    assert reset.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert reset.accessibleName() == "Reset top-p"
    reset.click()
    assert row.value() == 0.9


def test_a_column_chosen_to_stay_does_not_give_way(qtbot: QtBot, theme: Theme) -> None:
    shown = table(qtbot, theme, 252)
    assert shown.isColumnHidden(LOGIT)
    kept: list[tuple[str, ...]] = []
    shown.keptChanged.connect(kept.append)
    menu = shown.columns_menu()
    action = next(entry for entry in menu.actions() if "logit" in entry.text())
    action.trigger()
    assert kept == [("logit",)]
    assert not shown.isColumnHidden(LOGIT)
    assert shown.isColumnHidden(RAW)
    total = sum(shown.columnWidth(column) for column in range(7) if not shown.isColumnHidden(column))
    assert total <= shown.viewport().width()
    metrics = QFontMetricsF(theme.font("table"))
    assert metrics.horizontalAdvance(shown.model().index(0, LOGIT).data()) + 2 * PADDING <= shown.columnWidth(LOGIT) + 1
    action.trigger()
    assert kept[-1] == ()
    assert shown.isColumnHidden(LOGIT)
    shown.keep_columns(["logit", "nonsense", 3])
    assert not shown.isColumnHidden(LOGIT)
    menu.close()


def test_ranks_stay_in_large_text(qtbot: QtBot, theme: Theme) -> None:
    theme.set_text_scale(1.25)
    shown = table(qtbot, theme, 238)
    assert not shown.isColumnHidden(0)
    assert shown.columnWidth(BAR) >= theme.px(BAR_BRIEF)


@pytest.mark.parametrize("width", [211, 223, 310])
def test_raw_figures_lose_their_leading_0_and_lie_on_their_bars_before_they_go(
    qtbot: QtBot, theme: Theme, width: int
) -> None:
    """211 px is what a row has in a window of 1000 × 700: the raw figures were hidden."""
    shown = CandidateTable(theme)
    qtbot.addWidget(shown)
    shown.resize(width + shown.verticalScrollBar().sizeHint().width(), 230)
    shown.show()
    shown.set_candidates([
        Candidate(id=6330 + rank, piece="·explanation", rank=rank, logit=19.3 - rank, p_raw=0.155 / (1 + rank), p=0.339)
        for rank in range(40)
    ])  # fmt: skip
    qtbot.waitUntil(lambda: shown.viewport().width() == width)
    model, metrics = shown.model(), QFontMetricsF(theme.font("table"))
    assert not any(shown.isColumnHidden(column) for column in (RANK, TOKEN, ID, RAW, FINAL))
    led = width == 310
    assert shown.isColumnHidden(BAR) != led
    assert [model.index(0, column).data() for column in (RAW, FINAL)] == (
        ["0.155", "0.339"] if led else [".155", ".339"]
    )
    assert "raw 0.155" in model.data(model.index(0, RAW), Qt.ItemDataRole.ToolTipRole)
    for column in (RANK, ID, RAW, FINAL):
        text = model.index(0, column).data()
        assert metrics.horizontalAdvance(text) + 2 * PADDING <= shown.columnWidth(column) + 1
    assert shown.columnWidth(TOKEN) >= theme.px(TOKEN_TIGHT)
    picture = shown.viewport().grab().toImage()
    for column, token, share in ((RAW, "ghost", 0.155 / 0.339), (FINAL, "accent", 1.0)):
        cell = shown.visualRect(model.index(0, column))
        line = [x for x in range(cell.left(), cell.right() + 1)
                if _near(picture.pixelColor(x, cell.bottom() - 1), getattr(theme.palette, token))]  # fmt: skip
        assert len(line) == (0 if led else pytest.approx(share * (cell.width() - PADDING), abs=2))


def test_raw_figures_stay_where_one_token_has_all_that_is_left(qtbot: QtBot, theme: Theme) -> None:
    """1.000 in the last column is wider than .339: the raw figures were hidden, where the final ones say nothing."""
    shown = CandidateTable(theme)
    qtbot.addWidget(shown)
    shown.resize(211 + shown.verticalScrollBar().sizeHint().width(), 230)
    shown.show()
    shown.set_candidates([
        Candidate(id=6330 + n, piece="·explanation", rank=n, logit=19.3, p_raw=0.952 / 20**n, p=float(n == 0))
        for n in range(40)
    ])  # fmt: skip
    qtbot.waitUntil(lambda: shown.viewport().width() == 211)
    assert not any(shown.isColumnHidden(column) for column in (RANK, TOKEN, ID, RAW, FINAL))
    assert [shown.model().index(0, column).data() for column in (RAW, FINAL)] == [".952", "1.00"]
    assert [shown.model().index(9, column).data() for column in (RAW, FINAL)] == [".000", "0"]
    assert "raw 1.86e-12" in shown.model().data(shown.model().index(9, RAW), Qt.ItemDataRole.ToolTipRole)
