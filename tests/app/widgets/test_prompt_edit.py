"""The box a prompt is typed into shows whole lines at any size."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from pytestqt.qtbot import QtBot

from app.widgets.prompt_edit import PromptEdit

TEXT = "The animal didn't cross the street because it was too tired, and so it stayed where it was. " * 3


@pytest.mark.parametrize("height", range(40, 90, 7))
@pytest.mark.parametrize("scrolled", [0, 1, 3])
def test_no_line_is_cut_at_the_bottom(qtbot: QtBot, height: int, scrolled: int) -> None:
    edit = PromptEdit()
    qtbot.addWidget(edit)
    edit.set_text(TEXT)
    edit.resize(220, height)
    edit.show()
    qtbot.waitExposed(edit)
    edit.verticalScrollBar().setValue(scrolled)
    assert edit.verticalScrollBar().value() == scrolled
    viewport, bottom = edit.viewport(), edit.whole_bottom()
    assert 0 < bottom <= viewport.height()
    picture = viewport.grab().toImage()

    def inks(area: QRect) -> int:
        cut = picture.copy(area)
        return len({cut.pixel(x, y) for x in range(cut.width()) for y in range(cut.height())})

    assert inks(QRect(0, 0, viewport.width(), bottom)) > 1
    if bottom < viewport.height():
        assert inks(QRect(0, bottom, viewport.width(), viewport.height() - bottom)) == 1


def test_a_text_that_fits_is_painted_to_the_end(qtbot: QtBot) -> None:
    edit = PromptEdit()
    qtbot.addWidget(edit)
    edit.set_text("one line")
    edit.resize(220, 60)
    edit.show()
    qtbot.waitExposed(edit)
    assert edit.whole_bottom() == edit.viewport().height()
