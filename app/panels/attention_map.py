"""One matrix of the attention panel: a heat map bound to a view, its exact values, its table, what is copied."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.i18n import tr
from app.notify import QUIET_CODES
from app.panels.attention_copy import copy_cells
from app.panels.attention_words import UNMASKED, place_text, value_name, view_text
from app.plain import tip as plain_tip
from app.widgets.colour_bar import BarText, ColourBar, scale_brief, scale_words
from app.widgets.elided_label import ElidedLabel
from app.widgets.heatmap import HeatMap
from app.widgets.heatmap_boundary import lay_out_with_words
from app.widgets.heatmap_image import Tile
from app.widgets.heatmap_layout import LABEL_ROOM, Options, dress_axes
from app.widgets.heatmap_table import MatrixTable, page_of
from app.widgets.heatmap_words import USUAL, cell_words
from app.widgets.readout import parts_width
from app.widgets.ticks import figure
from model.colormaps import Levels, colormap_for, lut
from model.protocol.attention_requests import CellReply, GetCell, GetMatrix, HeadView, MatrixReply

if TYPE_CHECKING:
    from app.panels.base import Panel
    from model.protocol.framing import Arrays
    from model.protocol.wire import ErrorInfo

Span = tuple[int, int]
Drawn = tuple[object, HeadView, int, tuple[int, ...]]
"""Of the cells that are drawn: run, view, positions of the prompt, decode nodes."""
TITLE, TITLE_GAP = 22, 2
BARE = 5
"""The brief form of a readout that leaves it nothing else but the value and the tokens' numbers."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How a matrix stands in some room: px of its side and of a token of its rows, whether the tokens of rows and of
    columns stand whole, and from one column that is named to the next."""

    side: float
    row_room: float = 0.0
    rows_whole: bool = False
    cols_whole: bool = False
    every: int = 1


class MapView(QWidget):
    """`number` names its requests; a pinned one has a title and a way to unpin it."""

    unpinned = Signal(object)
    rowClicked = Signal()
    colClicked = Signal()
    barChanged = Signal()

    def __init__(self, panel: Panel, number: int, *, pinned: HeadView | None = None) -> None:
        super().__init__(panel)
        self._panel, self._ctx, self.number = panel, panel.ctx, number
        self.pinned, self._is_brief, self._retired = pinned, False, False
        self.view = pinned or panel.ctx.selection.view
        self._shown: tuple[object, HeadView] = (None, self.view)
        self._drawn: Drawn = (None, self.view, 0, ())
        self._asked: object = None
        self._levels: tuple[object, tuple[float, float] | None] = (None, None)
        self._tokens: object = None
        self.heat = HeatMap(panel.ctx.theme, tr("Attention matrix"))
        # The bar's room is taken from the start: cells that come do not move what is drawn.
        self.heat.set_bar(BarText(values=(0.0, 0.5, 1.0), scale=scale_words("sqrt", fixed=False), brief="√"))
        self._table: MatrixTable | None = None
        self._table_view: HeadView | None = None
        self.alone = QLabel(self.heat)
        self.alone.setTextFormat(Qt.TextFormat.PlainText)
        self.alone.setProperty("role", "hint")
        self.alone.setWordWrap(True)
        self.alone.hide()
        self._stack = QStackedWidget()
        self._stack.addWidget(self.heat)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(TITLE_GAP)
        self._make_title(column)
        column.addWidget(self._stack, 1)
        self._connect()

    # shared state → map

    def sync(self, *, titled: bool) -> None:
        """Brings it up to date, and asks for the cells in sight."""
        self.follow(titled=titled)
        self.request()

    def follow(self, *, titled: bool) -> None:
        """Brings shape, tokens, selection and hover up to date."""
        session, selection = self._ctx.session, self._ctx.selection
        self.view = self.pinned or selection.view
        self._title.setVisible(titled or self.pinned is not None)
        self._label.set_forms(*self._title_forms())
        self.heat.setAccessibleName(tr("Attention matrix, {view}", view=view_text(self.view)))
        if session.run is None or not session.length:
            self.heat.clear()
            self.heat.set_shape(0, 0)
            self._asked = self._tokens = None
            return
        self.heat.set_message("")
        tokens = session.path_tokens()
        if tokens is not self._tokens:
            self._tokens = tokens
            first_decode = session.n_prompt if session.length > session.n_prompt else None
            self.heat.set_axis_tokens([token.piece for token in tokens], first_decode=first_decode)
            self.heat.set_boundary(first_decode)
            self.heat.set_shape(len(tokens), len(tokens))
            self._fill_table()
        if self.as_table and self._table_view != self.view:
            self._fill_table()
        self.heat.set_causal(causal=self.view.stage not in UNMASKED)
        self.heat.set_held_rows(self._held_rows())  # before the name: a value never stands under another's
        self.heat.set_names(tr("query"), tr("key"), value_name(self.view.stage))
        self.heat.set_selected((selection.query, selection.key))
        self.follow_hover()

    def follow_hover(self) -> None:
        """The cell or the token pointed at anywhere in the window."""
        selection = self._ctx.selection
        self.heat.set_hovered(selection.hover_cell)
        self.heat.set_linked(selection.hover_token)

    def request(self) -> None:
        """Asks for the cells in sight, unless they are under way or drawn already."""
        session, selection = self._ctx.session, self._ctx.selection
        if session.run is None or not all(self.heat.shape):
            return
        rows, cols, height, width = self.heat.wanted()
        state = (session.run_id, session.current_node, session.length)
        fixed = selection.fixed and self.view.stage == "weights"
        key = (state, self.view, selection.scale, fixed, selection.ignore_first)
        # A part is drawn with the levels of the whole, so that a cell keeps its colour when it is looked at closely.
        levels = self._levels[1] if self._levels[0] == key and not self.heat.view.is_whole(self.heat.shape) else None
        message = GetMatrix(
            view=self.view, rows=rows, cols=cols, height=height, width=width, scale=selection.scale, fixed=fixed,
            ignore_first=selection.ignore_first, levels=levels,
        )  # fmt: skip
        question = (state, message)
        if question == self._asked:
            return
        self._asked = question
        path = tuple(node.id for node in session.path_nodes())
        asked = (session.run_id, self.view, session.length - len(path), path)

        def answer(reply: MatrixReply, arrays: Arrays) -> None:
            self._on_matrix(reply, arrays, message, key, asked)

        self._panel.ask(
            message,
            answer,
            on_error=lambda error: self._on_error(error, question),
            slot=f"matrix.{self.number}",
        )

    def retire(self) -> None:
        """It is no longer shown: what was asked for it may still come, and is let go."""
        self._retired = True
        self.hide()
        self.deleteLater()

    def dress(self, options: Options, *, brief: bool, nameless: bool = False, shared: bool = False) -> None:
        """What is drawn besides the cells. Without a readout the title has the value, without a bar the bar unless it
        is `shared` with others. `brief`: the title names its head in brief; `nameless`: the value is named by the stage
        in the title alone."""
        self._is_brief = brief
        self._label.set_forms(*self._title_forms())
        self.heat.set_options(options)
        self._value.setVisible(not options.readout)
        self._named.setVisible(not options.readout and not nameless)
        self._bar.setVisible(not options.bar and not shared)

    def settle(self) -> None:
        """Shares out its room at once: in a turn of its own the title would be cut for as long as others take."""
        for layout in (self.layout(), self._title.layout()):
            if layout is not None:
                layout.activate()
        self._say_alone()

    def fit_in(self, room: QSize, options: Options, *, shared: bool = False) -> Fit:
        """How it would stand in a view of that size with a title; of no size where title or readout have no room for
        the value and what else they should have."""
        title = self.title_width(options, brief=True, nameless=True, shared=shared)
        if room.width() < title and not (options.readout and options.bar):
            return Fit(side=0.0)
        heat, height = self.heat, room.height() - self._ctx.theme.px(TITLE) - TITLE_GAP
        dress_axes(heat.row_axis, heat.col_axis, options)
        rect, (rows, cols) = QRectF(0, 0, room.width(), max(height, 1)), heat.shape
        found = lay_out_with_words(heat, rect, options)
        most, area = LABEL_ROOM * heat.theme.text_scale, found.area
        fit = Fit(
            side=area.height(),
            row_room=found.row_room,
            rows_whole=found.row_room >= heat.row_axis.longest(most, rows, ruler=False),
            cols_whole=found.col_room >= heat.col_axis.longest(most, cols, ruler=False),
            every=heat.col_axis.step(area.width() / max(cols, 1), cols),
        )
        if options.readout and found.readout.width() < self._least_readout():
            fit = Fit(side=0.0)
        dress_axes(heat.row_axis, heat.col_axis, heat.options)
        return fit

    def restyle(self) -> None:
        """Draws what is here again, as after a change of colour map."""
        self._asked = None
        self.request()

    def show_table(self, *, shown: bool, focus: bool = True) -> None:
        """The exact values as a table in the map's place, or the map again; with the `focus` or without."""
        if not shown:
            self._stack.setCurrentWidget(self.heat)
            self.heat.setFocus()
            return
        if self._table is None:
            self._table = MatrixTable(self._ctx.theme, tr("Attention matrix"))
            self._table.blocks.blockWanted.connect(self._ask_block)
            self._table.cellClicked.connect(self._ctx.selection.set_cell)
            self._table.copyWanted.connect(self._copy)
            self._stack.addWidget(page_of(self._table, lambda: self.show_table(shown=False)))
        self._stack.setCurrentIndex(1)
        self._fill_table()
        if focus:
            self._table.setFocus()

    def carry(self, before: MapView) -> None:
        """Whether it is a table, and the levels of the whole, which a part of it is drawn with."""
        self._levels = before._levels
        if before.as_table:
            self.show_table(shown=True, focus=False)

    @property
    def as_table(self) -> bool:
        return self._stack.currentIndex() == 1

    def bottom(self) -> int:
        """Px from its top to the end of what is drawn in it."""
        drawn = self.heat.geometry_now()
        ends = [place.bottom() for place in (drawn.area, drawn.readout, drawn.bar) if not place.isNull()]
        return self._stack.y() + math.ceil(max(ends))

    @property
    def form(self) -> tuple[object, ...]:
        """All that decides how it stands in some room."""
        heat = self.heat
        widths = [axis.longest(math.inf, 1, ruler=False) for axis in (heat.row_axis, heat.col_axis)]
        named = view_text(self.view), self.pinned, value_name(self.view.stage), self._bar.sizeHint().width()
        return (
            heat.shape, heat.boundary, heat.is_causal, heat.bar, *widths, *named, heat.theme.text_scale,
            heat.devicePixelRatioF(),
        )  # fmt: skip

    # inside

    def _title_text(self, *, pinned: bool | None = None, brief: bool | None = None) -> str:
        text = view_text(self.view, brief=self._is_brief if brief is None else brief)
        if brief is None and self._is_brief:  # what unpins it says as much
            return text
        return tr("pinned · {view}", view=text) if pinned or (pinned is None and self.pinned is not None) else text

    def _title_forms(self) -> tuple[str, ...]:
        """The title, and what stands for it where it has no room: its head's number goes last."""
        return (self._title_text(), view_text(self.view, brief=True), place_text(self.view, brief=True))

    def title_width(self, options: Options, *, brief: bool, nameless: bool = False, shared: bool = False) -> int:
        """Px of width of a pinned one's title with all that it has to show: of all maps the widest."""
        width = self._label.fontMetrics().horizontalAdvance(self._title_text(pinned=not brief, brief=brief))
        if not options.readout:
            width += self._value.fontMetrics().horizontalAdvance("0.000000") + 6
            name = "" if nameless else value_name(self.view.stage)
            width += self._named.fontMetrics().horizontalAdvance(name) + 6
        return width + (0 if options.bar or shared else self._bar.sizeHint().width() + 6) + self._ctx.theme.px(30)

    def _least_readout(self) -> float:
        """Px that a readout takes with a value of the usual length and no more than the numbers of both tokens."""
        heat = self.heat
        last = max(heat.shape[0] - 1, 0), max(heat.shape[1] - 1, 0)
        words = cell_words(last, USUAL, ("", "", ""), (heat.row_axis, heat.col_axis), BARE)
        return parts_width(heat.theme, words)

    def _say_alone(self) -> None:
        """Says under the one cell of a single token why there is no more to see, where the words have room."""
        if self.heat.shape != (1, 1) or self.pinned is not None:
            self.alone.hide()
            return
        top, width = self.bottom() - self._stack.y() + self._ctx.theme.px(12), self.heat.width()
        words = tr("One token alone can only read itself: its weight is 1 in every head.")
        more = tr("Step, or write more: tokens then choose what they read.")
        for said in (f"{words} {more}", words):
            self.alone.setText(said)
            high = self.alone.heightForWidth(width)
            if top + high <= self.heat.height():
                break
        self.alone.setGeometry(0, top, width, high)
        self.alone.setVisible(top + high <= self.heat.height())

    def _make_title(self, column: QVBoxLayout) -> None:
        title = self._title = QWidget()
        row = QHBoxLayout(title)
        row.setContentsMargins(0, 0, 0, 0)
        self._label, self._value, self._bar = ElidedLabel(), QLabel(), ColourBar(self._ctx.theme)
        self._named = QLabel()
        self._named.setProperty("role", "hint")
        self._named.hide()
        self._value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._value.hide()
        self._bar.hide()
        row.addWidget(self._label, 1)
        row.addWidget(self._bar)
        row.addWidget(self._named)
        row.addWidget(self._value)
        button = QToolButton()
        button.setText("×")
        button.setAutoRaise(True)
        row.addWidget(button)
        if self.pinned is not None:
            button.setAccessibleName(tr("Unpin {view}", view=view_text(self.pinned)))
            button.setToolTip(tr("Unpin"))
            button.clicked.connect(lambda: self.unpinned.emit(self.pinned))
        else:  # its place stays free: the value of one is as far from the next one's title as of any
            policy = button.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            button.setSizePolicy(policy)
            button.hide()
        column.addWidget(title)
        self._ctx.theme.changed.connect(self._dress_title)
        self._dress_title()

    def _dress_title(self) -> None:
        """At the size of text in force."""
        theme = self._ctx.theme
        for words in (self._label, self._named):
            words.setFont(theme.font("hint"))
        self._value.setFont(theme.font("mono"))
        self._title.setFixedHeight(theme.px(TITLE))

    def _connect(self) -> None:
        heat, selection = self.heat, self._ctx.selection
        heat.cellHovered.connect(lambda row, col: selection.set_hover(cell=None if row < 0 else (row, col)))
        heat.tokenHovered.connect(lambda token: selection.set_hover(token=None if token < 0 else token))
        heat.cellClicked.connect(selection.set_cell)
        heat.rowClicked.connect(self._on_row)
        heat.colClicked.connect(self._on_col)
        heat.valueWanted.connect(self._ask_cell)
        heat.viewChanged.connect(lambda: self._panel.mark("view"))
        heat.described.connect(self._show_value)
        heat.tableWanted.connect(lambda: self.show_table(shown=True))
        heat.copyWanted.connect(self._copy)

    def _copy(self, what: str) -> None:
        copy_cells(self._panel, self.heat, self._table, self._shown[1], what)

    def _show_value(self) -> None:
        cell = self.heat.hovered or self.heat.selected
        value = self.heat.value_of(cell) if cell is not None else None
        self._named.setText("" if value is None else value_name(self.view.stage))
        self._value.setText("" if value is None else "–" if math.isnan(value) else figure(value, 6))
        self._value.setToolTip(plain_tip(self.heat.readout_text()))

    def _on_row(self, row: int) -> None:
        self._ctx.selection.set_query(row)
        self.rowClicked.emit()

    def _on_col(self, col: int) -> None:
        self._ctx.selection.set_key(col)
        self.colClicked.emit()

    def _held_rows(self) -> int | None:
        """How many rows of what is drawn are those of the present run, path and view: rows of a common beginning stay
        as they were."""
        run, view, prompt, path = self._drawn
        session = self._ctx.session
        if (run, view) != (session.run_id, self.view):
            return 0
        now = session.path_nodes()
        same = next((i for i, (old, new) in enumerate(zip(path, now, strict=False)) if old != new.id), None)
        if same is None:
            same = min(len(path), len(now))
        return None if same == len(path) == len(now) else prompt + same

    def _on_matrix(self, reply: MatrixReply, arrays: Arrays, message: GetMatrix, key: object, drawn: Drawn) -> None:
        if self._retired:
            return
        self._drawn = drawn
        pixels = np.ascontiguousarray(arrays["pixels"])
        name = colormap_for(self._panel.ctx.settings.panel("attention").get("colormap", "viridis"), signed=reply.signed)
        self._shown = (key, message.view)
        if message.rows == message.cols == (0, reply.length) and message.levels is None:
            self._levels = (key, (reply.low, reply.high) if reply.low < reply.high else None)
        self.heat.set_lut(lut(name))
        self.heat.set_bar(bar_text(reply, fixed=message.fixed, ignore_first=message.ignore_first))
        self._bar.set_bar(self.heat.bar, self.heat.table)
        self.barChanged.emit()
        tile = Tile(pixels=pixels, rows=reply.rows, cols=reply.cols, values=arrays.get("values"), signed=reply.signed)
        self.heat.set_tile(tile, key=(key, reply.low, reply.high))
        self.heat.set_held_rows(self._held_rows())

    def _on_error(self, error: ErrorInfo, asked: object) -> None:
        if self._asked is asked:  # an equal question that came later is under way still
            self._asked = None
        if not self._retired and error.code not in QUIET_CODES and not self.heat.tiles:
            self.heat.set_message(error.message)

    def _ask_cell(self, row: int, col: int) -> None:
        key, view = self._shown

        def answer(reply: CellReply, _arrays: Arrays) -> None:
            # The picture may be another head's by now; its value is asked for again.
            if self._shown[0] == key and not self._retired:
                self.heat.set_cell_value(reply.query, reply.key, reply.value if reply.visible else None)

        self._panel.ask(GetCell(view=view, query=row, key=col), answer, slot=f"cell.{self.number}")

    def _fill_table(self) -> None:
        if self._table is None or not self.as_table:
            return
        self._table_view = self.view
        pieces = [token.piece for token in self._ctx.session.path_tokens()]
        self._table.blocks.set_matrix(self.heat.shape, pieces, pieces)
        self._table.set_decode(self.heat.boundary, self.heat.boundary)
        selection = self._ctx.selection
        self._table.set_current(selection.query, selection.key)

    def _ask_block(self, rows: Span, cols: Span) -> None:
        if self._table is None:
            return
        blocks, view = self._table.blocks, self.view
        matrix = blocks.matrix
        message = GetMatrix(view=view, rows=rows, cols=cols, height=rows[1] - rows[0], width=cols[1] - cols[0])

        def answer(_reply: MatrixReply, arrays: Arrays) -> None:
            if self.view == view and "values" in arrays:
                blocks.set_block(rows, cols, arrays["values"], matrix=matrix)

        self._panel.ask(message, answer)


def bar_text(reply: MatrixReply, *, fixed: bool, ignore_first: bool) -> BarText:
    """What the colour bar of a reply prints."""
    words, brief = [scale_words(reply.scale, fixed=fixed)], [scale_brief(reply.scale)]
    if ignore_first:
        words.append(tr("first key apart"))
        brief.append(tr("first apart"))
    if reply.pooled:
        words.append(tr("strongest of each pixel"))
        brief.append(tr("strongest"))
    good = math.isfinite(reply.low) and math.isfinite(reply.high) and reply.low < reply.high
    low, high = (reply.low, reply.high) if good else (0.0, 1.0)
    if reply.scale == "log" and not reply.signed and low <= 0:
        low = high * 1e-5
    levels = Levels(low=-high if reply.signed else low, high=high, scale=reply.scale, signed=reply.signed)
    values = levels.value(np.array([0.0, 0.5, 1.0]))
    return BarText(
        values=(float(values[0]), float(values[1]), float(values[2])), scale=" · ".join(words), brief=" · ".join(brief)
    )
