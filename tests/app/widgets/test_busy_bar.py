"""The bar of what is under way: one piece, rounded, whole inside the bar."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QImage, QRegion
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.theme import Theme
from app.widgets.busy_bar import ROUND_MS, BusyBar


@pytest.fixture
def bar(qtbot: QtBot) -> BusyBar:
    made = BusyBar(Theme("light"))
    qtbot.addWidget(made)
    made.resize(220, 6)
    return made


def draw(bar: BusyBar, image: QImage) -> None:
    """The bar alone, on what the image holds."""
    bar.render(image, QPoint(), QRegion(), QWidget.RenderFlag.DrawChildren)


def filled(bar: BusyBar) -> list[bool]:
    """Which pixels of the middle row are the accent's."""
    image = QImage(bar.size(), QImage.Format.Format_RGB32)
    image.fill(bar._theme.palette.panel)
    draw(bar, image)
    accent = bar._theme.palette.accent
    return [QColor(image.pixel(x, 3)) == accent for x in range(1, bar.width() - 1)]


def test_while_nobody_knows_one_piece_goes_to_and_fro(bar: BusyBar, monkeypatch: pytest.MonkeyPatch) -> None:
    bar.setRange(0, 0)
    places = [bar.piece(ROUND_MS * step / 40) for step in range(41)]
    assert all(place.left() >= 0 and place.right() <= bar.width() + 1e-6 for place in places)
    assert len({round(place.width(), 6) for place in places}) == 1
    assert {round(place.left()) for place in places} >= {0, round(bar.width() - places[0].width())}
    for step in range(0, 40, 7):
        monkeypatch.setattr("app.widgets.busy_bar.time.monotonic", lambda step=step: ROUND_MS * step / 40 / 1000)
        row = filled(bar)
        assert sum(a != b for a, b in zip([False, *row], [*row, False], strict=True)) == 2  # one piece


def test_its_ends_and_the_track_s_are_round(bar: BusyBar) -> None:
    bar.setRange(0, 100)
    bar.setValue(50)
    assert sum(filled(bar)) == pytest.approx(110, abs=3)
    image = QImage(bar.size(), QImage.Format.Format_RGB32)
    image.fill(bar._theme.palette.panel)
    draw(bar, image)
    panel, accent, track = (getattr(bar._theme.palette, name) for name in ("panel", "accent", "track"))
    assert QColor(image.pixel(0, 0)) not in (accent, track) and QColor(image.pixel(219, 5)) != track
    assert QColor(image.pixel(0, 0)).lightness() > accent.lightness() + 40
    assert QColor(image.pixel(109, 0)) not in (accent, panel)  # the piece's own end, over the track
    bar.setValue(0)
    assert not any(filled(bar))


def test_it_keeps_no_clock_when_hidden_or_when_it_is_known_how_far(bar: BusyBar, qtbot: QtBot) -> None:
    bar.setRange(0, 0)
    bar.show()
    qtbot.waitUntil(lambda: bar._clock.isActive() or not bar._moves)
    bar.setRange(0, 10)
    qtbot.waitUntil(lambda: not bar._clock.isActive())
    bar.setRange(0, 0)
    qtbot.waitUntil(lambda: bar._clock.isActive() or not bar._moves)
    bar.hide()
    assert not bar._clock.isActive()
