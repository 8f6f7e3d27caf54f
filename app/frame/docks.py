"""Docks in our own frame: a title bar, a scrolled panel; a tabbed dock gives its title to the tab."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCursor,
    QKeyEvent,
    QMouseEvent,
    QMoveEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QDockWidget,
    QMainWindow,
    QScrollArea,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.frame.curtain import Curtain
from app.frame.kept_view import MOVED, keep_view
from app.frame.pages import EmptyState
from app.frame.tab_drag import release
from app.frame.title_bar import TitleBar
from app.frame.whole_edge import WholeEdge
from app.frame.widget_path import at_path, path_of
from app.i18n import tr

if TYPE_CHECKING:
    from app.keys import KeyRouter
    from app.panels.base import Panel
    from app.theme import Theme

RADIUS = 8.0
MARGIN = GAP = 8
LEAST_HEIGHT = 96
SQUEEZED = (72, 32)
"""Px a panel keeps whatever the text's size, where there is no room for what all of them need."""
DRAG = 3
"""Px from which a press on a separator is a drag."""
COLUMN_SHARES = (("left", 0.21), ("center", 0.55), ("right", 0.24))
LEFT_SHARES = (0.47, 0.43)
Area = Qt.DockWidgetArea


class PanelScroll(QScrollArea):
    """A panel that has less height than it needs is scrolled, never clipped; its width is less than it needs only where
    it is squeezed, and then it is scrolled too."""

    def __init__(self, panel: Panel, theme: Theme) -> None:
        super().__init__()
        self._panel, self._theme = panel, theme
        self.squeezed = False
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(panel)
        self.viewport().setAutoFillBackground(False)
        panel.setAutoFillBackground(False)
        self.edge = WholeEdge(self, panel, theme)
        panel.installEventFilter(self)

    def set_panel(self, panel: Panel) -> None:
        """Another panel in the place of the one there was, which is gone; as far down as that was."""
        bars = self.horizontalScrollBar(), self.verticalScrollBar()
        before = [bar.value() for bar in bars]
        self._panel = panel
        self.setWidget(panel)
        panel.setAutoFillBackground(False)
        panel.installEventFilter(self)
        self.edge.set_panel(panel)
        self.updateGeometry()
        self._fit()
        for bar, value in zip(bars, before, strict=True):
            bar.setValue(value)

    def set_squeezed(self, squeezed: bool) -> None:
        """Whether the dock may be smaller than it should, as all of them together have not the room they need."""
        self.squeezed = squeezed
        policy = Qt.ScrollBarPolicy
        self.setHorizontalScrollBarPolicy(policy.ScrollBarAsNeeded if squeezed else policy.ScrollBarAlwaysOff)
        self.updateGeometry()
        self._fit()

    def needed_width(self) -> int:
        """Px the panel needs, squeezed or not."""
        return self._panel.minimumSizeHint().width()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._panel and event.type() is QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self._fit()
        if watched is self._panel and event.type() is QEvent.Type.Paint and self._is_scrolled():
            self.edge.look_again()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
        self._panel.place_empty()
        self._panel.room_changed()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        event.ignore()  # an arrow that no widget of the panel wanted is run control's, not a scroll

    def _fit(self) -> None:
        # Not setWidgetResizable: with text that wraps it takes the height a panel would like for the least it needs.
        width = self.viewport().width()
        if self.squeezed and width + self.verticalScrollBar().sizeHint().width() < self._panel.least_width():
            width = self._panel.least_width()
        layout = self._panel.layout()
        least = self._panel.minimumSizeHint().height()
        if layout is not None and layout.hasHeightForWidth():
            least = layout.minimumHeightForWidth(width)
        self._panel.resize(width, max(self.viewport().height(), least))
        self.edge.look_again()

    def _is_scrolled(self) -> bool:
        return self._panel.height() > self.viewport().height()

    def sizeHint(self) -> QSize:
        return self._panel.sizeHint()

    def minimumSizeHint(self) -> QSize:
        least = self._panel.minimumSizeHint()
        if self.squeezed:
            return least.boundedTo(QSize(*SQUEEZED))
        return QSize(least.width(), min(least.height(), self._theme.px(LEAST_HEIGHT)))


