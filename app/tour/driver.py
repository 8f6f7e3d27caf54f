"""What the tour's hands are: keys and clicks in one window, and waiting for what they ask for."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.main import Application
    from app.session import Session

STEP_SECONDS = 120.0


class TourError(Exception):
    """A step of the tour did not come to its end; the message is the sentence to print."""


class Driver:
    """Presses keys and buttons of one window, and waits until what they ask for has happened."""

    def __init__(self, application: Application, out: Path, themes: Sequence[str] = ()) -> None:
        self.application, self.out, self.themes = application, out, themes
        self.window = application.window
        self.trouble = ""
        self.files: list[Path] = []
        application.notify.trouble.connect(self._on_trouble)

    @property
    def session(self) -> Session:
        """The session, once the window has been filled."""
        assert self.application.ctx is not None
        return self.application.ctx.session

    def wait(self, done: Callable[[], object], what: str, seconds: float = STEP_SECONDS) -> None:
        """Runs the event loop until `done()`. Raises TourError naming `what`."""
        until = time.monotonic() + seconds
        while not done():
            if self.trouble:
                raise TourError(f"{what}: {self.trouble}")
            if time.monotonic() > until:
                raise TourError(f"{what}: nothing happened for {seconds:.0f} s. {self._state()}".rstrip())
            turn(20)

    def _state(self) -> str:
        """What is under way where nothing happens: the engine, what it was asked, and the panels that wait."""
        ctx = self.application.ctx
        if ctx is None:
            return ""
        asked = ", ".join(f"{pending.message.method} ({pending.age:.0f} s)" for pending in ctx.engine.under_way)
        panels = [dock.panel for dock in self.window.docks.values()]
        late = ", ".join(f"{p.panel_id}{'' if p.seen() else ' (out of sight)'}" for p in panels if not p.settled)
        return f"Engine {ctx.engine.state}, asked: {asked or 'nothing'}; panels not drawn: {late or 'none'}."

    def settle(self, milliseconds: int = 500) -> None:
        """Lets views that follow a change arrive and be painted."""
        turn(milliseconds)
        self.wait(lambda: not self.session.busy, "settling")

    def press(self, key: str, widget: QWidget | None = None) -> None:
        """Presses a key or combination, as in "Ctrl+Return", on a widget or on the window."""
        from PySide6.QtGui import QKeySequence  # noqa: PLC0415
        from PySide6.QtTest import QTest  # noqa: PLC0415

        if not self.window.isActiveWindow():  # no window manager gives the focus back where there is no display
            self.window.activateWindow()
            turn(50)
        QTest.keySequence(widget or self.window, QKeySequence(key))

    def write(self, widget: QWidget, text: str) -> None:
        """Types a text, key by key."""
        from PySide6.QtTest import QTest  # noqa: PLC0415

        QTest.keyClicks(widget, text)

    def click(self, widget: QWidget) -> None:
        """Clicks the middle of a widget."""
        from PySide6.QtCore import Qt  # noqa: PLC0415
        from PySide6.QtTest import QTest  # noqa: PLC0415

        QTest.mouseClick(widget, Qt.MouseButton.LeftButton)

    def picture(self, name: str, widget: QWidget | None = None) -> None:
        """Saves the window, or one widget of it, as it looks now, in each theme."""
        for theme in self.themes:
            self.application.settings.update(theme=theme)
            self.settle(150)
            self.wait(self._heads_drawn, "drawing every head in sight")
            path = self.out / f"{name}-{theme}.png"
            if not (widget or self.window).grab().save(str(path)):
                raise TourError(f"{path} could not be written: is there room, and may this folder be written?")
            self.files.append(path)

    def _heads_drawn(self) -> bool:
        from app.widgets.head_grid import HeadGrid  # noqa: PLC0415

        return all(not grid.missing() for grid in self.window.findChildren(HeadGrid) if grid.isVisible())

    def on_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """An error in a slot: the tour stops and says it."""
        traceback.print_exception(kind, error, trace)
        self.trouble = repr(error)

    def _on_trouble(self, trouble: object) -> None:
        self.trouble = str(getattr(trouble, "message", trouble))


def turn(milliseconds: int) -> None:
    """Runs the event loop for a while. Not QTest.qWait, which swallows exceptions in slots. Raises TourError where Qt
    has ended the application: no event loop runs any more, so that every wait would be for nothing."""
    from PySide6.QtCore import QEventLoop, QTimer  # noqa: PLC0415

    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop, loop.quit)
    if loop.exec() != 0:
        raise TourError("The window was ended from outside: its display is gone, or the session is being closed.")
