"""`decoderscope tour`: the real window walks the main job by itself, by key presses and clicks, and leaves pictures.

It is what `make run` does where there is no display, and a smoke test of the whole program.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from app.main import Application
    from app.panels.attention import AttentionPanel
    from app.session import Session

PROMPT = "The animal didn't cross the street because it was too wide"
STEPS = 8
HEADS = ((13, 8), (14, 8), (14, 7))
FORMATS = ("png", "svg", "pdf", "csv", "npz")
SMALLEST, LARGEST = (400, 300), 8000
START_SECONDS, STEP_SECONDS = 240.0, 120.0


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
                raise TourError(f"{what}: nothing happened for {seconds:.0f} s.")
            turn(20)

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
    """Runs the event loop for a while. Not QTest.qWait, which swallows exceptions in slots."""
    from PySide6.QtCore import QEventLoop, QTimer  # noqa: PLC0415

    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def walk(driver: Driver) -> None:
    """The main job, with a picture after each part, and of every panel once the example is up."""
    from app.tour_panels import photograph  # noqa: PLC0415

    _start(driver)
    photograph(driver)
    _prompt(driver)
    _steps(driver)
    _heads(driver)
    _sliders(driver)


def _start(driver: Driver) -> None:
    driver.window.show()
    driver.wait(lambda: driver.application.ctx is not None, "opening the window", START_SECONDS)
    absent: list[str] = []
    driver.session.modelAbsent.connect(absent.append)

    def ready() -> bool:
        if absent:
            raise TourError(
                absent[0] or "The default model is not on this machine: run `decoderscope models get` first."
            )
        if str(driver.session.engine_status) == "lost":
            raise TourError(driver.session.engine.message)
        run = driver.session.run
        return run is not None and len(run.path) >= 7 and not driver.session.busy

    driver.wait(ready, "opening the model and its example", START_SECONDS)
    _see_attention(driver)
    driver.picture("1-start")


def _prompt(driver: Driver) -> None:
    from app.panels.prompt import PromptPanel  # noqa: PLC0415

    panel = driver.window.docks["prompt"].panel
    assert isinstance(panel, PromptPanel)
    old_run = driver.session.run_id
    driver.click(panel.edit.viewport())
    panel.edit.setFocus()
    driver.press("Ctrl+A", panel.edit)
    driver.write(panel.edit, PROMPT)
    driver.wait(lambda: driver.session.prompt.shown == PROMPT, "tokenising the prompt")
    driver.press("Ctrl+Return")
    driver.wait(lambda: driver.session.run_id != old_run and not driver.session.busy, "prefilling the prompt")
    driver.settle()
    driver.picture("2-prefill")


def _steps(driver: Driver) -> None:
    driver.window.setFocus()
    for step in range(1, STEPS + 1):
        driver.press("Space")
        driver.wait(lambda step=step: len(driver.session.path_nodes()) >= step, f"decoding step {step}")  # type: ignore[misc]
        driver.wait(lambda: not driver.session.busy, "decoding")
    for key, steps in (("Left", STEPS - 1), ("Right", STEPS)):
        driver.press(key)
        driver.wait(lambda steps=steps: len(driver.session.path_nodes()) == steps, "stepping back and forth")  # type: ignore[misc]
    _see_attention(driver)
    driver.picture("3-steps")


def _heads(driver: Driver) -> None:
    assert driver.application.ctx is not None
    selection = driver.application.ctx.selection
    for layer, head in HEADS:
        for _ in range(200):
            if selection.layer != layer:
                driver.press("]" if isinstance(selection.layer, str) or selection.layer < layer else "[")
            elif selection.head != head:
                driver.press("=" if isinstance(selection.head, str) or selection.head < head else "-")
            else:
                break
        if (selection.layer, selection.head) != (layer, head):
            raise TourError(f"layer {layer}, head {head} could not be selected.")
        _see_attention(driver)
        driver.picture(f"4-layer{layer}-head{head}")


def _see_attention(driver: Driver) -> None:
    """Waits until the chosen head's exact numbers are drawn: a weight for the last query's own key."""
    panel: AttentionPanel = driver.window.docks["attention"].panel  # type: ignore[assignment] # by its id
    last = driver.session.length - 1
    driver.wait(
        lambda: panel.main.view == panel.ctx.selection.view and panel.main.heat.value_of((last, last)) is not None,
        "drawing the attention",
    )
    driver.settle(400)


def _sliders(driver: Driver) -> None:
    from app.panels.sampling import SamplingPanel  # noqa: PLC0415
    from app.widgets.slider_row import TravelSlider  # noqa: PLC0415

    panel = driver.window.docks["sampling"].panel
    assert isinstance(panel, SamplingPanel)
    for name, keys in (("temperature", ["PgUp"] * 4), ("top_p", ["PgDown"])):
        before = driver.session.distribution
        slider = panel.rows[name].findChild(TravelSlider)
        assert slider is not None
        slider.setFocus()
        for key in keys:
            driver.press(key, slider)
        driver.wait(
            lambda before=before: driver.session.distribution not in {None, before},  # type: ignore[misc]
            f"moving {name}",
        )
    driver.settle()
    driver.picture("5-sampling")
    driver.window.setFocus()


def export(driver: Driver) -> None:
    """The matrix in view in every format, by the real export."""
    from app.export.exporter import Exporter, ExportOptions  # noqa: PLC0415

    panel: AttentionPanel = driver.window.docks["attention"].panel  # type: ignore[assignment] # by its id
    ended: list[list[Path]] = []
    exporter = Exporter.shared(panel.ctx)
    exporter.ended.connect(ended.append)
    exporter.remember(ExportOptions(formats=FORMATS, folder=str(driver.out)))
    driver.press("Ctrl+Shift+E")
    driver.wait(lambda: ended, "exporting the attention matrix")
    if not ended[0]:
        raise TourError(f"exporting the attention matrix: {driver.application.notify.last}")
    driver.files += ended[0]


def run(out: Path, themes: Sequence[str], size: tuple[int, int]) -> list[Path]:
    """Walks and exports; the files made. Raises TourError."""
    from app.main import create  # noqa: PLC0415

    application = create()
    application.settings.update(theme=themes[0])
    application.window.resize(*size)
    driver = Driver(application, out, themes)
    hook, sys.excepthook = sys.excepthook, driver.on_exception
    try:
        walk(driver)
        export(driver)
    finally:
        sys.excepthook = hook
        application.window.close()
        if application.ctx is not None:
            application.ctx.engine.close()
        application.window.deleteLater()
        application.qt.processEvents()
    return driver.files


def _tell_qt(_kind: object, _context: object, text: str) -> None:
    """What Qt says, but for what every offscreen window lacks."""
    if not text.startswith("This plugin does not support"):
        sys.stderr.write(f"{text}\n")


def _size(text: str) -> tuple[int, int]:
    """The option's type: a window that its panels fit into and that a picture can hold."""
    words = text.split("x")
    if len(words) != 2 or not all(word.isascii() and word.isdecimal() and len(word) < 6 for word in words):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a width and a height such as 1400x900")
    width, height = (int(word) for word in words)
    if not (SMALLEST[0] <= width <= LARGEST and SMALLEST[1] <= height <= LARGEST):
        smallest = "x".join(map(str, SMALLEST))
        raise argparse.ArgumentTypeError(f"{text} is not from {smallest} to {LARGEST}x{LARGEST}")
    return width, height


def main(arguments: Sequence[str]) -> int:
    """The command; prints the paths of what it made. 0, or 1 with a sentence when a step failed."""
    parser = argparse.ArgumentParser(prog="decoderscope tour", description="Walks the main job in the real window.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for pictures and exports (default: out)")
    parser.add_argument("--theme", choices=("dark", "light", "both"), default="both", help="default: both")
    parser.add_argument(
        "--size", type=_size, default=(1400, 900), metavar="WxH", help="of the window, in pixels (default: 1400x900)"
    )
    options = parser.parse_args(list(arguments))
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import qInstallMessageHandler  # noqa: PLC0415 - Qt is loaded by the tour alone

    qInstallMessageHandler(_tell_qt)
    themes = ("dark", "light") if options.theme == "both" else (options.theme,)
    say = sys.stdout.write
    with tempfile.TemporaryDirectory(prefix="decoderscope-tour-") as config:
        os.environ["DECODERSCOPE_CONFIG"] = config  # the person's own preferences are neither read nor changed
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            files = run(options.out.resolve(), themes, options.size)
        except (TourError, OSError, ValueError) as error:
            sys.stderr.write(f"error: the tour stopped: {error}\n")
            return 1
    for path in files:
        say(f"{path}\n")
    return 0
