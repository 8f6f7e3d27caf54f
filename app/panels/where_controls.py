"""The line over a panel that says where one looks: layer, head, query, key; bound both ways to the selection."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractScrollArea, QHBoxLayout, QLabel, QSizePolicy, QWidget

from app.i18n import tr
from app.panels.attention_words import head_text, layer_text
from app.widgets.mapping import Number, Whole
from app.widgets.number_box import NumberBox
from app.widgets.value_combo import Choice, ValueCombo
from app.widgets.wrap_row import WrapRow, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.context import AppContext
    from app.theme import Theme

PIECE_ROOM = 104


class WhereControls(QWidget):
    """`layer` and `head` are always of one layer and one head: where the selection is of several, the last single one.
    `show_head`, `show_key`: whether the panel is about a head, and about a pair of tokens. `row`: for more widgets,
    which go on a second line where the width ends."""

    def __init__(self, ctx: AppContext, *, show_head: bool = True, show_key: bool = True) -> None:
        super().__init__()
        self._ctx = ctx
        theme, selection = ctx.theme, ctx.selection
        self.layer, self.head = 0, 0
        self.layer_box, self.head_box = ValueCombo(theme, tr("Layer")), ValueCombo(theme, tr("Head"))
        token = tr("query") if show_key else tr("token")
        self.query_box = _TokenBox(ctx, token, selection.set_query)
        self.key_box = _TokenBox(ctx, tr("key"), selection.set_key)
        self.row = WrapRow(self)
        for widget in (self.layer_box, self.head_box, self.query_box, self.key_box):
            self.row.add(widget)
        self.head_box.setVisible(show_head)  # once they have a parent: without one they would be windows for a moment
        self.key_box.setVisible(show_key)
        self.row.add_gap()
        wrap(self)
        self.layer_box.keyChosen.connect(selection.set_layer)
        self.head_box.keyChosen.connect(selection.set_head)

    def sync(self) -> None:
        """Shows the selection's state."""
        selection, model = self._ctx.selection, self._ctx.session.model
        self.layer, self.head = selection.single_layer, selection.single_head
        group = model.n_heads // model.n_kv_heads if model else 1
        shared = model is not None and model.n_kv_heads < model.n_heads
        self.layer_box.set_choices([Choice(key=i, text=layer_text(i)) for i in range(selection.n_layers)])
        self.head_box.set_choices([
            Choice(key=i, text=head_text(i), note=f"KV {i // group}" if shared else "")
            for i in range(selection.n_heads)
        ])  # fmt: skip
        self.layer_box.set_key(self.layer)
        self.head_box.set_key(self.head)
        self.query_box.show_position(selection.query)
        self.key_box.show_position(selection.key)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._ctx.theme.px(28))


def room_of(panel: QWidget) -> QSize:
    """The room a panel can be seen in: inside a scroll area its own height may be what its layout needs instead."""
    parent = panel.parentWidget()
    area = parent.parentWidget() if parent is not None else None
    return parent.size() if parent is not None and isinstance(area, QAbstractScrollArea) else panel.size()


class _Piece(QWidget):
    """A token's text, in amber where it was decoded; drawn, for a label with a style sheet of its own keeps the font it
    had when another size of text is chosen while it is out of sight."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self.text, self._decoded = theme, "", False
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)

    def show_piece(self, text: str, *, decoded: bool) -> None:
        self.text, self._decoded = text, decoded
        self.setAccessibleName(text)
        self.updateGeometry()
        self.update()

    def shown(self) -> str:
        """As much of it as has room."""
        metrics = QFontMetricsF(self._theme.font("mono"))
        return metrics.elidedText(self.text, Qt.TextElideMode.ElideRight, self._theme.px(PIECE_ROOM))

    def sizeHint(self) -> QSize:
        metrics = QFontMetricsF(self._theme.font("mono"))
        return QSize(math.ceil(metrics.horizontalAdvance(self.shown())), math.ceil(metrics.height()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(self._theme.font("mono"))
        painter.setPen(self._theme.palette.amber if self._decoded else self._theme.palette.text)
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.shown())


class _TokenBox(QWidget):
    """A position to type or step, with its token beside it."""

    def __init__(self, ctx: AppContext, label: str, choose: Callable[[int], None]) -> None:
        super().__init__()
        self._ctx = ctx
        self.box = NumberBox(ctx.theme, Whole(low=0, high=0, default=0, slider_high=0), decimals=0)
        self.box.setAccessibleName(tr("Position of the {what}", what=label))
        self.name, self.piece = QLabel(label), _Piece(ctx.theme)
        self.name.setProperty("role", "secondary")
        self.name.setTextFormat(Qt.TextFormat.PlainText)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 4, 0)
        row.setSpacing(5)
        for widget in (self.name, self.box, self.piece):
            row.addWidget(widget)
        self.box.edited.connect(lambda value: self._edited(value, choose))
        ctx.theme.changed.connect(self._restyle)
        self._restyle()

    def show_position(self, position: int) -> None:
        tokens = self._ctx.session.path_tokens()
        last = max(len(tokens) - 1, 0)
        self.box.set_mapping(Whole(low=0, high=last, default=0, slider_high=last))
        self.box.set_value(position)
        token = tokens[position] if position < len(tokens) else None
        self.piece.show_piece(token.piece if token else "", decoded=token is not None and token.kind == "decode")

    def _edited(self, value: Number, choose: Callable[[int], None]) -> None:
        choose(int(value))

    def _restyle(self) -> None:
        theme = self._ctx.theme
        self.piece.updateGeometry()
        self.box.setFixedSize(theme.px(58), theme.px(26))
