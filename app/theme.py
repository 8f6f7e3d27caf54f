"""The only place with colours and fonts: tokens by name, light and dark, text scale, the style sheet made from them.

Widgets that paint themselves read `active().palette` and `active().font(...)` when they paint; a change of theme
repaints them because the application's palette changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from string import Template
from typing import ClassVar, Literal

from PySide6.QtCore import QByteArray, QObject, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication

from app import resources

ThemeChoice = Literal["system", "light", "dark"]
MIN_SCALE, MAX_SCALE = 1.0, 2.0


@dataclass(frozen=True, kw_only=True)
class Palette:
    """Every colour of the interface. Data colours are model.colormaps' business."""

    window: QColor
    panel: QColor
    raised: QColor
    hover: QColor
    pressed: QColor
    line: QColor
    text: QColor
    secondary: QColor
    disabled: QColor
    accent: QColor
    accent_hover: QColor
    accent_text: QColor
    accent_tint: QColor
    amber: QColor
    amber_tint: QColor
    green: QColor
    green_tint: QColor
    red: QColor
    red_tint: QColor
    masked: QColor
    ghost: QColor
    track: QColor
    knob: QColor
    cursor: QColor


def _palette(**hexes: str) -> Palette:
    return Palette(**{name: QColor(value) for name, value in hexes.items()})


DARK = _palette(
    window="#14161a", panel="#1b1e24", raised="#242830", hover="#2d323c", pressed="#363c48", line="#2f343e",
    text="#e6e8ec", secondary="#9aa3b2", disabled="#6b7382", accent="#5aa9ff", accent_hover="#79baff",
    accent_text="#0b1522", accent_tint="#1f3450", amber="#ffb454", amber_tint="#352d27", green="#62d196",
    green_tint="#21332f", red="#ff7a7a", red_tint="#3c2529", masked="#20242b", ghost="#4a5160", track="#2f343e",
    knob="#f2f4f7", cursor="#ffffff",
)  # fmt: skip
LIGHT = _palette(
    window="#f3f4f6", panel="#ffffff", raised="#f0f2f5", hover="#e6e9ee", pressed="#dbdfe6", line="#d9dde3",
    text="#1b1f27", secondary="#5b6472", disabled="#8e96a3", accent="#1769d2", accent_hover="#0f5abb",
    accent_text="#ffffff", accent_tint="#dceafb", amber="#a85800", amber_tint="#f6ece0", green="#1c7f4b",
    green_tint="#e0f1e8", red="#c03333", red_tint="#fae3e3", masked="#eceef1", ghost="#c3c8d0", track="#dfe3e8",
    knob="#1b1f27", cursor="#ffffff",
)  # fmt: skip


class FontRole(StrEnum):
    """What a piece of text is; sizes are px at 100 %."""

    UI = "ui"
    TITLE = "title"
    TABLE = "table"
    HINT = "hint"
    MONO = "mono"
    MONO_SMALL = "mono_small"


_SIZES = {
    FontRole.UI: 13, FontRole.TITLE: 13, FontRole.TABLE: 12, FontRole.HINT: 11, FontRole.MONO: 12,
    FontRole.MONO_SMALL: 11,
}  # fmt: skip
_CJK_FAMILIES = ("Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei UI", "Source Han Sans SC", "WenQuanYi Micro Hei")
_SYMBOL_FAMILIES = ("DejaVu Sans", "Noto Sans Symbols2", "Segoe UI Symbol", "Apple Symbols")
_BARE = frozenset({"DejaVu Sans", "Bitstream Vera Sans", "Droid Sans Fallback", "Sans Serif", "Sans", ""})
"""What a system answers that has no interface font of its own; ours is then the better one."""


