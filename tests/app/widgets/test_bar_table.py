"""Tokens with a value each: where it is tight, the bars give way to the tokens."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.bar_table import BAR, LEAST_BAR, PADDING, POSITION, TOKEN, VALUE, BarTable, aligned

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
    widest = QFontMetricsF(theme.font("mono")).horizontalAdvance("·because") + 2 * PADDING
    assert table.columnWidth(TOKEN) >= widest
    assert table.columnWidth(BAR) >= LEAST_BAR
    widths = [table.columnWidth(column) for column in (POSITION, TOKEN, BAR, VALUE)]
    assert sum(widths) == table.viewport().width()


@pytest.mark.parametrize("width", [240, 262, 280, 420])
def test_in_large_text_and_little_room_figures_are_whole_and_tokens_come_before_bars(qtbot: QtBot, width: int) -> None:
    theme = Theme("dark", text_scale=2.0)
    table = BarTable(theme, "row")
    qtbot.addWidget(table)
    table.resize(width, 300)
    table.show()
    table.set_values(["·explanation", "·it"], np.array([0.1234, 0.9], dtype=np.float32), name="cosine", ranked=True)
    shown = [column for column in (POSITION, TOKEN, BAR, VALUE) if not table.isColumnHidden(column)]
    assert sum(map(table.columnWidth, shown)) == table.viewport().width(), "nothing is beyond the edge"
    assert table.columnWidth(VALUE) >= QFontMetricsF(theme.font("table")).horizontalAdvance("0.1234") + 2 * PADDING
    mono = QFontMetricsF(theme.font("mono"))
    assert BAR not in shown or table.columnWidth(TOKEN) >= mono.horizontalAdvance("0" * 8)
    table.set_values(["·a", "·it"], np.array([0.1234, 0.9], dtype=np.float32), name="cosine", ranked=True)
    assert not table.isColumnHidden(BAR)


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


def test_a_pane_beside_the_matrix_has_bars_to_compare_and_titles(qtbot: QtBot) -> None:
    table = BarTable(Theme("dark"), "row")
    qtbot.addWidget(table)
    table.resize(216, 300)
    table.show()
    table.set_values(PIECES, np.array([0.1, 0.7, 0.1, 0.05, 0.05], dtype=np.float32), name="weight")
    assert table.columnWidth(BAR) >= 60
    titles = [table.model().headerData(c, Qt.Orientation.Horizontal) for c in range(4)]
    assert titles == ["pos", "token", "", "weight"]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((0.74957, 0.0711, 0.000348, 3e-6, 0.0), ["0.7496", "0.0711", "0.0003", "3e-06", "0.0000"]),
        ((9.5, -0.25, 1.0), ["9.500", "-0.250", "1.000"]),
        ((-12.345, 3.2), ["-12.35", "3.20"]),
        ((1234.0, 3.2), ["1,234", "3.20"]),
    ],
)
def test_decimal_points_stand_under_one_another(values: tuple[float, ...], shown: list[str]) -> None:
    largest = max(abs(value) for value in values)
    assert [aligned(value, largest) for value in values] == shown
