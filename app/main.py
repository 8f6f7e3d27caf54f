"""Starts the window: the first paint comes before anything heavy is imported; panels and engine follow."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import app.health.overrides  # noqa: F401 - before any class of ours that Qt calls

# isort: split
from PySide6.QtCore import QMessageLogContext, Qt, QTimer, QtMsgType, qInstallMessageHandler, qWarning
from PySide6.QtWidgets import QApplication

from app import i18n
from app.commands import CommandRegistry
from app.complaint import EXIT_ERROR, WITHOUT_ONE, complain
from app.health.collector import Collector
from app.notify import Notifier
from app.settings import Settings, config_folder
from app.theme import Theme
from app.window import MainWindow

if TYPE_CHECKING:
    from app.context import AppContext
    from app.session import Session
    from app.state.place import Place


STARTING_MS = 3000
HEAVY = ("numpy", "model.protocol", "app.engine", "app.session", "app.actions")
HEAVY_PANELS = (
    "app.widgets.value_combo", "app.widgets.line_plot", "app.widgets.prompt_edit", "app.widgets.heatmap", "app.panels",
)  # fmt: skip
"""Modules that take their time, imported in turns of their own after the first paint."""


@dataclass(kw_only=True)
class Application:
    """What lives as long as the program. `ctx` is there once the panels are."""

    qt: QApplication
    window: MainWindow
    settings: Settings
    theme: Theme
    commands: CommandRegistry
    notify: Notifier
    source: str = ""
    ctx: AppContext | None = None
    place: Place | None = None
    _coming: AppContext | None = None

    def fill(self) -> None:
        """After the first paint: the engine's process, the shared state, the panels; a piece a turn of the loop."""
        from app.frame.turns import Turns  # noqa: PLC0415 - after the first paint

        turns = Turns(self.window)
        self.window.closed.connect(turns.drop)
        of_engine, of_panels = ([partial(import_module, name) for name in names] for names in (HEAVY, HEAVY_PANELS))
        turns.add(self.window.furnish, *of_engine, self._begin, *of_panels, self._populate)

    def _begin(self) -> None:
        from app.context import AppContext  # noqa: PLC0415 - after the first paint, as the next ones
        from app.engine import EngineClient  # noqa: PLC0415
        from app.selection import Selection  # noqa: PLC0415
        from app.session import Session  # noqa: PLC0415
        from app.state.alarms import NumberAlarm  # noqa: PLC0415

        window = self.window
        engine = EngineClient(window, command=self.settings.values.engine_command or None)
        selection = Selection(window)
        session = Session(engine, selection, self.settings, self.notify, window)
        NumberAlarm(session, self.notify)
        session.start(self.source)
        self._coming = AppContext(
            engine=engine,
            session=session,
            selection=selection,
            settings=self.settings,
            theme=self.theme,
            commands=self.commands,
            notify=self.notify,
        )

    def _populate(self) -> None:
        if self._coming is not None:
            self.window.populate(self._coming, self._on_filled)

    def _on_filled(self) -> None:
        self.ctx = self._coming
        assert self.ctx is not None
        from app.frame.parts_of_qt import name_parts_of_qt  # noqa: PLC0415 - after the first paint

        name_parts_of_qt(self.window)
        self._keep_work(self.ctx.session)
        self._tell_notices()
        self.settings.noticed.connect(self._tell_notices)

    def _tell_notices(self) -> None:
        """What the preferences have to say, at the start and later."""
        notices, self.settings.notices = self.settings.notices, []
        for notice in notices:
            self.notify.tell(notice)

    def _keep_work(self, session: Session) -> None:
        """Every window keeps its work against a crash, and offers what was kept of those that ended in one."""
        from app.state.autosave import Autosave  # noqa: PLC0415
        from app.state.bring_back import offer_lost  # noqa: PLC0415
        from app.state.place import take_place  # noqa: PLC0415

        folder = config_folder()
        with contextlib.suppress(OSError):  # saving says so
            folder.mkdir(parents=True, exist_ok=True)
        place = self.place = take_place(folder)  # a signal would hold it only weakly
        if place.why:
            self.settings.forbid_writing(place.why)
        kept = Autosave(session, folder, self.notify, session, number=place.number) if place.number else None
        offer_lost(folder, place.number, session, self.notify, kept.claim if kept else None)
        if kept is not None:
            self.window.closed.connect(kept.close)
        self.window.closed.connect(place.leave)


