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
