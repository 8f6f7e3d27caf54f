"""The sampler's panel with the engine's own numbers, driven by the mouse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panels.sampling import SamplingPanel
from app.session import Session
from app.state.example import show_example
from app.theme import Theme
from app.widgets.candidate_table import BAR, TOKEN
from app.widgets.slider_row import TravelSlider
from tests.app.model_bench import ModelBench
from tests.model.tiny import made, random_ids


def shown(qtbot: QtBot, folder: Path) -> tuple[SamplingPanel, ModelBench]:
    bench = ModelBench(folder, Theme("dark"), made())
    panel = SamplingPanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(326, 530)
    panel.show()
    qtbot.waitExposed(panel)
    look_at_the_end(bench, bench.run(random_ids(12), 3).id)
    qtbot.waitUntil(lambda: panel.table.model().rowCount() > 1 and panel.settled)
    return panel, bench


def look_at_the_end(bench: ModelBench, run_id: int) -> None:
    bench.session.sampling.look_at(run_id, bench.session.current_node)


def click(panel: SamplingPanel, row: int) -> int:
    """Clicks a row; the token that is in it."""
    table = panel.table
    at = table.visualRect(table.model().index(row, TOKEN)).center()
    QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=at)
    return table.candidate(row).id


@pytest.fixture
def branches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Node and token of every branch that is asked for."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(Session, "branch", lambda _self, node, token: found.append((node, token)))
    return found


def test_a_click_branches_after_the_node_whose_candidates_are_shown(
    qtbot: QtBot, tmp_path: Path, branches: list[tuple[int, int]]
) -> None:
    """A step is there before its distribution: what is seen and clicked meanwhile are candidates of the step before."""
    panel, bench = shown(qtbot, tmp_path)
    node = bench.session.current_node
    bench.engine.held = True
    bench.step()
    look_at_the_end(bench, bench.session.run_id or 0)
    assert bench.session.current_node != node
    token = click(panel, 2)
    assert branches == [(node, token)]


def test_a_candidate_of_the_run_before_is_not_appended_to_the_new_one(
    qtbot: QtBot, tmp_path: Path, branches: list[tuple[int, int]]
) -> None:
    panel, bench = shown(qtbot, tmp_path)
    bench.engine.held = True
    run = bench.run(random_ids(12, seed=1), 3)
    look_at_the_end(bench, run.id)
    qtbot.waitUntil(lambda: not panel._pending)
    click(panel, 2)
    assert not branches
    bench.engine.held = False
    bench.engine.release()
    qtbot.waitUntil(lambda: panel.settled and not bench.engine.waiting)
    qtbot.wait(30)
    token = click(panel, 2)
    assert branches == [(bench.session.current_node, token)]


def test_what_is_found_has_bars_as_long_as_among_all(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    reply = bench.session.distribution
    assert reply is not None
    last = reply.candidates[-1]
    panel.search.setText(str(last.id))
    qtbot.waitUntil(lambda: panel.table.model().rowCount() == 1 and panel.table.candidate(0).id == last.id)
    best = max(max(row.p_raw, row.p) for row in reply.candidates)
    assert last.p_raw < best / 2
    bars = panel.table._model.look(0, BAR).bars
    assert bars is not None and bars[0][0] == pytest.approx(last.p_raw / best)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_step_that_took_another_token_than_these_settings_pick_says_which(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    panel, bench = shown(qtbot, tmp_path)
    panel.resize(700, 530)
    reply, session = bench.session.distribution, bench.session
    assert reply is not None
    [*_, node] = session.path_nodes()
    how = replace(node.settings, temperature=temperature)
    other = next(row.id for row in reply.candidates if row.id != reply.would_pick.id)
    for taken, told in ((reply.would_pick.id, False), (other, True)):
        ahead = (replace(node, token_id=taken, piece="·taken", settings=how),)
        monkeypatch.setattr(session, "nodes_ahead", lambda ahead=ahead: ahead)
        panel._show(reply)
        text = panel.draw.text()
        assert ("the run took ·taken" in text) == told
        assert not told or ("(greedy)" if temperature == 0 else "(T 0.7)") in text


def test_sliders_mark_what_the_last_token_was_made_with(qtbot: QtBot, tmp_path: Path) -> None:
    """The steps of the bench are greedy, as those that a first start begins with; the sliders stand at 0.80."""
    panel, bench = shown(qtbot, tmp_path)
    row = panel.rows["temperature"]
    slider = row.findChild(TravelSlider)
    assert slider is not None and (bench.session.sampler.temperature, slider.mark) == (0.8, 0.0)
    assert "the last token was made with 0.00" in row.toolTip()
    assert "the last token was made with 0.00" in slider.accessibleDescription()
    others = [other.findChild(TravelSlider) for name, other in panel.rows.items() if name != "temperature"]
    assert all(other is not None and other.mark is None for other in others)
    place, amber = slider.mark_rect().center().toPoint(), panel.ctx.theme.palette.amber
    marked = slider.grab().toImage().pixelColor(place.x(), round(slider.mark_rect().top()) + 1)
    assert abs(marked.red() - amber.red()) + abs(marked.blue() - amber.blue()) < 120
    bench.session.set_sampler(temperature=0.0)
    qtbot.waitUntil(lambda: slider.mark is None)  # the slider itself stands there
    assert "made with" not in row.toolTip() + slider.accessibleDescription()
    bench.session.set_sampler(temperature=1.5, top_k=3)
    qtbot.waitUntil(lambda: slider.mark == 0.0)
    top_k = panel.rows["top_k"].findChild(TravelSlider)
    assert top_k is not None and top_k.mark is not None
    bench.run(random_ids(12, seed=2), 0)
    qtbot.waitUntil(lambda: slider.mark is None)  # nothing of this run was made yet


def test_the_example_s_greedy_steps_are_told(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, bench = shown(qtbot, tmp_path)
    monkeypatch.setattr(Session, "can_run", property(lambda _self: True))
    bench.engine.held = True
    bench.session.set_prompt("1 2 3")
    show_example(bench.session)
    assert "temperature 0" in bench.notify.last


def test_a_wide_panel_has_its_sliders_in_two_columns_and_becomes_narrow_again(qtbot: QtBot, tmp_path: Path) -> None:
    panel, _bench = shown(qtbot, tmp_path)
    panel.resize(326, 700)
    rows = list(panel.rows.values())
    qtbot.waitUntil(panel.note.isVisible)
    narrow = panel.minimumSizeHint().width()
    assert len({row.x() for row in rows}) == 1
    panel.resize(1300, 700)
    qtbot.waitUntil(lambda: len({row.x() for row in rows}) == 2)
    assert rows[0].y() == rows[3].y() and rows[0].width() == rows[3].width()
    assert panel.minimumSizeHint().width() <= narrow
    panel.resize(326, 530)
    qtbot.waitUntil(lambda: len({row.x() for row in rows}) == 1 and rows[5].y() > rows[4].y())
