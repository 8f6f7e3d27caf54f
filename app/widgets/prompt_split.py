"""The prompt's box over its tokens: both take the height there is, in whole lines and whole rows."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter

from app.widgets.prompt_edit import PromptEdit
from app.widgets.token_strip import LEAST_ROWS, TokenStrip

LEAST_LINES, SHARE = 2, 0.3
"""Lines of text the box shows at least, and what of the height it takes where there is more."""


class PromptSplit(QSplitter):
    """Shares the height out anew when it changes, until a person moves the handle: the sizes are their `own` then."""

    def __init__(self, edit: PromptEdit, strip: TokenStrip) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self._edit, self._strip, self.own = edit, strip, False
        self._lean = False
        self.setChildrenCollapsible(False)
        self.setHandleWidth(6)
        self.addWidget(edit)
        self.addWidget(strip)
        self.setStretchFactor(0, 0)
        self.setStretchFactor(1, 1)
        self.splitterMoved.connect(self._on_moved)

    def take(self, edit: PromptEdit) -> None:
        """Another box in the place of the one there was."""
        self._edit.setParent(None)
        self._edit = edit
        self.insertWidget(0, edit)
        self.setStretchFactor(0, 0)
        self.setStretchFactor(1, 1)
        self.share()

    def set_lean(self, lean: bool) -> None:
        """Asks for no more than the least, a row of tokens, while what stands below needs the height."""
        if lean != self._lean:
            self._lean = lean
            self._strip.set_least_rows(1 if lean else LEAST_ROWS)
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint() if self._lean else super().sizeHint()

    def share(self) -> None:
        """The box gets its lines, and those more for which no row of tokens has to go: less than a row is of no use to
        the tokens."""
        least = self._edit.height_of(LEAST_LINES)
        if least != self._edit.minimumHeight():
            self._edit.setMinimumHeight(least)
        if self.own or self.height() <= 0:
            return
        line, height = self._edit.height_of(LEAST_LINES + 1) - least, self.height() - self.handleWidth()
        lines = max(LEAST_LINES, int(SHARE * height) // line)
        edit = self._edit.height_of(lines)
        spare = height - edit - self._strip.height_of(self._strip.rows_in(height - edit))
        edit += max(spare, 0) // line * line
        if self.sizes() != [edit, max(1, height - edit)]:
            self.setSizes([edit, max(1, height - edit)])

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.share()

    def _on_moved(self, *_: object) -> None:
        self.own = True
