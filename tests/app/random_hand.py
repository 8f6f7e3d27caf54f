"""A random hand at the real window: clicks, keys, drags of anything, drops, sizes, languages, the engine killed.

`python tests/app/random_hand.py SEED [--seconds S] [--source MODEL]` prints each thing before it does it, so that the
last line says what ended the window. It needs a display with a window manager (`xvfb-run`). Everything goes in by the
events of the window system, as mouse and keyboard do: drags of docks ended the window, which no call of ours showed.
Exit code 1: an exception of ours, or a line of the log that says ERROR.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import psutil
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDrag, QDragEnterEvent, QDropEvent, QWheelEvent, QWindow
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QTabBar, QWidget

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.app.gui_time import isolate, wait_until

if TYPE_CHECKING:
    from app.main import Application

LEFT, RIGHT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton
PLAIN, SHIFT, CONTROL = (
    Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier,
)  # fmt: skip
NAMES = (
    "Space Left Right Up Down Tab Backtab Escape Return Home End PageUp PageDown Delete Backspace F1 F5 F11 Plus Minus "
    "Equal Slash Comma Period BracketLeft BracketRight A B C D E G H L M P R S T V X Z 0 1 2 3 4 5 6 7 8 9"
)
KEYS = [getattr(Qt.Key, f"Key_{name}") for name in NAMES.split()]
TEXTS = ("The cat sat", "0.5", "12", "<b>x</b>", "~/x", "a" * 40)
SIZES = ((1000, 700), (1280, 720), (1400, 900), (1580, 1100))
STUCK_SECONDS, LOOK_MS = 1.0, 250
"""How long a loop of Qt's own may wait (a menu, a dialog, a drag) until the hand ends it."""