def create(source: str = "", argv: Sequence[str] = ("decoderscope",)) -> Application:
    """Everything up to the first paint; the rest comes by itself once the event loop runs."""
    gc.disable()  # as Collector does: nothing made until the first paint goes again
    choose_input_method()
    qt = QApplication.instance()
    if not isinstance(qt, QApplication):
        qt = QApplication(list(argv))
    qt.setApplicationName("Decoderscope")
    qt.setDesktopFileName("decoderscope")
    qt.setQuitOnLastWindowClosed(False)
    settings = Settings()
    i18n.set_language(settings.values.language, settings.notices.append)
    theme = Theme(settings.values.theme, settings.values.text_scale)  # type: ignore[arg-type] # checked when read
    theme.install(qt)
    commands, notify = CommandRegistry(), Notifier()
    window = MainWindow(settings=settings, theme=theme, commands=commands, notify=notify)
    application = Application(
        qt=qt, window=window, settings=settings, theme=theme, commands=commands, notify=notify, source=source
    )
    window.firstPaint.connect(lambda: QTimer.singleShot(0, window, application.fill))
    Collector(window)
    return application


def choose_input_method() -> None:
    """Chinese input through fcitx: the Qt of pip wheels has only the ibus plug-in, which fcitx serves too."""
    if "fcitx" in os.environ.get("XMODIFIERS", "") and not os.environ.get("QT_IM_MODULE"):
        os.environ["QT_IM_MODULE"] = "ibus"


def run(arguments: Sequence[str]) -> int:
    """Opens the window and stays until it is closed; the exit code."""
    parser = argparse.ArgumentParser(prog="decoderscope", description="A microscope for decoder-only language models.")
    parser.add_argument("source", nargs="?", default="", help="a .gguf file, a model folder or a hub id to open")
    options = parser.parse_args(list(arguments))
    with no_abort():
        application = create(options.source, [sys.argv[0]])
    application.window.firstPaint.connect(lambda: _take_signals(application.qt))
    spare_collector(application.window)
    application.window.show()
    QTimer.singleShot(0, lambda: _guard(application))
    return application.qt.exec()


@contextlib.contextmanager
def no_abort() -> Iterator[None]:
    """Inside, Qt's end of the program where it can open no window is one line on stderr and exit code 2."""
    said: list[str] = []

    def hear(kind: QtMsgType, _context: QMessageLogContext, message: str | None) -> None:
        if kind is not QtMsgType.QtFatalMsg:
            said.append(message or "")
            return
        why = " ".join((said[0] if said else message or "").split())
        complain(f"no window can be opened here: {why.rstrip('.')}. {WITHOUT_ONE}")
        os._exit(EXIT_ERROR)

    before = qInstallMessageHandler(hear)
    try:
        yield
    finally:
        qInstallMessageHandler(before)
        for message in said:
            qWarning(message)


def _take_signals(qt: QApplication) -> None:
    from app.health import crash  # noqa: PLC0415 - logging can wait until the window is up

    crash.quit_on_signals(qt)


def spare_collector(window: MainWindow) -> None:
    """Once the panels are up, Python's collector of reference cycles (health/collector.py) looks at nothing made until
    then: modules and widgets stay anyway, and going through all of them held the window for 40 ms now and then."""
    window.populated.connect(gc.freeze, Qt.ConnectionType.SingleShotConnection)


def _guard(application: Application) -> None:
    from app.health import crash, report  # noqa: PLC0415 - logging and faulthandler can wait until the window is up
    from app.health.stalls import StallWatch  # noqa: PLC0415

    kept = report.keep_last_crash()
    crash.install(application.notify)
    if kept is not None:
        notice = i18n.tr("The last window crashed. A report is in {path}.", path=kept)
        application.notify.tell(notice) if application.ctx else application.settings.notices.append(notice)
    # What the start itself holds up is measured by tests and would only fill the log.
    QTimer.singleShot(
        STARTING_MS,
        application.window,
        lambda: application.qt.aboutToQuit.connect(StallWatch(application.window).stop),
    )
