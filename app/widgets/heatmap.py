"""The heat map: cells, tokens on both axes, exact values, zoom and pan, a keyboard cursor. One painted widget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QSizePolicy, QWidget

from app.i18n import tr
from app.widgets.colour_bar import BarText
from app.widgets.heatmap_axes import Axis
from app.widgets.heatmap_boundary import lay_out_with_words
from app.widgets.heatmap_image import Tile, colour_table
from app.widgets.heatmap_keys import cell_after
from app.widgets.heatmap_layout import Geometry, Options, dress_axes
from app.widgets.heatmap_menu import open_menu
from app.widgets.heatmap_paint import Scene, paint_overlay
from app.widgets.heatmap_view import View
from app.widgets.heatmap_words import cell_words
from app.widgets.readout import Part

if TYPE_CHECKING:
    from app.theme import Theme

Cell = tuple[int, int]
ZOOM_STEP = 1.25
LEAST_CELLS = 4.0
Key, Modifier, Button = Qt.Key, Qt.KeyboardModifier, Qt.MouseButton


class HeatMap(QWidget):
    """Rows are queries, columns keys (or whatever `set_names` says).

    The owner gives a shape, axis tokens, and tiles of the cells that `wanted()` names, again after each `viewChanged`.
    When a cell's exact value is not in a tile, `valueWanted(row, column)` asks for it and `set_cell_value` answers.
    Setters emit nothing. Cells are (row, column), -1, -1 for none.

    Wheel zooms at the mouse, a drag pans, a double click shows the whole. Keys: arrows, Home, End, Ctrl+Home, Ctrl+End
    and the Page keys move the chosen cell; Z and Shift+Z zoom, 0 shows the whole; Ctrl+C copies the value.
    """

    cellHovered = Signal(int, int)
    cellClicked = Signal(int, int)
    rowClicked = Signal(int)
    colClicked = Signal(int)
    tokenHovered = Signal(int)
    valueWanted = Signal(int, int)
    viewChanged = Signal()
    copyWanted = Signal(str)
    tableWanted = Signal()
    described = Signal()

    def __init__(
        self, theme: Theme, label: str, *, options: Options | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.theme, self.options = theme, options or Options()
        self.row_axis, self.col_axis = Axis(theme, slanted=False), Axis(theme, slanted=True)
        self.shape = (0, 0)
        self.view = View.whole(0, 0)
        self.boundary: int | None = None
        self.col_boundary: int | None = None
        self.is_causal = True
        self.bar: BarText | None = None
        self.hovered: Cell | None = None
        self.linked: int | None = None
        self.selected: Cell | None = None
        self.tiles: list[Tile] = []
        self._names = (tr("query"), tr("key"), tr("value"))
        self._message = ""
        self._key: object = None
        self._lut: NDArray[np.uint8] = np.zeros((256, 4), dtype=np.uint8)
        self._exact: tuple[Cell, float | None] | None = None
        self._asked: Cell | None = None
        self._held_rows: int | None = None
        self._geometry: Geometry | None = None
        self._scene = Scene()
        self._drag: tuple[QPointF, View] | None = None
        self._dragged = False
        self.set_lut(self._lut)
        self.setAccessibleName(label)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self._restyle)

    # data

    def set_names(self, row: str, col: str, value: str) -> None:
        """What the readout calls a row, a column and a cell's value."""
        self._names = (row, col, value)
        self._describe()

    def set_shape(self, n_rows: int, n_cols: int) -> None:
        """Cells of the whole matrix. A whole view stays whole when it grows."""
        if (n_rows, n_cols) == self.shape:
            return
        whole = self.view.is_whole(self.shape) or not all(self.shape)
        self.shape = (n_rows, n_cols)
        self.view = View.whole(n_rows, n_cols) if whole else self.view.inside(self.shape)
        self.hovered = self._inside(self.hovered)
        self.selected = self._inside(self.selected)
        self._changed_view()

    def set_axis_tokens(
        self, rows: Sequence[str], cols: Sequence[str] | None = None, first_decode: int | None = None
    ) -> None:
        """The token of every row and column (`cols` None: the same); from `first_decode` on they are generated."""
        self.row_axis.set_pieces(rows)
        self.col_axis.set_pieces(rows if cols is None else cols)
        self.row_axis.first_decode = first_decode
        self.col_axis.first_decode = first_decode if cols is None else None
        self._relayout()

    def set_options(self, options: Options) -> None:
        """What is drawn besides the cells."""
        if options != self.options:
            self.options = options
            dress_axes(self.row_axis, self.col_axis, options)
            self._changed_view()

    def set_boundary(self, first_decode: int | None, *, cols: int | None = None) -> None:
        """The first decode row: a dashed line above it; None or 0: there is no line. `cols`: the same of columns."""
        if (first_decode, cols) != (self.boundary, self.col_boundary):
            before = self.geometry_now().area
            self.boundary, self.col_boundary = first_decode, cols
            self._resize_area(before)

    def set_causal(self, *, causal: bool) -> None:
        """Whether a mask hides the cells right of the diagonal: words have room there."""
        if causal != self.is_causal:
            before = self.geometry_now().area
            self.is_causal = causal
            self._resize_area(before)

    def set_lut(self, lut: NDArray[np.uint8]) -> None:
        """(256, 3 or 4) colours of the pixels; entry 0 is replaced by the theme's colour of masked cells."""
        self._lut = lut
        self.table = colour_table(lut, QColor(self.theme.palette.masked))
        self._refresh()

    def set_bar(self, text: BarText | None) -> None:
        """What the colour bar prints."""
        if text == self.bar:
            return
        before = self.geometry_now().area
        self.bar = text
        self._resize_area(before)

    def set_tile(self, tile: Tile, *, key: object = None) -> None:
        """Cells to draw. Under a tile of a part lies the last tile of the whole with the same `key`."""
        whole = tile.rows == (0, self.shape[0]) and tile.cols == (0, self.shape[1])
        base = [t for t in self.tiles[:1] if not whole and key == self._key and self._is_whole(t)]
        if key != self._key:
            self._exact = self._asked = None
        self._key = key
        self.tiles = [*base, tile]
        self._refresh()
        self._describe()

    def set_message(self, text: str) -> None:
        """A sentence in place of the matrix ("": the matrix)."""
        if text != self._message:
            self._message = text
            self._refresh()

    def set_held_rows(self, rows: int | None) -> None:
        """So many leading rows of what is drawn hold for what is named: the values of others are not known until their
        tile comes. None: all."""
        if rows != self._held_rows:
            self._held_rows = rows
            self._describe()
            self.update()

    def set_cell_value(self, row: int, col: int, value: float | None) -> None:
        """Answers `valueWanted`; None: the mask hides the cell."""
        self._exact = ((row, col), value)
        self._describe()
        self.update()

    def clear(self) -> None:
        """Forgets the cells, as when another run begins."""
        self.tiles, self._exact, self._asked, self._key = [], None, None, None
        self._refresh()

    # linked state

    def set_hovered(self, cell: Cell | None) -> None:
        """The cell pointed at elsewhere."""
        cell = self._inside(cell)
        if cell != self.hovered:
            self.hovered = cell
            self._describe()
            self.update()

    def set_linked(self, token: int | None) -> None:
        """The token pointed at elsewhere: its labels turn bold, its row and column are traced."""
        if token != self.linked:
            self.linked = token
            self.update()

    def linked_cells(self, token: int) -> tuple[int | None, int | None]:
        """The row and the column that stand for a token of the text."""
        row, col = token - self.row_axis.origin, token - self.col_axis.origin
        return (
            row if self.options.tokens != "cols" and 0 <= row < self.shape[0] else None,
            col if self.options.tokens != "rows" and 0 <= col < self.shape[1] else None,
        )

    def set_selected(self, cell: Cell | None) -> None:
        """The chosen query and key; the keyboard cursor."""
        cell = self._inside(cell)
        if cell != self.selected:
            self.selected = cell
            self._describe()
            self.update()

    # what is in sight

    def wanted(self) -> tuple[tuple[int, int], tuple[int, int], int, int]:
        """Rows and columns in sight (half-open) and the height and width in screen pixels they are drawn with."""
        area, ratio = self.geometry_now().area, self.devicePixelRatioF()
        height, width = max(1, round(area.height() * ratio)), max(1, round(area.width() * ratio))
        return self.view.row_span(self.shape[0]), self.view.col_span(self.shape[1]), height, width

    def geometry_now(self) -> Geometry:
        """Where everything is at the present size."""
        if self._geometry is None:
            self._geometry = lay_out_with_words(self, QRectF(self.rect()), self.options)
        return self._geometry

    def cell_at(self, point: QPointF) -> Cell | None:
        """The cell under a point of the widget."""
        area = self.geometry_now().area
        if not area.contains(point) or not all(self.shape):
            return None
        row = self.view.row + (point.y() - area.top()) / area.height() * self.view.rows
        col = self.view.col + (point.x() - area.left()) / area.width() * self.view.cols
        return min(int(row), self.shape[0] - 1), min(int(col), self.shape[1] - 1)

    def cell_rect(self, cell: Cell) -> QRectF:
        """Where a cell is drawn; it may lie outside the area."""
        area = self.geometry_now().area
        height, width = area.height() / self.view.rows, area.width() / self.view.cols
        top = area.top() + (cell[0] - self.view.row) * height
        return QRectF(area.left() + (cell[1] - self.view.col) * width, top, width, height)

    def value_of(self, cell: Cell) -> float | None:
        """The exact value of a cell, NaN where masked; None while it is not known here."""
        if not self._holds(cell):
            return None
        for tile in reversed(self.tiles):
            value = tile.value(*cell)
            if value is not None:
                return value
        if self._exact is not None and self._exact[0] == cell:
            return float("nan") if self._exact[1] is None else self._exact[1]
        return None

    def readout(self, *, brief: int = 0) -> list[Part]:
        """The cell pointed at (else the chosen one) in words; `brief` 0 … 6: with less and less (cell_words)."""
        cell = self.hovered or self.selected
        if cell is None or self._message:
            return []
        return cell_words(cell, self.value_of(cell), self._names, (self.row_axis, self.col_axis), brief)

    def readout_text(self) -> str:
        return "".join(text for text, _ in self.readout())

    # zoom and pan

    def set_view(self, view: View) -> None:
        """Shows another rectangle of cells."""
        view = view.inside(self.shape)
        if view != self.view:
            self.view = view
            self._changed_view()

    def reset_view(self) -> None:
        self.set_view(View.whole(*self.shape))

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Closer (over 1) or farther, about a point of the widget (None: the cursor, else the middle)."""
        if at is None:
            cell = self.hovered or self.selected
            at = self.cell_rect(cell).center() if cell else self.geometry_now().area.center()
        area, view = self.geometry_now().area, self.view
        row = view.row + (at.y() - area.top()) / area.height() * view.rows
        col = view.col + (at.x() - area.left()) / area.width() * view.cols
        self.set_view(view.zoomed(factor, at=(row, col), shape=self.shape, least=LEAST_CELLS))

    # events

    def sizeHint(self) -> QSize:
        return QSize(420, 360)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 140 if self.options.readout else 112)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._message or not all(self.shape):
            painter.setPen(self.theme.palette.secondary)
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(QRectF(self.rect()).adjusted(24, 8, -24, -8), flags, self._message)
            return
        self._scene.draw(painter, self)
        paint_overlay(painter, self)

    def resizeEvent(self, _event: QResizeEvent) -> None:
        self._geometry = None
        self._changed_view()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Button.LeftButton:
            self._drag, self._dragged = (event.position(), self.view), False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None and event.buttons() & Button.LeftButton:
            start, view = self._drag
            moved = event.position() - start
            if self._dragged or moved.manhattanLength() >= QApplication.startDragDistance():
                self._dragged = True
                area = self.geometry_now().area
                rows, cols = moved.y() / area.height() * view.rows, moved.x() / area.width() * view.cols
                self.set_view(view.panned(-rows, -cols, self.shape))
                return
        self._hover(self.cell_at(event.position()))
        self._hover_label(event.position())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Button.LeftButton or self._drag is None:
            return
        self._drag = None
        if not self._dragged:
            self._click(event.position())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Button.LeftButton and self.geometry_now().area.contains(event.position()):
            self._drag = None
            self.reset_view()

    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = event.angleDelta().y() / 120
        if notches and self.geometry_now().area.contains(event.position()):
            self.zoom(ZOOM_STEP**notches, event.position())
            self._hover(self.cell_at(event.position()))
            event.accept()
        else:
            event.ignore()

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)
        self._hover_label(None)
        super().leaveEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        open_menu(
            self, event.globalPos(), self.copyWanted.emit, at_cell=(self.hovered or self.selected) is not None,
            table=self.tableWanted.emit, whole=self.reset_view, is_whole=self.view.is_whole(self.shape),
        )  # fmt: skip

    def keyPressEvent(self, event: QKeyEvent) -> None:
        control = bool(event.modifiers() & Modifier.ControlModifier)
        key = Key(event.key())
        target = self._cursor_after(key, control=control) if all(self.shape) else None
        if target is not None:
            self._move_cursor(target)
        elif key == Key.Key_Z and not control:
            self.zoom(1 / ZOOM_STEP if event.modifiers() & Modifier.ShiftModifier else ZOOM_STEP)
        elif key == Key.Key_0 and not control:
            self.reset_view()
        elif control and key == Key.Key_C:
            self.copyWanted.emit("cell")
        else:
            event.ignore()

    # inside

    def _cursor_after(self, key: Qt.Key, *, control: bool) -> Cell | None:
        page = max(1, int(self.view.rows) - 1 if not self.view.is_whole(self.shape) else self.shape[0] // 8)
        return cell_after(key, self.selected or self.hovered or (0, 0), self.shape, control=control, page=page)

    def _move_cursor(self, cell: Cell) -> None:
        moved = cell != self.selected
        self.hovered = None
        self.selected = cell
        self.set_view(self.view.showing(*cell, self.shape))
        self._describe()
        self.update()
        if moved:
            self.cellHovered.emit(-1, -1)
            self.cellClicked.emit(*cell)

    def _hover(self, cell: Cell | None) -> None:
        if cell != self.hovered:
            self.hovered = cell
            self._describe()
            self.update()
            self.cellHovered.emit(*(cell or (-1, -1)))

    def _label_at(self, point: QPointF) -> tuple[str, int] | None:
        """The axis label a point is on: ("row" or "col", index)."""
        area, view = self.geometry_now().area, self.view
        if area.top() <= point.y() < area.bottom() and point.x() < area.left() and all(self.shape):
            return "row", min(int(view.row + (point.y() - area.top()) / area.height() * view.rows), self.shape[0] - 1)
        if point.y() < area.top() and all(self.shape):
            # Follow the slant down to the matrix edge.
            x = point.x() - (area.top() - point.y()) * 0.7
            if area.left() <= x < area.right():
                return "col", min(int(view.col + (x - area.left()) / area.width() * view.cols), self.shape[1] - 1)
        return None

    def _hover_label(self, point: QPointF | None) -> None:
        found = self._label_at(point) if point is not None else None
        token = None
        if found is not None and self.options.tokens in {"both", f"{found[0]}s"}:
            token = found[1] + (self.row_axis if found[0] == "row" else self.col_axis).origin
        if token != self.linked and (token is not None or self.hovered is None):
            self.linked = token
            self.update()
            self.tokenHovered.emit(-1 if token is None else token)

    def _click(self, point: QPointF) -> None:
        cell, label = self.cell_at(point), self._label_at(point)
        if cell is not None:
            self.set_selected(cell)
            self.cellClicked.emit(*cell)
        elif label is not None:
            (self.rowClicked if label[0] == "row" else self.colClicked).emit(label[1])

    def _inside(self, cell: Cell | None) -> Cell | None:
        return cell if cell and 0 <= cell[0] < self.shape[0] and 0 <= cell[1] < self.shape[1] else None

    def _holds(self, cell: Cell) -> bool:
        return self._held_rows is None or cell[0] < self._held_rows

    def _is_whole(self, tile: Tile) -> bool:
        return tile.rows == (0, self.shape[0]) and tile.cols == (0, self.shape[1])

    def _describe(self) -> None:
        cell = self.hovered or self.selected
        wanted = cell is not None and cell != self._asked and self._holds(cell) and self.value_of(cell) is None
        if cell is not None and self.tiles and wanted:
            self._asked = cell
            self.valueWanted.emit(*cell)
        self.setAccessibleDescription(self.readout_text())
        self.described.emit()

    def _changed_view(self) -> None:
        self._relayout()
        self.viewChanged.emit()

    def _resize_area(self, before: QRectF) -> None:
        """Lays out anew; says so where the cells have another place than `before`."""
        self._relayout()
        if self.geometry_now().area != before:
            self.viewChanged.emit()

    def _relayout(self) -> None:
        self._geometry = None
        self._refresh()

    def _refresh(self) -> None:
        self._scene.drop()
        self.update()

    def _restyle(self) -> None:
        self.row_axis.restyle()
        self.col_axis.restyle()
        self.set_lut(self._lut)
        self._changed_view()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._changed_view()
        return bool(super().event(event))