class PanelDock(QDockWidget):
    """The dock of one panel. `maximiseAsked`: its title was double-clicked."""

    maximiseAsked = Signal()

    def __init__(self, panel: Panel, theme: Theme, keys: KeyRouter, parent: QMainWindow) -> None:
        super().__init__(tr(panel.title), parent)
        self.panel, self._theme, self._keys = panel, theme, keys
        self.tabbed = self.maximised = False
        self.setObjectName(f"dock-{panel.panel_id}")
        self.setAllowedAreas(Area.AllDockWidgetAreas)
        self.bar = TitleBar(self, theme)
        self.setTitleBarWidget(self.bar)
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(1, 0, 1, 1)
        self.scroller = PanelScroll(panel, theme)
        column.addWidget(self.scroller)
        self.setWidget(holder)
        self._watch_splitters()
        self.topLevelChanged.connect(self._on_floating)
        self.visibilityChanged.connect(lambda _visible: self.panel.look_again())
        self._in_front = False
        self.visibilityChanged.connect(lambda _visible: QTimer.singleShot(0, self, self._look_whether_in_front))
        self.toggleViewAction().triggered.connect(self._on_chosen)

    def retranslate(self) -> None:
        """Title, its bar and its tab in the language in force; the panel is as it was."""
        self.setWindowTitle(tr(self.panel.title))
        self.bar.retranslate()

    def set_panel(self, panel: Panel) -> None:
        """A panel of the same kind in the place of the one there was: with its focus, behind a picture of it until it
        is drawn."""
        before, focus = self.panel, self.window().focusWidget()
        way = path_of(before, focus) if focus is not None and before.isAncestorOf(focus) else None
        curtain = Curtain(self.scroller) if before.seen() else None
        panel.carry(before)
        keep_view(before, panel)
        if way is not None:
            self.setFocus()  # else it goes to whatever comes next, and that is in use then
        self.panel = panel
        self._watch_splitters()
        panel.behindChanged.connect(self.bar.behind.setVisible)
        self.bar.behind.hide()
        self.scroller.set_panel(panel)
        if curtain is not None:
            curtain.raise_()
            curtain.fall_over(panel)
        if way is not None and (now := at_path(panel, way)) is not None:
            now.setFocus()

    def moveEvent(self, event: QMoveEvent) -> None:
        super().moveEvent(event)
        self.panel.look_again()  # a tab that is chosen moves its dock into sight

    def toggle_floating(self) -> None:
        """Out of the window, or back in."""
        self.setFloating(not self.isFloating())

    def _look_whether_in_front(self) -> None:
        self._in_front = self.panel.seen()

    def _on_chosen(self, shown: bool) -> None:
        """In the menu: closed or behind another tab it comes to the front; Qt closes one behind a tab."""
        if shown or not self._in_front:
            self.show()
            self.raise_()

    def let_go(self) -> None:
        """Ends a drag where the mouse is; a window that goes in the middle of one ends the process (Qt 6.11)."""
        mouse = QCursor.pos()
        release(self, self.mapFromGlobal(mouse), mouse)

    def set_tabbed(self, tabbed: bool) -> None:
        """Whether a tab shows the title already."""
        if tabbed != self.tabbed:
            self.tabbed = tabbed
            self.bar.setVisible(not tabbed)
            self.bar.updateGeometry()
            self.update()

    def set_maximised(self, maximised: bool) -> None:
        """Alone in the window it has no other place: dragged out, it would bring the others back in the middle of Qt's
        drag, which ends the process."""
        self.maximised = maximised
        moves = QDockWidget.DockWidgetFeature.DockWidgetMovable
        self.setFeatures(self.features() & ~moves if maximised else self.features() | moves)
        self.bar.restyle()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # A floating dock is a window of its own: keys nobody wanted end here, not in the main window.
        if not (self.isFloating() and self._keys.unclaimed(event)):
            event.ignore()

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), colours.window)
        painter.setPen(QPen(colours.line, 1))
        painter.setBrush(colours.panel)
        painter.drawPath(_frame(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), square_top=self.tabbed))

    def _watch_splitters(self) -> None:
        for splitter in self.panel.findChildren(QSplitter):
            splitter.splitterMoved.connect(self._on_splitter)

    def _on_splitter(self) -> None:
        self.sender().setProperty(MOVED, True)

    def _on_floating(self, floating: bool) -> None:
        self.bar.show_tools()
        self.bar.updateGeometry()
        if floating:
            self.set_tabbed(False)
            self._keys.watch(self.windowHandle())
            if self.focusWidget() is None:
                self.setFocus()  # or Qt gives it to the first button, and Space would press that


