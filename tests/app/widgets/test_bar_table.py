"""Tokens with a value each: where it is tight, the bars give way to the tokens."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QFontMetricsF
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.bar_table import BAR, LEAST_BAR, POSITION, TOKEN, VALUE, BarTable
from app.widgets.table_style import CellDelegate

PIECES = ["The", "·animal", "·didn", "·because", "·it"]


@pytest.mark.parametrize("width", [196, 260, 420])
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_a_token_is_whole_before_its_bar_is_long(qtbot: QtBot, width: int, scale: float) -> None:
    theme = Theme("dark", text_scale=scale)
    table = BarTable(theme, "row")
    qtbot.addWidget(table)
    table.resize(round(width * scale), 300)
    table.show()
    table.set_values(PIECES, np.array([0.1, 0.7, 0.1, 0.05, 0.05], dtype=np.float32), name="weight")
    widest = QFontMetricsF(theme.font("mono")).horizontalAdvance("·because") + 2 * CellDelegate.PADDING
    assert table.columnWidth(TOKEN) >= widest
    assert table.columnWidth(BAR) >= LEAST_BAR
    widths = [table.columnWidth(column) for column in (POSITION, TOKEN, BAR, VALUE)]
    assert sum(widths) == table.viewport().width()


def test_columns_stay_from_one_query_to_the_next(qtbot: QtBot) -> None:
    table = BarTable(Theme("dark"), "row")
    qtbot.addWidget(table)
    table.resize(196, 300)
    table.show()
    seen = set()
    for query in range(len(PIECES)):
        values = np.full(len(PIECES), np.nan, dtype=np.float32)
        values[: query + 1] = 1 / (query + 1)
        table.set_values(PIECES, values, name="weight")
        seen.add(tuple(table.columnWidth(column) for column in range(4)))
    assert len(seen) == 1
