"""Bars between toolbar and panels: the engine is gone, and notices that stay until they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QMenu, QPushButton, QToolBar, QToolButton, QVBoxLayout, QWidget

from app.i18n import again, tr
from app.plain import one_line, tip

if TYPE_CHECKING:
    from app.notify import WayOut
    from app.theme import Theme

MAX_NOTICES = 3  # of red ones without buttons, and of others: the oldest gives way
MAX_CHARACTERS, MAX_TIP = 600, 4_000  # of a notice, and of its tool tip
MAX_OFFERS = 3  # at once: the next ones wait until one of them is closed


class Banner(QWidget):
    """One bar: icon, sentence, buttons. `text`: all that it is to say; `offers`: it has a button to be chosen, besides
    the one to close it."""

    text = ""
    offers = False

    def __init__(self, theme: Theme, voice: str) -> None:
        super().__init__()
        self._theme, self._voice = theme, voice
        self._close_button: QToolButton | None = None
        self._labels: list[tuple[QPushButton | QAction, str]] = []
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 8, 6)
        row.setSpacing(10)
        self.picture = QLabel()
        self.sentence = QLabel()
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setWordWrap(True)
        row.addWidget(self.picture)
        row.addWidget(self.sentence, 1)
        self.row = row
        theme.changed.connect(self.restyle)
        self.restyle()

    @property
    def red(self) -> bool:
        """Whether it says that something is wrong."""
        return self._voice == "red"

    def say(self, text: str) -> None:
        """Shows a text; of a long one, as what a file says may be, the beginning, and the rest as a tool tip."""
        self.text, shown = text, one_line(text, MAX_CHARACTERS)
        self.sentence.setText(shown)
        self.sentence.setToolTip(tip(text[:MAX_TIP]) if shown.endswith("…") and shown != text else "")

    def add_button(self, text: str, run: Callable[[], object], *, primary: bool = False) -> QPushButton:
        button = QPushButton(text)
        self._labels.append((button, text))
        button.setProperty("primary", primary)
        button.setProperty("compact", True)
        button.clicked.connect(lambda _checked=False: run())
        self.row.addWidget(button)
        return button

    def add_choices(self, text: str, choices: Sequence[tuple[str, Callable[[], object]]]) -> None:
        """A button with a menu."""
        button = QPushButton(text)
        self._labels.append((button, text))
        button.setProperty("compact", True)
        menu = QMenu(button)
        for words, run in choices:
            action = menu.addAction(words.replace("&", "&&"))
            action.triggered.connect(lambda _checked=False, run=run: run())
            self._labels.append((action, words))
        button.setMenu(menu)
        self.row.addWidget(button)

    def add_close(self, run: Callable[[], object]) -> None:
        button = QToolButton()
        button.setProperty("flat", True)
        self._close_button = button
        self.restyle()
        self._name_close()
        button.clicked.connect(lambda _checked=False: run())
        self.row.addWidget(button)

    def retranslate(self) -> None:
        """The sentence and the buttons' words in the language in force."""
        self.say(again(self.text))
        for labelled, words in self._labels:
            labelled.setText(again(words).replace("&", "&&") if isinstance(labelled, QAction) else again(words))
        self._name_close()

    def _name_close(self) -> None:
        if self._close_button is not None:
            self._close_button.setAccessibleName(tr("Close this notice"))
            self._close_button.setToolTip(tr("Close this notice"))

    def restyle(self) -> None:
        icon = "warning" if self._voice != "accent" else "info"
        self.picture.setPixmap(self._theme.pixmap(icon, self._voice, 16, 2))
        if self._close_button is not None:
            self._close_button.setFixedSize(self._theme.px(24), self._theme.px(24))
            self._close_button.setIcon(self._theme.icon("close", "secondary", 12))
            self._close_button.setIconSize(QSize(self._theme.px(12), self._theme.px(12)))
        self.update()

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() in {QEvent.Type.Resize, QEvent.Type.LayoutRequest}:  # the latter of text of another size
            self._take_height()
        return done

    def _take_height(self) -> None:
        # A toolbar asks for no height by width, so a sentence of two lines says here how high it is.
        text = self.sentence.heightForWidth(self.sentence.width())
        self.setFixedHeight(max(self._theme.px(38), text + 16))

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(getattr(colours, self._voice), 1))
        painter.setBrush(getattr(colours, f"{self._voice}_tint"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)


class BannerBar(QToolBar):
    """Holds the banners; takes no room when there are none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setObjectName("BannerBar")
        self.setMovable(False)
        self.setFloatable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.toggleViewAction().setVisible(False)
        holder = QWidget()
        self._column = QVBoxLayout(holder)
        self._column.setContentsMargins(8, 8, 8, 0)
        self._column.setSpacing(6)
        self.addWidget(holder)
        self.engine: Banner | None = None
        self.notices: list[Banner] = []
        self.hide()

    def retranslate(self) -> None:
        """All notices in the language in force."""
        for banner in self.notices:
            banner.retranslate()

    def sizeHint(self) -> QSize:
        return QSize(200, super().sizeHint().height())

    def engine_lost(self, sentence: str, restart: Callable[[], object], details: Callable[[], object] | None) -> None:
        """Says that the engine is gone, with one click to start it again."""
        self.engine_back()
        self.engine = Banner(self._theme, "red")
        self.engine.setObjectName("engine-banner")
        self.engine.say(sentence)
        if details is not None:
            self.engine.add_button(tr("Details"), details)
        self.engine.add_button(tr("Restart the engine"), restart, primary=True).setObjectName("restart-engine")
        self._column.insertWidget(0, self.engine)
        self.show()

    def engine_back(self) -> None:
        """The engine is there: its banner goes."""
        if self.engine is not None:
            self._drop(self.engine)
            self.engine = None
        self._fit()

    def notice(self, text: str, voice: str = "amber", *ways: WayOut) -> None:
        """A notice until it is closed, with a button for each way out, the last one the likeliest. Of those without
        the oldest gives way, to a red one a red one; those with stay, and what was offered in the same words before is
        over."""
        if ways:
            self.withdraw(text)
        elif any(banner.text == again(text) for banner in self.notices):
            return
        banner = Banner(self._theme, voice)
        banner.say(text)
        banner.offers = bool(ways)
        for way in ways:
            if way.choices:
                banner.add_choices(way.label, [(each.label, self._taking(banner, each)) for each in way.choices])
            else:
                banner.add_button(way.label, self._taking(banner, way), primary=way is ways[-1])
        banner.add_close(lambda: self._close(banner))
        self.notices.append(banner)
        self._column.addWidget(banner)
        alike = [each for each in self.notices if not each.offers and each.red == banner.red]
        if len(alike) > MAX_NOTICES:
            self._close(alike[0])
        self._fit()

    def withdraw(self, text: str) -> None:
        """A notice with buttons is over."""
        for banner in [each for each in self.notices if each.offers and each.text == again(text)]:
            self._close(banner)

    def _taking(self, banner: Banner, way: WayOut) -> Callable[[], object]:
        return lambda: self._take(banner, way)

    def _take(self, banner: Banner, way: WayOut) -> None:
        """Does what a button says. The notice is gone meanwhile, so that the same words may be said anew; it is back
        where nothing could be done, unless they were."""
        if banner not in self.notices:  # it was withdrawn while its menu was open
            return
        place = self.notices.index(banner)
        self.notices.remove(banner)
        done: object = False
        try:
            done = way.run()
        finally:
            if done is False and not any(each.offers and each.text == banner.text for each in self.notices):
                self.notices.insert(min(place, len(self.notices)), banner)
            else:
                self._drop(banner)
            self._fit()

    def _close(self, banner: Banner) -> None:
        if banner not in self.notices:
            return
        self.notices.remove(banner)
        self._drop(banner)
        self._fit()

    def _drop(self, banner: Banner) -> None:
        self._column.removeWidget(banner)
        banner.hide()
        banner.deleteLater()

    def _fit(self) -> None:
        offers = [banner for banner in self.notices if banner.offers]
        for place, banner in enumerate(offers):
            banner.setVisible(place < MAX_OFFERS)
        self.setVisible(self.engine is not None or bool(self.notices))
