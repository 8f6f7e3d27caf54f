"""The tabs of docks that share a place: the frame's upper part behind them, and the tools of the dock in front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QApplication, QHBoxLayout, QMainWindow, QTabBar, QToolButton, QWidget
from shiboken6 import isValid

from app.frame.docks import RADIUS, PanelDock
from app.frame.tab_drag import TabDrag
from app.i18n import tr
from app.widgets.info_button import InfoButton
from app.widgets.tick_menu import TickMenu

if TYPE_CHECKING:
    from app.theme import Theme


TAB_PADDING, TAB_INSET = 11, 8
"""Px at either side of a tab's text and before the first tab, as the style sheet has them."""
TIGHT_PADDING = 9
"""Px beside a tab's text, both sides together, where tabs stand close."""
SIDE, GAP, RIGHT = 24, 2, 8
"""Px of a button at 100 % text, between two, and at their right."""


class TabTools(QWidget):
    """At the right of a tab bar: what the tabbed dock's own title bar would hold; where the tabs leave less room, one
    button that has it all in a menu, which a right click on the tabs opens too. Tabs that have no room are in that menu
    alone: a tab cut in the middle of a word cannot be read."""

    def __init__(self, bar: QTabBar, theme: Theme, docks: Callable[[], list[PanelDock]]) -> None:
        super().__init__(bar)
        self._bar, self._theme, self._docks = bar, theme, docks
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, RIGHT, 0)
        row.setSpacing(GAP)
        self._folded = False
        self._buttons: list[tuple[QToolButton, str]] = []
        for icon, _, run in _tools():
            button = self._button()
            button.clicked.connect(lambda _checked=False, run=run: self._run(run))
            row.addWidget(button)
            self._buttons.append((button, icon))
        self.info = InfoButton(theme, "", "")
        row.addWidget(self.info)
        self.more = self._button()
        self.more.setText("⋯")
        self.more.clicked.connect(lambda: self.open_menu(self.more.mapToGlobal(self.more.rect().bottomLeft())))
        row.addWidget(self.more)
        bar.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        bar.customContextMenuRequested.connect(lambda at: self.open_menu(bar.mapToGlobal(at)))
        theme.changed.connect(self.restyle)
        bar.currentChanged.connect(self._on_chosen)
        TabDrag(bar, lambda: self.dock)
        self.restyle()
        self.retranslate()

    def retranslate(self) -> None:
        """Its words in the language in force."""
        names = [tip for _, tip, _ in _tools()]
        self._bar.setAccessibleName(tr("Panels"))
        for button, name in zip(
            (*(button for button, _ in self._buttons), self.more), (*names, tr("More about this panel")), strict=True
        ):
            button.setToolTip(name)
            button.setAccessibleName(name)
        self.follow()

    @property
    def dock(self) -> PanelDock | None:
        """The dock whose tab is in front."""
        title = self._bar.tabText(self._bar.currentIndex())
        return next((dock for dock in self._docks() if dock.windowTitle() == title), None)

    def follow(self) -> None:
        """The explanation is that of the dock in front."""
        dock = self.dock
        help_text = tr(dock.panel.help_text) if dock and dock.panel.help_text else ""
        if dock is not None:
            self.info.set_text(dock.windowTitle(), help_text, panel=dock.panel.panel_id)
        self._show()

    def menu(self) -> TickMenu:
        """What the buttons do, for the dock in front."""
        menu, dock = TickMenu(self), self.dock
        for icon, tip, run in _tools():
            if dock is not None and (icon != "download" or dock.panel.exports):
                action = menu.addAction(self._theme.icon(icon, "secondary", 14), tip)
                action.triggered.connect(lambda _checked=False, run=run: self._run(run))
        if dock is not None and dock.panel.help_text:
            menu.addSeparator()
            about = menu.addAction(
                self._theme.icon("info", "secondary", 14), tr("About {title}", title=dock.windowTitle())
            )
            about.triggered.connect(self.info.open)
        if self.crowded:
            menu.addSeparator()
            for index in range(self._bar.count()):
                tab = menu.addAction(self._bar.tabText(index))
                tab.setCheckable(True)
                tab.setChecked(index == self._bar.currentIndex())
                tab.triggered.connect(lambda _checked=False, index=index: self._bar.setCurrentIndex(index))
        menu.aboutToHide.connect(menu.deleteLater)
        return menu

    @property
    def crowded(self) -> bool:
        """Whether not all tabs have room."""
        return not all(self._bar.isTabVisible(index) for index in range(self._bar.count()))

    def open_menu(self, at: QPoint) -> None:
        """Opens the menu at a point of the screen."""
        self.menu().popup(at)

    def place(self) -> None:
        """At the right end, in the middle of the bar's height; folded into one button where the tabs leave no room for
        all, in the place of the last tabs where they need even that."""
        bar, side = self._bar, self._theme.px(SIDE)
        least = RIGHT + side
        fit_tabs(bar, least)
        last = max((bar.tabRect(index).right() for index in range(bar.count()) if bar.isTabVisible(index)), default=0)
        room = bar.width() - last - 1
        whole = RIGHT + sum(side + GAP for _ in (*self._buttons, self.info))
        crowded = self.crowded
        self._folded = crowded or whole > room
        self._show()
        self.adjustSize()
        self.setVisible(crowded or room >= least)
        self.move(self._bar.width() - self.width(), (self._bar.height() - self.height()) // 2)
        self.raise_()

    def _on_chosen(self) -> None:
        self.place()
        self.follow()

    def _show(self) -> None:
        dock = self.dock
        for button, icon in self._buttons:
            button.setVisible(not self._folded and (icon != "download" or (dock is not None and dock.panel.exports)))
        self.info.setVisible(not self._folded and dock is not None and bool(dock.panel.help_text))
        self.more.setVisible(self._folded)

    def _button(self) -> QToolButton:
        button = QToolButton()
        button.setProperty("flat", True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    def restyle(self) -> None:
        """Icons of the theme in force."""
        for button, icon in self._buttons:
            button.setIcon(self._theme.icon(icon, "secondary", 14))
            button.setIconSize(QSize(self._theme.px(14), self._theme.px(14)))
        for button in (*(button for button, _ in self._buttons), self.more):
            button.setFixedSize(self._theme.px(SIDE), self._theme.px(SIDE))

    def _run(self, run: Callable[[PanelDock], object]) -> None:
        dock = self.dock
        if dock is not None:
            run(dock)


def _tools() -> tuple[tuple[str, str, Callable[[PanelDock], object]], ...]:
    """Icon, name and action of each tool."""
    return (
        ("download", tr("Export this panel"), lambda dock: dock.panel.export()),
        ("float", tr("Float this panel"), PanelDock.toggle_floating),
        ("maximise", tr("Maximise this panel"), lambda dock: dock.maximiseAsked.emit()),
        ("close", tr("Close this panel"), PanelDock.close),
    )


def fit_tabs(bar: QTabBar, beside: int) -> None:
    """Sets tabs close together where they and `beside` px would not all fit otherwise; where they would not even then,
    shows the first that fit, and the one in front."""
    texts = [bar.fontMetrics().horizontalAdvance(bar.tabText(index)) for index in range(bar.count())]
    tight = sum(texts) + bar.count() * 2 * TAB_PADDING + TAB_INSET + beside > bar.width()
    if tight != bool(bar.property("tight")):
        bar.setProperty("tight", tight)
        bar.style().unpolish(bar)
        bar.style().polish(bar)
        QApplication.sendEvent(bar, QEvent(QEvent.Type.StyleChange))  # without it the tabs stay where they are
        bar.updateGeometry()
    widths, room = [text + TIGHT_PADDING for text in texts], bar.width() - beside - TAB_INSET
    shown = fitting(widths, bar.currentIndex(), room) if tight else set(range(bar.count()))
    for index in sorted(range(bar.count()), key=lambda index: index not in shown):
        if bar.isTabVisible(index) != (index in shown):  # shown before others are hidden: with none for a moment Qt
            bar.setTabVisible(index, index in shown)  # has no first tab any more, and so no room at the bar's left


def fitting(widths: Sequence[int], front: int, room: int) -> set[int]:
    """The first tabs that have room, whole, and always the one in front."""
    shown, left = {front} & set(range(len(widths))), room - (widths[front] if front >= 0 else 0)
    for index, width in enumerate(widths):
        if index == front:
            continue
        left -= width
        if left < 0:
            break
        shown.add(index)
    return shown


class TabFrames(QObject):
    """Dresses the tab bars Qt makes for tabbed docks; a double click on a tab maximises its dock. `chosen`: a click."""

    chosen = Signal(object)  # PanelDock

    def __init__(self, window: QMainWindow, theme: Theme) -> None:
        super().__init__(window)
        self._window, self._theme = window, theme
        self._tools: dict[QTabBar, TabTools] = {}
        self._hidden: list[QTabBar] = []

    def retranslate(self) -> None:
        """The words of all tools in the language in force; the tabs have their docks' titles."""
        self.adopt()
        for tools in self._tools.values():
            tools.retranslate()
            tools.place()

    def adopt(self) -> None:
        """Takes care of tab bars that are new, and of what is in front of each."""
        self._forget()
        for bar in self._in_use():
            if bar not in self._tools:
                bar.setDrawBase(False)
                bar.setExpanding(False)
                bar.setDocumentMode(True)
                bar.setElideMode(Qt.TextElideMode.ElideNone)
                bar.setUsesScrollButtons(True)  # of one tab alone that has no room
                bar.installEventFilter(self)
                self._tools[bar] = TabTools(bar, self._theme, self._docks)
                self._tools[bar].show()
                bar.tabBarClicked.connect(lambda index, bar=bar: self._choose(bar, index))
                bar.tabBarDoubleClicked.connect(lambda _index, bar=bar: self._maximise(bar))
                bar.destroyed.connect(self._forget, Qt.ConnectionType.QueuedConnection)
            self._tools[bar].follow()
            self._tools[bar].place()

    def _in_use(self) -> list[QTabBar]:
        """The tab bars of the docks as they stand. One that Qt has given up is its child till control is back in the
        event loop it was given up in, and in sight, over whatever stands there now: it is hidden."""
        bars = self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        groups = {
            frozenset(each.windowTitle() for each in (dock, *self._window.tabifiedDockWidgets(dock)))
            for dock in self._docks()
        }
        titles = {bar: frozenset(bar.tabText(index) for index in range(bar.count())) for bar in bars}
        true = {titles[bar]: bar for bar in bars if titles[bar] in groups}.values()  # of two alike the newer
        for bar in bars:
            given_up = bar not in true and any(titles[bar] & titles[other] for other in true)
            if given_up and bar.isVisible():
                bar.hide()
                self._hidden.append(bar)
            elif bar in self._hidden and not given_up:
                self._hidden.remove(bar)
                bar.show()
        return [bar for bar in bars if bar not in self._hidden]

    def _forget(self) -> None:
        """Those that are gone: Qt makes tab bars and takes them away as docks move."""
        self._tools = {bar: tools for bar, tools in self._tools.items() if isValid(bar)}
        self._hidden = [bar for bar in self._hidden if isValid(bar)]

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(watched, QTabBar):
            if event.type() is QEvent.Type.Paint:
                self._paint(watched)
            elif event.type() in {QEvent.Type.Resize, QEvent.Type.LayoutRequest} and watched in self._tools:
                self._tools[watched].place()
        return False

    def _docks(self) -> list[PanelDock]:
        return self._window.findChildren(PanelDock, options=Qt.FindChildOption.FindDirectChildrenOnly)

    def _choose(self, bar: QTabBar, index: int) -> None:
        dock = next((dock for dock in self._docks() if dock.windowTitle() == bar.tabText(index)), None)
        if dock is not None:
            self.chosen.emit(dock)

    def _maximise(self, bar: QTabBar) -> None:
        dock = self._tools[bar].dock
        if dock is not None:
            dock.maximiseAsked.emit()

    def _paint(self, bar: QTabBar) -> None:
        colours = self._theme.palette
        painter = QPainter(bar)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colours.line, 1))
        painter.setBrush(colours.panel)
        painter.drawRoundedRect(QRectF(bar.rect()).adjusted(0.5, 0.5, -0.5, RADIUS), RADIUS, RADIUS)
        painter.drawLine(0, bar.height() - 1, bar.width(), bar.height() - 1)
        painter.end()
