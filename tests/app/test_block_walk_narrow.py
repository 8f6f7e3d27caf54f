"""The block walk where a column of it is all there is room for: scrolled down, never sideways, and nothing cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.frame.docks import PanelScroll
from app.panels.block_walk import BlockWalkPanel
from app.widgets.readout import Readout, parts_width
from tests.app.model_bench import ModelBench, bench_with
from tests.app.walk_bench import ids, settled
from tests.model.tiny import made

SIZES = [(306, 471, 2.0), (320, 420, 2.0), (330, 420, 1.5), (306, 471, 1.0)]
"""What the panel has in a window of 1000 × 700, in text of 200, 150 and 100 %."""


@pytest.fixture(params=SIZES, ids=str)
def narrow(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[BlockWalkPanel, ModelBench, PanelScroll]]:
    width, height, scale = request.param
    bench, panel = bench_with(qtbot, tmp_path, made(), BlockWalkPanel, (width, height), 14)
    dock = bench.kept[0]
    assert isinstance(dock, PanelScroll)
    panel.ctx.theme.set_text_scale(scale)
    settled(qtbot, panel, bench)
    yield panel, bench, dock
    panel.ctx.theme.set_text_scale(1.0)
    qapp.setStyleSheet("")


def test_all_of_it_is_reached_downwards(qtbot: QtBot, narrow: tuple[BlockWalkPanel, ModelBench, PanelScroll]) -> None:
    panel, bench, dock = narrow
    for place in (0, 2, panel.ctx.selection.n_layers + 1):
        panel.bar.placeChosen.emit(place)
        settled(qtbot, panel, bench)
        _laid_out()
        _check(panel, dock)
        for index in range(len(ids(panel))):
            panel.open_card(index)
            settled(qtbot, panel, bench)
            _laid_out()
            _check(panel, dock)
        panel.out()


def test_statistics_that_were_broken_into_lines_are_on_one_again_where_there_is_room(
    qtbot: QtBot, narrow: tuple[BlockWalkPanel, ModelBench, PanelScroll]
) -> None:
    panel, bench, dock = narrow
    head, theme = panel.detail.head, bench.ctx.theme
    panel.open_card(ids(panel).index("attn.proj"))
    settled(qtbot, panel, bench)
    _laid_out()
    assert head.more[0].isVisible()
    dock.resize(1380, 760)
    qtbot.waitUntil(lambda: panel.width() > 1300 and not any(line.isVisible() for line in head.more))
    names = [text.strip() for text, voice in head.stats.shown() if voice == "secondary"]
    assert names == ["min", "max", "mean", "σ", "‖x‖"]
    assert parts_width(theme, head.stats.shown()) <= head.stats.width()
    panel.detail.what.set_key("parts")
    panel.detail._on_what()
    settled(qtbot, panel, bench)
    said = head.stats.text()
    assert said.startswith("what each head writes")
    dock.resize(1340, 720)
    _laid_out()
    assert head.stats.text() == said


def _laid_out() -> None:
    """Rows that wrap ask for another height, which moves what is under them: some turns of the event loop."""
    for _ in range(8):
        QApplication.processEvents()


def _outside(panel: BlockWalkPanel, dock: PanelScroll) -> list[QWidget]:
    """What lies beyond the edges of what can be seen of the panel without scrolling sideways."""
    room = QRect(0, 0, dock.viewport().width(), panel.height())
    return [
        part for part in panel.findChildren(QWidget)
        if part.isVisible() and part.parentWidget() in (panel, panel.detail, panel.detail.head, panel.detail.side)
        and not room.contains(QRect(part.mapTo(panel, part.rect().topLeft()), part.size()))
    ]  # fmt: skip


def _check(panel: BlockWalkPanel, dock: PanelScroll) -> None:
    head, theme = panel.detail.head, panel.ctx.theme
    assert dock.horizontalScrollBar().maximum() == 0 and panel.width() <= dock.viewport().width()
    assert not _outside(panel, dock)
    if head.isVisible():
        for label in (head.title, head.shape):
            needed = max(map(QFontMetricsF(label.font()).horizontalAdvance, label.text().split("\n")))
            assert not label.isVisible() or label.width() >= needed - 0.5, label.text()
        if head.formula.isVisible():
            assert head.formula.height() >= head.formula.heightForWidth(head.formula.width())
            needed = max(map(QFontMetricsF(head.formula.font()).horizontalAdvance, head.formula.text().split("\n")))
            assert needed <= head.formula.width() + 0.5 or head.formula.wordWrap()
        if head._level > 0:
            said = [readout for readout in (head.stats, *head.more) if readout.isVisible()]
            assert all(parts_width(theme, readout.shown()) <= readout.width() + 0.5 for readout in said)
            words = " ".join(readout.text() for readout in said)
            assert all(name in words for name in ("min", "max", "mean", "σ", "‖x‖"))
        for first, second in zip((head.stats, *head.more), head.more, strict=False):
            assert not second.isVisible() or second.geometry().top() >= first.geometry().bottom()
        if panel.large:
            assert panel.detail.picture.height() >= theme.px(100)
    hints = QFontMetricsF(theme.font("hint"))
    for index, card in enumerate(panel.cards._cards):
        foot = panel.cards.foot_line(index)
        assert hints.horizontalAdvance(foot) <= panel.cards.card_rect(index).width()
        assert not foot or card.foot.startswith(foot.split("   ")[0][:4]), "no figure is cut"
    assert isinstance(panel.about, Readout) and parts_width(theme, panel.about.shown()) <= panel.about.width()
