"""The main window: a frame that is on screen at once, and the panels that move in when they are made."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QStackedWidget, QStatusBar

from app.amounts import tokens
from app.dialogs.sheets import Sheets
from app.frame.drops import dropped_path, refuse_path
from app.frame.focus_order import FocusOrder
from app.frame.menus import MenuBar
from app.frame.start_page import LOW_WINDOW, SHORT_WINDOW, StartPage
from app.frame.toolbar import RunBar
from app.frame.turns import Turns
from app.i18n import again, set_language, tr
from app.notify import Trouble

if TYPE_CHECKING:
    from app.commands import CommandRegistry
    from app.context import AppContext
    from app.frame.docks import Crowding, PanelDock
    from app.frame.in_use import PanelInUse
    from app.frame.other_language import OtherLanguage
    from app.frame.pages import AbsentPage
    from app.keys import KeyRouter
    from app.notify import Notifier
    from app.panels.base import Panel
    from app.settings import Settings
    from app.theme import Theme
    from app.widgets.tick_menu import TickMenu

LAYOUT_VERSION = 1
DEFAULT_SIZE = (1400, 900)
MINIMUM_SIZE = (720, 480)


class MainWindow(FocusOrder):
    """`firstPaint` once, after the frame has been drawn; `populate` then brings the panels."""

    firstPaint = Signal()
    populated = Signal()
    closed = Signal()

    def __init__(self, *, settings: Settings, theme: Theme, commands: CommandRegistry, notify: Notifier) -> None:
        super().__init__()
        self.settings, self.theme, self.registry, self.notify = settings, theme, commands, notify
        self.ctx: AppContext | None = None
        self.docks: dict[str, PanelDock] = {}
        self._before_maximise: QByteArray | None = None
        self._maximised: PanelDock | None = None
        self._placing = self.complete = False
        self._turns = Turns(self)
        self._absent: AbsentPage | None = None
        self._why_absent = ""
        self.keys: KeyRouter | None = None
        self.in_use: PanelInUse | None = None
        self._language: OtherLanguage | None = None
        self.setObjectName("MainWindow")
        self.setWindowTitle("Decoderscope")
        self.setMinimumSize(*MINIMUM_SIZE)
        self.setAcceptDrops(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.start_page = StartPage(theme, own=bool(settings.values.layout))
        self.start_page.painted = self.firstPaint.emit
        self.pages = QStackedWidget()
        self.pages.addWidget(self.start_page)
        self.setCentralWidget(self.pages)
        settings.changed.connect(self._on_settings)
        self._refresh = QTimer(self)
        self._refresh.setSingleShot(True)
        self._refresh.setInterval(0)
        self._refresh.timeout.connect(self._refresh_bars)
        theme.apply()
        self.menu, self.run_bar = MenuBar(theme, commands), RunBar(theme, commands)
        self.setMenuBar(self.menu)
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, self.run_bar)
        place = QStatusBar()  # of the status line, which comes later
        place.setObjectName("StatusBar")
        place.setSizeGripEnabled(False)
        self.setStatusBar(place)
        self._fit_to_screen()

    def furnish(self) -> None:
        """Banners, status bar and keys: right after the first paint."""
        from app.frame.in_use import PanelInUse  # noqa: PLC0415 - after the first paint
        from app.keys import KeyRouter  # noqa: PLC0415

        self.keys = KeyRouter(self, self.registry)
        self.in_use = PanelInUse(lambda: self.docks, self)
        self.keys.pressed.connect(self.in_use.press)
        self.keys.watch(self.windowHandle())
        self._make_bars()
        self.notify.message.connect(self.status.say)
        self.notify.complaint.connect(self.status.complain)
        self.notify.notice.connect(lambda text: self.banners.notice(text, "amber"))
        self.notify.alarm.connect(lambda text: self.banners.notice(text, "red"))
        self.notify.offer.connect(lambda text, ways: self.banners.notice(text, "accent", *ways))
        self.notify.withdrawn.connect(lambda text: self.banners.withdraw(text))  # noqa: PLW0108 - it is made later
        self.sheets = Sheets(self)
        self.notify.trouble.connect(self.sheets.trouble)

    def _make_bars(self) -> None:
        from app.frame.banners import BannerBar  # noqa: PLC0415 - after the first paint, as the next ones
        from app.frame.statusbar import StatusLine  # noqa: PLC0415

        self.banners = BannerBar(self.theme)
        self.addToolBarBreak(Qt.ToolBarArea.TopToolBarArea)
        self.addToolBar(Qt.ToolBarArea.TopToolBarArea, self.banners)
        self.status = StatusLine(self.theme, self.registry)
        self.setStatusBar(self.status)

    def _fit_to_screen(self) -> None:
        geometry = base64.b64decode(self.settings.values.geometry or "")
        if not (geometry and self.restoreGeometry(QByteArray(geometry))):
            available = QGuiApplication.primaryScreen().availableGeometry()
            self.resize(min(DEFAULT_SIZE[0], available.width()), min(DEFAULT_SIZE[1], available.height()))

    # panels

    def populate(self, ctx: AppContext, filled: Callable[[], None]) -> None:
        """Makes commands, docks and panels, a piece a turn of the event loop; the start page gives way to them once
        they are there, after `filled` was called."""
        from app.actions import commands_of  # noqa: PLC0415 - after the first paint, as the next ones
        from app.frame.dock_tabs import TabFrames  # noqa: PLC0415
        from app.frame.docks import DockArea  # noqa: PLC0415

        self.ctx = ctx
        self.registry.add(*commands_of(ctx, self))
        ctx.session.changed.connect(self._on_topic)
        ctx.session.modelAbsent.connect(self._show_absent)
        self._bind_bars()
        self.area = DockArea(self.theme, self.reset_layout)
        self.frames = TabFrames(self.area, self.theme)
        if self.in_use is not None:
            self.frames.chosen.connect(self.in_use.choose)
        self.pages.addWidget(self.area)
        self._filled = filled
        self._make_docks()

    def _bind_bars(self) -> None:
        assert self.ctx is not None
        self.run_bar.bind(self.ctx.session, self._model_menu)
        self.status.bind(self.ctx.session)
        self.menu.extend("View", self._fill_panels_menu)
        self.menu.extend("File", self._fill_recent_menu)
        self._refresh_bars()

    def _make_docks(self) -> None:
        from app.frame.dock_making import make_dock  # noqa: PLC0415 - after the first paint, as the next one
        from app.panels import PANELS  # noqa: PLC0415

        def make(panel_class: type[Panel]) -> None:
            dock = make_dock(panel_class, self)
            if dock is not None:
                self.docks[panel_class.panel_id] = dock
                changed = dock.toggleViewAction().toggled  # of one behind another tab too
                for moved in (dock.visibilityChanged, dock.dockLocationChanged, dock.topLevelChanged, changed):
                    moved.connect(self._on_docks_moved)

        self._turns.add(*(partial(make, panel_class) for panel_class in PANELS), self._open_docks)

    def _open_docks(self) -> None:
        from app.frame.standard_layout import StandardLayout  # noqa: PLC0415 - after the first paint

        self.standard = StandardLayout(self.area, self.docks, lambda: self._crowding)
        self.complete = True
        self.pages.setCurrentWidget(self._absent or self.area)
        self._restore_layout(self.settings.values.layout)
        self.setFocus()
        self._filled()
        self.populated.emit()

    def _restore_layout(self, layout: str) -> None:
        if not self.complete:
            return
        if self._maximised is not None:
            self._maximised.set_maximised(False)
        self._maximised = self._before_maximise = None
        state = base64.b64decode(layout or "")
        with self._docks_placed():
            self.standard.place()
            if state:
                self.standard.make_own()
                self.area.restoreState(QByteArray(state), LAYOUT_VERSION)

    @property
    def _crowding(self) -> Crowding:
        from app.frame.docks import Crowding  # noqa: PLC0415 - after the first paint

        return Crowding(sum(self.height() < self.theme.px(height) for height in (SHORT_WINDOW, LOW_WINDOW)))

    def layout_text(self) -> str:
        """The docks' places, for the preferences; nothing while they stand as the standard has them."""
        if self.standard.in_force:
            return ""
        state = self._before_maximise or self.area.saveState(LAYOUT_VERSION)
        return base64.b64encode(state.data()).decode("ascii")

    def reset_layout(self) -> None:
        """The standard layout."""
        self._restore_layout("")

    def save_layout_as(self) -> None:
        """Asks for a name and keeps the layout under it."""

        def keep(name: str) -> None:
            self.settings.update(layouts={**self.settings.values.layouts, name: self.layout_text()})

        self.sheets.save_layout(keep)

    def toggle_maximised(self, dock: PanelDock) -> None:
        """One dock alone in the window, or all as they were."""
        if dock.isFloating():
            dock.showNormal() if dock.isMaximized() else dock.showMaximized()
            return
        with self._docks_placed():
            if self._maximised is not None and self._before_maximise is not None:
                self._maximised.set_maximised(False)
                self.area.restoreState(self._before_maximise, LAYOUT_VERSION)
                self._maximised = self._before_maximise = None
            else:
                self._before_maximise = self.area.saveState(LAYOUT_VERSION)
                self._maximised = dock
                for other in self.docks.values():
                    if other is not dock and not other.isFloating():
                        other.hide()
                dock.set_maximised(True)

    @property
    def maximised(self) -> PanelDock | None:
        """The dock that has the window for itself."""
        return self._maximised

    def restore_maximised(self) -> None:
        """All docks as they were."""
        if self._maximised is not None:
            self.toggle_maximised(self._maximised)

    @contextmanager
    def _docks_placed(self) -> Iterator[None]:
        """While many docks move at once: each says so twice, and it is looked at once, when all have."""
        self._placing = True
        try:
            yield
        finally:
            self._placing = False
            self._on_docks_moved()
            self.standard.look_again()  # the window may be another since they stood so

    def _on_docks_moved(self, *_: object) -> None:
        if self._placing or not self.complete:
            return
        single = self._maximised
        if single is not None and (single.isHidden() or single.isFloating()):
            self._leave_maximised(single)
            return
        for dock in self.docks.values():
            tabs = self.area.tabifiedDockWidgets(dock)  # with one that is just going
            beside = any(not (tab.isHidden() or tab.isFloating()) for tab in tabs)
            alone = dock.isFloating() or dock is self._maximised or not beside
            dock.set_tabbed(dock.isVisible() and not alone)
        self.area.show_whether_empty(self.docks.values())
        self.frames.adopt()

    def _leave_maximised(self, dock: PanelDock) -> None:
        """The maximised dock was closed, or floats: the others come back, and it stays as it was asked to be."""
        closed, floats = dock.isHidden(), dock.isFloating()
        with self._docks_placed():
            dock.set_maximised(False)
            before, self._before_maximise, self._maximised = self._before_maximise, None, None
            if before is not None:
                self.area.restoreState(before, LAYOUT_VERSION)
            if floats:
                dock.setFloating(True)
            if closed:
                dock.hide()

    # bars and menus

    def _on_topic(self, topic: str) -> None:
        if topic == "ENGINE":
            self._on_engine()
        if (
            topic in {"PROGRESS", "MODEL"}
            and self.ctx
            and self._absent is not None
            and (self.ctx.session.model or self.ctx.session.busy)
        ):
            self._hide_absent()
        if not self._refresh.isActive():
            self._refresh.start()

    def _refresh_bars(self) -> None:
        self.registry.refreshed.emit()
        self.status.refresh()
        model = self.ctx.session.model if self.ctx else None
        self.setWindowTitle(f"{model.name} – Decoderscope" if model else "Decoderscope")

    def _on_engine(self) -> None:
        assert self.ctx is not None
        session = self.ctx.session
        if session.engine_status == "lost":
            why = again(session.engine.message)
            kept = tr("The prompt, {tokens} and all settings are kept.", tokens=tokens(session.length))
            crash = session.engine.crash
            details = (lambda: self.sheets.engine(crash)) if crash else None
            self.banners.engine_lost(f"{why} {kept}", session.restart_engine, details)
        elif session.engine_status == "silent":
            self.banners.engine_lost(again(session.engine.message), session.restart_engine, None)
        else:
            self.banners.engine_back()

    def _model_menu(self) -> TickMenu:
        from app.frame.model_menu import ModelMenu  # noqa: PLC0415

        assert self.ctx is not None
        return ModelMenu(
            self.ctx.session, self.settings, ask_open=self.sheets.open_model, open_source=self._open, parent=self
        )

    def _fill_recent_menu(self, menu: TickMenu) -> None:
        from app.frame.model_menu import fill_recent  # noqa: PLC0415

        recent = menu.add_menu(tr("Recent models"))
        assert self.ctx is not None
        fill_recent(recent, self.ctx.session, self.settings, self._open, with_default=True)
        recent.setEnabled(not recent.isEmpty())

    def _fill_panels_menu(self, menu: TickMenu) -> None:
        panels = menu.add_menu(tr("Panels"))
        for dock in self.docks.values():
            panels.addAction(dock.toggleViewAction())
        layouts = menu.add_menu(tr("Layouts"))
        for name, layout in self.settings.values.layouts.items():
            layouts.addAction(name).triggered.connect(
                lambda _checked=False, layout=layout: self._restore_layout(layout)
            )
        layouts.addSeparator()

    def _on_settings(self, changed: frozenset[str]) -> None:
        values = self.settings.values
        if "theme" in changed:
            self.theme.set_choice(values.theme)  # type: ignore[arg-type]
        if "text_scale" in changed:
            self.theme.set_text_scale(values.text_scale)
        if "language" in changed:
            set_language(values.language, self.notify.tell)
            self.rebuild()

    def rebuild(self) -> None:
        """Says everything in the language in force, a piece a turn of the event loop."""
        from app.frame.other_language import OtherLanguage  # noqa: PLC0415 - not before it is asked for

        if not self.complete:
            self.populated.connect(self.rebuild, Qt.ConnectionType.SingleShotConnection)
            return
        self._language = self._language or OtherLanguage(self)
        self._language.begin()

    # commands of the window

    def toggle_full_screen(self) -> None:
        """Full screen, or as before."""
        self.showNormal() if self.isFullScreen() else self.showFullScreen()

    def leave_text(self) -> None:
        """From the prompt's text the focus goes to the run, so that Space and → step; a click goes on typing."""
        focus = QApplication.focusWidget()
        if isinstance(focus, QPlainTextEdit):
            focus.window().setFocus()

    # the page for an absent model

    def _show_absent(self, why: str) -> None:
        from app.frame.pages import AbsentPage, default_words  # noqa: PLC0415

        assert self.ctx is not None
        self._hide_absent()
        self._why_absent = why
        session = self.ctx.session
        entry = session.desk.default_entry
        self._absent = AbsentPage(
            self.theme,
            why=again(why) or tr("The default model is not on this machine yet."),
            default_text=default_words(entry),
            default_here=bool(entry and entry.path),
            get_default=session.desk.open_default,
            open_file=self.sheets.open_model,
            open_hub=self.sheets.open_model,
        )
        self.pages.addWidget(self._absent)
        self.pages.setCurrentWidget(self._absent)

    def retranslate(self) -> None:
        """Menus, bars, titles and the page for an absent model in the language in force."""
        self.menu.retranslate()
        for bar in (self.run_bar, self.banners, self.status):
            bar.retranslate()
        for dock in self.docks.values():
            dock.retranslate()
        self.frames.retranslate()
        self.area.show_whether_empty(self.docks.values())
        self._on_engine()
        if self._absent is not None:
            self._show_absent(self._why_absent)

    def _hide_absent(self) -> None:
        if self._absent is not None:
            self.pages.removeWidget(self._absent)
            self._absent.deleteLater()
            self._absent = None
        if self.complete:
            self.pages.setCurrentWidget(self.area)

    # drops

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        path = dropped_path(event.mimeData().urls())
        self.open_path(path) if isinstance(path, Path) else self.notify.say(path)

    def open_path(self, path: Path) -> None:
        """Opens a file or folder as a model, after a look at what it is that cannot block."""
        refusal = refuse_path(path)
        if refusal:
            self.sheets.trouble(Trouble(title=tr("This can't be opened"), message=refusal, details=str(path)))
        else:
            self._open(str(path))

    def _open(self, source: str) -> None:
        if self.ctx is None or self.ctx.session.busy:
            self.notify.say(tr("Stop what is under way first."))
        else:
            self.ctx.session.open_model(source)

    # Qt

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.keys is None or not self.keys.unclaimed(event):
            event.ignore()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        clicked = event.reason() is not Qt.FocusReason.OtherFocusReason  # on what takes no focus
        if self.in_use is not None and not clicked:
            self.in_use.reset()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.keys is not None:
            self.keys.watch(self.windowHandle())

    def closeEvent(self, event: QCloseEvent) -> None:
        event.accept()
        QTimer.singleShot(0, _quit)
        try:
            self._turns.drop()
            if self._language is not None:
                self._language.end()
            for dock in self.docks.values():
                dock.let_go()
            self._save_places()
            for dock in self.docks.values():
                if dock.isFloating():
                    dock.hide()
        finally:  # whatever was raised is reported, and the program ends
            self.closed.emit()

    def _save_places(self) -> None:
        """The window's place and its docks' are preferences too."""
        if self.complete and self._absent is None:
            geometry = base64.b64encode(self.saveGeometry().data()).decode("ascii")
            self.settings.update(layout=self.layout_text(), geometry=geometry)
        self.settings.save()


def _quit() -> None:
    QApplication.quit()
