"""What is to be noticed under the prompt's box, one line high whatever there is: more of it is turned to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip
from app.widgets.elided_label import ElidedLabel

if TYPE_CHECKING:
    from app.theme import Theme

HEIGHT, SIDES, RADIUS = 20, 6, 4


@dataclass(frozen=True, kw_only=True)
class Notice:
    """`key`: what it is about. `texts`: the sentence, then shorter ones for less room. `action`: the words of its
    button and what they mean, where it has one. `voice`: red is what stands in the way of going on."""

    key: str
    texts: tuple[str, ...]
    action: tuple[str, str] | None = None
    voice: Literal["accent", "red"] = "accent"


class NoticeLine(QWidget):
    """A tinted line; hidden while there is nothing to say. `wanted` carries the key of the notice whose button was
    pressed. The notice in sight stays when others come or go, but a red one that is new comes before it."""

    wanted = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.notices: tuple[Notice, ...] = ()
        self._key = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(SIDES, 0, 1, 0)
        row.setSpacing(4)
        self.sentence = ElidedLabel()
        self.sentence.setProperty("role", "hint")
        self.action, self.turn = QPushButton(), QPushButton()
        self.action.clicked.connect(lambda _checked=False: self.wanted.emit(self._key))
        self.turn.clicked.connect(lambda _checked=False: self._turn())
        self.turn.setToolTip(tr("The next notice"))
        row.addWidget(self.sentence, 1)
        for button in (self.action, self.turn):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def set_notices(self, notices: Sequence[Notice]) -> None:
        """All there is to say, what matters most first."""
        if tuple(notices) != self.notices:
            before, self.notices = {notice.key for notice in self.notices}, tuple(notices)
            red = next((notice for notice in self.notices if notice.voice == "red"), None)
            if red is not None and red.key not in before:
                self._key = red.key
            self._show()

    @property
    def shown(self) -> Notice | None:
        """The notice in sight."""
        return next((notice for notice in self.notices if notice.key == self._key), None)

    def text(self) -> str:
        """All of them whole, a line each."""
        return "\n".join(notice.texts[0] for notice in self.notices)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colours, red = self._theme.palette, self._red
        painter.setPen(QPen(colours.red, 1) if red else Qt.PenStyle.NoPen)
        painter.setBrush(colours.red_tint if red else colours.accent_tint)
        inset = 0.5 if red else 0
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(inset, inset, -inset, -inset), RADIUS, RADIUS)

    # inside

    @property
    def _red(self) -> bool:
        return self.shown is not None and self.shown.voice == "red"

    def _turn(self) -> None:
        at = next((at for at, notice in enumerate(self.notices) if notice.key == self._key), -1)
        self._key = self.notices[(at + 1) % len(self.notices)].key
        self._show()

    def _show(self) -> None:
        if self.notices and self.shown is None:
            self._key = self.notices[0].key
        notice = self.shown
        self.setVisible(notice is not None)
        if notice is None:
            self._key = ""
            return
        self.action.setVisible(notice.action is not None)
        if notice.action is not None:
            self.action.setText(notice.action[0])
            self.action.setToolTip(notice.action[1])
        self.turn.setVisible(len(self.notices) > 1)
        at = self.notices.index(notice)
        self.turn.setText(tr("{n} of {all} ›", n=at + 1, all=len(self.notices)))
        self.setToolTip(plain_tip(self.text()))
        self.setAccessibleName(notice.texts[0])
        self._colour()
        self._fit()

    def _fit(self) -> None:
        """The longest sentence that fits."""
        notice = self.shown
        if notice is None:
            return
        buttons = [button for button in (self.action, self.turn) if not button.isHidden()]
        taken = sum(button.sizeHint().width() + self._row.spacing() for button in buttons) + SIDES + 1
        metrics, room = QFontMetricsF(self.sentence.font()), self.width() - taken
        self.sentence.setText(
            next((text for text in notice.texts if metrics.horizontalAdvance(text) <= room), notice.texts[-1])
        )

    def _restyle(self) -> None:
        px = self._theme.px
        self.setFixedHeight(px(HEIGHT))
        low = f"min-height: {px(HEIGHT) - 4}px; max-height: {px(HEIGHT) - 4}px; padding: 0 6px; border-radius: 3px;"
        for button in (self.action, self.turn):
            button.setStyleSheet(f"{low} font-size: {self._theme.font('hint').pixelSize()}px;")
        self._colour()
        self._fit()

    def _colour(self) -> None:
        """Read on its ground: red words on a red ground would not be."""
        self.sentence.setStyleSheet(f"color: {self._theme.palette.text.name()};" if self._red else "")
        self.update()
