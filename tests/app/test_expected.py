"""What the model expected at a token: all ten candidates are reached in a low panel, and its options stay in sight."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.frame.docks import PanelScroll
from app.panels.expected import ROW
from app.panels.prompt import PromptPanel
from app.theme import Theme
from model.protocol.run_requests import ExpectedReply
from model.protocol.values import Candidate
from tests.app.model_bench import ModelBench, docked
from tests.model.tiny import made, random_ids

TOP = tuple(
    Candidate(id=n, piece=f"·candidate{n}", rank=n, logit=9.0 - n, p_raw=0.2 / (n + 1), p=0.2 / (n + 1))
    for n in range(10)
)


def place(widget: QWidget, within: QWidget) -> QRect:
    return QRect(widget.mapTo(within, QPoint(0, 0)), widget.size())


@pytest.mark.parametrize("size", [(285, 242), (257, 268)], ids=["1400 × 900", "1000 × 700"])
def test_all_candidates_are_reached_and_the_options_stay_in_sight(
    qtbot: QtBot, tmp_path: Path, size: tuple[int, int]
) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), made())
    run = bench.run(random_ids(12))
    panel = docked(qtbot, bench, PromptPanel, size)
    qtbot.waitUntil(lambda: not bench.engine.waiting)
    panel.expected.show_reply(run.id, ExpectedReply(position=6, token=TOP[7], top=TOP, entropy=3.0))
    options, scroll = panel.special, panel.expected.scrolled
    dock = bench.kept[-1]
    assert isinstance(dock, PanelScroll)
    view = dock.viewport()
    qtbot.waitUntil(lambda: scroll.isVisible() and view.rect().contains(place(options, view)))
    assert view.rect().contains(place(panel.expected, view))
    bar, bars = scroll.verticalScrollBar(), panel.expected.bars
    assert scroll.viewport().height() in {3 * ROW, 4 * ROW}  # whole rows, that they may be read
    assert bars.height() == 5 * ROW > scroll.viewport().height() >= ROW and bar.isVisible()
    bar.setValue(bar.maximum())
    seen = scroll.viewport().rect()
    assert seen.contains(QRect(0, place(bars, scroll.viewport()).bottom() - ROW + 1, 1, ROW))
    assert panel.expected.sentence.shown() == "·candidate7 (6): rank 8, log p -3.69"
    assert "p 0.025" in panel.expected.sentence.toolTip()
    dock.resize(size[0], 500)
    qtbot.waitUntil(lambda: not bar.isVisible() and scroll.height() == 5 * ROW)
    panel.expected.show_first(run.id)
    assert not scroll.isVisible()


def test_rows_of_tokens_give_way_to_it_and_the_clicked_token_stays_in_sight(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ModelBench(tmp_path, Theme("dark"), made())
    bench.run(random_ids(40))
    monkeypatch.setattr("app.panels.prompt.follows_run", lambda _session: True)
    panel = docked(qtbot, bench, PromptPanel, (285, 242))
    qtbot.waitUntil(lambda: not bench.engine.waiting and len(panel.strip.rows_shown()) > 1)
    before, last = panel.split.height(), panel.strip.rows_shown().stop - 1
    strip, clicked = panel.strip, int(panel.strip._layout().starts[last])
    QTest.mouseClick(strip.viewport(), Qt.MouseButton.LeftButton, pos=strip.chip_rect(clicked).center().toPoint())
    qtbot.waitUntil(lambda: panel.expected.scrolled.isVisible() and panel.split.height() < before)
    assert len(strip.rows_shown()) == 1 and strip._layout().row_of(clicked) in strip.rows_shown()
    panel.expected._close()
    qtbot.waitUntil(lambda: panel.split.height() == before)
    assert strip._layout().row_of(clicked) in strip.rows_shown() and len(strip.rows_shown()) > 1
