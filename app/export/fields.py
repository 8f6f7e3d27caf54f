"""Fields of the export dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QSizePolicy

from app.export.exporter import MAX_INCHES, MIN_INCHES
from app.i18n import tr
from app.widgets.form_spin import FormDoubleSpin
from app.widgets.value_combo import Choice, ValueCombo

if TYPE_CHECKING:
    from app.theme import Theme


def choices(theme: Theme, label: str, items: list[tuple[Any, str]], current: object) -> ValueCombo:
    """A list to choose from: keys with their words."""
    box = ValueCombo(theme, label)
    box.set_choices([Choice(key=key, text=text) for key, text in items])
    box.set_key(current)
    box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return box


def inches(theme: Theme) -> FormDoubleSpin:
    """A side of a figure."""
    box = FormDoubleSpin(theme)
    box.setRange(MIN_INCHES, MAX_INCHES)
    box.setDecimals(1)
    box.setSingleStep(0.5)
    box.setSuffix(tr(" in"))
    return box
