"""An error in what Qt calls of ours is told, and the process goes on: from C it would be SIGSEGV before Python 3.12."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import app.main  # as the program begins
from PySide6.QtCore import QAbstractTableModel, QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QTableView, QWidget

where = sys.argv[1]
booms = [lambda: [][0], lambda: int("x"), lambda: 1 / 0, lambda: {}["k"]]
told = []
sys.excepthook = lambda kind, error, trace: told.append(kind.__name__)
qt = QApplication([])

class Mixin:
    def paintEvent(self, event):
        booms[0]()

class Mixed(Mixin, QWidget):
    pass

class Painting(QWidget):
    def paintEvent(self, event):
        booms[0]()

class Pressed(QWidget):
    def mousePressEvent(self, event):
        booms[0]()

class Hinting(QWidget):
    def sizeHint(self):
        booms[0]()

class View(QTableView):
    def paintEvent(self, event):
        super().paintEvent(event)  # within which the model is asked

class Model(QAbstractTableModel):
    def rowCount(self, parent=None):
        return 3
    def columnCount(self, parent=None):
        return 3
    def data(self, index, role=0):
        booms[0]()

widget = {"paint": Painting, "press": Pressed, "hint": Hinting, "table": View, "mixin": Mixed}[where]()
model = Model()
if where == "table":
    widget.setModel(model)
widget.resize(200, 200)
widget.show()
at, left = QPointF(5, 5), Qt.MouseButton.LeftButton
press = QMouseEvent(QEvent.Type.MouseButtonPress, at, at, left, left, Qt.KeyboardModifier.NoModifier)
while booms:
    for call in (widget.grab, widget.adjustSize, lambda: qt.sendEvent(widget, press), qt.processEvents):
        try:
            call()  # within which Qt calls the override: its error comes out of here
        except Exception as error:
            told.append(type(error).__name__)
    booms.pop(0)
print(*sorted(set(told)))
"""


def run(script: str, *arguments: str) -> str:
    """What it prints; it ends well."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.mark.parametrize("where", ["paint", "hint", "press", "table", "mixin"])
def test_an_error_in_an_override_is_told_and_ends_nothing(where: str) -> None:
    assert run(SCRIPT, where) == "IndexError KeyError ValueError ZeroDivisionError"


def test_a_slot_without_arguments_takes_none() -> None:
    """A button's `clicked` carries whether it is checked: a slot that takes it would have one argument too many."""
    script = """
import app.main
from PySide6.QtWidgets import QApplication, QDialog, QPushButton
qt = QApplication([])
class Dialog(QDialog):
    def reject(self):
        super().reject()
        print("closed")
dialog, button = Dialog(), QPushButton()
button.clicked.connect(dialog.reject)
button.click()
"""
    assert run(script) == "closed"
