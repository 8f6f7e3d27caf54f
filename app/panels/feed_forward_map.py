"""Tokens × neurons, or tokens × experts: a heat map of a stretch of the text, its table, what is copied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QGuiApplication, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.i18n import tr
from app.panels.attention_copy import number, table_text
from app.panels.kv_lines import longest_fitting
from app.plain import tip as plain_tip
from app.widgets.colour_bar import BarText, scale_words
from app.widgets.elided_label import ElidedLabel
from app.widgets.heatmap import Cell, HeatMap
from app.widgets.heatmap_image import Tile
from app.widgets.heatmap_layout import Options
from app.widgets.heatmap_table import BLOCK, MatrixTable, pointed
from app.widgets.heatmap_view import View
from app.widgets.readout import Part
from app.widgets.ticks import figure
from model.colormaps import Levels, colormap_for, lut

if TYPE_CHECKING:
    from app.panels.base import Panel

Floats = NDArray[np.float32]
DOT_FROM, TICK, TICK_FROM = 3.0, 8.0, 4.0
"""Px of a ring from which it is one; of a tick in lower rows, at most, and from which it is one."""
NAMES_FROM, CORNER = 148, 5.0
"""Px of height at 100 % text from which columns are named at a slant; px from the names of the axes to the cells."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """`values` (t, n) of the tokens from position `start`; NaN: there is none, for the reason `hidden`. `names`: of
    the columns. `kind`, `value`: what a column and a cell are called. `marked` (t, k): columns marked in each row.
    `captions`: what rows, columns and colours are, in a line, from all of it to the least; `tip`: the same in full."""

    values: Floats
    start: int
    names: Sequence[str]
    kind: str
    value: str
    hidden: str
    signed: bool
    marked: NDArray[np.int32] | None = None
    title: str = ""
    captions: tuple[str, ...] = ("",)
    tip: str = ""


class ColumnMap(HeatMap):
    """A heat map whose rows are tokens and whose columns are not; some cells of a row may be marked: with a ring, in
    low rows with a tick half black, half white, which is told from any colour and from its neighbours."""

    grid: Grid | None = None
    described = Signal()

    def _describe(self) -> None:
        super()._describe()
        self.described.emit()

    def readout(self, *, brief: int = 0) -> list[Part]:
        cell, grid = self.hovered or self.selected, self.grid
        if cell is None or grid is None or not (cell[0] < len(grid.values) and cell[1] < len(grid.names)):
            return []
        value = float(grid.values[cell])
        parts: list[Part] = [
            (self.row_axis.piece(cell[0]), "strong"), (f" ({self.row_axis.number(cell[0])}) · ", "secondary"),
            ("" if brief > 2 else f"{grid.kind} ", "secondary"), (grid.names[cell[1]], "strong"), ("  ", "secondary"),
            ("" if brief > 1 else f"{grid.value} ", "secondary"),
        ]  # fmt: skip
        parts.append((grid.hidden, "secondary") if math.isnan(value) else (figure(value, 4 if brief else 6), "strong"))
        if grid.marked is not None and cell[1] in grid.marked[cell[0]]:
            parts.append(("  " + tr("chosen"), "accent"))
        return parts

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        grid = self.grid
        if grid is None or not all(self.shape):
            return
        painter, area = QPainter(self), self.geometry_now().area
        painter.setFont(self.theme.font("hint"))
        painter.setPen(self.theme.palette.secondary)
        for place, words in self.corner():
            painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, words)
        if grid.marked is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setClipRect(area)
        shade = QColor(Qt.GlobalColor.black)
        shade.setAlphaF(0.5)
        mark, radius = self.mark(), self._radius()
        if not mark:
            return
        rows = range(*self.view.row_span(self.shape[0]))
        for row in rows:
            for col in grid.marked[row].tolist():
                cell = self.cell_rect((row, int(col)))
                at: QPointF = cell.center()
                if mark == "tick":
                    half = min(cell.width() * 0.6, TICK) / 2
                    for left, colour in ((at.x() - half, Qt.GlobalColor.black), (at.x(), Qt.GlobalColor.white)):
                        painter.fillRect(QRectF(left, cell.top(), half, cell.height()), colour)
                    continue
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(shade, 2.4))
                painter.drawEllipse(at, min(radius, 5.0), min(radius, 5.0))
                painter.setPen(QPen(self.theme.palette.cursor, 1.3))
                painter.drawEllipse(at, min(radius, 5.0), min(radius, 5.0))

    def mark(self) -> Literal["ring", "tick", ""]:
        """What chosen cells bear at the present size: nothing where rows share pixels."""
        size = self.cell_rect((0, 0))
        if self._radius() * 2 >= DOT_FROM:
            return "ring"
        return "tick" if size.height() >= 1 and size.width() * 0.6 >= TICK_FROM else ""

    def _radius(self) -> float:
        size = self.cell_rect((0, 0))
        return min(size.width(), size.height()) * 0.28

    def corner(self) -> list[tuple[QRectF, str]]:
        """What columns and rows are called, where both have room beside the columns' names; beside names that lie flat,
        what the columns are."""
        area, metrics = self.geometry_now().area, QFontMetricsF(self.theme.font("hint"))
        words: tuple[str, ...] = (f"{self.grid.kind} →", f"{tr('token')} ↓") if self.grid is not None else ()
        line, room = metrics.height(), area.left() - CORNER
        top = area.top() - CORNER - line * len(words)
        if top < 0 and words and self.col_axis.flat:
            words, top = words[:1], max(area.top() - CORNER - line, 0.0)
            bold = QFontMetricsF(self.theme.font("hint", bold=True))
            room -= max((bold.horizontalAdvance(name) for name in self.grid.names), default=0.0) / 2 if self.grid else 0
        if top < 0 or any(metrics.horizontalAdvance(each) > room for each in words):
            return []
        return [(QRectF(0, top + at * line, room, line), each) for at, each in enumerate(words)]


class MapPage(QWidget):
    """The map or its table. `columnChosen` carries a column; a row's token is linked with the selection."""

    columnChosen = Signal(int)
    columnHovered = Signal(int)
    tableAsked = Signal()

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel)
        self._panel, self._ctx = panel, panel.ctx
        options = Options(square=False, tokens="rows", most_pitch=34, readout=False)
        self.heat = ColumnMap(panel.ctx.theme, tr("Tokens by neurons"), options=options)
        self.heat.set_bar(BarText(values=(-1.0, 0.0, 1.0), scale=scale_words("sqrt", fixed=False)))
        self.table = MatrixTable(panel.ctx.theme, tr("Tokens by neurons"))
        self.grid: Grid | None = None
        self._labelled: object = None
        self._carried: tuple[tuple[int, int], View | None] = ((0, 0), None)
        self.heat.col_axis.numbered = False
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.heat)
        self._stack.addWidget(self.table)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        self.caption = ElidedLabel()
        self.caption.setProperty("role", "hint")
        column.addWidget(self.caption)
        column.addWidget(self._stack, 1)
        self._column = column
        self._connect()

    def show_grid(self, grid: Grid, cell: Cell | None) -> None:
        """Draws other numbers; `cell` is the chosen one."""
        self.grid = self.heat.grid = grid
        start = grid.start
        pieces = [token.piece for token in self._ctx.session.path_tokens()[start : start + len(grid.values)]]
        session = self._ctx.session
        first = session.n_prompt - start if session.length > session.n_prompt else None
        self.heat.row_axis.origin = start
        self.heat.setAccessibleName(grid.title)
        self.heat.set_axis_tokens(pieces, list(grid.names), first_decode=first)
        self.heat.row_axis.first_decode = first
        self._label_columns()
        self.heat.set_boundary(first if first is not None and 0 < first < len(grid.values) else None)
        self.heat.set_shape(*grid.values.shape)
        shape, view = self._carried
        if view is not None and shape == self.heat.shape:
            self.heat.set_view(view)
            self._carried = ((0, 0), None)
        else:
            self.heat.reset_view()
        self.heat.set_selected(cell)
        self._show_caption()
        self.draw()
        names = [f"{grid.kind} {name}" for name in grid.names]
        self.table.blocks.set_matrix(grid.values.shape, pieces, names, origin=start, numbered=(True, False))
        self.table.set_decode(self.heat.boundary)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._label_columns()
        self._show_caption()

    def minimumSizeHint(self) -> QSize:
        """Without the caption, which is there where there is room for it."""
        return self._stack.minimumSizeHint()

    def _show_caption(self) -> None:
        taken = self.caption.sizeHint().height() + self._column.spacing()
        self.caption.setVisible(self.height() >= self.minimumSizeHint().height() + taken)
        if self.grid is not None:
            metrics = QFontMetricsF(self.caption.font())
            self.caption.setText(longest_fitting(self.captions(), metrics, self.width()))
            self.caption.setToolTip(plain_tip(self.grid.tip))

    def captions(self) -> tuple[str, ...]:
        """What is said of the map, from all of it to the least: with what chosen cells bear at the present size."""
        captions = self.grid.captions if self.grid is not None else ("",)
        if self.grid is None or self.grid.marked is None or not all(self.heat.shape):
            return captions
        words = {"ring": tr("ring: chosen"), "tick": tr("black and white: chosen"), "": tr("chosen: zoom in")}
        mark = words[self.heat.mark()]
        return (*(f"{caption} · {mark}" for caption in captions[:2]), *captions[1:])

    def _label_columns(self) -> None:
        """Names over the columns: slanted where the map is high; where it is low its cells need the room, and as many
        of them as have it lie flat."""
        grid = self.grid
        if grid is None:
            return
        flat = self.height() < self._ctx.theme.px(NAMES_FROM)
        state = (id(grid), flat)
        if state != self._labelled:
            self._labelled = state
            axis, rows = self.heat.row_axis, [self.heat.row_axis.piece(row) for row in range(len(grid.values))]
            first = axis.first_decode
            self.heat.col_axis.flat = flat
            self.heat.set_axis_tokens(rows, list(grid.names))
            axis.first_decode = first

    def carry(self, before: MapPage) -> None:
        """The part in sight, for the first numbers of the same shape."""
        heat = before.heat
        self._carried = before._carried if heat.view.is_whole(heat.shape) else (heat.shape, heat.view)

    def draw(self) -> None:
        """Colours by the scale in force."""
        grid = self.grid
        if grid is None:
            return
        scale = self._ctx.selection.scale
        seen = grid.values[~np.isnan(grid.values)]
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
        levels = Levels.spanning(low, high, scale=scale, signed=grid.signed)
        name = self._ctx.settings.panel("attention").get("colormap", "viridis")
        self.heat.set_lut(lut(colormap_for(name, signed=grid.signed)))
        ends = levels.value(np.array([0.0, 0.5, 1.0]))
        values = (float(ends[0]), float(ends[1]), float(ends[2]))
        self.heat.set_bar(BarText(values=values, scale=scale_words(scale, fixed=False)))
        rows, cols = grid.values.shape
        tile = Tile(pixels=levels.pixels(grid.values), rows=(0, rows), cols=(0, cols), values=grid.values,
                    signed=grid.signed)  # fmt: skip
        self.heat.set_tile(tile, key=(id(grid), scale))

    def select(self, cell: Cell | None) -> None:
        self.heat.set_selected(cell)
        if cell is not None and self.grid is not None and self.as_table:
            self.table.set_current(*cell)

    def follow_hover(self, token: int | None) -> None:
        """The token pointed at anywhere."""
        self.heat.set_linked(token)

    @property
    def as_table(self) -> bool:
        return self._stack.currentIndex() == 1

    def show_table(self, *, shown: bool) -> None:
        self._stack.setCurrentIndex(int(shown))
        if shown and self.heat.selected is not None:
            self.table.set_current(*self.heat.selected)

    def copy(self, what: str) -> None:
        """A cell, a row or all in view onto the clipboard, exact, tab-separated."""
        grid, (cell, (rows, cols)) = self.grid, pointed(self.heat, self.table)
        if grid is None or (cell is None and what != "matrix"):
            return
        pieces = [self.heat.row_axis.piece(row) for row in range(len(grid.values))]
        if what == "cell" and cell is not None:
            text = number(float(grid.values[cell]))
        elif what == "row" and cell is not None:
            text = table_text([pieces[cell[0]]], list(grid.names), grid.values[cell[0]][None])
        else:
            seen = slice(*rows), slice(*cols)
            text = table_text(pieces[seen[0]], list(grid.names)[seen[1]], grid.values[seen])
        QGuiApplication.clipboard().setText(text)
        self._ctx.notify.say(tr("Copied."))

    # inside

    def _connect(self) -> None:
        heat, selection = self.heat, self._ctx.selection
        heat.cellHovered.connect(self._on_hover)
        heat.tokenHovered.connect(lambda token: selection.set_hover(token=None if token < 0 else token))
        heat.cellClicked.connect(lambda _row, col: self.columnChosen.emit(col))
        heat.colClicked.connect(self.columnChosen)
        heat.rowClicked.connect(lambda row: selection.set_query(row + (self.grid.start if self.grid else 0)))
        heat.copyWanted.connect(self.copy)
        heat.tableWanted.connect(self.tableAsked)
        heat.viewChanged.connect(self._show_caption)
        self.table.cellClicked.connect(self._on_table_cell)
        self.table.copyWanted.connect(self.copy)
        self.table.blocks.blockWanted.connect(self._on_block)

    def _on_hover(self, row: int, col: int) -> None:
        start = self.grid.start if self.grid else 0
        self._ctx.selection.set_hover(token=start + row if row >= 0 else None)
        self.columnHovered.emit(col)

    def _on_table_cell(self, row: int, col: int) -> None:
        self.heat.set_selected((row, col))
        self.columnChosen.emit(col)

    def _on_block(self, rows: tuple[int, int], cols: tuple[int, int]) -> None:
        grid = self.grid
        if grid is not None and rows[1] - rows[0] <= BLOCK:
            self.table.blocks.set_block(rows, cols, grid.values[slice(*rows), slice(*cols)])