class Theme(QObject):
    """The colours and fonts in force. `changed` after either was replaced, `changing` before."""

    changing = Signal()
    changed = Signal()
    _active: ClassVar[Theme | None] = None

    def __init__(self, choice: ThemeChoice = "system", text_scale: float = 1.0, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.choice: ThemeChoice = choice
        self.text_scale = _scale(text_scale)
        self.palette = DARK if self.dark else LIGHT
        self._fonts: dict[tuple[FontRole, bool, float], QFont] = {}

    # state

    @property
    def dark(self) -> bool:
        """Whether the dark palette is in force."""
        if self.choice != "system":
            return self.choice == "dark"
        return QGuiApplication.styleHints().colorScheme() != Qt.ColorScheme.Light

    def set_choice(self, choice: ThemeChoice) -> None:
        self.choice = choice
        self.apply()

    def set_text_scale(self, scale: float) -> None:
        self.text_scale = _scale(scale)
        self.apply()

    def px(self, length: float) -> int:
        """A length in px that grows with the text."""
        return round(length * self.text_scale)

    def install(self, app: QApplication) -> None:
        """Makes this the application's theme and follows the system's where that is the choice. The style sheet comes
        with the first `apply`: nothing before the first paint needs it."""
        Theme._active = self
        app.setStyle("Fusion")
        app.setFont(self.font(FontRole.UI))
        app.setPalette(self.qt_palette())
        app.styleHints().colorSchemeChanged.connect(self._on_system)

    def apply(self) -> None:
        """Puts palette, font and style sheet on the application."""
        self.changing.emit()
        self.palette = DARK if self.dark else LIGHT
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.setFont(self.font(FontRole.UI))
            app.setPalette(self.qt_palette())
            with self.unstyled():  # from one sheet to the next takes Qt four times as long as from none
                pass
        self.changed.emit()

    @contextmanager
    def unstyled(self) -> Iterator[None]:
        """While many widgets are made: under a style sheet each new parent polishes all that is in it again."""
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.setStyleSheet("")
        yield
        if isinstance(app, QApplication):
            app.setStyleSheet(self.style_sheet())

    def _on_system(self) -> None:
        if self.choice == "system":
            self.apply()

    # fonts

    def font(self, role: FontRole | str = FontRole.UI, *, bold: bool = False) -> QFont:
        """The font of a role, in px, figures tabular."""
        key = (FontRole(role), bold, self.text_scale)
        if key not in self._fonts:  # made once: finding the faces of a new QFont takes longer than most paint events
            self._fonts[key] = self._make_font(FontRole(role), bold=bold)
        return QFont(self._fonts[key])

    def _make_font(self, role: FontRole, *, bold: bool) -> QFont:
        mono = role in {FontRole.MONO, FontRole.MONO_SMALL}
        font = QFont(list(mono_families() if mono else ui_families()))
        font.setPixelSize(self.px(_SIZES[role]))
        font.setFeature(QFont.Tag("tnum"), 1)
        if mono:  # "!=" is two characters of a token, whatever a programmer's font makes of them
            font.setFeature(QFont.Tag("calt"), 0)
            font.setFeature(QFont.Tag("liga"), 0)
        if bold or role is FontRole.TITLE:
            font.setWeight(QFont.Weight.DemiBold)
        return font

    # Qt

    def qt_palette(self) -> QPalette:
        """The QPalette of what the style sheet does not reach."""
        colours, result = self.palette, QPalette()
        roles = QPalette.ColorRole
        for role, colour in (
            (roles.Window, colours.window), (roles.WindowText, colours.text), (roles.Base, colours.raised),
            (roles.AlternateBase, colours.panel), (roles.Text, colours.text), (roles.Button, colours.raised),
            (roles.ButtonText, colours.text), (roles.BrightText, colours.red), (roles.Highlight, colours.accent),
            (roles.HighlightedText, colours.accent_text), (roles.ToolTipBase, colours.raised),
            (roles.ToolTipText, colours.text), (roles.PlaceholderText, colours.secondary),
            (roles.Link, colours.accent), (roles.Mid, colours.line), (roles.Dark, colours.line),
            (roles.Light, colours.hover), (roles.Midlight, colours.hover), (roles.Shadow, colours.window),
        ):  # fmt: skip
            result.setColor(role, colour)
        for role in (roles.WindowText, roles.Text, roles.ButtonText):
            result.setColor(QPalette.ColorGroup.Disabled, role, colours.disabled)
        return result

    def style_sheet(self) -> str:
        """assets/style.qss with its tokens filled in: colours by name, `px13` lengths that grow with the text."""
        values = {field.name: getattr(self.palette, field.name).name() for field in fields(self.palette)}
        values |= {f"px{n}": f"{self.px(n)}px" for n in range(1, 65)}
        values |= {"mono": ", ".join(f'"{name}"' for name in mono_families())}
        return Template(resources.text("style.qss")).substitute(values)

    def icon(self, name: str, colour: str = "text", size: int = 16) -> QIcon:
        """An icon of assets/icons in a colour token, dimmed when disabled."""
        icon = QIcon()
        for mode, token in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, "disabled")):
            for ratio in (1, 2):
                icon.addPixmap(self.pixmap(name, token, size, ratio), mode)
        return icon

    def pixmap(self, name: str, colour: str = "text", size: int = 16, ratio: float = 1.0) -> QPixmap:
        """An icon of assets/icons as a pixmap of `size` px at 100 % text."""
        side = self.px(size)
        return _render(name, getattr(self.palette, colour).name(), side, ratio)


def active() -> Theme:
    """The application's theme; a plain one before it is installed (in tests of single widgets)."""
    if Theme._active is None:
        Theme._active = Theme()
    return Theme._active


@lru_cache(maxsize=1)
def ui_families() -> tuple[str, ...]:
    """The system's interface font, or ours where it has none, then fonts with symbols and Chinese."""
    system = QFontInfo(QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)).family()
    if system in _BARE:
        system = _load("Inter-Regular.otf", "Inter-SemiBold.otf") or system
    return (system, *_SYMBOL_FAMILIES, *_CJK_FAMILIES)


@lru_cache(maxsize=1)
def mono_families() -> tuple[str, ...]:
    """Our fixed-pitch font, then the system's, then fonts with symbols and Chinese. The signs of spaces (⏎ ⇥), which
    ours has not, have a font of their own: squeezed into a fixed pitch they are smudges."""
    ours = _load("JetBrainsMono-Regular.ttf", "JetBrainsMono-Bold.ttf"), _load("Signs-Regular.otf", "Signs-Bold.otf")
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
    return (*filter(None, ours), system, "DejaVu Sans Mono", *_SYMBOL_FAMILIES, *_CJK_FAMILIES)


def _load(*names: str) -> str:
    """Makes fonts of assets/fonts known and returns their family; empty when they cannot be read."""
    families: list[str] = []
    for name in names:
        number = QFontDatabase.addApplicationFontFromData(QByteArray(resources.data(f"fonts/{name}")))
        families += QFontDatabase.applicationFontFamilies(number) if number >= 0 else []
    return families[0] if families else ""


@lru_cache(maxsize=256)
def _render(name: str, colour: str, side: int, ratio: float) -> QPixmap:
    from PySide6.QtSvg import QSvgRenderer  # noqa: PLC0415 - not needed for the first paint

    svg = resources.text(f"icons/{name}.svg").replace("currentColor", colour)
    pixmap = QPixmap(QSize(round(side * ratio), round(side * ratio)))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(svg.encode())).render(painter)
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def _scale(scale: float) -> float:
    return min(MAX_SCALE, max(MIN_SCALE, scale))