class DockArea(QMainWindow):
    """Holds the docks inside the main window, with room around them."""

    resized = Signal()
    separatorMoved = Signal()
    """A person dragged what is between docks (a press alone moves nothing)."""

    def __init__(self, theme: Theme, reset: Callable[[], object]) -> None:
        """`reset` brings the standard layout: the one action where no panel stands here."""
        super().__init__()
        self.theme, self._reset = theme, reset
        self._pressed_at: QPoint | None = None
        self.empty = EmptyState(theme, self, ground="window")
        self.empty.hide()
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setObjectName("DockArea")
        self.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        # No GroupedDragging: with it Qt 6.11 ends the process where several tabs are dragged out, one after another.
        self.setDockOptions(QMainWindow.DockOption.AllowNestedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        for area in (
            Area.LeftDockWidgetArea,
            Area.RightDockWidgetArea,
            Area.TopDockWidgetArea,
            Area.BottomDockWidgetArea,
        ):
            self.setTabPosition(area, QTabWidget.TabPosition.North)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)

    def event(self, event: QEvent) -> bool:
        # Separators are no widgets: a press where there is no child is on one of them, or in the margin around.
        if isinstance(event, QMouseEvent):
            at = event.position().toPoint()
            if event.type() is QEvent.Type.MouseButtonPress:
                self._pressed_at = at if self.childAt(at) is None and self._is_separator(at) else None
            elif event.type() is QEvent.Type.MouseMove and self._pressed_at is not None:
                if (at - self._pressed_at).manhattanLength() >= DRAG:
                    self._pressed_at = None
                    self.separatorMoved.emit()
            elif event.type() is QEvent.Type.MouseButtonRelease:
                self._pressed_at = None
        return super().event(event)

    def _is_separator(self, at: QPoint) -> bool:
        return self.rect().marginsRemoved(self.contentsMargins()).contains(at)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.empty.setGeometry(self.rect())
        self.resized.emit()

    def show_whether_empty(self, docks: Collection[PanelDock]) -> None:
        """A sentence and the way back where every panel is closed, or floats."""
        away = [dock for dock in docks if dock.isHidden() or dock.isFloating()]
        empty = bool(away) and len(away) == len(docks)
        if empty:
            floats = any(not dock.isHidden() for dock in away)
            words = tr("All open panels are in windows of their own.") if floats else tr("All panels are closed.")
            self.empty.show_text("grid", words, action=tr("Reset the layout"), run=self._reset)
            self.empty.setGeometry(self.rect())
            self.empty.raise_()
        self.empty.setVisible(empty)


def _frame(rect: QRectF, *, square_top: bool) -> QPainterPath:
    path = QPainterPath()
    if not square_top:
        path.addRoundedRect(rect, RADIUS, RADIUS)
        return path
    path.moveTo(rect.left(), rect.top() - 2)
    path.lineTo(rect.left(), rect.bottom() - RADIUS)
    path.arcTo(QRectF(rect.left(), rect.bottom() - 2 * RADIUS, 2 * RADIUS, 2 * RADIUS), 180, 90)
    path.lineTo(rect.right() - RADIUS, rect.bottom())
    path.arcTo(QRectF(rect.right() - 2 * RADIUS, rect.bottom() - 2 * RADIUS, 2 * RADIUS, 2 * RADIUS), 270, 90)
    path.lineTo(rect.right(), rect.top() - 2)
    return path


