"""The line of controls over the attention matrix: layer, head, stage, scale, options, pin, export."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QActionGroup, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QToolButton, QWidget

from app.i18n import tr
from app.panels.attention_words import head_text, layer_text, scale_items, stage_items, stage_tips, view_text
from app.widgets.segmented import Segmented
from app.widgets.tick_menu import TickMenu
from app.widgets.value_combo import Choice, ValueCombo
from model.colormaps import ONE_SIGNED

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.context import AppContext
    from app.theme import Theme

GAP = 6


class AttentionControls(QWidget):
    """Bound both ways to the selection. Where it is narrow the stages become a list and the buttons a menu; where even
    the list's words have no room, `stage_below` has them, which stands under the line."""

    exportWanted = Signal()
    gridToggled = Signal()
    tableToggled = Signal()
    colormapChosen = Signal(str)

    def __init__(self, ctx: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ctx = ctx
        theme, selection = ctx.theme, ctx.selection
        self.layer = ValueCombo(theme, tr("Layer"))
        self.head = ValueCombo(theme, tr("Head"))
        self.stage = Segmented(theme, stage_items(), label=tr("Stage"), tips=stage_tips())
        self.stage_list, self.stage_below = ValueCombo(theme, tr("Stage")), ValueCombo(theme, tr("Stage"), self)
        self.scale = ValueCombo(theme, tr("Colour scale"))
        self.pin = QPushButton(tr("Pin"))
        self.pin.setCheckable(True)  # one word for both states: a longer one might not fit where it was pressed
        self.more = MoreButton(theme)
        self.export = QPushButton(tr("Export…"))
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(GAP)
        for widget in (self.layer, self.head, self.stage, self.stage_list, self.scale, self.pin, self.more):
            self._row.addWidget(widget)
        self._row.addStretch(1)
        self._row.addWidget(self.export)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        for box in (self.stage_list, self.stage_below):
            box.set_choices([Choice(key=key, text=text) for key, text in stage_items()])
            box.keyChosen.connect(selection.set_stage)
        self.scale.set_choices([
            Choice(key=key, text=text, short=tr("log") if key == "log" else "") for key, text in scale_items()
        ])  # fmt: skip
        self.more.setAccessibleName(tr("More about this view"))
        self.more.setToolTip(tr("More about this view"))
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._menu = TickMenu(self)
        self._menu.aboutToShow.connect(self._fill_menu)
        self.more.setMenu(self._menu)
        for button in (self.pin, self.export, self.more):
            button.setFixedHeight(theme.px(28))
        self.more.setFixedWidth(32)  # at every size of the text: room is dear where that is large
        self.layer.keyChosen.connect(self._choose_layer)
        self.head.keyChosen.connect(selection.set_head)
        self.stage.keyChanged.connect(selection.set_stage)
        self.scale.keyChosen.connect(selection.set_scale)
        self.pin.clicked.connect(self.toggle_pin)
        self.export.clicked.connect(self.exportWanted)
        theme.changed.connect(self._restyle)
        self._fit()

    def sync(self) -> None:
        """Shows the selection's state."""
        selection, model = self._ctx.selection, self._ctx.session.model
        self.setEnabled(self._ctx.session.run is not None)
        layers = [
            Choice(key=i, text=layer_text(i), brief=(tr("L {layer}", layer=i), str(i)))
            for i in range(selection.n_layers)
        ]
        self.layer.set_choices([*layers, Choice(key="all", text=layer_text("all"), short=tr("All"))])
        group = model.n_heads // model.n_kv_heads if model else 1
        shared = model is not None and model.n_kv_heads < model.n_heads
        single = selection.layer != "all"
        self.head.set_choices([
            *(
                Choice(
                    key=i, text=head_text(i), brief=(tr("H {head}", head=i), str(i)),
                    note=f"KV {i // group}" if shared else "", enabled=single,
                )
                for i in range(selection.n_heads)
            ),
            Choice(key="mean", text=head_text("mean"), short=tr("Mean"), brief=(tr("Mean"),)),
            Choice(key="max", text=head_text("max"), short=tr("Max"), brief=(tr("Max"),)),
        ])  # fmt: skip
        self.layer.set_key(selection.layer)
        self.head.set_key(selection.head)
        self.stage.set_key(selection.stage)
        self.stage_list.set_key(selection.stage)
        self.stage_below.set_key(selection.stage)
        self.stage_below.setEnabled(self.isEnabled())
        self.scale.set_key(selection.scale)
        self.pin.setChecked(self._is_pinned)
        tip = tr("Keep this head beside the one you choose next, up to four")
        self.pin.setToolTip(tr("Unpin") if self._is_pinned else tip)
        self._fit()

    def toggle_pin(self) -> None:
        """Pins the view, or unpins it; says which one that put out."""
        selection = self._ctx.selection
        before = selection.pins
        selection.toggle_pin(selection.view)
        gone = [pin for pin in before if pin not in selection.pins and pin != selection.view]
        if gone:
            words = tr("{view} was unpinned: no more than four stand beside one another.", view=view_text(gone[0]))
            self._ctx.notify.say(words)

    @property
    def _is_pinned(self) -> bool:
        return self._ctx.selection.view in self._ctx.selection.pins

    def sizeHint(self) -> QSize:
        return QSize(480, self._ctx.theme.px(28))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._ctx.theme.px(28))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _choose_layer(self, layer: int | str) -> None:
        selection = self._ctx.selection
        if layer == "all":
            # One head of all layers together is no matrix of the model's: the mean of all is.
            selection.set_layer_head("all", selection.head if isinstance(selection.head, str) else "mean")
        elif isinstance(layer, int):
            selection.set_layer(layer)

    def _fit(self) -> None:
        """Gives way, in this order: Pin and Export go into the menu, the stages become a list, the scale goes too,
        layer and head are numbers, the stage goes below."""
        room = self.width()
        optional = ((self.pin,), (self.export,), (self.stage,), (self.scale,))
        for box in (self.layer, self.head):
            box.set_brief(False)
        shown = [self.layer, self.head, self.stage, self.scale, self.pin, self.more, self.export]
        for group in optional:
            if sum(map(_width, shown)) + GAP * (len(shown) - 1) <= room:
                break
            shown = [w for w in shown if w not in group]
            if self.stage in group:
                shown.append(self.stage_list)
        if sum(map(_width, shown)) + GAP * (len(shown) - 1) > room:
            for box in (self.layer, self.head):
                box.set_brief(True)
        below = self.stage_list in shown and sum(map(_width, shown)) + GAP * (len(shown) - 1) > room
        if below:
            shown.remove(self.stage_list)
        self.stage_below.setVisible(below)
        for widget in (self.stage, self.stage_list, self.scale, self.pin, self.export):
            widget.setVisible(widget in shown)

    def _fill_menu(self) -> None:
        menu, selection = self._menu, self._ctx.selection
        menu.clear()
        if not self.export.isVisible():
            menu.addAction(tr("Export…"), self.exportWanted.emit)
        if not self.pin.isVisible():
            menu.addAction(tr("Unpin") if self._is_pinned else tr("Pin"), self.toggle_pin)
            menu.addSeparator()
        self._add_scales(menu)
        fixed = menu.addAction(tr("Fixed levels 0 … 1"), lambda: selection.set_fixed(not selection.fixed))
        fixed.setEnabled(selection.stage == "weights")
        fixed.setCheckable(True)
        fixed.setChecked(selection.fixed)
        first = menu.addAction(
            tr("Ignore the first token"), lambda: selection.set_ignore_first(not selection.ignore_first)
        )
        first.setCheckable(True)
        first.setChecked(selection.ignore_first)
        colours = menu.add_menu(tr("Colour map"))
        current = self._ctx.settings.panel("attention").get("colormap", ONE_SIGNED[0])
        group = QActionGroup(colours)
        for name in ONE_SIGNED:
            action = colours.addAction(name)
            action.triggered.connect(_ignoring_state(partial(self.colormapChosen.emit, name)))
            action.setCheckable(True)
            action.setChecked(name == current)
            group.addAction(action)
        menu.addSeparator()
        menu.addAction(tr("Heads, row, column, entropy"), self.gridToggled.emit)
        menu.addAction(tr("Show as table"), self.tableToggled.emit)

    def _add_scales(self, menu: TickMenu) -> None:
        if self.scale.isVisible():
            return
        selection = self._ctx.selection
        for key, text in scale_items():
            action = menu.addAction(text)
            action.triggered.connect(_ignoring_state(partial(selection.set_scale, key)))
            action.setCheckable(True)
            action.setChecked(selection.scale == key)
            menu.choices.addAction(action)
        menu.addSeparator()

    def _restyle(self) -> None:
        for button in (self.pin, self.export, self.more):
            button.setFixedHeight(self._ctx.theme.px(28))
        self._fit()


class MoreButton(QToolButton):
    """Three dots that open a menu."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colours.accent if self.hasFocus() else colours.line, 1))
        painter.setBrush(colours.hover if self.underMouse() or self.isDown() else colours.raised)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colours.text if self.isEnabled() else colours.disabled)
        for shift in (-5.0, 0.0, 5.0):
            painter.drawEllipse(QRectF(self.rect()).center() + QPointF(shift, 0), 1.5, 1.5)


def _width(widget: QWidget) -> int:
    """Px that a widget takes in a row, which may be fixed."""
    return max(min(widget.sizeHint().width(), widget.maximumWidth()), widget.minimumWidth())


def _ignoring_state(act: Callable[[], object]) -> Callable[[bool], None]:
    """A slot for `triggered`, which says whether the action is now checked."""

    def run(_checked: bool) -> None:
        act()

    return run
