"""In large text nothing is cut without a way to read it: rows wrap or become lists, lists say what is left."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from app.frame.statusbar import EngineDot
from app.panels.base import Panel
from app.panels.block_walk import BlockWalkPanel
from app.panels.feed_forward import FeedForwardPanel
from app.panels.kv import KvPanel
from app.panels.lens import LensPanel
from app.panels.rope import RopePanel
from app.theme import Theme
from app.widgets.card_grid import Card, CardGrid, Plan, Slot
from app.widgets.fact_list import LEADING, Fact, FactList
from app.widgets.fact_table import Cell, Column, FactTable
from app.widgets.info_button import InfoButton
from app.widgets.menu_button import MenuButton
from app.widgets.readout import Readout, parts_width
from app.widgets.slider_row import TravelSlider
from app.widgets.value_combo import ValueCombo
from tests.app.model_bench import bench_with
from tests.app.shell import close_window, open_window
from tests.model.tiny import llama

NARROW = (325, 520)


def tip_at(widget: QWidget, at: QPoint) -> str:
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QToolTip, "showText", lambda _at, text, *_rest: told.append(text))
        QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, at, widget.mapToGlobal(at)))
    return "".join(told)


def place(widget: QWidget, within: QWidget) -> QRect:
    return QRect(widget.mapTo(within, QPoint()), widget.size())


def assert_apart(panel: Panel, row: QWidget) -> None:
    """What stands in a row is whole, inside it, and over nothing else."""
    parts = [child for child in row.children() if isinstance(child, QWidget) and child.isVisible()]
    places = [place(part, panel) for part in parts]
    for part, rect in zip(parts, places, strict=True):
        assert place(row, panel).contains(rect), part
        least = part.minimumSizeHint().boundedTo(QSize(1000, panel.ctx.theme.px(26)))
        assert rect.width() >= least.width() and rect.height() >= least.height(), part
    for a, b in itertools.combinations(places, 2):
        assert not a.intersects(b)


def large(qtbot: QtBot, panel: Panel, scale: float, size: tuple[int, int]) -> None:
    """In text of that size, as chosen while the panel is open."""
    panel.ctx.theme.set_text_scale(scale)
    panel.setMinimumHeight(0)
    panel.resize(*size)
    qtbot.wait(80)


def test_cards_of_a_narrow_place_are_chosen_from_a_list(qtbot: QtBot) -> None:
    theme = Theme("dark")
    keys = ("bytes", "heads", "one step", "phases", "layers")
    cards = {key: (Card(theme, key, QLabel(key)), key) for key in keys}
    grid = CardGrid(theme, cards, lambda _w, _h: Plan(slots=(Slot(cards=keys),), widths=(1,)), label="shown")
    qtbot.addWidget(grid)
    grid.resize(420, 240)
    grid.show()
    [switch] = grid.switches
    assert not switch.folded and all(segment.isVisible() for segment in switch._segments.values())
    width = switch.width()
    grid.resize(width - 1, 240)
    choices = switch.list
    assert switch.folded and choices.isVisible() and grid.rect().contains(switch.geometry())
    assert not any(segment.isVisible() for segment in switch._segments.values())
    assert [choices.itemText(row) for row in range(choices.count())] == list(keys)
    with qtbot.waitSignal(grid.chosen) as chosen:
        choices.activated.emit(3)
    assert chosen.args == ["phases"] and cards["phases"][0].isVisible() and not cards["bytes"][0].isVisible()
    assert grid.cards["phases"].y() > switch.geometry().bottom()
    grid.resize(width, 240)
    assert not switch.folded and switch.key() == "phases" and switch._segments["phases"].isChecked()
    grid.show_card("heads")
    grid.resize(width - 1, 240)
    assert choices.key() == "heads"


@pytest.mark.parametrize("scale", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("kind", [RopePanel, FeedForwardPanel])
def test_controls_of_a_panel_grow_with_the_text(
    qtbot: QtBot, tmp_path: Path, kind: type[RopePanel | FeedForwardPanel], scale: float
) -> None:
    _, panel = bench_with(qtbot, tmp_path, llama()[1], kind, (1360, 200), 14)
    qtbot.waitUntil(lambda: panel.settled and panel.reply is not None)
    large(qtbot, panel, scale, (560, 900))
    assert_apart(panel, panel.where)
    if isinstance(panel, RopePanel):
        assert panel.what_if.height() == panel.ctx.theme.px(28)
    else:
        assert parts_width(panel.ctx.theme, panel.readout.shown()) <= panel.readout.width()


def test_the_lens_s_row_wraps(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = bench_with(qtbot, tmp_path, llama()[1], LensPanel, (1360, 300), 14)
    large(qtbot, panel, 1.5, (325, 430))
    assert panel.minimumSizeHint().width() <= NARROW[0]
    token = panel.token
    qtbot.waitUntil(lambda: token.words.y() > place(token.table_button, token).bottom())
    rects = [place(part, panel) for part in (token.tabs, token.box, token.table_button)]
    assert all(panel.rect().contains(rect) for rect in rects)
    assert not any(a.intersects(b) for a, b in itertools.combinations(rects, 2))
    assert token.box.width() >= 100


def test_the_row_of_the_cache_s_contents_wraps(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = bench_with(qtbot, tmp_path, llama()[1], KvPanel, (1360, 300), 14)
    panel.grid.show_card("contents")
    large(qtbot, panel, 1.5, NARROW)
    assert panel.minimumSizeHint().width() <= NARROW[0]
    contents = panel.contents
    head = contents.kind.parentWidget()
    assert isinstance(head, QWidget)
    assert contents.isVisible() and panel.rect().contains(place(contents, panel))
    assert_apart(panel, head)


def test_facts_that_have_no_room_are_counted_and_told(qtbot: QtBot) -> None:
    theme = Theme("dark")
    facts = FactList(theme, "facts")
    qtbot.addWidget(facts)
    facts.set_facts([Fact(name=f"fact {n}", value=str(n)) for n in range(7)])
    line = facts.line_height()
    facts.resize(240, round(line * 7))
    assert len(facts._placed()[1]) == 7
    facts.resize(240, round(line * 4.6))
    facts.show()
    places = facts._placed()[1]
    assert len(places) == 5 and places[-1][0] + line - LEADING <= facts.height()
    told = tip_at(facts, QPoint(10, round(places[-1][0] + line / 2)))
    assert all(f"fact {n}: {n}" in told for n in (4, 5, 6)) and "fact 3" not in told


def test_facts_stand_closer_before_one_is_hidden_and_what_is_hidden_is_scrolled_to(qtbot: QtBot) -> None:
    facts = FactList(Theme("dark"), "facts")
    qtbot.addWidget(facts)
    facts.set_facts([Fact(name=f"fact {n}", value=str(n)) for n in range(8)])
    facts.show()
    line = facts.line_height()
    facts.resize(240, round((line - LEADING) * 8) + 1)
    pitch, places = facts._placed()
    assert len(places) == 8 and pitch == line - LEADING
    assert facts.focusPolicy() == Qt.FocusPolicy.NoFocus
    facts.resize(240, round(line * 5))
    assert len(facts._placed()[1]) < 8
    facts.setFocus()
    before = facts.grab().toImage()
    for _ in range(9):
        QTest.keyClick(facts, Qt.Key.Key_Down)
    assert facts.grab().toImage() != before
    places = facts._placed()[1]
    assert facts.facts[facts._first :][len(places) - 1].name == "fact 7"
    for _ in range(9):
        QTest.keyClick(facts, Qt.Key.Key_Up)
    assert facts.grab().toImage() == before


def test_planes_have_names_where_all_have_room(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = bench_with(qtbot, tmp_path, llama()[1], RopePanel, (1360, 200), 14)
    qtbot.waitUntil(lambda: panel.settled and panel.planes is not None)
    grid, seen = panel.grid, set()
    for scale, side in itertools.product((1.0, 2.0), (120, 240, 360, 480, 900)):
        panel.ctx.theme.set_text_scale(scale)
        grid.resize(side, side)
        metrics, names = QFontMetricsF(panel.ctx.theme.font("hint")), grid.names()
        assert all(metrics.horizontalAdvance(name) <= grid.cell(0).width() - 4 for name in names)
        seen.add(bool(names))
    assert seen == {False, True}
    assert all(line in tip_at(panel.plane, QPoint(5, 5)) for line in panel.plane.lines())


def test_what_a_readout_and_a_table_have_no_room_for_is_in_their_tips(qtbot: QtBot) -> None:
    theme = Theme("dark")
    readout = Readout(theme)
    qtbot.addWidget(readout)
    readout.set_parts([("a long line ", "secondary"), ("0.12345678", "strong")], [("0.12345678", "strong")])
    readout.resize(90, 22)
    readout.show()
    assert "a long line 0.12345678" in tip_at(readout, QPoint(5, 5))
    readout.resize(400, 22)
    assert not tip_at(readout, QPoint(5, 5))
    table = FactTable(theme, "table", [Column(left=True, grows=True), Column()])
    qtbot.addWidget(table)
    table.set_rows([(Cell(text="computes a second"), Cell(text="13.9 GFLOP/s", tip="measured"))])
    model = table.model()
    assert isinstance(model, type(table._model))
    table.resize(400, 60)
    table.show()
    assert model.tip(0, 0) == "" and model.tip(0, 1) == "measured"
    table.resize(140, 60)
    qtbot.waitUntil(lambda: model.tip(0, 0) == "computes a second")
    assert model.tip(0, 1) == "measured"


def extent(widget: QWidget, within: QRect) -> QSize:
    """Of what is drawn there in another colour than the corner's."""
    image = widget.grab().toImage()
    ground = image.pixelColor(within.topLeft())
    marked = [
        (x, y)
        for x in range(within.left(), within.right() + 1)
        for y in range(within.top(), within.bottom() + 1)
        if abs(image.pixelColor(x, y).lightness() - ground.lightness()) > 40
    ]
    assert marked
    columns, rows = {x for x, _ in marked}, {y for _, y in marked}
    return QSize(max(columns) - min(columns) + 1, max(rows) - min(rows) + 1)


