"""What is in the cache: K or V of one KV head, positions × dimensions, bound to the selection both ways."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QGuiApplication, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.i18n import tr
from app.notify import QUIET_CODES
from app.panels.attention_copy import number, table_text
from app.panels.kv_lines import LinesKey, NamedLine, longest_fitting
from app.plain import tip as plain_tip
from app.widgets.colour_bar import BarText, scale_words
from app.widgets.elided_label import ElidedLabel
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_boundary import (
    SAMPLE,
    SAMPLE_GAP,
    boundary_words,
    further_place,
    row_line,
    words_place,
)
from app.widgets.heatmap_image import Tile
from app.widgets.heatmap_layout import Options
from app.widgets.heatmap_table import MatrixTable, page_of, pointed
from app.widgets.heatmap_words import LEAST_WORDS
from app.widgets.matrix_header import Counted
from app.widgets.readout import BEGINNINGS, brief_piece
from app.widgets.segmented import Segmented
from app.widgets.value_combo import Choice, ValueCombo
from app.widgets.wrap_row import WrapRow, wrap
from model.colormaps import Levels, colormap_for, lut
from model.protocol.kv_requests import GetKvContents, KvContentsReply, KvWhat

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.export.panel_files import Table
    from app.panels.base import Panel
    from app.widgets.readout import Part
    from model.protocol.framing import Arrays
    from model.protocol.values import ModelInfo
    from model.protocol.wire import ErrorInfo

MOST_CELLS = 65_536
ROOM_FOR_AXES, ROOM_FOR_BAR = 70, 100
TALL, NAME_GAP = 300, 10
"""Px of height at 100 % text from which the caption may have two lines; px between it and the names of lines."""
OPTIONS = Options(square=False, tokens="rows", ruler_share=0.24, bar_length=60.0)
Span = tuple[int, int]


class RowsMap(HeatMap):
    """A heat map whose newest row is marked."""

    newest: int | None = None

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is next to no height the cells keep it; the readout says the rest."""
        scale = self.theme.text_scale
        axes, bar = event.size().height() >= ROOM_FOR_AXES * scale, event.size().height() >= ROOM_FOR_BAR * scale
        self.options = replace(self.options, axes=axes, bar=bar)
        super().resizeEvent(event)

    def set_newest(self, row: int | None) -> None:
        if row != self.newest:
            self.newest = self.row_axis.always = row
            self._refresh()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.newest is None or not 0 <= self.newest < self.shape[0] or not self.tiles:
            return
        painter = QPainter(self)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.palette.amber)
        for mark in self.newest_marks():
            painter.drawRect(mark)
        place = self.newest_words()
        if place is not None:
            middle = round(place.center().y())
            painter.drawRect(QRectF(place.left(), middle - 0.8, SAMPLE, 1.6))
            painter.setFont(self.theme.font("hint"))
            painter.setPen(self.theme.palette.amber)
            words = place.adjusted(SAMPLE + SAMPLE_GAP, 0, 1, 0)
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, tr("newest"))

    def unnamed(self) -> tuple[NamedLine, ...]:
        """The lines in sight whose words have no room here."""
        found = []
        if row_line(self) is not None and words_place(self) is None:
            found.append(NamedLine(boundary_words(), dashed=True))
        if self.newest_marks() and self.newest_words() is None:
            found.append(NamedLine(tr("newest")))
        return tuple(found)

    def readout(self, *, brief: int = 0) -> list[Part]:
        """A dimension is its number, which is said once; where room is shortest a row is the beginning of its token,
        rather than a position that the axis has."""
        parts = super().readout(brief=brief)
        cell = self.hovered or self.selected
        if parts and cell is not None and brief == LEAST_WORDS - 1:
            piece, dim = brief_piece(self.row_axis.piece(cell[0]), BEGINNINGS), self.col_axis.number(cell[1])
            parts[1], parts[2], parts[4], parts[5] = (
                (piece, "strong"), ("→", "secondary"), (dim, "strong"), (" ", "secondary"),
            )  # fmt: skip
        elif parts and cell is not None and parts[4][0] == self.col_axis.number(cell[1]):
            parts[5] = (parts[5][0].replace(f" ({parts[4][0]})", ""), parts[5][1])
        return parts

    def newest_marks(self) -> list[QRectF]:
        """A line under the newest row, as long as the row and outside its cells: none of them is covered."""
        if self.newest is None:
            return []
        area, row = self.geometry_now().area, self.cell_rect((self.newest, 0))
        if not area.top() - 1 <= row.center().y() <= area.bottom() + 1:
            return []
        return [QRectF(area.left(), min(row.bottom(), area.bottom()) + 1, area.width(), 1.6)]

    def newest_words(self) -> QRectF | None:
        """Where a piece of that line and its word stand, in the colour bar's line; None where they have no room."""
        return further_place(self) if self.newest_marks() else None


