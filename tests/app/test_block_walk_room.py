"""The block walk in little room: cards, names, formulas, tokens and their line are whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panels.block_walk import BlockWalkPanel
from app.panels.block_walk_cell import bar_texts
from app.panels.block_walk_words import brief_formula
from app.widgets import heatmap_columns
from app.widgets.folding import fold
from app.widgets.heatmap_paint import axis_labels, shown_readout
from app.widgets.op_cards import INFO, PADDING, Card
from app.widgets.readout import parts_width
from model.colormaps import Levels
from tests.app.walk_bench import ids, settled, shown


def test_a_low_dock_keeps_the_readout_in_sight_and_a_formula_is_one_line_of_a_card(
    qtbot: QtBot, tmp_path: Path
) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(1380, 209))
    assert panel.minimumSizeHint().height() <= 209
    for name in ("attn.norm", "attn.pattern", "mlp.down"):
        panel._choose(ids(panel).index(name))
        settled(qtbot, panel, bench)
        heat = panel.detail.heat
        readout = heat.geometry_now().readout
        assert readout.width() > (300 if heat.geometry_now().key.isNull() else 190)
        assert heat.mapTo(panel, readout.bottomLeft().toPoint()).y() < panel.height()
    font = QFontMetricsF(panel.ctx.theme.font("mono_small"))
    assert panel.walk is not None
    lines = {op.id: panel.cards.formula_line(index) for index, op in enumerate(panel.walk.ops)}
    room = panel.cards.card_rect(0).width() - 2 * 8
    assert all(font.horizontalAdvance(line) <= room for line in lines.values())
    assert lines["attn.norm"] == "x̂ = x / rms(x) ⊙ γ"
    assert lines["attn.q"] == panel.walk.ops[ids(panel).index("attn.q")].formula
    assert all("…" not in line or "…" in op.formula for line, op in zip(lines.values(), panel.walk.ops, strict=True))
    panel.cards._hover(ids(panel).index("attn.norm"))
    assert "√(mean(x²)" in panel.cards.viewport().toolTip()  # all of it where the mouse rests


@pytest.mark.parametrize(
    ("formula", "brief"),
    [
        ("x̂ = x / √(mean(x²) + 1e-05) ⊙ γ", "x̂ = x / rms(x) ⊙ γ"),
        ("ŷ = y / √(mean(y²) + 1e-05) ⊙ (1 + γ)", "ŷ = y / rms(y) ⊙ (1 + γ)"),
        ("x̂ = (x − mean(x)) / √(var(x) + 1e-05) ⊙ γ + β", "x̂ = (x − mean(x)) / σ ⊙ γ + β"),
        ("a = SiLU(g) = g · 1/(1 + e⁻ᵍ)", "a = SiLU(g)"),
        ("h = GELU(g) ≈ ½g · (1 + tanh(√(2/π)(g + 0.044715 g³)))", "h = GELU(g)"),
        ("q = W_q · x̂", ""),
    ],
)
def test_a_formula_in_brief_says_the_same(qtbot: QtBot, tmp_path: Path, formula: str, brief: str) -> None:
    panel, _ = shown(qtbot, tmp_path)
    assert panel.walk is not None
    op = replace(panel.walk.ops[0], id="mlp.act" if "(g)" in formula else "attn.norm", formula=formula)
    assert brief_formula(op) == brief


def test_a_card_says_which_head_its_marks_point_at(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path)
    assert panel.walk is not None
    at = ids(panel).index("attn.q")
    panel.cards._hover(at)
    assert f"head {panel.walk.head}" in panel.cards.viewport().toolTip()
    panel._choose(at)
    op = panel.walk.ops[at]
    assert panel.detail.head.shape.text() == f"heads H × dimensions D = {op.shape[0]} × {op.shape[1]}"


@pytest.mark.parametrize(
    ("size", "rows"), [((1256, 178), 2), ((1380, 209), 2), ((1380, 226), 2), ((1100, 360), 2), ((900, 500), 3)]
)
def test_whole_rows_of_cards_are_seen_wherever_they_are_scrolled_to(
    qtbot: QtBot, tmp_path: Path, size: tuple[int, int], rows: int
) -> None:
    panel, _ = shown(qtbot, tmp_path, size=size)
    cards, bar, count = panel.cards, panel.cards.verticalScrollBar(), len(ids(panel))
    assert bar.maximum() > 0
    seen = set()
    for first in range(bar.maximum() + 1):
        bar.setValue(first)
        rects = [cards.card_rect(index) for index in range(count)]
        height = cards.viewport().height()
        within = {i for i, rect in enumerate(rects) if rect.top() >= 0 and rect.bottom() <= height}
        assert within == {i for i, rect in enumerate(rects) if rect.bottom() > 0 and rect.top() < height}
        assert max(rects[i].bottom() for i in within) >= height - 8  # and no room is left for nothing
        if first == 0:
            assert len(within) >= rows * cards.columns
        seen |= within
    assert seen == set(range(count))
    for index in (count - 1, 0, count // 2):
        cards.set_chosen(index)
        assert cards.card_rect(index).top() >= 0
        assert cards.card_rect(index).bottom() <= cards.viewport().height()


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_head_s_row_is_marked_beside_it_and_not_painted_over(
    qtbot: QtBot, tmp_path: Path, theme: Literal["light", "dark"]
) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel.ctx.theme.set_choice(theme)
    settled(qtbot, panel, bench)
    cards, index = panel.cards, ids(panel).index("attn.q")
    cards.verticalScrollBar().setValue(0)
    card, rect = cards._cards[index], cards.card_rect(index)
    assert card.marked == 2
    picture = cards.viewport().grab().toImage()
    text = panel.ctx.theme.palette.text
    rows = [y for y in range(round(rect.top()), round(rect.bottom()))
            if picture.pixelColor(round(rect.left() + 8) - 2, y) == text]  # fmt: skip
    assert rows  # an arrow beside the picture, and clear of the card's edge
    assert all(picture.pixelColor(round(rect.left()) + x, y) != text for x in range(5) for y in rows)
    inside = {picture.pixelColor(x, rows[len(rows) // 2]).rgb() for x in range(round(rect.left() + 14),
              round(rect.right() - 14))}  # fmt: skip
    assert text.rgb() not in inside and len(inside) > 3


def test_a_short_line_of_statistics_keeps_the_note(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(690, 600))
    panel.ctx.theme.set_text_scale(1.5)
    panel.open_card(ids(panel).index("attn.norm"))
    settled(qtbot, panel, bench)
    said = panel.detail.stats.shown()
    assert said[-1][0].startswith(("rms(x)", "σ(x)")) and (" ", "text") in said
    assert parts_width(panel.ctx.theme, said) <= panel.detail.stats.width()


def test_a_low_strip_has_dimension_numbers_on_both_axes(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(1380, 230))
    panel._choose(ids(panel).index("mlp.down"))
    settled(qtbot, panel, bench)
    heat, folded = panel.detail.heat, panel.detail.folded
    assert heat.height() >= panel.ctx.theme.px(70) and folded is not None and panel.walk is not None
    assert heat.options.axes and heat.col_axis.counts
    assert folded.values.shape == fold(panel.arrays[ids(panel).index("mlp.down")][0], aspect=24.0).values.shape
    assert heat.row_axis.number(1) == f"{folded.width:,}" and heat.col_axis.number(1) == "1"


def test_a_row_that_has_its_number_in_its_name_has_it_once(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(1256, 178))
    panel._choose(ids(panel).index("attn.q"))
    settled(qtbot, panel, bench)
    heat = panel.detail.heat
    labels = axis_labels(heat)[0]
    assert labels and {(label.piece, label.number) for label in labels} <= {(f"head {i}", "") for i in range(4)}
    panel.resize(1100, 360)
    panel._choose(ids(panel).index("mlp.post"))
    settled(qtbot, panel, bench)
    assert panel.detail.folded is not None
    last = len(panel.detail.folded.values) - 1
    assert last > 0 and last in {label.index for label in axis_labels(heat)[0]}  # how the lines count
    assert heat.row_axis.always == last
    assert all(cards_title_fits(panel, card) for card in panel.cards._cards)


def cards_title_fits(panel: BlockWalkPanel, card: Card) -> bool:
    cards, theme = panel.cards, panel.ctx.theme
    corner = QFontMetricsF(theme.font("hint")).horizontalAdvance(cards.corner_words(card))
    title = QFontMetricsF(theme.font("ui", bold=True)).horizontalAdvance(card.title)
    return title + corner + INFO + 8 + 2 * PADDING + 1 <= cards._card_width()


def test_narrow_and_tall_the_large_view_stands_under_the_cards(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(470, 560))
    detail, cards = panel.detail, panel.cards
    assert cards.isVisible() and detail.isVisible() and detail.what.isVisible()
    assert cards.geometry().bottom() < detail.geometry().top() and detail.width() == cards.width()
    at = ids(panel).index("attn.q")
    QTest.mouseClick(cards.viewport(), Qt.MouseButton.LeftButton, pos=cards.card_rect(at).center().toPoint())
    settled(qtbot, panel, bench)
    assert not panel.large and detail.shown is not None and detail.shown.op.id == "attn.q"
    panel.resize(1100, 360)
    assert cards.geometry().right() < detail.geometry().left()
    assert cards.columns == 2
    panel.resize(470, 300)  # no height for both
    assert cards.isVisible() and not detail.isVisible()


def test_the_chosen_card_says_how_it_opens_and_a_click_on_that_opens_it(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(470, 300))
    cards, at = panel.cards, ids(panel).index("attn.q")
    assert cards.open_words() == "Open ⏎"
    cards.set_chosen(at)
    hints = QFontMetricsF(panel.ctx.theme.font("hint"))
    open_rect = cards.open_rect()
    assert cards.card_rect(at).contains(open_rect) and open_rect.width() >= hints.horizontalAdvance("Open ⏎") - 0.5
    foot = cards.card_rect(at).left() + PADDING + hints.horizontalAdvance(cards.foot_line(at))
    assert cards.foot_line(at) and foot < open_rect.left()
    QTest.mouseClick(cards.viewport(), Qt.MouseButton.LeftButton, pos=cards.card_rect(at).center().toPoint())
    assert not panel.large
    QTest.mouseClick(cards.viewport(), Qt.MouseButton.LeftButton, pos=open_rect.center().toPoint())
    settled(qtbot, panel, bench)
    assert panel.large and panel.detail.isVisible()


@pytest.mark.parametrize("size", [(1256, 178), (1380, 209), (470, 560), (470, 300)])
def test_a_name_is_never_cut_and_a_shape_is_whole_or_left_out(
    qtbot: QtBot, tmp_path: Path, size: tuple[int, int]
) -> None:
    panel, bench = shown(qtbot, tmp_path, size=size)
    panel.resize(*size)  # beside each other the parts ask for more width than under each other
    head = panel.detail.head
    for index in range(len(ids(panel))):
        panel.open_card(index)
        settled(qtbot, panel, bench)
        for label in (head.title, head.shape):
            needed = QFontMetricsF(label.font()).horizontalAdvance(label.text())
            assert not label.isVisible() or label.width() >= needed - 0.5, (label.text(), label.width())
        assert head.title.isVisible() and (head.shape.isVisible() or size[0] < 500)
    panel.out()
    shown_shape = size[1] >= 560 or size[0] > 1000
    assert head.shape.isVisible() == shown_shape


def test_cards_without_a_foot_have_a_value_beside_their_formula(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path, size=(1256, 178))
    cards, walk = panel.cards, panel.walk
    assert walk is not None and cards.open_rect().isNull()
    theme, bare = panel.ctx.theme, []
    hints, mono = QFontMetricsF(theme.font("hint")), QFontMetricsF(theme.font("mono_small"))
    for index, card in enumerate(cards._cards):
        formula, value = cards.low_line(index)
        room = cards.card_rect(index).width() - 2 * PADDING
        assert mono.horizontalAdvance(formula) + hints.horizontalAdvance(value) < room
        assert not value or value in card.foot.split("   ")
        if not value:
            bare.append(walk.ops[index].id)
    assert not bare


def test_the_lowest_view_gives_the_statistics_line_to_its_picture(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(1256, 178))
    panel._choose(ids(panel).index("attn.q"))
    settled(qtbot, panel, bench)
    detail, heat = panel.detail, panel.detail.heat
    assert detail.head.folded and not detail.stats.isVisible()
    assert heat.geometry_now().area.height() >= 40
    assert heat.readout_text().startswith("min ")
    heat.set_hovered((2, 5))
    assert "dimension 5" in heat.readout_text() and "min " not in heat.readout_text()
    heat.set_hovered(None)
    assert heat.readout_text() == detail.stats.text()
    panel._choose(ids(panel).index("attn.mask"))
    settled(qtbot, panel, bench)
    assert "9 of 15 keys visible" in heat.readout_text()


def test_the_legend_gives_way_to_the_readout_and_its_number_is_never_lost(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel._choose(ids(panel).index("mlp.down"))
    QTest.mouseClick(panel.detail.what._segments["positions"], Qt.MouseButton.LeftButton)
    settled(qtbot, panel, bench)
    heat, theme = panel.detail.heat, bench.ctx.theme
    heat.set_hovered((4, 7))
    value = heat.readout()[-1]
    assert value[0].lstrip("-")[0].isdigit()
    bars = bar_texts(Levels(low=-33.7, high=33.7, scale="sqrt", signed=True), pooled=True, beyond=True)
    assert [bar.scale.count("·") for bar in bars] == [2, 1, 0]
    heat.set_bars(bars)
    seen = set()
    for width in range(900, 90, -10):
        heat.resize(width, 90)
        parts, geometry = shown_readout(heat), heat.geometry_now()
        assert parts[-1] == value
        assert parts_width(theme, parts) <= geometry.readout.width(), width
        beside = geometry.readout.top() == geometry.bar.top()
        if beside and heat.bar != bars[-1]:  # fewer words of the legend come before fewer of the readout
            assert {"position ", "dimension "} <= {text for text, _ in parts}, width
        if not geometry.key.isNull():
            assert geometry.key.left() >= geometry.readout.right()
        seen.add((beside, heat.bar, len(parts)))
    assert {bar for beside, bar, _ in seen if beside} == set(bars)
    assert (False, bars[0], len(heat.readout())) in seen  # on a line of its own the legend has all its words
    assert (False, bars[-1], 1) in seen  # of the narrowest only the number is left


PROSE = [
    "The", "·animal", "·didn", "'t", "·cross", "·the", "·street", "·because", "·it", "·was", "·too", "·tired", "·to",
    "·original", ".",
]  # fmt: skip


def prose(panel: BlockWalkPanel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens of the default prompt's length in place of the tiny model's."""
    tokens = panel.ctx.session.path_tokens()
    named = tuple(replace(token, piece=piece) for token, piece in zip(tokens, PROSE, strict=True))
    monkeypatch.setattr(panel.ctx.session, "path_tokens", lambda: named)


