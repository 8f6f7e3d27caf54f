"""The line at the bottom: engine, memory, model, what is under way with Cancel, the last message, the self-check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QStatusBar, QToolButton, QWidget

from app.amounts import progress_amount, size
from app.i18n import again, tr
from app.plain import tip as plain_tip
from app.state.check_words import check_line, check_title, nearest
from app.widgets.busy_bar import BusyBar
from app.widgets.elided_label import ElidedLabel

if TYPE_CHECKING:
    from app.commands import CommandRegistry
    from app.session import Session
    from app.theme import Theme
    from model.protocol.engine_requests import SelfCheckReply
    from model.protocol.values import MemoryInfo
    from model.protocol.wire import Progress

PROGRESS_AFTER_MS = 400
MESSAGE_MS = 12_000
SIDE, SPACING, MARGIN = 12, 16, 8


class EngineDot(QWidget):
    """The engine's state as a colour, beside its words."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.voice = "secondary"
        theme.changed.connect(self._restyle)
        self._restyle()

    def set_voice(self, voice: str) -> None:
        if voice != self.voice:
            self.voice = voice
            self.update()

    def _restyle(self) -> None:
        self.setFixedSize(QSize(self._theme.px(10), self._theme.px(16)))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(getattr(self._theme.palette, self.voice))
        side = 8 * self._theme.text_scale
        painter.drawEllipse(QRectF((self.width() - side) / 2, (self.height() - side) / 2, side, side))


