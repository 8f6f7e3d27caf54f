"""What takes over half a second is told, how far it is too, can be stopped, and says so with a way to go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.panels.kv import KvPanel
from app.panels.prompt import PromptPanel
from app.panels.prompt_words import STATS, notices
from app.state.aside import TOLD_AFTER_MS
from app.state.on_screen import bring_back
from app.theme import Theme
from model.protocol.kv_requests import GetKv
from model.protocol.lens_requests import GetLens, LensPart
from model.protocol.run_requests import GetPromptStats
from model.protocol.wire import ErrorInfo
from tests.app.model_bench import ModelBench
from tests.app.test_lens_panel import settled, shown
from tests.model.tiny import made, random_ids

LEFT = Qt.MouseButton.LeftButton


def titles(bench: ModelBench) -> list[str]:
    return [task.title for task in bench.session.aside.tasks]


def test_the_reading_of_the_lens_tells_how_far_it_is_stops_and_goes_on(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    bench.engine.held = True
    bench.run(random_ids(14), 2)
    qtbot.waitUntil(lambda: "Reading the lens" in titles(bench))
    task = next(task for task in bench.session.aside.tasks if task.title == "Reading the lens")
    message, options = next(entry for entry in bench.engine._queue if isinstance(entry[0], GetLens))
    assert isinstance(message, GetLens) and len(message.depths) > 1
    first, last = message.positions
    for _ in range(2):  # one that made way begins again: told once
        part = LensPart(depth=message.depths[0], pieces=("a",) * (last - first))
        options["on_part"](part, {name: [0] * (last - first) for name in ("ids", "p", "entropy")})
    progress = task.progress
    assert progress is not None
    assert (progress.done, progress.total, progress.unit) == (1, len(message.depths), "layers")
    asked = len(bench.engine.asked_of(GetLens))
    task.cancel()
    assert "Reading the lens" not in titles(bench)
    assert panel.stopped.isVisible()
    assert panel.stopped.text() == f"Stopped: 1 of {len(message.depths)} layers in sight are read."
    panel.mark("view")
    bench.selection.set_key(1)
    qtbot.wait(80)
    assert len(bench.engine.asked_of(GetLens)) == asked, "nothing asks again by itself"
    bench.engine.held = False
    QTest.mouseClick(panel.stopped.action, LEFT)
    settled(qtbot, panel, bench)
    assert not panel.stopped.isVisible()
    assert titles(bench) == []


def test_a_lens_that_was_stopped_stays_so_through_a_change_of_size(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    whole = panel.size()
    panel.resize(whole.width() // 2, whole.height())
    bench.engine.held = True
    bench.run(random_ids(14), 2)
    qtbot.waitUntil(lambda: "Reading the lens" in titles(bench))
    next(task for task in bench.session.aside.tasks if task.title == "Reading the lens").cancel()
    asked, before = len(bench.engine.asked_of(GetLens)), panel._in_sight()
    panel.resize(whole)
    qtbot.waitUntil(lambda: panel._in_sight() != before)
    qtbot.wait(150)
    assert len(bench.engine.asked_of(GetLens)) == asked
    assert panel.stopped.isVisible()
    bench.engine.held = False
    QTest.mouseClick(panel.stopped.action, LEFT)
    settled(qtbot, panel, bench)


def test_another_text_is_read_though_one_was_stopped(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    bench.engine.held = True
    bench.run(random_ids(14), 2)
    qtbot.waitUntil(lambda: "Reading the lens" in titles(bench))
    next(task for task in bench.session.aside.tasks if task.title == "Reading the lens").cancel()
    assert panel.stopped.isVisible()
    bench.engine.held = False
    bench.engine.release()
    bench.run(random_ids(11), 2)
    settled(qtbot, panel, bench)
    assert not panel.stopped.isVisible()


def test_a_view_that_was_stopped_says_so_and_is_asked_for_again_on_request(qtbot: QtBot, tmp_path: Path) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), made())
    panel = KvPanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(1200, 300)
    panel.show()
    bench.engine.held = True
    bench.run(random_ids(12), 3)
    qtbot.waitUntil(lambda: "Computing: KV cache" in titles(bench))
    asked = len(bench.engine.asked_of(GetKv))
    for task in tuple(bench.session.aside.tasks):
        task.cancel()
    assert panel._empty is not None and panel._empty.isVisible()
    assert panel._empty.sentence.text() == "Stopped: Computing: KV cache"
    assert panel._empty._icon == "info", "no warning: a person did that"
    qtbot.wait(60)
    assert len(bench.engine.asked_of(GetKv)) == asked
    bench.engine.held = False
    assert panel._empty.action.text() == "Try again"
    QTest.mouseClick(panel._empty.action, LEFT)
    qtbot.waitUntil(lambda: panel._empty is None and panel.settled and panel.plot.growth is not None)


@pytest.mark.parametrize("goes_wrong", [False, True])
def test_what_the_prompt_asks_for_and_does_not_get_leaves_it_to_type_into(
    qtbot: QtBot, tmp_path: Path, goes_wrong: bool
) -> None:
    """Its text was covered until Try again."""
    bench = ModelBench(tmp_path, Theme("dark"), made())
    panel, said, warned = PromptPanel(bench.ctx), list[str](), list[str]()
    bench.ctx.notify.message.connect(said.append)
    bench.ctx.notify.alarm.connect(warned.append)
    qtbot.addWidget(panel)
    panel.resize(300, 500)
    panel.show()
    bench.run(random_ids(12), 3)
    bring_back(bench.session)
    qtbot.waitUntil(lambda: panel.settled and len(panel.strip._pieces) == 15)
    bench.engine.held = True
    bench.selection.set_tint("attention")
    panel._on_click(4)
    wanted = ["Computing what the query reads", "Computing what was expected"]
    qtbot.waitUntil(lambda: set(wanted) <= set(titles(bench)))
    if goes_wrong:
        for _, options in bench.engine._queue:
            options["on_error"](ErrorInfo(code="numbers", message="It cannot be computed."))
        qtbot.waitUntil(lambda: warned == ["It cannot be computed."] * 2)
    else:
        for task in tuple(bench.session.aside.tasks):
            task.cancel()
        qtbot.waitUntil(lambda: sorted(filter(None, said)) == sorted(f"Stopped: {title}" for title in wanted))
    assert panel._empty is None or not panel._empty.isVisible()
    panel.edit.setFocus()
    before = panel.edit.text()
    QTest.keyClick(panel.edit, Qt.Key.Key_X)
    assert len(panel.edit.text()) == len(before) + 1
    assert bench.session.prompt_text == panel.edit.text()


def test_what_is_soon_there_is_told_nobody(qtbot: QtBot, tmp_path: Path) -> None:
    panel, bench = shown(qtbot, tmp_path)
    told: list[list[str]] = []
    bench.session.aside.changed.connect(lambda: told.append(titles(bench)))
    bench.selection.set_cell(4, 1)
    settled(qtbot, panel, bench)
    qtbot.wait(2 * TOLD_AFTER_MS)
    assert told == []


@pytest.mark.parametrize("again", [False, True])
def test_the_measuring_of_the_prompt_can_be_stopped_and_gone_on_with(qtbot: QtBot, tmp_path: Path, again: bool) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), made())
    facts = bench.session.facts
    bench.run(random_ids(12))
    bench.engine.held = True
    facts.new_run(bench.session.run_id or 0)
    qtbot.waitUntil(lambda: {"Measuring the prompt", "Self-check"} == set(titles(bench)))
    for task in tuple(bench.session.aside.tasks):
        task.cancel()
    assert titles(bench) == []
    assert facts.stats_stopped and facts.stats_failed and facts.check_failed
    keys = [notice.key for notice in notices(bench.session, follows=True, shows_all=True)]
    assert STATS in keys
    if again:
        bench.engine.held = False
        facts.measure_prompt()
        assert len(bench.engine.asked_of(GetPromptStats)) == 2
        qtbot.waitUntil(lambda: facts.prompt_stats is not None)
        assert not facts.stats_stopped
        assert STATS not in [notice.key for notice in notices(bench.session, follows=True, shows_all=True)]
