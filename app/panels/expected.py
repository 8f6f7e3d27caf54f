"""What the model expected at one position: the token that came, its rank, and the ten likeliest, scrolled where the
panel has not the height for all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.plain import tip as plain_tip
from app.widgets.candidate_table import probability
from app.widgets.elided_label import ElidedLabel

if TYPE_CHECKING:
    from app.theme import Theme
    from model.protocol.run_requests import ExpectedReply
    from model.protocol.values import Candidate

ROW, GAP, BESIDE_BAR = 19, 8, 4
LEAST_ROWS = 3
"""Rows of candidates that are seen at least."""


class ExpectedBars(QWidget):
    """Two columns of five: each a piece and its probability on a bar; the token that came is green."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: tuple[Candidate, ...] = ()
        self._came = -1
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_rows(self, rows: tuple[Candidate, ...], came: int) -> None:
        """Candidates, likeliest first, and the id that came."""
        self._rows, self._came = rows, came
        self.setAccessibleDescription("; ".join(f"{row.piece} {probability(row.p_raw, 3)}" for row in rows))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(160, self._theme.px(ROW) * -(-max(1, len(self._rows)) // 2))

    def minimumSizeHint(self) -> QSize:
        return QSize(100, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        colours, painter = self._theme.palette, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        mono, hint = self._theme.font("mono_small"), self._theme.font("hint")
        per_column = -(-len(self._rows) // 2) or 1
        width, height = (self.width() - GAP) / 2, self._theme.px(ROW)
        figures = [probability(row.p_raw, 3) for row in self._rows]
        right = max(map(QFontMetricsF(hint).horizontalAdvance, ("0.000", *figures)))
        top_p = max((row.p_raw for row in self._rows), default=1.0) or 1.0
        for at, row in enumerate(self._rows):
            column, line = divmod(at, per_column)
            cell = QRectF(column * (width + GAP), line * height, width, height - 2)
            came = row.id == self._came
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.green_tint if came else colours.raised)
            painter.drawRoundedRect(
                QRectF(cell.x(), cell.y(), max(3.0, width * row.p_raw / top_p), cell.height()), 3, 3
            )
            inside = cell.adjusted(4, 0, -4, 0)
            painter.setFont(mono)
            painter.setPen(colours.green if came else colours.text)
            room = inside.width() - right - 4
            piece = QFontMetricsF(mono).elidedText(row.piece, Qt.TextElideMode.ElideRight, room)
            painter.drawText(inside, Qt.AlignmentFlag.AlignVCenter, piece)
            painter.setFont(hint)
            painter.setPen(colours.secondary)
            painter.drawText(inside, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, figures[at])


class ScrolledBars(QScrollArea):
    """All of the bars where there is the height, else some whole rows of them, with a bar to scroll by."""

    def __init__(self, theme: Theme, bars: ExpectedBars) -> None:
        super().__init__()
        self._theme, self._bars = theme, bars
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self.setWidgetResizable(True)
        self.setWidget(bars)
        for widget in (bars, self.viewport()):
            widget.setAutoFillBackground(False)

    def sizeHint(self) -> QSize:
        return self._bars.sizeHint()

    def minimumSizeHint(self) -> QSize:
        least = self._bars.minimumSizeHint()
        return QSize(least.width(), min(least.height(), LEAST_ROWS * self._theme.px(ROW)))

    def set_rows(self, rows: tuple[Candidate, ...], came: int) -> None:
        """See `ExpectedBars`; from the likeliest on."""
        self._bars.set_rows(rows, came)
        self.verticalScrollBar().setSingleStep(self._theme.px(ROW))
        self.verticalScrollBar().setValue(0)
        self.updateGeometry()
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """A row that would be cut has no place, and the bar none on the figures."""
        row = self._theme.px(ROW)
        scrolled = self.height() < self._bars.sizeHint().height()
        below = self.height() % row if scrolled and self.height() > row else 0
        self.setViewportMargins(0, 0, BESIDE_BAR if scrolled else 0, below)


class ExpectedView(QWidget):
    """Hidden until a token is clicked; `closed` when the person is done with it."""

    closed = Signal()
    shown = Signal(bool)
    """Whether it has come, or gone."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._position = -1
        self._run_id: int | None = None
        self._reply: ExpectedReply | None = None
        self.setObjectName("expected")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        head = QHBoxLayout()
        self.sentence = ElidedLabel()
        self.sentence.setProperty("role", "hint")
        close = QToolButton()
        close.setProperty("flat", True)
        close.setFixedSize(20, 16)
        close.setIcon(theme.icon("close", "secondary", 10))
        close.setAccessibleName(tr("Close"))
        close.clicked.connect(self._close)
        head.addWidget(self.sentence, 1)
        head.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self.bars = ExpectedBars(theme)
        self.bars.setAccessibleName(tr("What the model expected here"))
        self.scrolled = ScrolledBars(theme, self.bars)
        self.scrolled.setAccessibleName(tr("What the model expected here"))
        column.addLayout(head)
        column.addWidget(self.scrolled)
        self.hide()

    def show_reply(self, run_id: int | None, reply: ExpectedReply) -> None:
        """The distribution that foresaw the token at a position of a run."""
        self._run_id, self._position, self._reply = run_id, reply.position, reply
        token = reply.token
        surprise = -math.log(token.p_raw) if token.p_raw > 0 else math.inf
        values = {
            "piece": token.piece, "n": reply.position, "rank": f"{token.rank + 1:,}", "p": f"{token.p_raw:.3g}",
            "s": f"{surprise:.2f}", "l": f"{-surprise:.2f}",
        }  # fmt: skip
        self._say(
            tr("Before {piece} (position {n}): rank {rank}, p {p}, log p {l} (surprisal {s} nats)", **values),
            tr("Before {piece} ({n}): rank {rank}, p {p}, log p {l}", **values),
            tr("{piece} ({n}): rank {rank}, log p {l}", **values),
            tr("{piece} ({n}):\nrank {rank}, log p {l}", **values),
        )
        self.scrolled.set_rows(reply.top, token.id)
        self.scrolled.show()
        self.show()

    def show_first(self, run_id: int | None) -> None:
        """Nothing comes before the first token."""
        self._run_id, self._position, self._reply = run_id, 0, None
        self._say(
            tr("Nothing comes before the first token: the model expects nothing there."),
            tr("Nothing comes before the first token."),
            tr("Nothing comes before\nthe first token."),
        )
        self.scrolled.hide()
        self.show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def setVisible(self, visible: bool) -> None:
        super().setVisible(visible)
        self.shown.emit(visible)

    def carry(self, before: ExpectedView) -> None:
        """Says what another one says, where that is open."""
        if not before.isHidden():
            if before._reply is not None:
                self.show_reply(before._run_id, before._reply)
            else:
                self.show_first(before._run_id)

    def hide_if_gone(self, run_id: int | None, length: int) -> None:
        """Hides when another run is shown, or none, or the position is no longer there."""
        if run_id != self._run_id or self._position >= length:
            self.hide()

    def _say(self, text: str, *briefer: str) -> None:
        self.sentence.set_forms(text, *briefer)
        self.sentence.setToolTip(plain_tip(text))
        self._fit()

    def _fit(self) -> None:
        """As many lines as the sentence has in this width."""
        lines = self.sentence.shown().count("\n") + 1
        self.sentence.setFixedHeight(lines * self.sentence.fontMetrics().lineSpacing())

    def _close(self) -> None:
        self.hide()
        self.closed.emit()
