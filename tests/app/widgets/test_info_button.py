"""The explanation behind a panel's ⓘ: words and the panel's picture, in the theme in force."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.panels import PANELS
from app.panels.base import Panel
from app.theme import Theme
from app.widgets.info_button import TELLING, InfoButton

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
    left, top, width, height = TELLING.get(panel.panel_id, (0, 0, whole.width(), whole.height()))
    assert whole.rect().contains(QRect(left, top, width, height))
    shown_size = picture.deviceIndependentSize()
    assert (shown_size.width(), shown_size.height()) == (width, height)  # its text is as large as a panel's
    middle = (width // 2, height // 2)
    assert picture.toImage().pixelColor(*middle) == whole.pixelColor(left + middle[0], top + middle[1])
    surface = whole.pixelColor(whole.width() // 2, 12)  # of the title bar
    assert (surface.lightness() < 128) == (choice == "dark")
    assert button.screen().availableGeometry().contains(popup.geometry())
    QTest.keyClick(popup, Key.Key_Escape)


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
