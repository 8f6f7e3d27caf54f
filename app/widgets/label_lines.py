"""Where the lines of a label end."""

from __future__ import annotations

import math

from PySide6.QtGui import QTextLayout, QTextOption
from PySide6.QtWidgets import QLabel


def line_ends(label: QLabel) -> list[int]:
    """Px from a label's top to the end of each of its lines: one with characters of another face is higher."""
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WordWrap if label.wordWrap() else QTextOption.WrapMode.NoWrap)
    ends, end = list[int](), 0.0
    for paragraph in label.text().split("\n"):
        lines = QTextLayout(paragraph, label.font(), label)
        lines.setTextOption(option)
        lines.beginLayout()
        while (line := lines.createLine()).isValid():
            line.setLineWidth(label.contentsRect().width())
            end += line.height()
            ends.append(math.ceil(end))
        lines.endLayout()
    return ends