class Crowding(IntEnum):
    """How little room there is, by the height beside the size of the text."""

    NONE = 0
    SHORT = 1
    """None for a row of panels under the others: they are tabs in the centre."""
    LOW = 2
    """None for two panels in one column either: they share it as tabs."""


def place(window: QMainWindow, docks: Mapping[str, PanelDock], crowding: Crowding = Crowding.NONE) -> None:
    """The standard layout: left column, centre, right, and everything else as tabs below."""
    by_area = by_areas(docks, crowding)
    for dock in docks.values():
        dock.setFloating(False)
    row = [by_area[name][0] for name in ("left", "center", "right") if name in by_area]
    if row:
        window.addDockWidget(Area.TopDockWidgetArea, row[0])
    for before, dock in pairwise(row):
        window.splitDockWidget(before, dock, Qt.Orientation.Horizontal)
    if "left" in by_area:
        for dock in by_area.get("left_below", ()):
            window.splitDockWidget(by_area["left"][0], dock, Qt.Orientation.Vertical)
    if "bottom" in by_area:
        window.addDockWidget(Area.BottomDockWidgetArea, by_area["bottom"][0])
    for dock in docks.values():
        dock.show()
    for name in ("left", "center", "right", "bottom"):
        owners = by_area.get(name, [])
        for dock in owners[1:]:
            window.tabifyDockWidget(owners[0], dock)
        if len(owners) > 1:
            owners[0].raise_()
    share_space(window, docks, crowding)


def share_space(window: QMainWindow, docks: Mapping[str, PanelDock], crowding: Crowding = Crowding.NONE) -> None:
    """Widths and heights of the standard layout, in shares of the window."""
    by_area = by_areas(docks, crowding)
    width, height = window.width(), window.height()
    columns = [(by_area[name][0], share) for name, share in COLUMN_SHARES if name in by_area]
    if len(columns) > 1:
        room = window.contentsRect().width() - GAP * (len(columns) - 1)
        needs = [
            max(dock.scroller.needed_width() + 2 for part in (name, f"{name}_below") for dock in by_area.get(part, ()))
            for name, _ in COLUMN_SHARES
            if name in by_area
        ]
        widths = fitted([width * share for _, share in columns], needs, room)
        window.resizeDocks([dock for dock, _ in columns], widths, Qt.Orientation.Horizontal)
    left, below = by_area.get("left"), by_area.get("left_below")
    if left and below:
        window.resizeDocks(
            [left[0], below[0]], [round(height * share) for share in LEFT_SHARES], Qt.Orientation.Vertical
        )
    if "bottom" in by_area and columns:
        heights = [round(height * 0.67), round(height * 0.27)]
        window.resizeDocks([columns[-1][0], by_area["bottom"][0]], heights, Qt.Orientation.Vertical)


def fitted(shares: Sequence[float], needs: Sequence[int], room: int) -> list[int]:
    """Px of each column: its share of the room, but what it needs where there is room for what all need. Else those
    that need most give way, down to one width."""
    left, open_columns, widths = room, set(range(len(needs))), [0] * len(needs)
    if sum(needs) > room:
        for column in sorted(open_columns, key=lambda column: needs[column]):
            widths[column] = min(needs[column], left // len(open_columns))
            left -= widths[column]
            open_columns.discard(column)
        return widths
    while open_columns:
        part = left / sum(shares[column] for column in open_columns)
        short = {column for column in open_columns if shares[column] * part < needs[column]}
        for column in short or open_columns:
            widths[column] = needs[column] if short else int(shares[column] * part)
        left -= sum(widths[column] for column in short)
        open_columns = open_columns - short if short else set()
    return widths


def by_areas(docks: Mapping[str, PanelDock], crowding: Crowding) -> dict[str, list[PanelDock]]:
    """The docks of each area of the standard layout, in order."""
    found: dict[str, list[PanelDock]] = {}
    for dock in docks.values():
        area = dock.panel.area
        if crowding >= Crowding.SHORT and area == "bottom":
            area = "center"
        if crowding >= Crowding.LOW:
            area = area.removesuffix("_below")
        found.setdefault(area, []).append(dock)
    return found
