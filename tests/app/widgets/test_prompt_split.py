"""The prompt's box and its tokens share the height in whole lines and rows."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.prompt_edit import PromptEdit
from app.widgets.prompt_split import PromptSplit
from app.widgets.token_strip import TokenStrip


@pytest.mark.parametrize("height", range(112, 420, 11))
def test_box_and_tokens_take_the_height(qtbot: QtBot, qapp: QApplication, height: int) -> None:
    del qapp
    edit, strip = PromptEdit(), TokenStrip(Theme("dark"), "Tokens")
    split = PromptSplit(edit, strip)
    qtbot.addWidget(split)
    strip.set_tokens([f"·token{i}" for i in range(400)])
    edit.set_text("words and words " * 200)
    split.resize(240, height)
    split.show()
    qtbot.waitExposed(split)
    line = edit.height_of(3) - edit.height_of(2)
    rows = len(strip.rows_shown())
    assert edit.height() >= edit.height_of(2)
    assert (edit.height() - edit.height_of(2)) % line == 0
    assert rows >= 2 or height < 116
    assert strip.height() - strip.height_of(rows) < line  # not room enough for one line more
    split.moveSplitter(edit.height_of(2) + 3, 1)
    split.splitterMoved.emit(edit.height_of(2) + 3, 1)
    kept = split.sizes()[0]
    split.share()
    assert split.sizes()[0] == kept  # what a person chose stays


def test_a_row_more_is_shown_where_only_the_gaps_between_rows_are_in_its_way(qtbot: QtBot, qapp: QApplication) -> None:
    del qapp
    strip = TokenStrip(Theme("dark"), "Tokens")
    qtbot.addWidget(strip)
    strip.set_tokens([f"·token{i}" for i in range(40)])
    seen = {}
    for height in (63, 64, 65, 67, 68, 70):
        strip.resize(240, height)
        strip.show()
        qtbot.waitExposed(strip)
        rows = strip.rows_shown()
        seen[height] = len(rows)
        last = max(i for i in range(40) if int(strip._layout().row[i]) == rows[-1])
        assert strip.chip_rect(last).bottom() <= strip.viewport().height() + 0.5, "and it is whole"
    assert seen == {63: 2, 64: 3, 65: 3, 67: 3, 68: 3, 70: 3}
    strip.resize(240, 65)
    strip.set_tokens(["·a"] * 3)
    assert strip._gap == 4  # where all have room, rows keep their distance
