"""Text at twice its size in a small window: panels take turns where they have no room, words and steps are whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.commands import CommandRegistry
from app.frame.toolbar import LEAST_WORDS, RunBar, cost_parts
from app.main import Application
from app.panels.attention import AttentionPanel
from app.panels.sampling import SamplingPanel
from app.panels.timeline import TimelinePanel
from app.theme import Theme
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


def test_the_toolbar_says_as_much_of_the_run_as_has_room_and_always_its_context(
    live: Application, qtbot: QtBot
) -> None:
    """At 200 % in a window of 1000 px nothing of it stood in 133 px that the context takes and a fraction."""
    bar = live.window.run_bar
    readout = bar.readout
    bar.model.set_parts("SmolLM2-135M-Instruct", "float32 · cpu")
    for width, height, scale in ((1000, 700, 2.0), (1000, 700, 1.75), (1000, 700, 1.5), (1400, 900, 2.0)):
        show(live, qtbot, width, height, scale)
        for room in (bar.width(), *range(bar.width() - 9, bar.width())):  # each px of the name's
            bar.resize(room, bar.height())
            bar._fit()
            qtbot.wait(5)
            said = "".join(text for text, _ in readout.shown())
            assert re.search(r"\d+ / [\d,]+$", said), (width, scale, room)
            longer = readout._forms[: readout._forms.index(readout.shown())]
            assert all(readout._width(form) > readout.width() for form in longer)
        words = readout.toolTip()
        assert all(word in words for word in ("PREFILL", "DECODE", "context"))


@pytest.mark.parametrize("scale", [1.7, 1.8, 1.9, 2.0])
def test_room_for_the_context_is_kept_before_there_is_a_run(qtbot: QtBot, scale: float) -> None:
    """The model's name had it in a window that opened in large text, and gave none back for a short run; then it was a
    fraction of a px short."""
    bar = RunBar(Theme("dark", scale), CommandRegistry())
    qtbot.addWidget(bar)
    bar.model.set_parts("SmolLM2-135M-Instruct-of-a-long-name", "float32 · cpu")
    bar.resize(1000, 68)
    bar._fit()
    bar.show()
    qtbot.waitExposed(bar)
    assert bar.readout._forms == ((),) and bar.model._room
    holder = bar.readout.parentWidget()
    assert holder is not None
    frame = bar.width() - holder.width()  # of the style in force; the window's own has none
    assert bar.readout.width() + frame >= bar.readout.least_width()


def test_each_shorter_form_of_the_readout_leaves_out_the_prefill_then_decode_never_the_context(
    live: Application,
) -> None:
    assert live.ctx is not None
    forms = [cost_parts(live.ctx.session, short=short) for short in range(LEAST_WORDS + 1)]
    readout = live.window.run_bar.readout
    widths = [readout._width(form) for form in forms]
    assert widths == sorted(widths, reverse=True)
    run = live.ctx.session.run
    assert run is not None
    for short, form in enumerate(forms):
        said = "".join(text for text, _ in form)
        assert said.endswith(f"{run.length:,} / {run.n_ctx:,}")
        assert ("PREFILL" in said) == (short < 3) and ("DECODE" in said) == (short < 5)


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