@pytest.mark.parametrize("size", [(1256, 180), (1380, 209), (1100, 360), (470, 560)])
@pytest.mark.parametrize("name", ["attn.dots", "attn.mask", "attn.pattern"])
def test_tokens_over_a_row_of_keys_are_whole_and_cells_are_left(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], name: str
) -> None:
    panel, bench = shown(qtbot, tmp_path, size=size)
    prose(panel, monkeypatch)
    panel.resize(*size)
    panel._choose(ids(panel).index(name))
    settled(qtbot, panel, bench)
    panel.detail.draw()
    heat = panel.detail.heat
    labels, geometry = axis_labels(heat)[1], heat.geometry_now()
    assert labels and geometry.area.height() >= 16
    assert all(heat.col_axis.metrics.horizontalAdvance(label.piece) <= geometry.col_room for label in labels)
    assert len(labels) == len(PROSE) or (size, name) == ((470, 560), "attn.pattern")  # beside its list, every other
    tops = [heat.col_axis.outline(label, geometry.area.top(), geometry.col_room).boundingRect() for label in labels]
    assert min(rect.top() for rect in tops) >= 0 and max(rect.right() for rect in tops) <= heat.width()
    strips = [
        strip for strip in (geometry.readout, geometry.bar, heatmap_columns.key_place(heat)) if not strip.isNull()
    ]
    assert all(strip.top() >= geometry.area.bottom() for strip in strips)


