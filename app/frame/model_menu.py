"""The menu of the model button: models at hand, recent ones, device and number format."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt

from app.i18n import tr
from app.widgets.tick_menu import TickMenu

if TYPE_CHECKING:
    from PySide6.QtGui import QAction
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
        catalogue, default = session.hello.catalogue if session.hello else (), session.desk.default_entry
        for entry in catalogue:
            action = self.addAction(entry.title if entry.path else tr("Get {title}", title=entry.title))
            run = open_source if entry.path else session.desk.fetch
            action.triggered.connect(lambda _checked=False, run=run, name=entry.name: run(name))
            names = {entry.name, ""} if entry is default else {entry.name}
            mark_open(self, action, of_open=session.model is not None and session.source in names)
        fill_recent(self, session, settings, open_source, besides={entry.name for entry in catalogue})
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


def fill_recent(
    menu: TickMenu,
    session: Session,
    settings: Settings,
    open_source: Open,
    *,
    with_default: bool = False,
    besides: Collection[str] = (),
) -> None:
    """Adds the models used last but those `besides`. `with_default`: also the default one, whose source is empty."""
    default = session.desk.default_entry
    for source in settings.values.recent_models:
        name = source or ((default.title if default else tr("The default model")) if with_default else "")
        if name and source not in besides:
            action = menu.addAction(name if len(name) < LONGEST else f"… {name[2 - LONGEST :]}")
            action.triggered.connect(lambda _checked=False, source=source: open_source(source))
            mark_open(menu, action, of_open=session.model is not None and session.source == source)


def mark_open(menu: TickMenu, action: QAction, *, of_open: bool) -> None:
    """Of the models the open one has a tick."""
    menu.choices.addAction(action)
    action.setCheckable(True)
    action.setChecked(of_open)
