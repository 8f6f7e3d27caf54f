"""Python's collector of reference cycles, on the GUI thread alone.

Left to itself it runs in whichever thread allocates, and a widget, picture or painter that it finds there is destroyed
there while the GUI thread paints: a segmentation fault in Qt. Threads of ours write files, watch for stalls, save.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

LOOK_MS = 250


def collect_due() -> int | None:
    """Collects here and now as much as Python's thresholds ask for: the generation, None when nothing was due."""
    counts, thresholds = gc.get_count(), gc.get_threshold()
    for generation in (2, 1, 0):
        if 0 < thresholds[generation] < counts[generation]:
            gc.collect(generation)
            return generation
    return None


class Collector(QObject):
    """Stops the collector's own starts and looks every 250 ms whether one is due; make it on the GUI thread. They stay
    stopped when it is gone: whatever else of Qt is left could be found by a thread."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(collect_due)
        self._timer.start(LOOK_MS)