def test_icons_grow_with_the_text(qtbot: QtBot) -> None:
    seen: dict[str, list[int]] = {}
    for scale in (1.0, 2.0):
        theme = Theme("dark", scale)
        parts = {
            "info": InfoButton(theme, "title", "text"), "dot": EngineDot(theme),
            "menu": MenuButton(theme), "value": ValueCombo(theme, "value"),
            "slider": TravelSlider(Theme("light", scale)),
        }  # fmt: skip
        parts["dot"].set_voice("green")  # type: ignore[attr-defined]
        for name, part in parts.items():
            qtbot.addWidget(part)
            if name not in {"info", "dot"}:
                part.resize(150, theme.px(28))
            side = theme.px(22)
            if name == "slider":
                seen["knob"] = [*seen.get("knob", []), extent(part, QRect(0, 0, theme.px(12), part.height())).height()]
                continue
            at = part.rect() if name in {"info", "dot"} else QRect(part.width() - side, 5, side - 4, part.height() - 10)
            seen.setdefault(name, []).append(extent(part, at).width())
    assert all(1.7 * small <= large <= 2.3 * small for small, large in seen.values()), seen


def test_a_title_keeps_its_room_from_tools_that_are_not_in_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    application = open_window(tmp_path / "config", monkeypatch, qtbot, text_scale=2.0)
    try:
        application.window.resize(1400, 900)
        bar = application.window.docks["sampling"].bar
        words = bar.label.fontMetrics().horizontalAdvance("Sampling")
        qtbot.waitUntil(lambda: bar.label.width() >= words)
        assert bar.info.width() == 44 and bar.rect().contains(bar.info.geometry())
    finally:
        close_window(application)


