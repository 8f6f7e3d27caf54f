"""The explanation behind a panel's ⓘ: words and the panel's picture, in the theme in force."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.panels import PANELS
from app.panels.base import Panel
from app.theme import Theme
from app.tour.panels import TELLING, figure_in
from app.widgets.info_button import LEAST_TEXT, MARGIN, InfoButton, InfoPopup, telling

ROOT = Path(__file__).resolve().parents[3]
Key = Qt.Key


@pytest.fixture
def theme(qapp: QApplication) -> Theme:
    del qapp
    return Theme("light")


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.panel_id)
@pytest.mark.parametrize("choice", ["dark", "light"])
def test_every_panel_explains_itself_with_its_picture(
    qtbot: QtBot, theme: Theme, panel: type[Panel], choice: Literal["dark", "light"]
) -> None:
    theme.set_choice(choice)
    file = ROOT / "assets/panels" / f"{panel.panel_id}-{choice}.webp"
    assert file.stat().st_size <= 150_000
    button = InfoButton(theme, panel.title, panel.help_text, panel=panel.panel_id)
    qtbot.addWidget(button)
    button.show()
    qtbot.waitExposed(button)
    popup = button.open()
    shown = [label.pixmap() for label in popup.findChildren(QLabel) if not label.pixmap().isNull()]
    (picture,) = shown
    whole = QImage(str(file))
    place = QRect(*telling().get(panel.panel_id, (0, 0, whole.width(), whole.height())))
    assert whole.rect().contains(place)
    shown_size, room = picture.deviceIndependentSize(), popup.width() - 2 * MARGIN
    scale = shown_size.width() / place.width()
    assert shown_size.width() <= room and abs(shown_size.height() - place.height() * scale) <= 1  # all of it
    assert scale == 1 or scale == pytest.approx(
        room / place.width(), abs=0.002
    )  # text as large as a panel's, if it fits
    if scale == 1:
        middle = (place.width() // 2, place.height() // 2)
        assert picture.toImage().pixelColor(*middle) == whole.pixelColor(
            place.left() + middle[0], place.top() + middle[1]
        )
    words = [label for label in popup.findChildren(QLabel) if panel.help_text.startswith(label.text() or "-")]
    (image,) = [label for label in popup.findChildren(QLabel) if not label.pixmap().isNull()]
    beside = room - MARGIN - place.width() >= LEAST_TEXT
    assert (image.x() > words[0].geometry().right()) == beside == (panel.panel_id == "model")
    assert (image.y() > words[0].geometry().bottom()) != beside
    surface = whole.pixelColor(whole.width() // 2, 12)  # of the title bar
    assert (surface.lightness() < 128) == (choice == "dark")
    assert button.screen().availableGeometry().contains(popup.geometry())
    QTest.keyClick(popup, Key.Key_Escape)


def test_the_lens_picture_is_whole_on_a_small_laptop(qtbot: QtBot, theme: Theme) -> None:
    """It was wider than its pop-up, and with its words higher than a screen of 768 px."""
    [panel] = [kind for kind in PANELS if kind.panel_id == "lens"]
    button = InfoButton(theme, panel.title, panel.help_text, panel=panel.panel_id)
    qtbot.addWidget(button)
    room, picture = 752, button._picture()
    assert picture is not None
    popup = InfoPopup(theme, panel.title, panel.help_text, button, picture, room=room)
    popup.fit(room)
    popup.show()
    qtbot.waitExposed(popup)
    (image,) = [label for label in popup.findChildren(QLabel) if not label.pixmap().isNull()]
    assert image.pixmap().size() == picture.size()
    assert popup._scroller.verticalScrollBar().maximum() == 0
    popup.close()


def rgb(colour: QColor) -> tuple[int, int, int]:
    return colour.red(), colour.green(), colour.blue()


@pytest.mark.parametrize("choice", ["dark", "light"])
@pytest.mark.parametrize("name", sorted(TELLING))
def test_a_figure_is_shown_whole(qapp: QApplication, name: str, choice: Literal["dark", "light"]) -> None:
    del qapp
    assert set(telling()) == set(TELLING) <= {panel.panel_id for panel in PANELS}
    whole, place = QImage(str(ROOT / "assets/panels" / f"{name}-{choice}.webp")), QRect(*telling()[name])
    ground = QColor(Theme(choice).palette.panel)
    edge = [(x, y) for x in range(place.left(), place.right() + 1) for y in (place.top(), place.bottom())]
    edge += [(x, y) for x in (place.left(), place.right()) for y in range(place.top(), place.bottom() + 1)]
    away = [max(abs(a - b) for a, b in zip(rgb(whole.pixelColor(*at)), rgb(ground), strict=True)) for at in edge]
    assert max(away) <= 12, "something crosses the edge"  # WebP is not exact
    inside = whole.copy(place.adjusted(12, 12, -12, -12))
    assert inside.width() > 200 and inside.height() > 150


def test_the_figure_in_a_panel_is_what_is_drawn_with_some_ground_round_it(qtbot: QtBot) -> None:
    whole = QWidget()
    qtbot.addWidget(whole)
    whole.setStyleSheet("background: #203040")
    whole.resize(200, 120)
    part = QWidget(whole)
    part.setGeometry(20, 20, 160, 60)
    for at in ((60, 20, 30, 10), (100, 12, 8, 8)):
        drawn = QWidget(part)
        drawn.setStyleSheet("background: #ff0000")
        drawn.setGeometry(*at)
    ground, drawn_at = QColor("#203040"), QRect(80, 32, 48, 18)
    assert figure_in(whole, [part], ground) == drawn_at.adjusted(-8, -8, 8, 8)
    near = QWidget(whole)  # of the panel's next part
    near.setStyleSheet("background: #ff0000")
    near.setGeometry(133, 0, 60, 18)
    near.show()
    assert figure_in(whole, [part], ground) == drawn_at.adjusted(-8, -8, 8, 8)
    part.setGeometry(20, 20, 110, 60)
    near.setGeometry(133, 0, 60, 30)
    assert figure_in(whole, [part], ground) == drawn_at.adjusted(-2, -2, 2, 2)  # 3 px to what is next to it


def test_what_a_low_button_explains_stays_in_sight(qtbot: QtBot, theme: Theme) -> None:
    button = InfoButton(theme, "KV cache", "One.\n\nTwo.")
    qtbot.addWidget(button)
    available = button.screen().availableGeometry()
    button.move(available.center().x(), available.bottom() - 60)
    button.show()
    qtbot.waitExposed(button)
    popup = button.open()
    assert available.contains(popup.geometry())
    assert popup.geometry().bottom() < button.mapToGlobal(button.rect().topLeft()).y(), "over the button, not under it"
    popup.close()
