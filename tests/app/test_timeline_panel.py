"""The timeline while what it draws is still being computed."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.frame.docks import PanelScroll
from app.panels.curves import curves
from app.panels.step_table import HEADER, ROW, TOKEN, TOKEN_MOST, P
from app.panels.timeline import CURVE, CURVE_LEAST, CURVE_LOW, LEAST_ROWS, ROOMY, TimelinePanel, curve_height
from app.session import Topic
from app.theme import Theme
from app.widgets.curve_plot import MARK_GAP, polylines
from tests.app.model_bench import GREEDY, ModelBench
from tests.model.tiny import made, random_ids


def shown(qtbot: QtBot, folder: Path) -> tuple[ModelBench, TimelinePanel]:
    """The panel, low and narrow, without a run."""
    bench = ModelBench(folder, Theme("dark"), made())
    panel = TimelinePanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(300, 400)
    panel.show()
    qtbot.waitExposed(panel)
    return bench, panel


def test_a_curve_without_values_says_that_they_are_on_their_way(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path)
    run = bench.run(random_ids(20))
    bench.engine.held = True
    bench.session.facts.new_run(run.id)
    bench.session.changed.emit(Topic.RUN)
    qtbot.waitUntil(lambda: panel.curve.count == 20)
    assert panel.curve.message == "being computed …"
    assert panel.curve.is_empty
    waiting = panel.curve.grab().toImage()
    bench.step()  # a decoded token has its own values; the prompt's are still to come
    qtbot.waitUntil(lambda: panel.curve.count == 21)
    assert panel.curve.message
    assert not panel.curve.is_empty
    bench.engine.held = False
    bench.engine.release()
    qtbot.waitUntil(lambda: not panel.curve.message)
    assert np.isfinite(curves(bench.session)[0][1:]).all()
    assert panel.curve.grab().toImage() != waiting


def test_one_token_waits_for_nothing(qtbot: QtBot, tmp_path: Path) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), made())
    panel = TimelinePanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.show()
    qtbot.waitExposed(panel)
    bench.run(random_ids(1))
    qtbot.waitUntil(lambda: panel.curve.count == 1)
    assert not panel.curve.message
    assert "first token" in panel.curve.note and panel.curve.is_empty
    said = panel.curve.grab().toImage()
    panel.curve.set_note("")
    assert panel.curve.grab().toImage() != said
    bench.step()  # a curve of one point
    qtbot.waitUntil(lambda: panel.curve.count == 2)
    assert not panel.curve.note and not panel.curve.is_empty


def branch(bench: ModelBench, branches: int) -> None:
    """A run whose second step has so many branches, each of some steps."""
    run = bench.run(random_ids(12), 9)
    first = run.state().path[1]
    for _ in range(branches - 1):
        taken = {node.token_id for node in run.nodes.values()}
        run.branch(first, next(token for token in random_ids(60) if token not in taken), GREEDY)
        for _ in range(4):
            bench.step()


@pytest.mark.parametrize("height", [218, 219])
@pytest.mark.parametrize("branches", [1, 2, 3, 5, 8])
def test_curve_and_five_steps_have_their_room_in_the_standard_layout_however_many_branches_there_are(
    qtbot: QtBot, tmp_path: Path, branches: int, height: int
) -> None:
    """In a window of 1400 × 900 the panel is 285 × 219, in Chinese 218. With two branches it once showed two steps, and
    a curve of 29 px: positions are written within it there."""
    bench, panel = shown(qtbot, tmp_path)
    panel.resize(285, height)
    branch(bench, branches)
    curve = panel.curve
    qtbot.waitUntil(lambda: drawn(panel, branches) and curve.plot_rect().height() >= 50)
    qtbot.waitUntil(lambda: seen_rows(panel) >= LEAST_ROWS)
    assert curve.plot_rect().height() >= 50
    assert curve.rect().contains(curve.plot_rect().toAlignedRect())
    head = panel.table.horizontalHeader()
    assert head.height() >= QFontMetricsF(head.font()).height()
    words, plot = curve.position_words(), curve.plot_rect()
    assert len(words) >= 2
    if branches > 1:  # calm: at one edge, what they count beside them where that has room; the unit at its axis
        tops = {place.top() for place, _ in words}
        assert len(tops) == 1 or len(words) == 2
        assert len(words) == 2 or (len(words) == 3 and "position" in [text for _, text in words])
        assert curve.legend_places()[2].x() < plot.left()
    for place, _ in words:
        assert plot.contains(place) if branches > 1 else place.top() > plot.bottom()
        assert curve.rect().contains(place.toRect())
        for series in curve._series if branches > 1 else ():  # no curve passes through a figure
            for line in polylines(series.values, plot, curve._highest(), curve.count):
                for start, end in itertools.pairwise([line.value(at) for at in range(line.size())]):
                    for share in np.linspace(0, 1, 9):
                        assert not place.contains(start + (end - start) * float(share))
    assert panel.rect().contains(panel.table.geometry())
    if branches > 1:
        tree, said = panel.tree, panel.summary.geometry()
        assert tree.isVisible() and tree.geometry().left() > said.right() and not tree.geometry().intersects(said)
        assert tree.geometry().top() >= panel.curve.geometry().bottom()
        for branch_place in tree._places:  # no branch is out of sight
            assert tree.rect().contains(tree.point(branch_place).toPoint())
        assert panel.summary.toolTip().endswith(f" · branch {branches} of {branches}")
        last = tree._places[-1]
        with qtbot.waitSignal(tree.nodeClicked) as clicked:
            QTest.mouseClick(tree, Qt.MouseButton.LeftButton, pos=tree.point(last).toPoint())
        assert clicked.args == [last.node]
    panel.resize(285, 400)  # a line of their own again
    qtbot.waitUntil(lambda: branches == 1 or panel.tree.geometry().top() > panel.summary.geometry().bottom())
    assert panel.tree.isVisible() == (branches > 1)


def test_many_branches_in_lines_of_their_own_are_all_in_sight(qtbot: QtBot, tmp_path: Path) -> None:
    """The ninth lay under the lower edge."""
    bench, panel = shown(qtbot, tmp_path)
    panel.resize(300, 700)
    run = bench.run(random_ids(12), 3)
    first = run.state().path[1]
    for _ in range(10):
        taken = {node.token_id for node in run.nodes.values()}
        run.branch(first, next(token for token in random_ids(60) if token not in taken), GREEDY)
        bench.step()
    qtbot.waitUntil(lambda: drawn(panel, 11) and not panel.tree._low)
    assert all(panel.tree.rect().contains(panel.tree.point(place).toPoint()) for place in panel.tree._places)


@pytest.mark.parametrize("height", range(148, 236, 5))
def test_branches_leave_the_curve_its_place_where_the_panel_is_scrolled(
    qtbot: QtBot, tmp_path: Path, height: int
) -> None:
    """The curve's height once followed the panel's, which it makes itself: each layout asked for another one, and
    between two of them the axis was drawn over the line of steps."""
    bench = ModelBench(tmp_path, Theme("dark"), made())
    panel = TimelinePanel(bench.ctx)
    scroll = PanelScroll(panel, bench.ctx.theme)
    qtbot.addWidget(scroll)
    scroll.resize(262, height)
    scroll.show()
    qtbot.waitExposed(scroll)
    run = bench.run(random_ids(12), 8)
    steps = run.state().path
    for at in (3, 5):
        other = next(token for token in random_ids(40) if token != run.nodes[steps[at + 1]].token_id)
        run.branch(steps[at], other, GREEDY)
        bench.step()
    qtbot.waitUntil(lambda: panel.tree.lanes == 3 and panel.settled)
    requests = LayoutRequests(panel)
    heights = set()
    for _ in range(12):
        qtbot.wait(5)
        heights.add(panel.curve.height())
        assert panel.curve.geometry().bottom() < panel.summary.geometry().top()
    assert len(heights) == 1
    assert requests.count <= 2
    # Where 10 px are wanting for all of it, the curve gives them: no step is scrolled out of sight.
    needed = panel.body.minimumSize().height() - panel.curve.height() + bench.ctx.theme.px(CURVE_LEAST)
    assert (scroll.verticalScrollBar().maximum() == 0) == (needed <= height)


def test_in_a_wide_panel_figures_stand_near_their_token_and_the_star_is_explained(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path)
    bench.run(random_ids(8), 3)
    panel.resize(1300, 700)
    table = panel.table
    qtbot.waitUntil(lambda: table.model().rowCount() == 4)
    assert table.columnWidth(TOKEN) <= TOKEN_MOST
    assert table.columnViewportPosition(P) + table.columnWidth(P) < 300
    chosen = replace(table._model.rows[-1], forced=True)
    table.set_rows((*table._model.rows[:-1], chosen), chosen.node)
    assert table._model.look(3, TOKEN).text.endswith(" *") and "(*: chosen by hand)" in table._model.tip(3, TOKEN)
    assert "(*)" in panel.help_text


def seen_rows(panel: TimelinePanel) -> int:
    table = panel.table
    return table.viewport().height() // table.verticalHeader().defaultSectionSize()


def test_in_large_text_the_curve_is_no_higher_than_leaves_the_steps_in_sight(qtbot: QtBot, tmp_path: Path) -> None:
    bench = ModelBench(tmp_path, Theme("dark", 2.0), made())
    panel = TimelinePanel(bench.ctx)
    scroll = PanelScroll(panel, bench.ctx.theme)
    qtbot.addWidget(scroll)
    scroll.resize(285, 276)
    scroll.show()
    qtbot.waitExposed(scroll)
    bench.run(random_ids(12), 8)
    qtbot.waitUntil(lambda: panel.settled and panel.table.model().rowCount() == 9)
    qtbot.waitUntil(lambda: scroll.verticalScrollBar().maximum() == 0)
    assert panel.curve.height() >= bench.ctx.theme.px(CURVE_LEAST)


@pytest.mark.parametrize("room", [110, 175, 179, 197, 231, 259, 400])
def test_the_curve_takes_only_what_the_steps_leave(qapp: object, room: int) -> None:
    del qapp
    curve = curve_height(room, Theme("dark").px)
    assert CURVE_LEAST <= curve <= CURVE
    if room < ROOMY:
        low, rows = ((room - taken - HEADER) // ROW for taken in (CURVE_LOW, curve))
        assert rows == low or rows == low + 1 == LEAST_ROWS


def test_the_line_of_steps_counts_a_branch_as_soon_as_it_is_drawn(qtbot: QtBot, tmp_path: Path) -> None:
    bench, panel = shown(qtbot, tmp_path)
    run = bench.run(random_ids(12), 4)
    for branches in (2, 3):
        first = run.state().path[0]
        taken = {node.token_id for node in run.nodes.values()}
        run.branch(first, next(token for token in random_ids(40) if token not in taken), GREEDY)
        bench.step()
        qtbot.waitUntil(partial(drawn, panel, branches))
        assert panel.summary.text().endswith(f" · branch {branches} of {branches}")
    trunk, end = run.state().path[0], run.current  # the trunk of all, on the way of the third
    bench.session.book.leave_for(trunk, bench.session.sampling.version)
    run.seek(trunk)
    bench.session.book.take(run.state())
    bench.session.changed.emit(Topic.NODE)
    qtbot.waitUntil(lambda: panel.summary.text().startswith("step 1 of") and panel.settled)
    assert bench.session.nodes_ahead()[-1].id == end
    assert panel.summary.text() == "step 1 of 3 · branch 3 of 3"


@pytest.mark.parametrize("width", [285, 500])
def test_the_branches_beside_the_steps_are_named_where_there_is_room(qtbot: QtBot, tmp_path: Path, width: int) -> None:
    bench, panel = shown(qtbot, tmp_path)
    panel.resize(width, 219)
    run = bench.run(random_ids(12), 9)
    taken = {node.token_id for node in run.nodes.values()}
    run.branch(run.state().path[1], next(token for token in random_ids(60) if token not in taken), GREEDY)
    bench.step()
    qtbot.waitUntil(lambda: drawn(panel, 2) and panel.tree.geometry().left() > panel.summary.geometry().right())
    assert ("branch 2 of 2" in panel.summary.text()) == (width > 300)
    assert panel.summary.shown() == panel.summary.text()
    assert "branch 2 of 2" in panel.summary.toolTip() and panel.tree.accessibleDescription() == "branch 2 of 2"
    assert panel.tree.width() >= 60
    picture = panel.tree.grab().toImage()
    colours = {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(picture.height())}
    assert bench.ctx.theme.palette.secondary.name() in colours  # the branch that was left can be seen


@pytest.mark.parametrize("height", [219, 420])
def test_the_curve_has_the_height_that_no_step_needs_yet(qtbot: QtBot, tmp_path: Path, height: int) -> None:
    bench, panel = shown(qtbot, tmp_path)
    panel.resize(285, height)
    bench.run(random_ids(12))
    qtbot.waitUntil(lambda: panel.settled and panel.table.model().rowCount() == 1)
    qtbot.waitUntil(lambda: panel.height() == height and seen_rows(panel) == 2)
    qtbot.waitUntil(lambda: panel.curve.height() == panel.curve.maximumHeight())
    before = panel.curve.height()
    assert before > CURVE_LOW + 2 * ROW  # the table has two rows at least
    for step in range(1, 4):
        bench.step()
        qtbot.waitUntil(partial(stepped, panel, step + 1))
        assert panel.table.verticalScrollBar().maximum() == 0
        assert panel.curve.height() == max(before - (step - 1) * ROW, panel.curve.minimumHeight())
    assert panel.curve.minimumHeight() <= CURVE  # or the panel could not be made lower


@pytest.mark.parametrize("width", [257, 285])
@pytest.mark.parametrize(("steps", "height"), [(8, 219), (12, 219), (7, 204)])
def test_without_branches_the_curve_has_the_line_of_steps_beside_its_legend(
    qtbot: QtBot, tmp_path: Path, width: int, steps: int, height: int
) -> None:
    """The plot was 30 px high in the standard layout, with a line under it that was empty but for the step."""
    bench, panel = shown(qtbot, tmp_path)
    panel.resize(width, height)
    run = bench.run(random_ids(12), steps)
    qtbot.waitUntil(lambda: panel.settled and panel.table.model().rowCount() == steps + 1)
    qtbot.waitUntil(lambda: panel.curve.plot_rect().height() >= 52 - (219 - height) and seen_rows(panel) >= LEAST_ROWS)
    curve, metrics = panel.curve, QFontMetricsF(panel.ctx.theme.font("hint"))
    lefts, mark, unit = curve.legend_places()
    end = curve.x() + lefts[-1] + mark + MARK_GAP + metrics.horizontalAdvance("surprisal")
    ends = [button.geometry() for button in panel._ends]
    said = panel.summary.geometry()
    text = panel.summary.shown()
    assert text in {
        f"step {steps} of {steps}",
        f"{steps} / {steps}",
        f"{steps}/{steps}",
    } and panel.summary.toolTip().startswith("step")
    assert end + 4 <= said.right() - metrics.horizontalAdvance(text)
    assert said.right() < ends[0].left() and ends[0].right() < ends[1].left() <= panel.width() - 24
    for place in (said, *ends):
        assert place.bottom() <= curve.y() + curve.plot_rect().top() + 1
    assert unit.y() > curve.plot_rect().bottom()
    assert lefts[0] >= 0
    first = run.state().path[1]
    taken = {node.token_id for node in run.nodes.values()}
    run.branch(first, next(token for token in random_ids(60) if token not in taken), GREEDY)
    bench.step()
    qtbot.waitUntil(lambda: drawn(panel, 2) and panel.summary.y() > curve.geometry().bottom())
    assert curve.legend_places()[2].y() < curve.plot_rect().top()


def stepped(panel: TimelinePanel, rows: int) -> bool:
    laid = panel.curve.height() == panel.curve.maximumHeight() and seen_rows(panel) >= rows
    return laid and panel.settled and panel.table.model().rowCount() == rows


def drawn(panel: TimelinePanel, branches: int) -> bool:
    return panel.tree.lanes == branches and panel.settled


class LayoutRequests(QObject):
    """How often a widget is asked to lay itself out anew."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() is QEvent.Type.LayoutRequest
        return super().eventFilter(watched, event)
