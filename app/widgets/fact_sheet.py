"""Named facts in sentences: names at the left, plain text that wraps at the right, scrolled where there is more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
)
from PySide6.QtWidgets import QGridLayout, QLabel, QMenu, QScrollArea, QWidget

from app.i18n import tr
from app.widgets.label_lines import line_ends

if TYPE_CHECKING:
    from app.theme import Theme

LONG_WORD, BREAK = 16, "\u200b"
"""Letters of a word from which it may be broken, and what is put where it may: of no width."""
SPACING, MARGIN = 12, 4
Fact = tuple[str, str]
"""A name and what is said."""


class FactSheet(QScrollArea):
    """Text can be selected; Ctrl+C copies all where nothing is. Unscrolled, its last line in sight is whole."""

    def __init__(self, theme: Theme, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._facts: tuple[Fact, ...] = ()
        self._labels: list[tuple[QLabel, QLabel]] = []
        self._page = QWidget()
        self._grid = QGridLayout(self._page)
        self._grid.setContentsMargins(0, 2, MARGIN, 2)
        self._grid.setHorizontalSpacing(SPACING)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)
        self.setWidget(self._page)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self._page.setAutoFillBackground(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(label)
        theme.changed.connect(self._restyle)

    def set_facts(self, facts: Sequence[Fact]) -> None:
        """Shows facts in order."""
        if tuple(facts) == self._facts:
            return
        self._facts = tuple(facts)
        while len(self._labels) > len(self._facts):
            for label in self._labels.pop():
                label.setParent(None)
                label.deleteLater()
        while len(self._labels) < len(self._facts):
            self._labels.append(self._make(len(self._labels)))
        for (name, _), (left, right) in zip(self._facts, self._labels, strict=True):
            left.setText(name)
            right.setAccessibleName(name)
        self._break_words()
        self.setAccessibleDescription(self.text())
        self._grid.setRowStretch(self._grid.rowCount(), 0)
        for row in range(self._grid.rowCount() + 1):
            self._grid.setRowStretch(row, 1 if row == len(self._facts) else 0)
        self._end_whole()

    @property
    def facts(self) -> tuple[Fact, ...]:
        return self._facts

    def text(self) -> str:
        """All of it, a fact a line."""
        return "\n".join(f"{name}\t{text}" for name, text in self._facts)

    def needed_height(self) -> int:
        """Px that all facts take at the present width of the sheet."""
        return self._grid.totalHeightForWidth(self._page.width())

    def resizeEvent(self, event: QResizeEvent) -> None:
        # As wide with the bar as without: where its coming narrowed the page while that was laid out, lines ran on
        # under it.
        self._page.setFixedWidth(max(self.width() - self.verticalScrollBar().sizeHint().width(), 1))
        super().resizeEvent(event)
        self._break_words()
        self._end_whole()

    def _break_words(self) -> None:
        """Lets long words end a line where the names leave too little room for them."""
        metrics = QFontMetrics(self._theme.font("table"))
        names = max((metrics.horizontalAdvance(name) for name, _ in self._facts), default=0)
        room = self._page.width() - names - SPACING - MARGIN - 2
        for (_, text), (_, right) in zip(self._facts, self._labels, strict=True):
            broken = " ".join(_breakable(word, metrics, room) for word in text.split(" "))
            if broken != right.text():
                right.setText(broken)

    def _end_whole(self) -> None:
        """Leaves the px under the last line that fits empty."""
        room, spare = self.height(), 0
        if self.needed_height() > room:
            self._page.resize(self._page.width(), self.needed_height())
            self._grid.activate()
            self._grid.setGeometry(self._page.rect())  # at once, as it is else only once it is shown
            ends = (
                right.y() + max(end, left.sizeHint().height())
                for left, right in self._labels
                for end in line_ends(right)
            )
            spare = room - max((end for end in ends if end <= room), default=room)
        if spare != self.viewportMargins().bottom():
            self.setViewportMargins(0, 0, 0, spare)

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(360), self._theme.px(180))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._theme.px(160), self._theme.px(60))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        at = self._page.mapFromGlobal(event.globalPos()).y()
        for (name, text), (_, right) in zip(self._facts, self._labels, strict=True):
            if right.y() <= at <= right.geometry().bottom():
                menu.addAction(tr("Copy {name}", name=name), partial(QGuiApplication.clipboard().setText, text))
        menu.addAction(tr("Copy all"), self._copy)
        menu.popup(event.globalPos())

    def _make(self, row: int) -> tuple[QLabel, QLabel]:
        left, right = QLabel(), _Words()
        for label in (left, right):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
            label.setFont(self._theme.font("table"))
        left.setProperty("role", "secondary")
        right.setWordWrap(True)
        right.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        right.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self._grid.addWidget(left, row, 0)
        self._grid.addWidget(right, row, 1)
        return left, right

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text())

    def _restyle(self) -> None:
        for pair in self._labels:
            for label in pair:
                label.setFont(self._theme.font("table"))
        self._break_words()
        self._end_whole()


class _Words(QLabel):
    """Text whose long words may end a line anywhere; what is copied from it has no breaks."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy) and self.hasSelectedText():
            QGuiApplication.clipboard().setText(self.selectedText().replace(BREAK, ""))
        else:
            super().keyPressEvent(event)


def _breakable(word: str, metrics: QFontMetrics, room: int) -> str:
    """A word that may be too long for a line of `room` px, with places to break it: a path between its names, and what
    alone is longer than a line (a hash) anywhere."""
    if len(word) <= LONG_WORD:
        return word
    names = _NAMES.findall(word)
    return BREAK.join(BREAK.join(name) if metrics.horizontalAdvance(name) > room else name for name in names)


_NAMES = re.compile(r"[^/\\]*[/\\]+|[^/\\]+")
