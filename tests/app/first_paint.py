"""Seconds from the start of the interpreter's own imports to the first paint: of a bare window, or of ours."""

from __future__ import annotations

import sys
import time

START = time.perf_counter()


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def bare() -> None:
    from PySide6.QtGui import QPaintEvent
    from PySide6.QtWidgets import QApplication, QMainWindow

    class Bare(QMainWindow):
        def paintEvent(self, event: QPaintEvent) -> None:
            super().paintEvent(event)
            tell(time.perf_counter() - START)
            app.exit()

    app = QApplication([])
    window = Bare()
    window.resize(1400, 900)
    window.show()
    app.exec()


def ours() -> None:
    from app.main import create

    application = create()

    def painted() -> None:
        tell(time.perf_counter() - START, *sorted({name.partition(".")[0] for name in sys.modules}))
        application.qt.exit()

    application.window.firstPaint.connect(painted)
    application.window.show()
    application.qt.exec()


if __name__ == "__main__":
    {"bare": bare, "ours": ours}[sys.argv[1]]()
