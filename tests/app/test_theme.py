from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Literal

import pytest
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QPalette, QTextLayout
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app import resources
from app.theme import DARK, LIGHT, FontRole, Palette, Theme, mono_families

PALETTES = pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])
GROUNDS = ("window", "panel", "raised")
TEXT_ON = {
    "text": (*GROUNDS, "hover", "pressed", "accent_tint", "amber_tint", "red_tint", "green_tint"),
    "secondary": GROUNDS,
    "accent": ("window", "panel"),
    "amber": ("window", "panel", "raised"),
    "green": ("window", "panel"),
    "red": ("window", "panel"),
    "accent_text": ("accent", "accent_hover"),
}


def luminance(colour: QColor) -> float:
    """Relative luminance, WCAG 2.2."""

    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(v) for v in (colour.redF(), colour.greenF(), colour.blueF()))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: QColor, other: QColor) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@PALETTES
def test_text_can_be_read(palette: Palette) -> None:
    weak = {
        (text, ground): round(ratio, 2)
        for text, grounds in TEXT_ON.items()
        for ground in grounds
        if (ratio := contrast(getattr(palette, text), getattr(palette, ground))) < 4.5
    }
    assert weak == {}


@PALETTES
def test_what_is_not_text_stands_out(palette: Palette) -> None:
    assert contrast(palette.disabled, palette.panel) >= 2.5
    assert contrast(palette.accent, palette.panel) >= 3


def test_every_colour_is_in_the_style_sheets_words(qapp: QApplication) -> None:
    names = {field.name for field in fields(Palette)} | {"mono"} | {f"px{n}" for n in range(1, 65)}
    used = set(re.findall(r"\$(\w+)", resources.text("style.qss")))
    assert used <= names
    assert "$" not in Theme("dark").style_sheet()


def test_no_colour_stands_in_the_style_sheet() -> None:
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=\s*[;}])", resources.text("style.qss")) == []


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.5, 2.0, 9.0])
def test_text_scales_from_100_to_200_per_cent(qapp: QApplication, scale: float) -> None:
    theme = Theme("light", scale)
    assert theme.font("ui").pixelSize() == round(13 * min(2.0, max(1.0, scale)))


def test_figures_are_tabular(qapp: QApplication) -> None:
    theme = Theme("dark")
    for role in FontRole:
        metrics = QFontMetricsF(theme.font(role))
        widths = {round(metrics.horizontalAdvance(str(digit) * 20), 1) for digit in range(10)}
        assert max(widths) - min(widths) < 1, role


def test_the_fixed_pitch_font_is_ours(qapp: QApplication) -> None:
    assert mono_families()[0] == "JetBrains Mono"
    assert QFontInfo(Theme("dark").font("mono")).family() == "JetBrains Mono"


@pytest.mark.parametrize("role", ["mono", "mono_small"])
@pytest.mark.parametrize("sign", ["⏎", "⇥"])
def test_signs_of_spaces_are_drawn_by_a_font_of_their_own(qapp: QApplication, role: str, sign: str) -> None:
    layout = QTextLayout(sign, Theme("dark").font(role))
    layout.beginLayout()
    layout.createLine()
    layout.endLayout()
    assert [run.rawFont().familyName() for run in layout.glyphRuns()] == ["Decoderscope Signs"]


def test_icons_take_the_colour_of_the_theme(qapp: QApplication) -> None:
    pixmap = Theme("light").pixmap("close", "red", 16, 2)
    assert (pixmap.width(), pixmap.devicePixelRatio()) == (32, 2)
    image = pixmap.toImage()
    seen = {
        image.pixelColor(x, y).name() for x in range(32) for y in range(32) if image.pixelColor(x, y).alpha() == 255
    }
    assert seen == {LIGHT.red.name()}


def test_every_bold_text_is_the_semibold_that_is_there(qapp: QApplication) -> None:
    """A weight that no face has is drawn by smearing another one."""
    assert {Theme("dark").font(role, bold=True).weight() for role in FontRole} == {QFont.Weight.DemiBold}
    smeared = re.compile(r"\.setBold\(|Weight\.(?!DemiBold)|font-weight: (?!600)|font: bold")
    places = [*Path("app").rglob("*.py"), Path("assets/style.qss")]
    found = {str(path) for path in places if smeared.search(path.read_text(encoding="utf-8"))}
    assert len(places) > 100 and not found


@pytest.mark.parametrize("choice", ["dark", "light"])
@pytest.mark.parametrize("make", [QLineEdit, QPlainTextEdit])
def test_a_placeholder_can_be_read(
    qtbot: QtBot, choice: Literal["dark", "light"], make: type[QLineEdit | QPlainTextEdit]
) -> None:
    theme, field = Theme(choice), make()
    qtbot.addWidget(field)
    field.setStyleSheet(theme.style_sheet())
    field.setPlaceholderText("follow a token")
    field.ensurePolished()
    ink = field.palette().color(QPalette.ColorRole.PlaceholderText)
    assert ink.alpha() == 255
    assert contrast(ink, theme.palette.window) >= 4.5
