"""Whole pages and empty states: what is going on, in a sentence, an icon and one action (or three)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QEnterEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr
from app.widgets.busy_bar import BusyBar

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.engine_requests import CatalogueEntry


class EmptyState(QWidget):
    """A sentence or a quiet hint, an icon, at most one action, and a bar while something is under way."""

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, ground: str = "panel") -> None:
        """`ground`: the surface it is painted on, a colour of the theme."""
        super().__init__(parent)
        self._theme, self._icon, self._ground = theme, "", ground
        theme.changed.connect(self._restyle)
        self._run: Callable[[], object] | None = None
        self.setAutoFillBackground(False)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 24, 24, 24)
        column.setSpacing(10)
        self.picture = QLabel()
        self.picture.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.sentence = QLabel()
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setWordWrap(True)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.sentence.setProperty("role", "secondary")
        self.hint = QLabel()
        self.hint.setTextFormat(Qt.TextFormat.PlainText)
        self.hint.setWordWrap(True)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.hint.setProperty("role", "hint")
        self.bar = BusyBar(theme)
        self.bar.setFixedWidth(220)
        self.action = QPushButton()
        self.action.clicked.connect(self._act)
        column.addStretch(1)
        for widget in (self.picture, self.sentence, self.hint, self.bar, self.action):
            wraps = widget in (self.sentence, self.hint)
            column.addWidget(widget, 0, Qt.AlignmentFlag(0) if wraps else Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(1)
        self.show_text("", "")

    def _act(self) -> None:
        if self._run is not None:
            self._run()

    def show_text(
        self,
        icon: str,
        sentence: str,
        *,
        hint: str = "",
        action: str = "",
        run: Callable[[], object] | None = None,
        share: float | None = None,
    ) -> None:
        """`share` 0 … 1 of what is under way, -1 when nobody knows, None for no bar. `hint`: in small letters."""
        self._icon, self._run = icon, run
        self.sentence.setText(sentence)
        self.sentence.setVisible(bool(sentence))
        self.hint.setText(hint)
        self.hint.setVisible(bool(hint))
        self.action.setText(action)
        self.action.setVisible(bool(action))
        self.bar.setVisible(share is not None)
        if share is not None:
            self.bar.setRange(0, 1000 if share >= 0 else 0)
            self.bar.setValue(round(1000 * max(share, 0)))
        self.picture.setVisible(bool(icon))
        self._restyle()

    def _restyle(self) -> None:
        if self._icon:
            self.picture.setPixmap(self._theme.pixmap(self._icon, "disabled", 28, self.devicePixelRatioF()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), getattr(self._theme.palette, self._ground))


CARD, COLUMN, SENTENCE = 230, 460, 700
"""Px at 100 % text: a card of a row, of a column, and the sentence above them at most."""
CARD_SIDE, CARD_GAP, PAGE_SIDE = 18, 12, 24


class Choice(QWidget):
    """A card to click: icon, title, sentence. `leads`: it is the one most people want, and filled with the accent."""

    def __init__(
        self, theme: Theme, icon: str, title: str, sentence: str, run: Callable[[], object], *, leads: bool = False
    ) -> None:
        super().__init__()
        self._theme, self._run, self._icon, self._leads = theme, run, icon, leads
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(title)
        self.setAccessibleDescription(sentence)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        column = QVBoxLayout(self)
        column.setContentsMargins(CARD_SIDE, CARD_SIDE, CARD_SIDE, CARD_SIDE)
        column.setSpacing(8)
        picture, heading, text = QLabel(), QLabel(title), QLabel(sentence)
        self.picture = picture
        theme.changed.connect(self._restyle)
        self._restyle()
        heading.setProperty("role", "title")
        text.setProperty("role", "" if leads else "secondary")
        for label in (heading, text):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        for widget in (picture, heading, text):
            column.addWidget(widget)
        column.addStretch(1)
        self._words = heading, text

    def least_width(self) -> int:
        """Px in which no word is cut."""
        for label in self._words:
            label.ensurePolished()
        return max(label.minimumSizeHint().width() for label in self._words) + 2 * CARD_SIDE

    def _restyle(self) -> None:
        self.picture.setPixmap(self._theme.pixmap(self._icon, "accent", 24, 2))

    def sizeHint(self) -> QSize:
        return QSize(self._theme.px(CARD), self._theme.px(150))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self._run()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            self._run()
        else:
            event.ignore()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.update()

    def leaveEvent(self, event: object) -> None:
        super().leaveEvent(event)  # type: ignore[arg-type]
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        lit = self.hasFocus() or self.underMouse()
        edge = colours.accent if lit or self._leads else colours.line
        painter.setPen(QPen(edge, 2 if lit and self._leads else 1.5 if lit else 1))
        painter.setBrush(colours.accent_tint if self._leads else colours.panel)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)


def default_words(entry: CatalogueEntry | None) -> str:
    """What the default model is, and what getting it takes."""
    if entry is None:
        return tr("A small model to begin with.")
    if entry.path:
        return tr("{title} is on this machine.", title=entry.title)
    amount = f"{entry.download_bytes / 1e6:,.0f}\N{NO-BREAK SPACE}MB"
    return tr("{title}, {licence}: a download of {size}, once.", title=entry.title, licence=entry.licence, size=amount)


class AbsentPage(QWidget):
    """No model on this machine: three ways to get one, beside one another where no word of theirs is cut, else below;
    scrolled where they have not the height."""

    def __init__(
        self,
        theme: Theme,
        *,
        why: str,
        get_default: Callable[[], object],
        default_text: str,
        default_here: bool,
        open_file: Callable[[], object],
        open_hub: Callable[[], object],
    ) -> None:
        super().__init__()
        self._theme = theme
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(PAGE_SIDE, 8, PAGE_SIDE, 8)
        column.setSpacing(10)
        heading = QLabel(tr("Which model shall be looked at?"))
        heading.setProperty("role", "heading")
        sentence = QLabel(why)
        sentence.setProperty("role", "secondary")
        sentence.setTextFormat(Qt.TextFormat.PlainText)
        sentence.setWordWrap(True)
        sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._sentence, self._row = sentence, QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._row.setSpacing(CARD_GAP)
        self.choices = (
            Choice(
                theme,
                "prompt" if default_here else "download",
                tr("Open the default model") if default_here else tr("Get the default model"),
                default_text,
                get_default,
                leads=True,
            ),
            Choice(
                theme,
                "folder",
                tr("Open a file or folder"),
                tr("A .gguf file, or a folder with config.json and safetensors, from this machine."),
                open_file,
            ),
            Choice(
                theme,
                "hub",
                tr("Get one from the hub"),
                tr("Any supported model of the Hugging Face hub, by its id."),
                open_hub,
            ),
        )
        for choice in self.choices:
            self._row.addWidget(choice)
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addLayout(self._row)
        middle.addStretch(1)
        column.addStretch(2)
        column.addWidget(heading, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(sentence, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(10)
        column.addLayout(middle)
        column.addStretch(3)
        scroller = QScrollArea()
        scroller.setFrameShape(QScrollArea.Shape.NoFrame)
        scroller.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroller.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroller.setWidgetResizable(True)
        scroller.setWidget(content)
        for ground in (scroller.viewport(), content):
            ground.setAutoFillBackground(False)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scroller)
        theme.changed.connect(self._arrange)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Sizes by the page's width and the text's size."""
        px, room = self._theme.px, self.width() - 2 * PAGE_SIDE
        count = len(self.choices)
        beside = min(px(CARD), (room - (count - 1) * CARD_GAP) // count)
        row = beside >= max(choice.least_width() for choice in self.choices)
        self._row.setDirection(QBoxLayout.Direction.LeftToRight if row else QBoxLayout.Direction.TopToBottom)
        for choice in self.choices:
            choice.setFixedWidth(beside if row else max(1, min(px(COLUMN), room)))
        wide = max(1, min(px(SENTENCE), room))
        self._sentence.setFixedWidth(wide)
        self._sentence.ensurePolished()
        self._sentence.setMinimumHeight(0)
        self._sentence.setMinimumHeight(self._sentence.heightForWidth(wide))  # a layout aligns it without asking

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        focus = self.window().focusWidget()
        if focus in {None, self.window()} or not focus.isVisible():
            self.choices[0].setFocus()  # it is drawn as the chosen one

    def paintEvent(self, _event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self._theme.palette.window)
