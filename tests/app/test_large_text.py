"""Text at twice its size in a small window: panels take turns where they have no room, words and steps are whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.main import Application
from app.panels.attention import AttentionPanel
from app.panels.sampling import SamplingPanel
from app.panels.timeline import TimelinePanel
from app.widgets.wrap_row import SPACING
from tests.app.shell import close_window, window_with
from tests.model.checkpoint import files


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(files.folder(tmp_path / "tiny")))
    assert made.ctx is not None
    session = made.ctx.session
    qtbot.waitUntil(lambda: session.run is not None and not session.busy and len(session.path_nodes()) == 7)
    yield made
    close_window(made)


def show(application: Application, qtbot: QtBot, width: int, height: int, scale: float) -> None:
    application.settings.update(text_scale=scale)
    application.window.resize(width, height)
    qtbot.wait(900)


def test_prompt_and_timeline_take_turns_where_neither_would_show_much(live: Application, qtbot: QtBot) -> None:
    window = live.window
    prompt, timeline = window.docks["prompt"], window.docks["timeline"]
    panel = timeline.panel
    assert isinstance(panel, TimelinePanel)
    for width, height, scale in ((1400, 900, 2.0), (1000, 700, 1.5)):
        show(live, qtbot, width, height, scale)
        assert window.area.tabifiedDockWidgets(prompt) == [timeline]
        timeline.raise_()
        qtbot.waitUntil(panel.seen)
        qtbot.wait(300)
        table = panel.table
        whole = [
            row for row in range(table.model().rowCount())
            if table.rowViewportPosition(row) >= 0
            and table.rowViewportPosition(row) + table.rowHeight(row) <= table.viewport().height()
        ]  # fmt: skip
        assert len(whole) >= 4, (width, height, scale)
        assert timeline.scroller.verticalScrollBar().maximum() == 0
    show(live, qtbot, 1400, 900, 1.0)
    assert window.area.tabifiedDockWidgets(prompt) == []
    assert prompt.geometry().bottom() < timeline.geometry().top()
    assert window.standard.in_force


@pytest.mark.parametrize("how", ["text", "window"])
def test_a_tab_that_was_chosen_stays_in_front(live: Application, qtbot: QtBot, how: str) -> None:
    """Larger text with the lens in front brought the attention there; it leads only where no tab was chosen."""
    docks = live.window.docks
    short = (1400, 900, 1.25) if how == "text" else (1000, 700, 1.0)

    def in_front(*size: float) -> list[str]:
        show(live, qtbot, int(size[0]), int(size[1]), size[2])
        return [name for name, dock in docks.items() if dock.panel.seen() and dock.panel.area in {"bottom", "center"}]

    assert in_front(1400, 900, 1.0) == ["attention", "kv"]
    assert in_front(*short) == ["attention"]
    assert in_front(1400, 900, 1.0) == ["attention", "kv"]
    docks["lens"].raise_()
    assert in_front(*short) == ["lens"]
    assert in_front(1400, 900, 1.0) == ["attention", "lens"]


def test_the_stage_is_a_whole_word_however_narrow_it_is(live: Application, qtbot: QtBot) -> None:
    panel = live.window.docks["attention"].panel
    assert isinstance(panel, AttentionPanel)
    assert live.ctx is not None
    controls, selection = panel.controls, live.ctx.selection
    for width, height, scale in ((1000, 700, 2.0), (1000, 700, 1.5), (1400, 900, 2.0), (1400, 900, 1.0)):
        show(live, qtbot, width, height, scale)
        boxes = [box for box in (controls.stage, controls.stage_list, controls.stage_below) if box.isVisible()]
        assert len(boxes) == 1, (width, height, scale)
        for box in (controls.layer, controls.head, controls.more, *boxes):
            line = box.parentWidget()
            assert line is not None and line.rect().contains(box.geometry()), (width, scale)
        if boxes[0] is controls.stage_below:
            assert not panel.pages.geometry().intersects(controls.stage_below.geometry())
        for stage in ("weights", "scores"):
            selection.set_stage(stage)
            for box in (controls.stage_list, controls.stage_below):
                qtbot.waitUntil(lambda box=box, stage=stage: box.key() == stage)  # type: ignore[misc]
                if box in boxes:
                    assert box.width() >= box.sizeHint().width()
    show(live, qtbot, 1000, 700, 2.0)
    assert controls.stage_below.isVisible()
    controls.stage_below.keyChosen.emit("masked")
    assert selection.stage == "masked"


def test_sampling_is_not_scrolled_sideways(live: Application, qtbot: QtBot) -> None:
    dock = live.window.docks["sampling"]
    panel = dock.panel
    assert isinstance(panel, SamplingPanel)
    show(live, qtbot, 1000, 700, 2.0)
    assert dock.scroller.squeezed and panel.width() < panel.minimumSizeHint().width()
    assert dock.scroller.horizontalScrollBar().maximum() == 0
    for row in panel.rows.values():
        parts = (row._label, row._box, row._slider)
        assert all(row.rect().contains(part.geometry()) for part in parts)
        assert row._label.width() >= row._label.fontMetrics().horizontalAdvance(row._label.text())


def test_no_page_of_attention_is_scrolled_sideways(live: Application, qtbot: QtBot) -> None:
    dock = live.window.docks["attention"]
    panel = dock.panel
    assert isinstance(panel, AttentionPanel)
    controls, side = panel.controls, panel.side
    for width, height, scale in ((1000, 700, 2.0), (1000, 700, 1.75), (1400, 900, 2.0)):
        show(live, qtbot, width, height, scale)
        for page in ("matrix", "heads", "row", "column", "entropy"):
            panel._choose_page(page)
            qtbot.wait(150)
            assert dock.scroller.horizontalScrollBar().maximum() == 0, (width, scale, page)
            assert panel.width() == dock.scroller.viewport().width()
            boxes = [controls.layer, controls.head, controls.more, panel.pages, controls.stage_below,
                     side.metric_box, side.sort]  # fmt: skip
            for box in boxes:
                if box.isVisible():
                    left = box.mapTo(panel, box.rect().topLeft()).x()
                    assert left >= 0 and left + box.width() <= panel.width(), (width, scale, page)
                    assert box.width() >= min(box.minimumSizeHint().width(), box.maximumWidth())
    show(live, qtbot, 1000, 700, 2.0)
    panel.resize(panel.width() + 40, panel.height())
    qtbot.wait(100)
    assert panel.pages.folded
    assert controls.stage_below.x() == panel.pages.list.geometry().right() + 1 + SPACING