class RandomHand:
    """Does one thing after another in `application`; `done` counts them by kind, `raised` exceptions of ours."""

    def __init__(self, application: Application, seed: int) -> None:
        self._application, self._window = application, application.window
        self._chance = random.Random(seed)
        self.done = Counter[str]()
        self.raised: list[str] = []
        self._held: tuple[QWindow, QPoint] | None = None
        self._last = time.monotonic()
        self._closed = False
        self._window.closed.connect(self._on_closed)
        self._rescue = QTimer(interval=LOOK_MS)
        self._rescue.timeout.connect(self._end_what_waits)
        kinds: dict[Callable[[], None], int] = {
            self._click: 30, self._key: 22, self._drag: 16, self._wheel: 8, self._move_dock: 5, self._write: 4,
            self._resize: 3, self._drop: 3, self._prefer: 2, self._kill: 1,
        }  # fmt: skip
        self._kinds, self._weights = list(kinds), list(kinds.values())

    def play(self, seconds: float) -> None:
        """Until then, or until the window is closed."""
        sys.excepthook = self._on_raised
        self._rescue.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._closed:
            self._last = time.monotonic()
            [act] = self._chance.choices(self._kinds, self._weights)
            self._do(act)
            QTest.qWait(self._chance.choice((1, 1, 10, 60)))
        self._rescue.stop()

    # what it does

    @staticmethod
    def _do(act: Callable[[], object]) -> None:
        try:
            act()
        except RuntimeError as error:  # the window that the hand was at is gone
            if "PySide6.QtGui.QWindow) already deleted" not in str(error):
                raise

    def _click(self) -> None:
        place, point = self._place()
        button = self._chance.choices((LEFT, RIGHT, MIDDLE), (16, 4, 1))[0]
        self._say("click", place, point)
        press = QTest.mouseDClick if self._chance.random() < 0.15 else QTest.mouseClick
        press(place, button, self._modifier(), point)

    def _key(self) -> None:
        place, _ = self._place()
        key, modifier = self._chance.choice(KEYS), self._modifier()
        self._say("key", key.name, modifier.name)
        QTest.keyClick(place, key, modifier)

    def _write(self) -> None:
        place, _ = self._place()
        text = self._chance.choice(TEXTS)
        self._say("write", text)
        for letter in text:
            QTest.keyClick(place, ord(letter))

    def _drag(self) -> None:
        place, point = self._grip()
        self._say("drag", place, point)
        self._held = (place, point)
        QTest.mousePress(place, LEFT, PLAIN, point)
        for _ in range(self._chance.randrange(3, 14)):
            far = self._chance.random() < 0.5
            near = point + QPoint(self._chance.randrange(-60, 60), self._chance.randrange(-60, 60))
            point = QPoint(self._chance.randrange(-40, 1500), self._chance.randrange(-40, 1000)) if far else near
            QTest.mouseMove(place, point)
            QTest.qWait(self._chance.choice((1, 5, 30)))
            if self._closed:
                return
            if self._chance.random() < 0.03:
                self._key()
        QTest.mouseRelease(place, LEFT, PLAIN, point)
        self._held = None

    def _wheel(self) -> None:
        place, point = self._place()
        self._say("wheel", place, point)
        turn = QPoint(0, self._chance.choice((-120, 120, 360)))
        where, screen = QPointF(point), QPointF(place.mapToGlobal(point))
        none, phase = Qt.MouseButton.NoButton, Qt.ScrollPhase.NoScrollPhase
        QApplication.sendEvent(place, QWheelEvent(where, screen, QPoint(), turn, none, self._modifier(), phase, False))

    def _move_dock(self) -> None:
        dock = self._chance.choice(list(self._window.docks.values()))
        act = self._chance.choice((dock.toggle_floating, dock.close, dock.show, dock.raise_))
        self._say("dock", dock.objectName(), act.__name__)
        act()

    def _resize(self) -> None:
        size = self._chance.choice(SIZES)
        self._say("size", size)
        self._window.resize(*size)

    def _drop(self) -> None:
        data = QMimeData()
        if self._chance.random() < 0.5:
            data.setText(self._chance.choice(("hello there", "x" * 5000)))
        else:
            data.setUrls([QUrl.fromLocalFile(self._chance.choice(("/etc/passwd", "/", __file__, "/none.gguf")))])
        point = QPoint(self._chance.randrange(self._window.width()), self._chance.randrange(self._window.height()))
        target = self._window.childAt(point) or self._window
        inside, copies = target.mapFrom(self._window, point), Qt.DropAction.CopyAction
        self._say("drop", type(target).__name__)
        enter = QDragEnterEvent(inside, copies, data, LEFT, PLAIN)
        QApplication.sendEvent(target, enter)
        if enter.isAccepted():
            QApplication.sendEvent(target, QDropEvent(QPointF(inside), copies, data, LEFT, PLAIN))

    def _prefer(self) -> None:
        name, values = self._chance.choice(
            (("theme", ("light", "dark")), ("text_scale", (1.0, 1.25, 1.5, 2.0)), ("language", ("en", "zh_CN")))
        )
        value = self._chance.choice(values)
        self._say("prefer", name, value)
        self._application.settings.update(**{name: value})

    def _kill(self) -> None:
        engines = psutil.Process().children()
        self._say("kill", len(engines))
        for each in engines:
            each.send_signal(self._chance.choice((signal.SIGKILL, signal.SIGSEGV)))

    # where

    def _place(self) -> tuple[QWindow, QPoint]:
        """A window, mostly the one in front, and a point of it, mostly of one of its widgets."""
        front = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        shown = [each for each in QApplication.topLevelWidgets() if each.isVisible() and each.internalWinId()]
        top: QWidget = self._window if self._chance.random() < 0.7 else self._chance.choice(shown)
        if front is not None and front.internalWinId() and self._chance.random() < 0.8:
            top = front
        widgets = [each for each in top.findChildren(QWidget) if each.isVisible() and each.window() is top]
        inner = self._chance.choice(widgets) if widgets and self._chance.random() < 0.6 else top
        return top.windowHandle(), inner.mapTo(top, self._point_of(inner))

    def _grip(self) -> tuple[QWindow, QPoint]:
        """Where a drag begins: at a title or a tab as often as anywhere else."""
        titles: list[QWidget] = [dock.bar for dock in self._window.docks.values() if dock.bar.isVisible()]
        bars = [bar for bar in self._window.findChildren(QTabBar) if bar.isVisible() and bar.count()]
        what = self._chance.random()
        if what < 0.25 and titles:
            title = self._chance.choice(titles)
            return title.window().windowHandle(), title.mapTo(title.window(), self._point_of(title))
        if what < 0.5 and bars:
            bar = self._chance.choice(bars)
            middle = bar.tabRect(self._chance.randrange(bar.count())).center()
            return bar.window().windowHandle(), bar.mapTo(bar.window(), middle)
        return self._place()

    def _point_of(self, widget: QWidget) -> QPoint:
        return QPoint(self._chance.randrange(max(1, widget.width())), self._chance.randrange(max(1, widget.height())))

    def _modifier(self) -> Qt.KeyboardModifier:
        return self._chance.choices((PLAIN, SHIFT, CONTROL), (6, 1, 1))[0]

    # what else happens

    def _say(self, kind: str, *what: object) -> None:
        self.done[kind] += 1
        told = (f"{each.x()},{each.y()}" if isinstance(each, QPoint) else each for each in what)
        print(self.done.total(), kind, *(each.objectName() if isinstance(each, QWindow) else each for each in told))
        sys.stdout.flush()

    def _end_what_waits(self) -> None:
        """Lets go of what is held, or answers the menu or dialog that waits for an answer."""
        if time.monotonic() - self._last < STUCK_SECONDS:
            return
        self._last = time.monotonic()
        front = QApplication.activePopupWidget() or QApplication.activeModalWidget()
        act: Callable[[], object] = QDrag.cancel
        if self._held is not None:
            (place, _), self._held = self._held, None
            act = partial(QTest.mouseRelease, place, LEFT, PLAIN, QPoint(20, 20))
        elif front is not None:
            act = self._chance.choice((self._click, self._key, self._write, front.close))
        self._say("help", getattr(act, "__name__", "release"))
        QTimer.singleShot(0, partial(self._do, act))  # not here: a timer that waits in a loop of Qt's rings no more

    def _on_closed(self) -> None:
        self._closed = True

    def _on_raised(self, kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
        self.raised.append(repr(error))
        sys.__excepthook__(kind, error, where)


def main(arguments: list[str]) -> int:
    """Plays on a window of its own; 1 when something of ours went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--source", default="", help="the model (default: the one that the window begins with)")
    options = parser.parse_args(arguments)
    isolate()
    faulthandler.dump_traceback_later(options.seconds + 120, exit=True)
    from app.main import create

    application = create(options.source)
    window = application.window
    application.qt.setQuitOnLastWindowClosed(False)
    window.show()
    wait_until(lambda: window.complete, 60, "the panels")
    QTest.qWait(1500)
    hand = RandomHand(application, options.seed)
    hand.play(options.seconds)
    print("played", hand.done.total(), dict(hand.done))
    window.close()
    QTest.qWait(500)
    log = Path(os.environ["DECODERSCOPE_CONFIG"]) / "decoderscope.log"
    lines = log.read_text().splitlines() if log.exists() else []
    wrong = [*hand.raised, *(line for line in lines if " ERROR " in line)]
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
