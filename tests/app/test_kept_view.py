"""Another language in the middle of work: pages, zoom, sizes, scrolling and what is chosen are found again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QSplitter
from pytestqt.qtbot import QtBot

from app.frame.kept_view import KeptView
from app.main import Application
from app.panels import PANELS
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_view import View
from tests.app.shell import close_window, window_with, with_example
from tests.app.test_other_language import choose, panel
from tests.model.checkpoint import files

ZOOMED = View(row=3.0, col=1.0, rows=5.0, cols=4.0)
ORDER = [kind.panel_id for kind in PANELS]


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot) -> Iterator[Application]:
    made = window_with(tmp_path / "config", monkeypatch, qtbot, None, str(files.folder(tmp_path / "tiny")))
    made.window.resize(1400, 900)
    yield with_example(made, qtbot)
    close_window(made)


def bring(live: Application, qtbot: QtBot, name: str) -> Any:
    """The panel, in sight and drawn."""
    live.window.docks[name].raise_()
    qtbot.waitUntil(lambda: panel(live, name).seen())
    qtbot.waitUntil(lambda: panel(live, name).settled and panel(live, name).findChild(KeptView) is None)
    qtbot.wait(60)
    return panel(live, name)


def drag(splitter: QSplitter, by: int) -> None:
    """Moves the handle, as a person does."""
    handle = splitter.handle(1)
    across = splitter.orientation() == Qt.Orientation.Horizontal
    start = handle.rect().center()
    end = start + (QPoint(by, 0) if across else QPoint(0, by))
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(handle, end)
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=end)


def zoom(heat: HeatMap) -> None:
    assert min(heat.shape) > 4, heat.shape
    heat.set_view(ZOOMED)
    assert not heat.view.is_whole(heat.shape)


def scrolled(area: QAbstractScrollArea) -> tuple[int, int]:
    return area.horizontalScrollBar().value(), area.verticalScrollBar().value()


def scroll(area: QAbstractScrollArea, *, across: bool = False) -> None:
    """To the end."""
    bar = area.horizontalScrollBar() if across else area.verticalScrollBar()
    bar.setValue(bar.maximum())
    assert bar.value() > 0, area


def arrange_attention(at: Any) -> Callable[[Any], object]:
    zoom(at.main.heat)
    at.side.show_page("entropy")
    at.side.metric_box.set_key("entropy")
    at.side._on_metric_chosen()
    at.side.sort.setChecked(True)
    drag(at._split, -40)
    return lambda now: (
        now.main.heat.view, now.main.heat.bar.values, now.side.page, now.side.tabs.key(), now.side.metric_box.key(),
        now.side.sort.isChecked(), now.side.sort.isEnabled(), now._split.sizes(), now._own_sizes, now.side.isVisible(),
    )  # fmt: skip


def arrange_attention_as_table(at: Any) -> Callable[[Any], object]:
    at.toggle_heads_table()
    at.toggle_table()
    return lambda now: (now.main.as_table, now.side.heads_as_table, now.main._table.cell)


def arrange_kv(at: Any) -> Callable[[Any], object]:
    at.grid.show_card("layers")
    at.contents._choose_cell(2, 3)
    zoom(at.contents.heat)
    return lambda now: (
        now.grid.cards["layers"].isVisible(),
        now.contents.heat.selected,
        now.contents.heat.view,
        now.contents.heat.bar.values,
        now.contents.as_table,
    )


def arrange_kv_as_table(at: Any) -> Callable[[Any], object]:
    at.toggle_table()
    table = at.contents._table
    scroll(table, across=True)
    return lambda now: (now.contents.as_table, scrolled(now.contents._table))


def arrange_rope(at: Any) -> Callable[[Any], object]:
    at.toggle_table()
    at._choose_pair(1)
    at._choose_reach(128)
    return lambda now: (
        now.pages.key(), now.table.isVisible(), now.pair, now.plane.pair, now.reach, now.reach_box.key(),
        float(now.arrays["distance"][-1]),
    )  # fmt: skip


def arrange_feed_forward(at: Any) -> Callable[[Any], object]:
    at._choose(3)
    zoom(at.map.heat)
    return lambda now: (now.chosen, now.map.heat.view, now.map.heat.selected, now.map.as_table)


def arrange_feed_forward_as_table(at: Any) -> Callable[[Any], object]:
    at._show_twin("table")
    scroll(at.map.table, across=True)
    scroll(at.table)
    return lambda now: (now.twin.key(), now.map.as_table, scrolled(now.map.table), scrolled(now.table))


def arrange_block_walk(at: Any) -> Callable[[Any], object]:
    at._choose(4)
    at.detail.what.set_key("positions")
    at.detail._on_what()
    at.detail.heat.set_selected((at.detail.shown.walk.position, 5))
    drag(at._split, 60)
    scroll(at.cards)
    return lambda now: (
        now._chosen_id,
        now.cards.chosen,
        now.detail.what.key(),
        now._split.sizes(),
        scrolled(now.cards),
        now.large,
    )


def arrange_block_walk_large(at: Any) -> Callable[[Any], object]:
    at._on_place(0)
    at.open_card(0)
    at.detail.table_button.setChecked(True)
    return lambda now: (
        now.place,
        now.large,
        now.detail.picture.currentIndex(),
        now.cards.isVisible(),
        now.detail.back.isVisible(),
    )


def arrange_lens(at: Any) -> Callable[[Any], object]:
    at.grid.zoom(3.0)
    at._on_click(1, 2)
    at.grid.horizontalScrollBar().setValue(1)
    at.token.tabs.set_key("terms")
    at.token.table_button.setChecked(True)
    drag(at._split, 50)
    return lambda now: (
        now.grid.chosen, now.grid._zoom, now.grid.overview, scrolled(now.grid), now.token.tabs.key(), now._followed,
        now.token._pages.currentIndex(), now._split.sizes(), now.look.key(), now.token.token,
    )  # fmt: skip


def arrange_lens_as_table(at: Any) -> Callable[[Any], object]:
    at.table_button.setChecked(True)
    at.token.box.setText("a")
    at.token._search()
    return lambda now: (
        now._pages.currentIndex(),
        now.key.isVisible(),
        now.token.box.text(),
        now.token._named >= 0,
        now.token.token,
    )


def arrange_model(at: Any) -> Callable[[Any], object]:
    at.grid.show_card("source")
    return lambda now: [key for key, card in now.grid.cards.items() if card.isVisible()]


def arrange_sampling(at: Any) -> Callable[[Any], object]:
    at.table.select_id(at.table.candidate(6).id)
    scroll(at.table)
    return lambda now: (now.table.currentIndex().row(), scrolled(now.table))


def arrange_timeline(at: Any) -> Callable[[Any], object]:
    at.table.verticalScrollBar().setValue(1)
    assert scrolled(at.table) == (0, 1)
    return lambda now: scrolled(now.table)


def arrange_prompt(at: Any) -> Callable[[Any], object]:
    at._on_click(3)
    drag(at.split, 12)
    return lambda now: (
        now.expected.isVisible(),
        now.expected._position,
        len(now.expected.bars._rows),
        now.split.sizes(),
    )


Round = dict[str, Callable[[Any], Callable[[Any], object]]]
FIRST: Round = {
    "attention": arrange_attention, "kv": arrange_kv, "rope": arrange_rope, "feed_forward": arrange_feed_forward,
    "block_walk": arrange_block_walk, "lens": arrange_lens, "model": arrange_model, "sampling": arrange_sampling,
    "timeline": arrange_timeline, "prompt": arrange_prompt,
}  # fmt: skip
SECOND: Round = {
    "attention": arrange_attention_as_table, "kv": arrange_kv_as_table, "feed_forward": arrange_feed_forward_as_table,
    "block_walk": arrange_block_walk_large, "lens": arrange_lens_as_table,
}  # fmt: skip


@pytest.mark.parametrize("arranged", [FIRST, SECOND], ids=["maps", "tables"])
def test_what_is_arranged_is_found_again(live: Application, qtbot: QtBot, arranged: Round) -> None:
    """In the panel in front, and in those behind its tabs, that are not drawn in between two changes."""
    assert set(FIRST) == set(live.window.docks)
    old = {name: bring(live, qtbot, name) for name in arranged}
    told = {name: arrange(bring(live, qtbot, name)) for name, arrange in arranged.items()}
    wanted = {name: tell(bring(live, qtbot, name)) for name, tell in told.items()}
    bring(live, qtbot, "lens")
    for language in ("zh_CN", "en", "zh_CN"):
        choose(live, qtbot, language)
    now = {name: bring(live, qtbot, name) for name in arranged}
    assert not any(now[name] is old[name] for name in arranged)
    assert {name: tell(bring(live, qtbot, name)) for name, tell in told.items()} == wanted


def test_pinned_matrices_keep_their_part(live: Application, qtbot: QtBot) -> None:
    assert live.ctx is not None
    live.ctx.selection.toggle_pin(live.ctx.selection.view)
    at = bring(live, qtbot, "attention")
    qtbot.waitUntil(lambda: len(at.pinned) == 1 and bool(at.pinned[0].heat.tiles))
    zoom(at.pinned[0].heat)
    choose(live, qtbot, "zh_CN")
    now = bring(live, qtbot, "attention")
    assert [view.heat.view for view in now.pinned] == [ZOOMED] and now.main.heat.view.is_whole(now.main.heat.shape)


def test_what_was_measured_is_kept(live: Application, qtbot: QtBot) -> None:
    at = bring(live, qtbot, "kv")
    at.measure_or_cancel()
    qtbot.waitUntil(lambda: at._measured is not None)
    choose(live, qtbot, "zh_CN")
    now = bring(live, qtbot, "kv")
    assert now._measured == at._measured is not None
    assert [[cell.text for cell in row[1:]] for row in now.step.rows]
    assert np.isfinite(now._measured[1].ms)
