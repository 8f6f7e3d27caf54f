"""The timeline while what it draws is still being computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pytestqt.qtbot import QtBot

from app.panels.curves import curves
from app.panels.timeline import TimelinePanel
from app.session import Topic
from app.theme import Theme
from tests.app.model_bench import ModelBench
from tests.model.tiny import made, random_ids


def test_a_curve_without_values_says_that_they_are_on_their_way(qtbot: QtBot, tmp_path: Path) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), made())
    panel = TimelinePanel(bench.ctx)
    qtbot.addWidget(panel)
    panel.resize(300, 400)
    panel.show()
    qtbot.waitExposed(panel)
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
