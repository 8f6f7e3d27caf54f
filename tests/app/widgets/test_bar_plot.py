"""Signed bars: what stands over them."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.bar_plot import BarPlot
from app.widgets.sign_colours import sign_colour


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("light")


def test_keyed_bars_name_the_tallest_one_and_the_signs(qtbot: QtBot, theme: Theme) -> None:
    plot = BarPlot(theme, "adds", title="logit", keyed=True)
    qtbot.addWidget(plot)
    plot.resize(300, 120)
    plot.set_values(np.array([1.0, -9.5, 3.0], np.float32), ["embedding", "0 attention", "0 feed-forward"])
    assert plot.title_forms()[0] == "logit   tallest: 0 attention: -9.5"
    plot.set_hovered(2)
    assert plot.title_forms() == ("logit   0 feed-forward: 3",)
    plot.set_hovered(None)

    def drawn() -> set[str]:
        image = plot.grab().toImage()
        line = round(QFontMetricsF(theme.font("hint")).height())
        return {image.pixelColor(x, y).name() for x in range(200, 300) for y in range(line)}

    signs = {sign_colour(negative=negative).name() for negative in (True, False)}
    assert signs <= drawn()
    plot.set_values(np.array([1.0, 2.0], np.float32), ["a", "b"])
    assert sign_colour(negative=True).name() not in drawn(), "a sign that no bar has needs no key"