class StatusLine(QStatusBar):
    """The status bar. `bind` joins it to a session once there is one."""

    def __init__(self, theme: Theme, commands: CommandRegistry) -> None:
        super().__init__()
        self.setObjectName("StatusBar")
        self.setSizeGripEnabled(False)
        self._theme = theme
        self._session: Session | None = None
        self._said = self._complaint = ""
        self._memory: MemoryInfo | None = None
        self._checked: tuple[SelfCheckReply | None, str] = None, ""
        holder = QWidget()
        row = QHBoxLayout(holder)
        row.setContentsMargins(SIDE, 0, SIDE, 0)
        row.setSpacing(SPACING)
        left = QHBoxLayout()
        left.setSpacing(6)
        self.dot = EngineDot(theme)
        self.engine = QLabel()
        left.addWidget(self.dot)
        left.addWidget(self.engine)
        row.addLayout(left)
        self.memory, self.shape = QLabel(), QLabel()
        self.what = ElidedLabel()
        self.what.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        self.bar = BusyBar(theme)
        self.bar.setFixedWidth(140)
        self.cancel = QPushButton()
        self.cancel.setProperty("compact", True)
        self.cancel.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.cancel.clicked.connect(self._cancel)
        self._commands = commands
        self.message = ElidedLabel()
        self.check = QLabel()
        for label in (self.engine, self.memory, self.shape, self.what, self.check):
            label.setTextFormat(Qt.TextFormat.PlainText)
            row.addWidget(label) if label is not self.engine and label is not self.check else None
        row.addWidget(self.bar)
        row.addWidget(self.cancel)
        self.close_message = QToolButton()
        self.close_message.setProperty("flat", True)
        self.close_message.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.close_message.clicked.connect(lambda _checked=False: self.complain(""))
        self.close_message.hide()
        row.addWidget(self.close_message)
        row.addWidget(self.message, 1)
        row.addWidget(self.check)
        self.addWidget(holder, 1)
        self._progress = (self.what, self.bar, self.cancel)
        for widget in self._progress:
            widget.hide()
        theme.changed.connect(self._restyle)
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.setInterval(PROGRESS_AFTER_MS)
        self._delay.timeout.connect(self._show_progress)
        self._fade = QTimer(self)
        self._fade.setSingleShot(True)
        self._fade.setInterval(MESSAGE_MS)
        self._fade.timeout.connect(lambda: self.say(""))
        self.engine.setText(tr("starting the engine"))
        self.retranslate()

    def retranslate(self) -> None:
        """Its words in the language in force."""
        self.cancel.setText(tr("Cancel"))
        self.close_message.setAccessibleName(tr("Close this message"))
        self.close_message.setToolTip(tr("Close this message"))
        self._memory, self._checked = None, (None, "")
        self._said, self._complaint = again(self._said), again(self._complaint)
        self._restyle()
        self.refresh()

    def _restyle(self) -> None:
        side = self._theme.px(18)
        self.close_message.setFixedSize(side, side)
        self.close_message.setIcon(self._theme.icon("close", "secondary", 10))
        self._show_message()
        self._fit()

    def minimumSizeHint(self) -> QSize:
        """Nothing stops the window from being narrower than all the words."""
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Where the width ends, whole figures give way: the model's first, then the memory, then the check. The
        engine's tool tip then says them."""
        buttons = (*self._progress[1:], self.close_message)
        fixed = [self.engine, *(widget for widget in buttons if not widget.isHidden())]
        taken = sum(widget.sizeHint().width() + SPACING for widget in fixed)
        said = self.message.fontMetrics().horizontalAdvance(self._complaint)  # which is read before figures are
        taken += self.dot.width() + 2 * SIDE + max(self.message.minimumSizeHint().width(), said) + MARGIN
        figures = [label for label in (self.check, self.memory, self.shape) if label.text()]
        gone: list[str] = []
        for label in figures:
            taken += label.sizeHint().width() + SPACING
            red = label is self.check and label.text().endswith("✗")  # numbers that are wrong are said at any width
            label.setVisible(red or (taken <= self.width() and not gone))
            if label.isHidden():
                gone.append(label.text())
        self.engine.setToolTip(plain_tip("\n".join([self.engine.text(), *reversed(gone)]) if gone else ""))

    def bind(self, session: Session) -> None:
        """Shows this session from now on."""
        self._session = session
        session.aside.changed.connect(self.refresh)
        self.refresh()

    def _cancel(self) -> None:
        """Stops what is told."""
        session = self._session
        if session is not None and not session.busy and session.aside.newest is not None:
            session.aside.newest.cancel()
        else:
            self._commands.run("run.stop")

    def say(self, text: str) -> None:
        """The last message; it fades after a while. Where something is complained of, it is said once that is read."""
        self._said = text
        self._show_message()
        self._fade.start() if text else self._fade.stop()

    def complain(self, text: str) -> None:
        """Something was not done: in red until it is closed or another comes."""
        self._complaint = text
        self._show_message()
        self._fit()

    def _show_message(self) -> None:
        text = self._complaint or self._said
        self.message.setStyleSheet(f"color: {self._theme.palette.red.name()}" if self._complaint else "")
        self.message.setText(text)
        self.message.setToolTip(plain_tip(text))
        self.close_message.setVisible(bool(self._complaint))

    def refresh(self) -> None:
        """Reads everything again."""
        session = self._session
        if session is None:
            return
        words, voice = engine_words(session)
        self.engine.setText(words)
        self.dot.set_voice(voice)
        memory, model = session.memory, session.model
        if memory and memory is not self._memory:  # a tip of many lines
            self._memory = memory
            held = memory.weights + memory.kv_allocated + memory.activations
            text = tr(
                "memory {used} / {budget}", used=size(memory.rss or held), budget=size(memory.available + memory.rss)
            )
            self.memory.setText(text)
            self.memory.setToolTip(memory_tip(session))
        if model:
            heads = tr("{h} heads", h=model.n_heads)
            kv = tr("{k} KV heads", k=model.n_kv_heads) if model.n_kv_heads != model.n_heads else ""
            place = "" if model.recorded else str(model.device)
            self.shape.setText(" · ".join(x for x in (place, tr("{n} layers", n=model.n_layers), heads, kv) if x))
        self._refresh_check(session)
        if self._told(session) is not None:
            if self.bar.isVisible():
                self._show_progress()
            elif not self._delay.isActive():
                self._delay.start()
        else:
            self._delay.stop()
            for widget in self._progress:
                widget.hide()
        self._fit()

    @staticmethod
    def _told(session: Session) -> tuple[str, Progress | None] | None:
        """What is under way, and how far; the session's own before what is beside it."""
        if session.busy:
            told = bool(session.progress or session.progress_title)
            return (session.progress_title, session.progress) if told else None
        task = session.aside.newest
        return None if task is None else (task.title, task.progress)

    def _refresh_check(self, session: Session) -> None:
        reply, red = session.self_check, self._theme.palette.red.name()
        if (reply, red) == self._checked:
            return
        self._checked = reply, red
        if not reply or not reply.rows:
            self.check.setText("")
            return
        worst = nearest(reply.rows)
        self.check.setText(check_line(worst))
        self.check.setStyleSheet("" if worst.ok else f"color: {red}")
        told = tr("Of all checks this one came nearest to its bound:") if worst.ok else tr("This check does not hold:")
        rows = (f"{check_title(r)}: {r.error:.2e} {'≤' if r.ok else '>'} {r.bound:.1e}" for r in reply.rows)
        self.check.setToolTip(plain_tip("\n".join([f"{told} {check_title(worst)}", *rows])))

    def _show_progress(self) -> None:
        told = self._told(self._session) if self._session is not None else None
        if told is None:
            return
        title, progress = told
        what = again(progress.what or title if progress else title)
        if what.casefold() == self.engine.text().casefold():
            what = ""  # the engine's words at the left say it
        if progress:
            amount = progress_amount(progress.done, progress.total, progress.unit)
            what = f"{what}  {amount}".lstrip()
            self.bar.setRange(0, 1000 if progress.total else 0)
            self.bar.setValue(round(1000 * progress.done / progress.total) if progress.total else 0)
        else:
            self.bar.setRange(0, 0)
        self.what.setText(what)
        for widget in self._progress:
            widget.setVisible(widget is not self.what or bool(what))
        self._fit()


def engine_words(session: Session) -> tuple[str, str]:
    """The engine's state in words and as a colour token."""
    status, phase = str(session.engine_status), str(session.phase)
    if status == "lost":
        return tr("engine stopped"), "red"
    if status == "off":
        return tr("engine off"), "secondary"
    if status == "silent":
        return tr("engine does not answer"), "amber"
    if status == "starting":
        return tr("starting the engine"), "amber"
    working = {"opening": tr("opening the model"), "prefill": tr("prefilling"), "decode": tr("decoding")}
    if phase in working and session.busy:
        return working[phase], "amber" if phase == "decode" else "green"
    return tr("engine ready"), "green"


def memory_tip(session: Session) -> str:
    """Where the memory is."""
    memory = session.memory
    if memory is None:
        return ""
    rows = (
        (tr("weights"), memory.weights), (tr("KV cache used"), memory.kv_used),
        (tr("KV cache allocated"), memory.kv_allocated), (tr("stored activations"), memory.activations),
        (tr("budget for them"), memory.budget), (tr("engine process"), memory.rss),
        (tr("its peak"), memory.peak_rss), (tr("free on the machine"), memory.available),
    )  # fmt: skip
    return "\n".join(f"{name}: {size(value)}" for name, value in rows)
