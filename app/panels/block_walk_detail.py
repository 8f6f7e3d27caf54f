"""One operation of the walk in full: formula, statistics, the tensor, its terms, the same at every position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.i18n import tr
from app.notify import QUIET_CODES
from app.panels.block_walk_cell import ResultMap, Shown, bar_texts, cell_forms, cell_parts, copied, readout_room
from app.panels.block_walk_head import LOW, VERY_LOW, DetailHead
from app.panels.block_walk_list import HEIGHT, WIDTH, SideList
from app.panels.block_walk_words import (
    axis_brief,
    axis_name,
    cell_names,
    parts_title,
)
from app.widgets.colour_bar import with_ends
from app.widgets.folding import Floats, Folded, fold
from app.widgets.heatmap_image import Tile
from app.widgets.heatmap_layout import Options, dress_axis
from app.widgets.heatmap_table import MatrixTable
from app.widgets.matrix_header import Counted
from app.widgets.readout import Part, Readout
from app.widgets.ticks import figure
from model.colormaps import Levels, colormap_for, lut
from model.protocol.walk_requests import SHARES, GetWalkTensor, WalkAxis, WalkTensorReply, WalkWhat

if TYPE_CHECKING:
    from app.panels.base import Panel
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo, Progress

Span = tuple[int, int]
LIST_GAP = 10
LEAST_BESIDE, LEAST_PICTURE = 150, 124
"""Px at 100 % text of a picture that has the list at its side, and of the narrowest one."""
LEAST_HEIGHT, LEAST_AXES = 62, 70
LEAST_ROW, OVERHANG = 16, 60
"""Px at 100 % text of a row of cells however long the tokens over it are, and of what these take beside it."""
FEW_LINES = 150
"""Px at 100 % text: under it a row is folded to fewer, longer lines, so that there is room for dimension numbers."""


class DetailView(QWidget):
    """`closed`: the way out of the large view. Owns the choice between the token, its terms and all positions."""

    closed = Signal()

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel)
        self._panel, self._ctx = panel, panel.ctx
        theme = panel.ctx.theme
        self.shown: Shown | None = None
        self.folded: Folded | None = None
        self._large = False
        self._asked: GetWalkTensor | None = None
        self.head = head = DetailHead(theme, self)
        self.title, self.stats, self.what, self.back = head.title, head.stats, head.what, head.back
        self.table_button = head.table_button
        self.heat = ResultMap(theme, tr("Result of the operation"), options=Options(square=False))
        self.heat.teller = self._told
        self.table = MatrixTable(theme, tr("Result of the operation"))
        self.readout = Readout(theme)
        self.side = SideList(theme, LEAST_HEIGHT)
        self.list = self.side.table
        self._lay_out()
        self._connect()

    def set_large(self, large: bool) -> None:
        """Whether it has the panel to itself, and so a way back."""
        self._large = large
        self.back.setVisible(large)
        self._arrange()

    def show_op(self, shown: Shown | None) -> None:
        """Draws an operation, or nothing."""
        before, self.shown = self.shown, shown
        if shown is None:
            self.heat.clear()
            self.heat.set_shape(0, 0)
            return
        op = shown.op
        self.head.show_op(shown)
        self._arrange()
        if before is None or before.op.id != op.id:
            allowed = {"token": True, "parts": op.parts_rows != "one", "positions": op.at_positions}
            if not allowed[self.what.key()]:
                self.what.set_key("token")
        self._asked = None
        self.draw()

    def carry(self, before: DetailView) -> None:
        """What is drawn, whether it is a table, the cell."""
        self.what.set_key(before.what.key())
        self.heat.set_shape(*before.heat.shape)
        self.heat.set_selected(before.heat.selected)
        self.table_button.setChecked(before.table_button.isChecked())

    def draw(self) -> None:
        """The picture of what is chosen."""
        if self.shown is None:
            return
        if self.what.key() == "token":
            self._draw_token(self.shown)
        else:
            self._ask_tensor(self.shown, "parts" if self.what.key() == "parts" else "positions")

    def follow_hover(self, token: int | None) -> None:
        """The token pointed at elsewhere."""
        self.heat.set_linked(token if self._axis(rows=True) in ("key", "position") else None)
        if token is not None and self._axis(rows=False) == "key" and self.heat.shape[0] == 1:
            self.heat.set_hovered((0, token))

    def matrix(self) -> tuple[list[str], list[str], Floats] | None:
        """What is drawn as rows, columns and values, as far as it is exact and here."""
        if self.shown is None or not self.heat.tiles:
            return None
        tile = self.heat.tiles[-1]
        if tile.values is None:
            return None
        rows = [self.heat.row_axis.piece(i) for i in range(*tile.rows)]
        cols = [self.heat.col_axis.piece(i) for i in range(*tile.cols)]
        return rows, cols, np.asarray(tile.values)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    # inside: drawing

    def _arrange(self) -> None:
        """The head as there is room for it; of a low table, a row more is worth more than its readout."""
        theme, table = self._ctx.theme, self.table_button.isChecked()
        if self.shown is not None:
            self._show_list()
        low = self.height() < theme.px(LOW)
        self._place_list()
        beside = 0 if self.side.isHidden() or self._under else self.side.width() + LIST_GAP
        self.head.arrange((self.width(), self.height()), self.width() - beside, large=self._large, table=table)
        # The map has its readout beside its colour bar.
        self.readout.setVisible(table and not low)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.least_width(), super().minimumSizeHint().height())

    def least_width(self) -> int:
        """Px of it with everything on lines of its own."""
        return max(self.head.minimumSizeHint().width(), self._ctx.theme.px(LEAST_PICTURE))

    def _place_list(self) -> None:
        """At the picture's side, or under it where both have no width; then, and large, a picture has a height in which
        its rows are told apart: the panel is scrolled for the rest."""
        px = self._ctx.theme.px
        self._under = self.width() < px(WIDTH) + LIST_GAP + px(LEAST_BESIDE)
        way = QBoxLayout.Direction.TopToBottom if self._under else QBoxLayout.Direction.LeftToRight
        self._holder.setDirection(way)
        self.side.place(under=self._under)
        self.picture.setMinimumHeight(px(HEIGHT) if self._under and self._large else 0)

    def _draw_token(self, shown: Shown) -> None:
        values, op = shown.values, shown.op
        self.folded, stride, step = None, 1, 1.0
        names: tuple[Sequence[str], Sequence[str]] | None = None
        if len(values) == 1 and op.cols != "key":
            low = self.heat.height() < self._ctx.theme.px(FEW_LINES)
            self.folded = fold(values[0], aspect=24.0 if low else 4.0)
            values, width = self.folded.values, self.folded.width
            stride = round(width * op.shape[0] / self.folded.count)
            step = op.shape[0] / self.folded.count
            # Lines are told by the number they begin with; across, cells count on from it, in whole steps.
            rows, cols = [], [] if step.is_integer() else [""] * width
            names = Counted(axis_brief(op.cols), len(values), stride), [f"+{i}" for i in range(width)]
        else:
            cols = [token.piece for token in self._ctx.session.path_tokens()] if op.cols == "key" else []
            rows = [""] if len(values) == 1 else [f"{axis_name(op.rows)} {i}" for i in range(len(values))]
        levels = Levels.spanning(op.low, op.high, signed=op.id not in SHARES, scale=self._ctx.selection.scale)
        self._set_matrix(values.shape, rows, cols, strides=(stride, round(step)), names=names)
        self._set_colours(levels, pooled=op.pooled)
        tile = Tile(
            pixels=levels.pixels(values), rows=(0, values.shape[0]), cols=(0, values.shape[1]), values=values,
            signed=levels.signed,
        )  # fmt: skip
        self.heat.set_tile(tile, key=("token", op.id, levels.low, levels.high))
        column = self.heat.selected[1] if self.heat.selected and op.cols != "key" else 0  # of the head before
        self.heat.set_selected((op.first_row, min(column, values.shape[1] - 1)) if op.first_row >= 0 else None)
        self._mark_decode(cols=op.cols == "key")
        self._point()

    def _ask_tensor(self, shown: Shown, what: WalkWhat) -> None:
        walk, op = shown.walk, shown.op
        self.folded = None
        pieces = [token.piece for token in self._ctx.session.path_tokens()]
        if what == "positions":
            shape, rows = (walk.length, op.shape[-1]), pieces
        elif op.parts_rows == "head":
            shape, rows = (self._ctx.selection.n_heads, op.shape[0]), []
        else:
            n_keys = walk.position + 1 if op.id == "attn.z" else walk.length
            model = self._ctx.session.model
            shape, rows = (n_keys, model.d_head if model else op.shape[0]), pieces
        self._set_matrix(shape, rows, [])
        self._mark_decode(rows=bool(rows))
        row_span, col_span, height, width = self.heat.wanted()
        message = GetWalkTensor(
            place=walk.place, op=op.id, what=what, position=walk.position, layer=walk.layer, head=walk.head,
            rows=row_span, cols=col_span, height=height, width=width, scale=self._ctx.selection.scale,
        )  # fmt: skip
        if message != self._asked:
            self._asked = message
            self._panel.ask(
                message, lambda reply, arrays: self._on_tensor(reply, arrays, message), slot="tensor",
                on_error=lambda error: self._on_error(error, message), says=True,
                on_progress=lambda progress: self._on_progress(progress, message),
            )  # fmt: skip

    def _on_tensor(self, reply: WalkTensorReply, arrays: Arrays, message: GetWalkTensor) -> None:
        if self._asked != message or self.shown is None:
            return
        levels = Levels(low=reply.low, high=reply.high, scale=message.scale, signed=message.op not in SHARES)
        self.heat.set_message("")
        self.heat.set_shape(*reply.shape)
        self._set_colours(levels, pooled=reply.pooled, beyond=max(-reply.data_low, reply.data_high) > levels.high)
        tile = Tile(
            pixels=np.ascontiguousarray(arrays["pixels"]), rows=reply.rows, cols=reply.cols,
            values=arrays.get("values"), signed=levels.signed,
        )  # fmt: skip
        self.heat.set_tile(tile, key=(message.what, message.op, reply.low, reply.high, message.scale))
        if message.what == "parts":
            title = parts_title(self.shown.op)
            error = tr("sum − result: {error}", error=figure(reply.total, 2))
            self.head.show_line([(title + "   ", "secondary"), (error, "green" if reply.total < 1e-4 else "amber")])
        else:
            self.head.show_statistics(self.shown)
            self._select_position(self.shown.walk.position)
        self._point()

    def _select_position(self, position: int) -> None:
        """The frame follows the token and stays at its dimension; what the mouse rests on is old news then."""
        before = self.heat.selected
        if before is None or before[0] != position:
            self.heat.set_selected((position, before[1] if before else 0))
            self.heat.set_hovered(None)

    def _mark_decode(self, *, rows: bool = False, cols: bool = False) -> None:
        """Generated tokens along rows or columns are amber, and a dashed line is where they begin."""
        session = self._ctx.session
        first = session.n_prompt if session.length > session.n_prompt else None
        self.heat.row_axis.first_decode = first if rows else None
        self.heat.col_axis.first_decode = first if cols else None
        self.heat.set_boundary(first if rows else None, cols=first if cols else None)

    def _set_matrix(
        self,
        shape: tuple[int, int],
        rows: list[str],
        cols: list[str],
        *,
        strides: tuple[int, int] = (1, 1),
        names: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        """`strides`: from one row's and column's number to the next one's; `names`: of the table's rows and columns,
        where they are others than the map's."""
        self.heat.set_message("")
        self.heat.row_axis.stride, self.heat.col_axis.stride = strides
        self.heat.col_axis.numbered = self.folded is None or not cols
        # "head 5" has its number in its name; of a folded row the last line's number says how they count.
        self.heat.row_axis.numbered = not rows or self._axis(rows=True) in ("key", "position")
        self.heat.row_axis.always = shape[0] - 1 if self.folded is not None and shape[0] > 1 else None
        # Where it is low, a folded row needs its room more than the numbers of its lines: the readout has them.
        axes = self.folded is None or self.heat.height() >= self._ctx.theme.px(LEAST_AXES)
        self._dress(shape, axes=axes, keys=len(cols) if shape[0] == 1 else 0)
        if self.heat.shape != shape:
            self.heat.clear()
            self.heat.set_shape(*shape)
            self.heat.reset_view()
        self.heat.set_axis_tokens(rows[: shape[0]], cols[: shape[1]])
        if names is not None:
            self.table.blocks.set_matrix(shape, *names, numbered=(False, False))
            return
        named = cell_names(self._axis(rows=True), rows, shape[0]), cell_names(self._axis(rows=False), cols, shape[1])
        self.table.blocks.set_matrix(shape, named[0][0], named[1][0], numbered=(named[0][1], named[1][1]))

    def _dress(self, shape: tuple[int, int], *, axes: bool, keys: int) -> None:
        """`keys`: of one row, that has the tokens it is about over it, whole: they slant less where cells are wide."""
        theme, heat = self._ctx.theme, self.heat
        over = theme.px(LEAST_ROW) if keys else 0.0
        said = readout_room(theme, self.shown.op if self.shown else None, self._axes(), shape)
        heat.options = Options(
            square=False, axes=axes, over_least=over, readout=not self._above(),
            key_beside=said,
            ruler_share=0.34 if self._under else Options.ruler_share,
        )  # fmt: skip
        dress_axis(heat.col_axis, heat.options)
        lying = replace(heat.options, lying=True)
        if keys:
            dress_axis(heat.col_axis, lying)
            if (heat.width() - theme.px(OVERHANG)) / keys >= heat.col_axis.spacing(keys):
                heat.options = lying
            dress_axis(heat.col_axis, heat.options)

    def _set_colours(self, levels: Levels, *, pooled: bool, beyond: bool = False) -> None:
        """`beyond`: there are values outside the levels."""
        name = colormap_for(self._ctx.settings.panel("attention").get("colormap", "viridis"), signed=levels.signed)
        self.heat.set_lut(with_ends(lut(name)) if beyond else lut(name))
        self.heat.set_bars(bar_texts(levels, pooled=pooled, beyond=beyond))

    def _show_list(self) -> None:
        assert self.shown is not None
        op = self.shown.op
        # Of a row of keys in a low picture, the tokens over it need the room more than the three read most.
        crowded = op.id == "attn.pattern" and self.height() < self._ctx.theme.px(VERY_LOW)
        self.side.setVisible(bool(op.tokens) and not crowded)
        self.side.show_op(self.shown, self._ctx.session)

    # inside: pointing

    def _axis(self, *, rows: bool) -> WalkAxis:
        if self.shown is None:
            return "one"
        op, what = self.shown.op, self.what.key()
        if what == "positions":
            return "position" if rows else op.cols
        if what == "parts":
            return op.parts_rows if rows else op.parts_cols
        return op.rows if rows else op.cols

    def _axes(self) -> tuple[WalkAxis, WalkAxis]:
        return self._axis(rows=True), self._axis(rows=False)

    def _point(self) -> None:
        """The line that says what the cell pointed at is."""
        parts = self._cell_parts()
        self.readout.set_parts(parts)
        if self._above() and self.shown is not None:
            if parts and (self.heat.hovered is not None or self.heat.hasFocus()):
                self.head.show_line(parts)
            elif self.what.key() != "parts":
                self.head.show_statistics(self.shown)

    def _told(self) -> list[tuple[Part, ...]]:
        """What the map's line says, the longest form first: of the cell, or, where that line has them, the statistics
        until a cell is pointed at."""
        if self.head.folded and self.heat.hovered is None and not self.heat.hasFocus():
            return list(self.stats.forms())
        if self.shown is None:
            return []
        return cell_forms(self.heat, self.shown.op, self._axes(), self.folded)

    def _above(self) -> bool:
        """Whether the line of the statistics has the readout as well: a low picture has no line for it."""
        return self.head.lowest and not self.head.folded

    def _cell_parts(self) -> list[Part]:
        if self.shown is None:
            return []
        return cell_parts(self.heat, self.shown.op, self._axes(), self.folded)

    def _on_hover(self, row: int, col: int) -> None:
        self._point()
        token = None
        for axis, at in ((self._axis(rows=True), row), (self._axis(rows=False), col)):
            if row >= 0 and axis in ("key", "position"):
                token = at
        if self.folded is None:
            self._ctx.selection.set_hover(token=token)

    def _on_click(self, row: int, col: int) -> None:
        selection = self._ctx.selection
        self._point()
        if self.folded is not None or self.shown is None:
            return
        if self._axis(rows=True) == "position":
            selection.set_query(row)
        elif self._axis(rows=True) == "key":
            selection.set_key(row)
        elif self._axis(rows=False) == "key":
            selection.set_key(col)
        elif self._axis(rows=True) == "head":
            selection.set_head(row)

    def _ask_value(self, row: int, col: int) -> None:
        asked = self._asked
        if self.what.key() == "token" or asked is None:
            return
        message = GetWalkTensor(
            place=asked.place, op=asked.op, what=asked.what, position=asked.position, layer=asked.layer,
            head=asked.head, rows=(row, row + 1), cols=(col, col + 1), height=1, width=1,
        )  # fmt: skip

        def answer(_reply: WalkTensorReply, arrays: Arrays) -> None:
            if self._asked is not None and self._asked.op == message.op and "values" in arrays:
                value = float(arrays["values"][0, 0])
                self.heat.set_cell_value(row, col, None if np.isnan(value) else value)
                self._point()

        self._panel.ask(message, answer, slot="cell")

    def _ask_block(self, rows: Span, cols: Span) -> None:
        if self.shown is None:
            return
        if self.what.key() == "token":
            values = self.folded.values if self.folded is not None else self.shown.values
            self.table.blocks.set_block(rows, cols, values[slice(*rows), slice(*cols)])
            return
        walk, op, matrix = self.shown.walk, self.shown.op, self.table.blocks.matrix
        message = GetWalkTensor(
            place=walk.place, op=op.id, what="parts" if self.what.key() == "parts" else "positions",
            position=walk.position, layer=walk.layer, head=walk.head, rows=rows, cols=cols,
            height=rows[1] - rows[0], width=cols[1] - cols[0],
        )  # fmt: skip

        def answer(_reply: WalkTensorReply, arrays: Arrays) -> None:
            if self.shown is not None and self.shown.op.id == op.id and "values" in arrays:
                self.table.blocks.set_block(rows, cols, arrays["values"], matrix=matrix)

        self._panel.ask(message, answer)

    def _copy(self, what: str) -> None:
        text = copied(what, self.heat, self.table, self.matrix())
        if text:
            QGuiApplication.clipboard().setText(text)
        self._ctx.notify.say(tr("Copied.") if text else tr("Point at a cell first."))

    def _on_progress(self, progress: Progress, message: GetWalkTensor) -> None:
        if self._asked == message:
            done, total = f"{progress.done:,}", f"{progress.total:,}"
            self.heat.set_message(tr("running the block again: {done} of {total} positions", done=done, total=total))

    def _on_error(self, error: ErrorInfo, message: GetWalkTensor) -> None:
        if self._asked == message:
            self._asked = None
            if error.code not in QUIET_CODES:
                self.heat.set_message(error.message)

    # inside: widgets

    def _lay_out(self) -> None:
        self.picture = QStackedWidget()
        self.picture.addWidget(self.heat)
        self.picture.addWidget(self.table)
        holder = self._holder = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._under = False
        holder.setSpacing(LIST_GAP)
        holder.addWidget(self.picture, 1)
        holder.addWidget(self.side)
        for part in (self.heat, self.table):  # so little that the readout under them stays in a low dock
            part.setMinimumHeight(self._ctx.theme.px(LEAST_HEIGHT))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        column.addWidget(self.head)
        column.addLayout(holder, 1)
        column.addWidget(self.readout)
        self.readout.hide()

    def _connect(self) -> None:
        self.what.keyChanged.connect(lambda _key: self._on_what())
        self.heat.cellHovered.connect(self._on_hover)
        self.heat.cellClicked.connect(self._on_click)
        self.heat.valueWanted.connect(self._ask_value)
        self.heat.viewChanged.connect(lambda: self._panel.mark("view"))
        self.heat.copyWanted.connect(self._copy)
        self.heat.tableWanted.connect(lambda: self.table_button.setChecked(True))
        self.table.blocks.blockWanted.connect(self._ask_block)
        self.table.copyWanted.connect(self._copy)
        self.table_button.toggled.connect(self._turn)
        self.list.positionHovered.connect(self._on_list_hover)
        self.list.positionClicked.connect(self._on_list_click)
        self.back.clicked.connect(self.closed)
        self._ctx.theme.changed.connect(self._restyle)

    def _turn(self, table: bool) -> None:
        self.picture.setCurrentIndex(int(table))
        self._arrange()

    def _on_what(self) -> None:
        self._asked = None
        if self.shown is not None:
            self.head.show_statistics(self.shown)
        self.draw()

    def _on_list_hover(self, index: int) -> None:
        if self.shown is not None and self.shown.op.id == "attn.pattern":
            self._ctx.selection.set_hover(token=index if index >= 0 else None)

    def _on_list_click(self, index: int) -> None:
        if self.shown is not None and self.shown.op.id == "attn.pattern":
            self._ctx.selection.set_key(index)

    def _restyle(self) -> None:
        self.head.restyle()
        self._place_list()
