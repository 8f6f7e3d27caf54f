"""The bar under the menu: model, run control, and what the run has cost so far."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QMenu, QSizePolicy, QToolBar, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip
from app.state.on_screen import other_text
from app.widgets.chevron import draw_chevron

if TYPE_CHECKING:
    from app.commands import CommandRegistry
    from app.session import Session
    from app.theme import Theme
    from model.protocol.values import ModelInfo

HEIGHT = 28
PADDING, TIGHT = 12, 8
GAP = 8
SPACING, MARGIN = 8, 12
NARROW = 1180
LEAST_NAME = 64
USUAL = "PREFILL 88 tok 888 ms    DECODE 88 tok 88.8 tok/s    context 888 / 8,888"
USUAL_LEAST = "888 / 8,888"
"""The least the buttons leave room for, so that they keep their widths while a run grows; and the model's name too."""
LEAST_WORDS = 6
"""The number of the shortest of the readout's forms."""
Form = tuple[tuple[str, str], ...]
"""Texts and their voices, from left to right."""


class BarButton(QAbstractButton):
    """A button that says its shortcut (or a value's kind) in secondary colour."""

    def __init__(
        self, theme: Theme, text: str = "", hint: str = "", *, primary: bool = False, arrow: bool = False
    ) -> None:
        super().__init__()
        self._theme, self._hint, self._primary, self._arrow = theme, hint, primary, arrow
        self.form = 0
        """0: all is said; 1: no keys; 2: no kind of the value either, and less room around the words."""
        self._room = 0
        self.setText(text)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    @property
    def hint(self) -> str:
        """What is shown in secondary colour now."""
        return "" if self.form >= (2 if self._arrow else 1) else self._hint

    @property
    def _padding(self) -> int:
        return TIGHT if self.form == 2 else PADDING

    def set_form(self, form: int) -> None:
        """How much is said."""
        if form != self.form:
            self.form = form
            self.updateGeometry()
            self.update()

    def set_room(self, room: int) -> None:
        """Px it may take at most, its words elided; 0: as many as it needs."""
        if room != self._room:
            self._room = room
            self.updateGeometry()
            self.update()

    def set_parts(self, text: str, hint: str) -> None:
        if (text, hint) == (self.text(), self._hint):
            return  # a new text lays the whole bar out again
        self.setText(text)
        self._hint = hint
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        width = QFontMetricsF(self._text_font()).horizontalAdvance(self.text()) + 2 * self._padding
        if self.hint:
            width += QFontMetricsF(self._theme.font("hint")).horizontalAdvance(self.hint) + GAP
        whole = round(width + (self._theme.px(14) if self._arrow else 0)) + 1
        return QSize(min(whole, self._room or whole), self._theme.px(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _text_font(self) -> QFont:
        return self._theme.font("ui", bold=self._primary)

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        enabled, over = self.isEnabled(), self.underMouse()
        if self._primary and enabled:
            fill, text, hint = (
                (colours.accent_hover if over else colours.accent),
                colours.accent_text,
                colours.accent_text,
            )
            edge = colours.text if self.hasFocus() else fill
        else:
            fill = colours.pressed if self.isDown() else colours.hover if over and enabled else colours.raised
            text, hint = (colours.text, colours.secondary) if enabled else (colours.disabled, colours.disabled)
            edge = colours.accent if self.hasFocus() else colours.line
            fill = fill if enabled else colours.panel
        painter.setPen(QPen(edge, 1))
        painter.setBrush(fill)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        area = QRectF(self.rect()).adjusted(self._padding, 0, -self._padding, 0)
        bold = self._text_font()
        painter.setFont(bold)
        painter.setPen(text)
        align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        words = self.text()
        if self._room:
            room = area.width() - (self._theme.px(14) if self._arrow else 0)
            words = QFontMetricsF(bold).elidedText(words, Qt.TextElideMode.ElideRight, room)
        painter.drawText(area, align, words)
        if self.hint:
            shift = QFontMetricsF(bold).horizontalAdvance(self.text()) + GAP
            painter.setFont(self._theme.font("hint"))
            painter.setPen(hint)
            painter.setOpacity(0.8 if self._primary else 1.0)
            painter.drawText(area.adjusted(shift, 0.5, 0, 0.5), align, self.hint)
        if self._arrow:
            painter.setOpacity(1)
            grown = self._theme.text_scale
            middle = QPointF(self.width() - self._padding - 3 * grown, self.height() / 2 + 0.5)
            draw_chevron(painter, colours.secondary, middle, size=grown)


class CostReadout(QWidget):
    """PREFILL n tok ms → DECODE n tok tok/s, context n / N; drops words when there is no room for them."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._forms: tuple[Form, ...] = ((),)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.retranslate()

    def retranslate(self) -> None:
        """Its name in the language in force; the figures' words when they are read next."""
        self.setAccessibleName(tr("What the run has cost"))
        self._forms = ((),)

    def sizeHint(self) -> QSize:
        return QSize(120, self._theme.px(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(40, self._theme.px(HEIGHT))

    def set_session(self, session: Session) -> None:
        """Reads what is to be shown; nothing is painted where nothing of it has changed."""
        apart = bool(other_text(session))
        full = cost_parts(session, short=0, apart=apart)
        if full == self._forms[0]:
            return
        self._forms = (full, *(cost_parts(session, short=short, apart=apart) for short in range(1, LEAST_WORDS + 1)))
        words = ["".join(text for text, _ in self._forms[0])]
        if len(session.path_nodes()):
            words.append(tr("tok/s: one token in the time of the median decode step"))
        self.setAccessibleDescription("\n".join(words))
        if apart:
            words.insert(0, tr("The run is of another text than the prompt box holds."))
        self.setToolTip("\n".join(words))
        self.update()

    def text(self) -> str:
        """The full text."""
        return "".join(text for text, _ in self._forms[0])

    def shown(self) -> Form:
        """The longest form there is room for; none where not even the context has it."""
        return next((form for form in self._forms if self._width(form) <= self.width()), ())

    def full_width(self) -> float:
        """Px of all its words, or of those of a usual short run."""
        return max(self._width(self._forms[0]), self._width(((USUAL, "strong"),)))

    def least_width(self) -> float:
        """Px of what is said last, or of that of a usual short run."""
        return max(self._width(self._forms[-1]), self._width(((USUAL_LEAST, "strong"),)))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, form = QPainter(self), self.shown()
        x = self.width() - self._width(form)
        for text, voice in form:
            font = self._font(voice)
            painter.setFont(font)
            painter.setPen(getattr(self._theme.palette, "text" if voice == "strong" else voice))
            width = QFontMetricsF(font).horizontalAdvance(text)
            painter.drawText(QRectF(x, 0, width + 2, self.height()), Qt.AlignmentFlag.AlignVCenter, text)
            x += width

    def _font(self, voice: str) -> QFont:
        return self._theme.font("ui", bold=voice == "strong")

    def _width(self, form: Form) -> float:
        return sum(QFontMetricsF(self._font(voice)).horizontalAdvance(text) for text, voice in form)


def cost_parts(session: Session, *, short: int, apart: bool = False) -> Form:
    """Texts and voices of the readout; `short` 0 … 6 leaves out more and more, each figure whole: the prefill first,
    then decode, and words before either. `apart`: it is of another text than is typed."""
    run = session.run
    if run is None:
        return ()
    mark = ((f"{tr('run of other text')}    " if short < 2 else "≠ ", "secondary"),) if apart else ()
    units = short in {0, 1, 3}
    tok, space = (f" {tr('tok')} ", "    ") if units else (" · ", "   ")
    steps = len(run.path)
    speed = f"{1000 / session.decode_ms:.1f}" if session.decode_ms else "–"
    prefill = (
        (tr("PREFILL") + " ", "green"),
        (f"{run.n_prompt:,}", "strong"),
        (tok, "secondary"),
        (_ms(run.prefill_ms), "strong"),
        (" ms", "secondary"),
    )
    decode = (
        (space, "secondary"),
        (tr("DECODE") + " ", "amber"),
        (f"{steps:,}", "strong"),
        (tok, "secondary"),
        (speed, "strong"),
        (f" {tr('tok/s')}" if units else "/s", "secondary"),
    )
    context = (
        (("" if short >= 5 else space) + (f"{tr('context')} " if short in {0, 3, 5} else ""), "secondary"),
        (f"{run.length:,}", "strong"),
        (f" / {run.n_ctx:,}", "secondary"),
    )
    if short >= 5:
        return (*mark, *context)
    return (*mark, *decode[1:], *context) if short >= 3 else (*mark, *prefill, *decode, *context)


class RunBar(QToolBar):
    """The toolbar. `bind` joins it to a session once there is one."""

    def __init__(self, theme: Theme, commands: CommandRegistry) -> None:
        super().__init__()
        self._theme, self._commands = theme, commands
        self._session: Session | None = None
        self.setObjectName("ToolBar")
        self.setMovable(False)
        self.setFloatable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.toggleViewAction().setVisible(False)
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(MARGIN, 6, MARGIN, 6)
        row.setSpacing(SPACING)
        self.model = BarButton(theme, arrow=True)
        self.prefill = BarButton(theme, primary=True)
        self.back, self.step, self.run, self.stop = (BarButton(theme) for _ in range(4))
        self.readout = CostReadout(theme)
        for widget in (self.model, self.prefill, self.back, self.step, self.run, self.stop):
            row.addWidget(widget)
        row.addWidget(self.readout, 1)
        self.addWidget(holder)
        self._wire("run.prefill", self.prefill)
        self._wire("run.back", self.back)
        self._wire("run.step", self.step)
        self._wire("run.run", self.run)
        self._wire("run.stop", self.stop)
        self._menu: Callable[[], QMenu] | None = None
        self._fitted = self._fitted_least = 0.0
        self._opened: tuple[ModelInfo | None, str] = None, ""
        self._whole_path = ""
        theme.changed.connect(self._fit)
        self.model.clicked.connect(self._open_menu)
        commands.refreshed.connect(self.refresh)
        self.retranslate()

    def retranslate(self) -> None:
        """Its words in the language in force."""
        self.model.setAccessibleName(tr("Model, dtype and device"))
        self.model.set_parts(tr("No model"), "")
        for button, words, keys in (
            (self.prefill, tr("Prefill"), "Ctrl ⏎"),
            (self.back, tr("◂ Back"), "←"),
            (self.step, tr("Step ▸"), tr("Space")),
            (self.run, tr("Run ▸▸"), "R"),
            (self.stop, tr("Stop"), "Esc"),
        ):
            button.set_parts(words, keys)
            button.setToolTip(words)
        self.readout.retranslate()
        self._fitted = 0.0
        self.refresh()
        self._fit()

    def bind(self, session: Session, menu: Callable[[], QMenu]) -> None:
        """Shows this session from now on; `menu` makes the model menu each time it is opened."""
        self._session, self._menu = session, menu
        self.refresh()

    def refresh(self) -> None:
        """Reads everything again."""
        for command_id, button in self._buttons:
            button.setEnabled(self._commands.can(command_id))
        if self._session is None:
            return
        model = self._session.model
        if model is None:
            self.model.set_parts(tr("No model"), "")
        else:
            session = self._session
            hint = tr("recorded") if model.recorded else f"{model.dtype} · {model.device}"
            if session.engine_status == "ready" and not session.desk.loaded and not session.busy:
                hint = tr("not in the engine")
            if (model.name, hint) != (self.model.text(), self.model._hint):
                self._fitted = 0.0
            self.model.set_parts(model.name, hint)
            self.model.setToolTip(plain_tip(f"{model.name} · {hint}\n{self._path(model)}".rstrip()))
        self.readout.set_session(self._session)
        if self.readout.full_width() > self._fitted or self.readout.least_width() > self._fitted_least:
            self._fit()

    def _path(self, model: ModelInfo) -> str:
        """The whole path of the open model's folder or file, asked for once a model."""
        from app.panels.model_card_words import source_path  # noqa: PLC0415 - after the first paint

        assert self._session is not None
        source = self._session.source
        if (model, source) != self._opened:
            self._opened = model, source
            hello = self._session.hello
            self._whole_path = source_path(model, source, hello.catalogue if hello is not None else ())
        return self._whole_path

    @property
    def _buttons(self) -> tuple[tuple[str, BarButton], ...]:
        return (
            ("run.prefill", self.prefill),
            ("run.back", self.back),
            ("run.step", self.step),
            ("run.run", self.run),
            ("run.stop", self.stop),
        )

    def _wire(self, command_id: str, button: BarButton) -> None:
        button.clicked.connect(lambda: self._commands.run(command_id))

    def _open_menu(self) -> None:
        if self._menu is not None:
            menu = self._menu()
            menu.popup(self.model.mapToGlobal(self.model.rect().bottomLeft()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """The buttons say as much as leaves the run's cost its units; a run that grows takes room, it gives none."""
        buttons = (self.model, *(button for _, button in self._buttons))
        self._fitted, self._fitted_least = self.readout.full_width(), self.readout.least_width()
        self.model.set_room(0)
        for form in (0, 1, 2):
            for button in buttons:
                button.set_form(form)
            taken = sum(button.sizeHint().width() for button in buttons) + len(buttons) * SPACING + 2 * MARGIN
            wide = form or self.width() >= self._theme.px(NARROW)
            if wide and taken + self._fitted <= self.width():
                return
        over = math.ceil(taken + self._fitted_least) - self.width()
        if over > 0:  # the model's name gives way too: its tool tip has the whole of it
            whole = self.model.sizeHint().width()
            self.model.set_room(max(whole - over, min(whole, self._theme.px(LEAST_NAME))))


def _ms(value: float) -> str:
    """0 is no measurement: a prefill in visible chunks is measured when it has ended."""
    if value <= 0:
        return "–"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