def test_the_way_of_a_token_through_the_lens_keeps_its_height(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = bench_with(qtbot, tmp_path, llama()[1], LensPanel, (1360, 300), 14)
    large(qtbot, panel, 2.0, (600, 900))
    plot = panel.token.plot
    assert plot.isVisible() and plot.height() >= 168
    assert panel.minimumSizeHint().height() >= 168


def test_the_walk_s_difference_from_the_run_keeps_its_figure(qtbot: QtBot, tmp_path: Path) -> None:
    _, panel = bench_with(qtbot, tmp_path, llama()[1], BlockWalkPanel, (1360, 300), 14)
    qtbot.waitUntil(lambda: panel.settled and panel.walk is not None)
    for scale, width in ((1.0, 1300), (2.0, 600), (2.0, 360)):
        panel.ctx.theme.set_text_scale(scale)
        panel.about.resize(width, 40)
        shown = panel.about.shown()
        assert parts_width(panel.ctx.theme, shown) <= width
        figure = shown[-1][0].split()[-1]
        assert figure in panel.about.text() and (float(figure) == 0 or "e-" in figure)


def test_an_explanation_is_whole_or_scrolled_in_large_text(qtbot: QtBot) -> None:
    text = "\n\n".join("A sentence that explains what is drawn, at some length. " * 6 for _ in range(4))
    for scale in (1.0, 2.0):
        button = InfoButton(Theme("dark", scale), "title", text)
        qtbot.addWidget(button)
        button.show()
        popup = button.open()
        qtbot.waitExposed(popup)
        assert popup.screen().availableGeometry().contains(popup.geometry())
        for label in popup.findChildren(QLabel):
            assert label.height() >= label.heightForWidth(label.width()), (scale, label.text())
        popup.close()
