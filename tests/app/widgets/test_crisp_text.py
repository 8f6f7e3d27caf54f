"""The bars of a norm are two strokes with ground between them, wherever the text begins."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QImage, QPainter
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.crisp_text import draw_crisp


@pytest.mark.parametrize("left", [4.0, 4.3, 4.5, 4.8])
def test_the_bars_of_a_norm_are_apart(qtbot: QtBot, left: float) -> None:
    theme = Theme("light")
    image = QImage(40, 24, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    with QPainter(image) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font("ui"))
        painter.setPen(QColor("black"))
        draw_crisp(painter, QPointF(left, 16), "‖")
    row = [image.pixelColor(x, 12).lightness() for x in range(40)]
    first = row.index(0)
    assert row[first : first + 3] == [0, 255, 0]
    assert set(row) == {0, 255}
