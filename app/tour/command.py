"""The command `decoderscope tour`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.tour.driver import Driver, TourError
from app.tour.walk import export, walk

SMALLEST, LARGEST = (400, 300), 8000


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
