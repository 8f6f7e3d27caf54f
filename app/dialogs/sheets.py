"""The window's dialogs: errors one at a time, opening a model, preferences, keys, palette, log folder, about."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from app.i18n import tr
from app.notify import WayOut
from app.settings import log_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QPoint
    from PySide6.QtWidgets import QDialog

    from app.engine import CrashInfo
    from app.notify import Trouble
    from app.window import MainWindow

MAX_TROUBLES = 8


class Sheets:
    """Opens them over a window. Their modules are imported when they are asked for, not at start."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self._troubles: deque[Trouble] = deque(maxlen=MAX_TROUBLES)

    def trouble(self, trouble: Trouble) -> None:
        """An error. One at a time: two modal sheets would hold each other's keys; the next follows."""
        from app.dialogs.error import ErrorDialog  # noqa: PLC0415
        from app.health.report import engine_line, versions  # noqa: PLC0415

        window = self._window
        shown = [dialog for dialog in window.findChildren(ErrorDialog) if dialog.isVisible()]
        if any(dialog.trouble == trouble for dialog in shown) or trouble in self._troubles:
            return  # it is on the screen already, or will be
        if shown:
            self._troubles.append(trouble)
            return
        engine = engine_line(window.ctx.session.hello) if window.ctx else ""
        dialog = ErrorDialog(window.theme, trouble, window, about=versions(engine))
        dialog.finished.connect(lambda _result: QTimer.singleShot(0, window, self._next_trouble))
        _show(dialog)

    def engine(self, crash: CrashInfo) -> None:
        """How the engine was lost."""
        from app.frame.engine_trouble import crash_trouble  # noqa: PLC0415

        assert self._window.ctx is not None
        self.trouble(crash_trouble(crash, self._window.ctx.session))

    def open_model(self, source: str = "") -> None:
        """Which model to open."""
        from app.dialogs.open_model import OpenDialog  # noqa: PLC0415

        window = self._window
        assert window.ctx is not None
        dialog = OpenDialog(window.theme, window.ctx.session, source, window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setModal(True)
        dialog.show()

    def palette(self) -> None:
        """The command palette."""
        from app.palette import CommandPalette  # noqa: PLC0415

        CommandPalette(self._window.theme, self._window.registry, self._window).open_over(self._window)

    def preferences(self, place: QPoint | None = None) -> None:
        """Preferences; a new language opens them again in the same place, after the window was made in it."""
        from app.dialogs.preferences import PreferencesDialog  # noqa: PLC0415

        assert self._window.ctx is not None
        window = self._window
        dialog = PreferencesDialog(self._window.ctx, window)
        dialog.languageChosen.connect(lambda at: QTimer.singleShot(0, window, lambda: self.preferences(at)))
        _show(dialog)
        if place is not None:
            dialog.move(place)
            dialog.language.setFocus()

    def keys(self) -> None:
        """The sheet of keys."""
        from app.dialogs.key_sheet import KeySheet  # noqa: PLC0415

        _show(KeySheet(self._window.theme, self._window.registry, self._window))

    def ask_steps(self, take: Callable[[int], None]) -> None:
        """How many steps to take."""
        from app.dialogs.steps import StepsDialog  # noqa: PLC0415

        _show(StepsDialog(self._window.theme, self._window.settings, take, self._window))

    def save_layout(self, take: Callable[[str], None]) -> None:
        """A name for the layout; one that another has is asked about."""
        from app.dialogs.ask import ConfirmDialog, NameDialog  # noqa: PLC0415

        theme, title = self._window.theme, tr("Save the layout")

        def look(name: str) -> None:
            if name not in self._window.settings.values.layouts:
                take(name)
                return
            sentence = tr("There is a layout called {name}.", name=name)
            box = ConfirmDialog(
                theme, sentence, keep=tr("Cancel"), action=tr("Replace"), title=title, parent=self._window
            )
            box.accepted.connect(lambda: take(name))
            _show(box)

        _show(NameDialog(theme, title, tr("Name"), look, self._window))

    def about(self) -> None:
        """What this is."""
        from app.dialogs.about import AboutDialog  # noqa: PLC0415
        from app.version import version  # noqa: PLC0415

        assert self._window.ctx is not None
        _show(AboutDialog(self._window.theme, self._window.ctx.session, version(), self._window))

    def log(self) -> None:
        """The folder of the log file, in the system's file manager; where there is none the place is told, to copy."""
        folder = log_folder()
        if not (folder.is_dir() and QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))):
            notify = self._window.notify

            def copy() -> None:
                QGuiApplication.clipboard().setText(str(folder))
                notify.say(tr("Copied."))

            notify.propose(tr("The log is in {folder}.", folder=folder), WayOut(label=tr("Copy the path"), run=copy))

    def _next_trouble(self) -> None:
        if self._troubles:
            self.trouble(self._troubles.popleft())


def _show(dialog: QDialog) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()
