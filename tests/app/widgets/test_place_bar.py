"""The place bar names every cell, or is a scale with numbers that stand apart."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.place_bar import APART, GAP, PlaceBar


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("width", [300, 445, 790])
@pytest.mark.parametrize("blocks", [2, 30, 96])
def test_numbers_stand_apart_and_every_cell_can_be_chosen(
    qtbot: QtBot, qapp: QApplication, blocks: int, width: int, scale: float
) -> None:
    del qapp
    theme = Theme("dark", scale)
    bar = PlaceBar(theme)
    qtbot.addWidget(bar)
    bar.set_places(blocks, blocks // 2 + 1)
    bar.resize(width, bar.sizeHint().height())
    bar.show()
    metrics = QFontMetricsF(theme.font("hint"))
    numbers = bar.numbered()
    pitch = bar.cell_rect(1).width() + GAP
    wide = metrics.horizontalAdvance(str(blocks - 1))
    if len(numbers) < blocks:
        assert numbers[0] == 1 and (numbers[1] - numbers[0]) * pitch >= wide + APART - 0.01
    else:
        assert pitch >= wide + 4
    assert len(numbers) >= min(blocks, 2)
    assert bar.cell_rect(blocks + 1).right() <= width
    for cell in (0, blocks + 1):  # an end's word is whole
        assert metrics.horizontalAdvance(bar._ends()[cell > 0][0]) + 10 <= bar.cell_rect(cell).width()
    chosen: list[int] = []
    bar.placeChosen.connect(chosen.append)
    cells = [0, 1, blocks, blocks + 1]
    for cell in cells:
        centre = bar.cell_rect(cell).center()
        QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=QPoint(int(centre.x()), int(centre.y())))
    assert chosen == cells
    bar._hover(blocks)
    assert bar.toolTip() == f"Block {blocks - 1}"
    assert not bar.grab().isNull()
