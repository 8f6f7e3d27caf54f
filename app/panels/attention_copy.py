"""Copying from a matrix: exact values as text, whether they are here or have to be asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QGuiApplication

from app.i18n import tr
from app.widgets.heatmap_table import pointed
from model.protocol.attention_requests import (
    CellReply,
    GetCell,
    GetColumn,
    GetMatrix,
    GetRow,
    HeadView,
    LineReply,
    MatrixReply,
)

if TYPE_CHECKING:
    from app.export.panel_files import Table
    from app.panels.base import Panel
    from app.widgets.heatmap import HeatMap
    from app.widgets.heatmap_table import MatrixTable, Span
    from model.protocol.framing import Arrays
    from model.protocol.wire import Request

MOST_CELLS = 65_536


def copy_cells(panel: Panel, heat: HeatMap, table: MatrixTable | None, view: HeadView, what: str) -> None:
    """Puts a cell, a row or the matrix in view ("cell", "row", "matrix") on the clipboard, tab-separated: of `table`
    where that is seen in the map's place."""
    cell, (rows, cols) = pointed(heat, table)
    if what == "matrix":
        _copy_matrix(panel, heat, view, rows, cols)
    elif cell is None:
        panel.ctx.notify.say(tr("Point at a cell first."))
    elif what == "row":
        pieces = [heat.col_axis.piece(i) for i in range(heat.shape[1])]
        row = heat.row_axis.piece(cell[0])

        def row_came(_reply: LineReply, arrays: Arrays) -> None:
            _put(panel, table_text([row], pieces, np.asarray(arrays["values"])[None, :]))

        panel.ask(GetRow(view=view, query=cell[0]), row_came)
    else:

        def cell_came(reply: CellReply, _arrays: Arrays) -> None:
            _put(panel, number(reply.value if reply.value is not None else math.nan))

        panel.ask(GetCell(view=view, query=cell[0], key=cell[1]), cell_came)


def _copy_matrix(panel: Panel, heat: HeatMap, view: HeadView, rows: Span, cols: Span) -> None:
    height, width = rows[1] - rows[0], cols[1] - cols[0]
    if height * width > MOST_CELLS:
        words = tr("{cells} cells are too many to copy: zoom in, or export them as CSV.", cells=f"{height * width:,}")
        panel.ctx.notify.say(words)
        return
    row_pieces = [heat.row_axis.piece(i) for i in range(*rows)]
    col_pieces = [heat.col_axis.piece(i) for i in range(*cols)]

    def came(_reply: MatrixReply, arrays: Arrays) -> None:
        if "values" in arrays:
            _put(panel, table_text(row_pieces, col_pieces, np.asarray(arrays["values"])))

    panel.ask(GetMatrix(view=view, rows=rows, cols=cols, height=height, width=width), came)


def attention_tables(panel: Panel, heat: HeatMap, view: HeadView, done: Callable[[list[Table]], None]) -> None:
    """The chosen query's row and key's column, and the matrix in sight where it is not too large, to `done`."""
    selection, tokens = panel.ctx.selection, panel.ctx.session.path_tokens()
    found: list[Table] = []
    place = f"{view.stage}, layer {view.layer}, head {view.head}"
    rows, cols = heat.wanted()[:2]
    height, width = rows[1] - rows[0], cols[1] - cols[0]

    def line(what: str, other: str) -> Callable[[LineReply, Arrays], None]:
        def came(reply: LineReply, arrays: Arrays) -> None:
            lines = [[other, "id", "token", "value"]]
            for token, value in zip(tokens, arrays["values"], strict=False):
                lines.append([str(token.position), str(token.id), clean(token.piece), number(float(value))])
            found.append((f"{what} {reply.index} · {place}", lines))
            follow()

        return came

    def whole(_reply: MatrixReply, arrays: Arrays) -> None:
        if "values" in arrays:
            heads = [f"{at} {clean(tokens[at].piece)}" for at in range(*cols)]
            lines = [["query", "token", *heads]]
            for at, values in zip(range(*rows), arrays["values"], strict=True):
                lines.append([str(at), clean(tokens[at].piece), *(number(float(value)) for value in values)])
            found.append((f"{tr('matrix in sight')} · {place}", lines))
        follow()

    asked: list[tuple[Request, Callable[..., None]]] = [
        (GetRow(view=view, query=selection.query), line("query", "key")),
        (GetColumn(view=view, key=selection.key), line("key", "query")),
    ]
    if height * width <= MOST_CELLS:
        asked.append((GetMatrix(view=view, rows=rows, cols=cols, height=height, width=width), whole))

    def follow() -> None:
        if asked:
            message, came = asked.pop(0)
            panel.ask(message, came, on_error=lambda _error: follow())
        else:
            done(found)

    follow()


def measure_table(name: str, values: NDArray[np.float32]) -> Table:
    """A measure (layers, heads) of every head, a head a line."""
    lines = [["layer", "head", name]]
    lines += [[str(layer), str(head), number(float(value))] for (layer, head), value in np.ndenumerate(values)]
    return tr("heads by {measure}", measure=name), lines


def table_text(rows: list[str], cols: list[str], values: NDArray[np.float32]) -> str:
    """Tab-separated lines with the tokens as first line and first column; masked cells are empty."""
    lines = ["\t".join(["", *(clean(piece) for piece in cols)])]
    for piece, line in zip(rows, values, strict=True):
        lines.append("\t".join([clean(piece), *(number(float(value)) for value in line)]))
    return "\n".join(lines)


def number(value: float) -> str:
    """The shortest text that gives the same float32 back; empty where masked."""
    return "" if math.isnan(value) else str(np.float32(value))


def clean(piece: str) -> str:
    """A token that can stand in a cell of a spreadsheet and starts no formula there."""
    piece = piece.replace("\t", "⇥").replace("\n", "⏎")
    return f"'{piece}" if piece[:1] in {"=", "+", "-", "@"} else piece


def _put(panel: Panel, text: str) -> None:
    QGuiApplication.clipboard().setText(text)
    panel.ctx.notify.say(tr("Copied."))
