"""The menu of the model button: models at hand, recent ones, device and number format."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt

from app.i18n import tr
from app.widgets.tick_menu import TickMenu

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.session import Session
    from app.settings import Settings

DTYPES = ("auto", "float32", "bfloat16", "float16")
LONGEST = 60
Open = Callable[[str], object]


class ModelMenu(TickMenu):
    """Made anew each time it is opened."""

    def __init__(
        self,
        session: Session,
        settings: Settings,
        *,
        ask_open: Callable[[], object],
        open_source: Open,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._session, self._settings = session, settings
        for entry in session.hello.catalogue if session.hello else ():
            action = self.addAction(entry.title if entry.path else tr("Get {title}", title=entry.title))
            run = open_source if entry.path else session.desk.fetch
            action.triggered.connect(lambda _checked=False, run=run, name=entry.name: run(name))
        fill_recent(self, settings, open_source)
        self.addSeparator()
        self.addAction(tr("Open another model …")).triggered.connect(lambda _checked=False: ask_open())
        devices = tuple(device.name for device in session.hello.devices) if session.hello else ()
        self._add_choice(tr("Device"), "device", ("auto", *devices))
        self._add_choice(tr("Number format"), "dtype", DTYPES)

    def _add_choice(self, title: str, field: str, choices: tuple[str, ...]) -> None:
        menu = self.add_menu(title)
        for choice in choices:
            action = menu.addAction(tr("automatic") if choice == "auto" else choice)
            action.setCheckable(True)
            action.setChecked(getattr(self._settings.values, field) == choice)
            menu.choices.addAction(action)
            action.triggered.connect(lambda _checked=False, choice=choice: self._choose(field, choice))

    def _choose(self, field: str, choice: str) -> None:
        """A new device or number format opens the model again."""
        self._settings.update(**{field: choice})
        if self._session.model is not None and not self._session.busy:
            self._session.open_model(self._session.source)


def fill_recent(menu: TickMenu, settings: Settings, open_source: Open, default: str = "") -> None:
    """Adds the models used last; the default one, which has no place of its own, under the name given for it."""
    for source in settings.values.recent_models:
        name = source or default
        if name:
            action = menu.addAction(name if len(name) < LONGEST else f"… {name[2 - LONGEST :]}")
            action.triggered.connect(lambda _checked=False, source=source: open_source(source))