class ContentsView(QWidget):
    """Layer, KV head and kind on top; the map, or its table, below."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel)
        self._panel, self._ctx = panel, panel.ctx
        theme, selection = panel.ctx.theme, panel.ctx.selection
        kept = self._ctx.settings.panel("kv").get("what")
        self.what: KvWhat = cast("KvWhat", kept) if kept in dict(what_items()) else "k"
        self._dim = 0
        self._asked: object = None
        self._top: tuple[object, float] = (None, 0.0)
        self._tokens: object = None
        self.layer = ValueCombo(theme, tr("Layer"))
        self.kv_head = ValueCombo(theme, tr("KV head"))
        self.kind = Segmented(theme, what_items(), label=tr("What is shown"), tips=what_tips())
        self.heat = RowsMap(theme, tr("Contents of the KV cache"), options=replace(OPTIONS, further=tr("newest")))
        self.heat.set_bar(BarText(values=(-1.0, 0.0, 1.0), scale=scale_words("linear", fixed=False)))
        self.heat.set_lut(lut(colormap_for("viridis", signed=True)))
        self._table: MatrixTable | None = None
        self._stack = QStackedWidget()
        self._stack.addWidget(self.heat)
        head = QWidget()
        self._controls = WrapRow(head)
        for widget in (self.layer, self.kv_head, self.kind):
            self._controls.add(widget)
        wrap(head)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        self.caption = ElidedLabel()
        self.caption.setProperty("role", "hint")
        self.key = LinesKey(theme)
        column.addWidget(head)
        self._line = QHBoxLayout()
        self._line.addWidget(self.caption, 1)
        self._line.addWidget(self.key)
        column.addLayout(self._line)
        column.addWidget(self._stack, 1)
        heat = self.heat
        self.layer.keyChosen.connect(selection.set_layer)
        self.kv_head.keyChosen.connect(self._choose_kv)
        self.kind.keyChanged.connect(self._choose_what)
        heat.cellHovered.connect(lambda r, _c: selection.set_hover(token=None if r < 0 else r))
        heat.tokenHovered.connect(lambda token: selection.set_hover(token=None if token < 0 else token))
        heat.cellClicked.connect(self._choose_cell)
        heat.rowClicked.connect(selection.set_key)
        heat.valueWanted.connect(self._ask_cell)
        heat.viewChanged.connect(lambda: panel.mark("view"))
        heat.tableWanted.connect(lambda: self.show_table(shown=True))
        heat.copyWanted.connect(self.copy)

    # where we are

    def place(self) -> tuple[int, int]:
        """Layer and KV head: the selection's, or the last single ones where it means all of them."""
        selection = self._ctx.selection
        return selection.single_layer, selection.single_kv_head

    @property
    def as_table(self) -> bool:
        return self._stack.currentIndex() == 1

    # shared state → widgets

    def sync(self) -> None:
        """Brings everything up to date and asks for the cells in sight."""
        session, model = self._ctx.session, self._ctx.session.model
        if model is None or session.run is None or not session.length:
            self.heat.clear()
            self.heat.set_shape(0, 0)
            self._asked = self._tokens = None
            return
        self._show_choices(model)
        tokens = session.path_tokens()
        if tokens is not self._tokens or self.heat.shape[1] != model.d_head:
            self._tokens = tokens
            first_decode = session.n_prompt if session.length > session.n_prompt else None
            self.heat.set_axis_tokens([token.piece for token in tokens], [], first_decode=first_decode)
            self.heat.row_axis.first_decode = first_decode
            self.heat.set_boundary(first_decode)
            self.heat.set_shape(len(tokens), model.d_head)
            self.heat.set_newest(len(tokens) - 1)
            self._fill_table()
        self._dim = min(self._dim, model.d_head - 1)
        self.heat.set_names(tr("position"), tr("dimension"), what_name(self.what))
        self.heat.set_selected((self._ctx.selection.key, self._dim))
        self._name_all()
        self.follow_hover()
        self.request()

    def _name_all(self) -> None:
        """Names what is shown, and the lines of the map that it does not name itself."""
        model = self._ctx.session.model
        if model is None:
            return
        self.key.set_lines(() if self.as_table else self.heat.unnamed(), room=self.width())
        taken = self.key.sizeHint().width() + NAME_GAP if self.key.lines else 0
        metrics, tall = QFontMetricsF(self.caption.font()), self.height() >= self._ctx.theme.px(TALL)
        captions = what_captions(self.what, *self.place(), rotary=model.positions == "rope")
        under = tall and metrics.horizontalAdvance(captions[1]) > self.width() - taken
        self._line.setDirection(QBoxLayout.Direction.TopToBottom if under else QBoxLayout.Direction.LeftToRight)
        self._line.setSpacing(2 if under else NAME_GAP)
        room = self.width() - (0 if under else taken)
        said = longest_fitting(captions, metrics, room)
        # What the controls say as well gives way to what is said nowhere else.
        self.caption.setVisible(not taken or metrics.horizontalAdvance(said) <= room)
        if said != captions[0] and tall:
            said = f"{captions[1]}\n{tr('positions × dimensions')}"
        self.caption.setText(said)
        self.caption.setToolTip(plain_tip(captions[0]))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_controls()
        self._panel.mark("view")

    def follow_hover(self) -> None:
        """The token pointed at anywhere in the window."""
        token = self._ctx.selection.hover_token
        if self.heat.hovered is None or self.heat.hovered[0] != token:
            self.heat.set_hovered(None)
            self.heat.set_linked(token)

    def request(self) -> None:
        """Asks for the rows in sight, unless they are under way or drawn already."""
        session, selection = self._ctx.session, self._ctx.selection
        if session.run is None or not all(self.heat.shape):
            return
        layer, kv_head = self.place()
        rows, cols, height, width = self.heat.wanted()
        d_head = self.heat.shape[1]
        key = (session.run_id, session.current_node, session.length, layer, kv_head, self.what, selection.scale)
        whole = self.heat.view.is_whole(self.heat.shape)
        message = GetKvContents(
            layer=layer, kv_head=kv_head, what=self.what, rows=rows, height=height,
            width=max(width * d_head // max(cols[1] - cols[0], 1), 1), scale=selection.scale,
            top=0.0 if whole or self._top[0] != key else self._top[1],
        )  # fmt: skip
        if (key, message) == self._asked:
            return
        if self._asked is None or self._asked[0][3:6] != key[3:6]:  # type: ignore[index]
            self._fill_table()
        self._asked = (key, message)
        self._panel.ask(
            message,
            lambda reply, arrays: self._on_contents(reply, arrays, message, key),
            on_error=lambda error: self._on_error(error, (key, message)),
            slot="contents",
        )

    def _show_choices(self, model: ModelInfo) -> None:
        layer, kv_head = self.place()
        group = model.n_heads // model.n_kv_heads
        self.layer.set_choices([Choice(key=i, text=tr("Layer {layer}", layer=i)) for i in range(model.n_layers)])
        self.kv_head.set_choices([
            Choice(key=i, text=f"KV {i}", brief=(f"KV {i}",), note=heads_note(i * group, (i + 1) * group - 1))
            for i in range(model.n_kv_heads)
        ])  # fmt: skip
        self.layer.set_key(layer)
        self.kv_head.set_key(kv_head)
        self.kind.set_enabled("k_unrotated", model.positions == "rope")
        if model.positions != "rope" and self.what == "k_unrotated":
            self.what = "k"
        self.kind.set_key(self.what)
        self._fit_controls()

    def _fit_controls(self) -> None:
        """Which heads read a KV head is said where that costs no line more."""
        self.kv_head.set_brief(True)
        least = self._controls.heightForWidth(self.width())
        self.kv_head.set_brief(False)
        self.kv_head.set_brief(self._controls.heightForWidth(self.width()) > least)

    # what a person does

    def show_table(self, *, shown: bool, focus: bool = True) -> None:
        """The exact values as a table in the map's place, or the map again; with the `focus` or without."""
        if not shown:
            self._stack.setCurrentWidget(self.heat)
            self._name_all()
            self.heat.setFocus()
            return
        if self._table is None:
            self._table = MatrixTable(self._ctx.theme, tr("Contents of the KV cache"))
            self._table.blocks.blockWanted.connect(self._ask_block)
            self._table.cellClicked.connect(self._choose_cell)
            self._table.copyWanted.connect(self.copy)
            self._stack.addWidget(page_of(self._table, lambda: self.show_table(shown=False)))
        self._stack.setCurrentIndex(1)
        self._name_all()
        self._fill_table()
        if focus:
            self._table.setFocus()

    def carry(self, before: ContentsView) -> None:
        """The dimension, the largest number of the whole, which a part of it is drawn with, whether it is a table."""
        self._dim, self._top = before._dim, before._top
        if before.as_table:
            self.show_table(shown=True, focus=False)

    def copy(self, what: str) -> None:
        """Puts a cell, a row or what is in sight on the clipboard, tab-separated."""
        heat = self.heat
        cell, (rows, cols) = pointed(heat, self._table)
        if what != "matrix":
            if cell is None:
                return
            rows = (cell[0], cell[0] + 1)
            cols = (cell[1], cell[1] + 1) if what == "cell" else (0, heat.shape[1])
        if (rows[1] - rows[0]) * (cols[1] - cols[0]) > MOST_CELLS:
            cells = f"{(rows[1] - rows[0]) * (cols[1] - cols[0]):,}"
            words = tr("{cells} cells are too many to copy: zoom in, or export them as CSV.", cells=cells)
            self._ctx.notify.say(words)
            return
        pieces = [heat.row_axis.piece(i) for i in range(*rows)]
        dims = [str(i) for i in range(*cols)]

        def came(_reply: KvContentsReply, arrays: Arrays) -> None:
            values = np.asarray(arrays["values"])[:, slice(*cols)]
            text = number(float(values[0, 0])) if what == "cell" else table_text(pieces, dims, values)
            QGuiApplication.clipboard().setText(text)
            self._ctx.notify.say(tr("Copied."))

        self._panel.ask(self._exactly(rows), came)

    def tables(self, done: Callable[[Table], None]) -> None:
        """Hands every value of what is shown to `done`, a position a line."""
        layer, kv_head = self.place()
        tokens = self._ctx.session.path_tokens()
        title = tr("{what} of layer {layer}, KV head {head}", what=what_name(self.what), layer=layer, head=kv_head)

        def came(_reply: KvContentsReply, arrays: Arrays) -> None:
            values = np.asarray(arrays["values"])
            lines = [["position", "token", *(f"d{i}" for i in range(values.shape[1]))]]
            lines += [
                [str(token.position), token.piece, *(str(value) for value in row)]
                for token, row in zip(tokens, values, strict=True)
            ]
            done((title, lines))

        self._panel.ask(self._exactly((0, self.heat.shape[0])), came)

    def _choose_kv(self, kv_head: int) -> None:
        model, selection = self._ctx.session.model, self._ctx.selection
        if model is not None and selection.kv_head != kv_head:
            selection.set_head(kv_head * (model.n_heads // model.n_kv_heads))

    def _choose_what(self, key: str) -> None:
        self.what = cast("KvWhat", key)
        self._ctx.settings.update_panel("kv", what=key)
        self._panel.mark("what")

    def _choose_cell(self, row: int, col: int) -> None:
        self._dim = col
        self._ctx.selection.set_key(row)

    # answers

    def _on_contents(self, reply: KvContentsReply, arrays: Arrays, message: GetKvContents, key: object) -> None:
        if not message.top:
            self._top = (key, reply.high)
        pixels = np.ascontiguousarray(arrays["pixels"])
        levels = Levels(low=reply.low, high=reply.high, scale=message.scale, signed=True)
        low, middle, high = (float(value) for value in levels.value(np.array([0.0, 0.5, 1.0])))
        words = scale_words(message.scale, fixed=False)
        if reply.pooled:
            words += f" · {tr('strongest of each pixel')}"
        self.heat.set_bar(BarText(values=(low, middle, high), scale=words))
        self.heat.set_message("")
        tile = Tile(pixels=pixels, rows=reply.rows, cols=reply.dims, values=arrays.get("values"), signed=True)
        self.heat.set_tile(tile, key=(key, reply.high))
        self._name_all()

    def _on_error(self, error: ErrorInfo, asked: object) -> None:
        if self._asked == asked:
            self._asked = None
        if error.code not in QUIET_CODES and not self.heat.tiles:
            self.heat.set_message(error.message)

    def _exactly(self, rows: Span) -> GetKvContents:
        """Rows with a pixel for every cell, so that their values come too."""
        layer, kv_head = self.place()
        return GetKvContents(
            layer=layer, kv_head=kv_head, what=self.what, rows=rows, height=rows[1] - rows[0],
            width=self.heat.shape[1],
        )  # fmt: skip

    def _ask_cell(self, row: int, col: int) -> None:
        message, shown = self._exactly((row, row + 1)), (*self.place(), self.what)

        def answer(_reply: KvContentsReply, arrays: Arrays) -> None:
            if (*self.place(), self.what) == shown:
                self.heat.set_cell_value(row, col, float(arrays["values"][0, col]))

        self._panel.ask(message, answer, slot="cell")

    def _fill_table(self) -> None:
        if self._table is None or not self.as_table:
            return
        pieces = [token.piece for token in self._ctx.session.path_tokens()]
        dims = Counted(tr("dim"), self.heat.shape[1])
        self._table.blocks.set_matrix(self.heat.shape, pieces, dims, numbered=(True, False))
        self._table.set_decode(self.heat.boundary)
        self._table.set_current(self._ctx.selection.key, self._dim)

    def _ask_block(self, rows: Span, cols: Span) -> None:
        if self._table is None:
            return
        blocks, shown = self._table.blocks, (*self.place(), self.what)
        matrix = blocks.matrix

        def answer(_reply: KvContentsReply, arrays: Arrays) -> None:
            if (*self.place(), self.what) == shown:
                blocks.set_block(rows, cols, arrays["values"][:, slice(*cols)], matrix=matrix)

        self._panel.ask(self._exactly(rows), answer)


def what_items() -> list[tuple[str, str]]:
    """The kinds, in the order they are made."""
    return [("k_unrotated", tr("K before")), ("k", "K"), ("v", "V")]


def what_tips() -> dict[str, str]:
    """What each is, in a line."""
    return {
        "k_unrotated": tr("keys before rotary embedding turned them, made again from the residual stream"),
        "k": tr("keys as attention reads them: what the cache holds"),
        "v": tr("values: what a query takes from a position"),
    }


def what_name(what: KvWhat) -> str:
    """What a cell's value is called in the readout."""
    return {"k_unrotated": tr("K before"), "k": "K", "v": "V"}[what]


def what_captions(what: KvWhat, layer: int, kv_head: int, *, rotary: bool) -> tuple[str, ...]:
    """What the map shows and what its axes are, in a line, from all of it to the least."""
    kind = tr("values") if what == "v" else tr("keys")
    place = tr("{kind} of layer {layer}, KV head {head}", kind=kind, layer=layer, head=kv_head)
    rotation = {"k_unrotated": tr("before rotation"), "k": tr("after rotation") if rotary else "", "v": ""}[what]
    first = (f"{place} · {tr('positions × dimensions')}", place, kind)
    return tuple(f"{words}, {rotation}" if rotation else words for words in first)


def heads_note(first: int, last: int) -> str:
    """Which query heads read a KV head."""
    return tr("head {first}", first=first) if first == last else tr("heads {first}–{last}", first=first, last=last)
