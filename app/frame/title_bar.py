"""A dock's title bar: its title, that it waits for the engine, and its tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from app.i18n import tr
from app.widgets.elided_label import ElidedLabel
from app.widgets.info_button import InfoButton

if TYPE_CHECKING:
    from app.frame.docks import PanelDock
    from app.theme import Theme

TITLE_HEIGHT = 34
TOOL, BAR_SIDES = 24, 32
"""Px of a button at 100 % text, and of what is beside title and buttons."""
LEAST_ALONE = 232
"""Px at 100 % text of a window that has a panel alone: its controls have room for their words."""


class TitleBar(QWidget):
    """A dock's title bar. Double-click maximises; dragging moves the dock (Qt does that when we leave the event)."""

    def __init__(self, dock: PanelDock, theme: Theme) -> None:
        super().__init__(dock)
        self._dock, self._theme, self._keeps = dock, theme, True
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 8, 0)
        row.setSpacing(2)
        self.label = ElidedLabel()
        self.label.setFont(theme.font("title"))
        row.addWidget(self.label, 1)
        self.behind = QLabel()
        self.behind.setTextFormat(Qt.TextFormat.PlainText)
        self.behind.setProperty("role", "hint")
        self.behind.hide()
        dock.panel.behindChanged.connect(self.behind.setVisible)
        row.addWidget(self.behind)
        self.export_button = self._button("download", lambda: dock.panel.export())  # noqa: PLW0108 - not always this one
        self.float_button = self._button("float", dock.toggle_floating)
        self.maximise_button = self._button("maximise", dock.maximiseAsked.emit)
        self.close_button = self._button("close", dock.close)
        for button in (self.export_button, self.float_button, self.maximise_button, self.close_button):
            row.addWidget(button)
        self.info = InfoButton(theme, "", "")
        row.addWidget(self.info)
        self.info.setVisible(bool(dock.panel.help_text))
        theme.changed.connect(self.restyle)
        self.retranslate()

    def retranslate(self) -> None:
        """Its words in the language in force."""
        panel = self._dock.panel
        title = tr(panel.title)
        self.label.setText(title)
        self.behind.setText(tr("updating …"))
        self.behind.setToolTip(tr("The engine has not answered yet: what is drawn is of before."))
        for button, words in (
            (self.export_button, tr("Export this panel")),
            (self.float_button, tr("Float {title}", title=title)),
            (self.close_button, tr("Close {title}", title=title)),
        ):
            button.setToolTip(words)
            button.setAccessibleName(words)
        self.info.set_text(title, tr(panel.help_text) if panel.help_text else "", panel=panel.panel_id)
        self.restyle()

    def show_tools(self) -> None:
        """Always where the dock stands alone: the way back is in sight. Otherwise under the mouse."""
        self._show_tools(visible=self.underMouse() or self._dock.isFloating() or self._dock.maximised)

    def restyle(self) -> None:
        """Icons and fonts of the theme in force."""
        self.label.setFont(self._theme.font("title"))
        for button, icon in (
            (self.export_button, "download"),
            (self.float_button, "float"),
            (self.maximise_button, "restore" if self._dock.maximised else "maximise"),
            (self.close_button, "close"),
        ):
            button.setIcon(self._theme.icon(icon, "secondary", 14))
            button.setIconSize(QSize(self._theme.px(14), self._theme.px(14)))
            button.setFixedSize(self._theme.px(TOOL), self._theme.px(TOOL))
        title = self.label.text()
        words = tr("Maximise {title}", title=title)
        if self._dock.maximised:
            words = tr("Restore {title} (Esc)", title=title)
        self.maximise_button.setToolTip(words)
        self.maximise_button.setAccessibleName(words)
        self.show_tools()
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return self._hint

    def minimumSizeHint(self) -> QSize:
        return self._least

    def updateGeometry(self) -> None:
        """Kept between changes: a dock that moves has Qt ask for these sizes two thousand times."""
        self._hint = QSize(super().sizeHint().width(), 0 if self._dock.tabbed else self._theme.px(TITLE_HEIGHT))
        alone = max(self._whole_width(), self._theme.px(LEAST_ALONE)) if self._dock.isFloating() else 0
        self._least = QSize(max(60, alone), self._hint.height())
        super().updateGeometry()

    def _whole_width(self) -> int:
        title = self.label.fontMetrics().horizontalAdvance(self.label.text())
        return title + 5 * self._theme.px(TOOL) + BAR_SIDES

    def _has_room(self) -> bool:
        return self._whole_width() <= self.width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._has_room() != self._keeps:
            self.show_tools()

    def enterEvent(self, event: QEvent) -> None:
        super().enterEvent(event)  # type: ignore[arg-type] # QEnterEvent
        self._show_tools(visible=True)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self.show_tools()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._dock.maximiseAsked.emit()
            event.accept()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QPen(self._theme.palette.line, 1))
        painter.drawLine(0, self.height() - 1, self.width(), self.height() - 1)

    def _button(self, icon: str, run: Callable[[], object]) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("flat", True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setObjectName(f"dock-{icon}")
        button.clicked.connect(lambda _checked=False: run())
        return button

    def _show_tools(self, *, visible: bool) -> None:
        """The tools keep their room, so that nothing moves when they appear; not where it is the title's."""
        keeps = self._keeps = self._has_room()
        for button in (self.export_button, self.float_button, self.maximise_button, self.close_button):
            policy = button.sizePolicy()
            policy.setRetainSizeWhenHidden(keeps and button is not self.export_button)
            button.setSizePolicy(policy)
            button.setVisible(visible and (button is not self.export_button or self._dock.panel.exports))
        row = self.layout()
        if row is not None:
            row.invalidate()  # Qt does not, for the policy of what is hidden and of one size only