def test_the_decode_line_along_the_keys_and_masked_cells_are_named(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(1380, 209))
    heat = panel.detail.heat
    for name, masked in (("attn.dots", False), ("attn.mask", True)):
        panel._choose(ids(panel).index(name))
        settled(qtbot, panel, bench)
        assert heat.col_boundary == 12
        key, on_cells = heatmap_columns.key_place(heat), heatmap_columns.cell_words(heat)
        assert not key.isNull() and key.right() <= heat.geometry_now().bar.left()
        assert [said for _, said, _ in on_cells] == (["hidden by the mask"] if masked else [])
    amber = panel.ctx.theme.palette.amber
    picture = heat.grab(key.toRect()).toImage()
    pixels = [picture.pixelColor(x, y) for x in range(picture.width()) for y in range(picture.height())]
    assert sum(pixel == amber for pixel in pixels) > 20
    heat.set_options(replace(heat.options, bar=False, readout=False))  # no line to stand in: on the masked cells
    places = heatmap_columns.cell_words(heat)
    assert heatmap_columns.key_place(heat).isNull()
    assert [said for _, said, _ in places] == ["← prefill", "decode →", "masked cells"]
    line = heat.cell_rect((0, 12)).left()
    assert places[0][0].right() < line < places[1][0].left()


def test_a_low_weights_view_leaves_the_list_for_the_tokens(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path, size=(1256, 178))
    panel._choose(ids(panel).index("attn.pattern"))
    settled(qtbot, panel, bench)
    assert not panel.detail.list.isVisible() and panel.detail.head.folded
    panel.resize(1256, 300)
    assert panel.detail.list.isVisible() and not panel.detail.head.folded


def test_the_chosen_card_stays_in_sight_where_fewer_rows_are(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _ = shown(qtbot, tmp_path, size=(1100, 560))
    cards, at = panel.cards, ids(panel).index("attn.mask")
    cards.set_chosen(at)
    for height in (300, 178, 560):
        panel.resize(1100, height)
        rect = cards.card_rect(at)
        assert rect.top() >= 0 and rect.bottom() <= cards.viewport().height()
    first = cards.verticalScrollBar().maximum()
    cards.verticalScrollBar().setValue(first)  # scrolled away from by hand: it is not fetched back
    panel.resize(1100, 540)
    assert cards.verticalScrollBar().value() == first
