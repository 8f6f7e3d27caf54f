"""The heat map in view, as files: figures, an interactive page, exact tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO, TYPE_CHECKING, Protocol

import numpy as np

from model.colormaps import Levels
from model.errors import UnknownNameError
from model.export.files import ExportedFile
from model.export.heat_map import HeatMap, draw_heat_map
from model.export.html import MatrixPage, write_html
from model.export.provenance import STAGE_WORDS
from model.export.raster import Float32
from model.export.spec import FigureSpec, PictureFormat
from model.export.subject import Subject, view_title
from model.export.tables import MatrixTable, csv_metadata, write_csv, write_json, write_npz, write_safetensors
from model.export.under_way import Check, Report, load_figures, nothing
from model.protocol.attention_requests import HeadView, Stage
from model.protocol.export_requests import ExportAttention
from model.protocol.file_names import safe_stem

if TYPE_CHECKING:
    from model.run import Run

SIGNED_STAGES: frozenset[Stage] = frozenset({"raw", "scores", "masked"})
BLOCK_CELLS = 2**20
"""Cells of a matrix held at a time while a table is written."""
FIGURE_CELLS = 2_048
"""A side of the pooled matrix a figure is drawn from, at most; a page of paper has no more pixels to show."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tile:
    """A rectangle of a matrix: `values` float32 (h, w), NaN masked, pooled to at most the cells asked for; `low` and
    `high` the extremes of its visible cells before pooling (NaN: none)."""

    values: Float32
    low: float
    high: float


class MatrixSource(Protocol):
    """Where the numbers come from: a run, live or recorded."""

    def exact(self, view: HeadView, rows: tuple[int, int], cols: tuple[int, int]) -> Float32:
        """(t, S) float32, NaN masked: the values a hover shows, bit for bit."""

    def pooled(self, view: HeadView, rows: tuple[int, int], cols: tuple[int, int], height: int, width: int) -> Tile:
        """The rectangle in at most height × width cells, each the extreme of those under it."""


def export_attention(
    run: Run, message: ExportAttention, *, progress: Report = nothing, check: Check = nothing
) -> Iterator[ExportedFile]:
    """The files of `message`, one at a time; the caller closes each before it takes the next.

    `check` is called between row blocks and may raise to end it. Raises BadValueError, FigureTooLargeError,
    UnknownNameError or NoRunError before anything is made.
    """
    from model.export.run_source import RunSource  # noqa: PLC0415 - torch, which drawing a recorded run does not need

    source = RunSource(run, check=check, progress=progress)
    return attention_files(Subject.of(run), source, message, progress=progress, check=check)


def attention_files(
    subject: Subject,
    source: MatrixSource,
    message: ExportAttention,
    *,
    progress: Report = nothing,
    check: Check = nothing,
) -> Iterator[ExportedFile]:
    """`export_attention` of any source. What can be refused is refused at once, not at the first file."""
    spec = FigureSpec.of(message)
    matrix = _Matrix(
        subject=subject,
        source=source,
        message=message,
        spec=spec,
        progress=progress,
        check=check,
        rows=subject.span("rows", message.rows),
        cols=subject.span("cols", message.cols),
    )
    unknown = [name for name in message.formats if name not in _MAKERS]
    if unknown:
        raise UnknownNameError("format", unknown[0], _MAKERS)

    def files() -> Iterator[ExportedFile]:
        total = len(message.formats)
        stem = safe_stem(message.stem)
        for index, name in enumerate(message.formats):
            check()
            progress("export", index, total, "files")
            yield ExportedFile(f"{stem}.{name}", name, partial(_MAKERS[name], matrix))
            if name == "csv":
                document = csv_metadata(matrix.table(), f"{stem}.csv")
                yield ExportedFile(f"{stem}.csv-metadata.json", "json", partial(_put, document))
        progress("export", total, total, "files")

    return files()


def _put(data: bytes, out: IO[bytes]) -> None:
    out.write(data)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Matrix:
    """One export's matrix, in the shapes its formats want."""

    subject: Subject
    source: MatrixSource
    message: ExportAttention
    spec: FigureSpec
    progress: Report
    check: Check
    rows: tuple[int, int]
    cols: tuple[int, int]

    @property
    def signed(self) -> bool:
        return self.message.view.stage in SIGNED_STAGES

    @property
    def row_pieces(self) -> tuple[str, ...]:
        return self.subject.pieces[slice(*self.rows)]

    @property
    def col_pieces(self) -> tuple[str, ...]:
        return self.subject.pieces[slice(*self.cols)]

    @property
    def title(self) -> str:
        return self.message.title or view_title(self.message.view)

    @property
    def what(self) -> str:
        return STAGE_WORDS[self.message.view.stage].replace("weights", "weight")

    def blocks(self) -> Iterator[Float32]:
        """Exact rows from the top, with progress."""
        start, stop = self.rows
        step = max(1, BLOCK_CELLS // (self.cols[1] - self.cols[0]))
        for first in range(start, stop, step):
            self.check()
            self.progress("rows", first - start, stop - start, "rows")
            yield self.source.exact(self.message.view, (first, min(first + step, stop)), self.cols)
        self.progress("rows", stop - start, stop - start, "rows")

    def table(self) -> MatrixTable:
        ids = self.subject.ids
        return MatrixTable(
            rows=self.rows,
            cols=self.cols,
            row_ids=ids[slice(*self.rows)],
            col_ids=ids[slice(*self.cols)],
            row_pieces=self.row_pieces,
            col_pieces=self.col_pieces,
            about=self.subject.about_view(self.message.view, self.message.scale),
            blocks=self.blocks,
        )

    def tile(self) -> Tile:
        return self.source.pooled(self.message.view, self.rows, self.cols, FIGURE_CELLS, FIGURE_CELLS)

    def levels(self, tile: Tile) -> Levels:
        """The levels of the colour bar, as the window's."""
        low, high = tile.low, tile.high
        if self.message.ignore_first and self.cols[0] == 0 and self.cols[1] > 1:
            rest = self.source.pooled(self.message.view, self.rows, (1, self.cols[1]), 1, 1)
            low, high = rest.low, rest.high
        fixed = self.message.fixed and self.message.view.stage == "weights"
        return Levels.spanning(low, high, scale=self.message.scale, signed=self.signed, fixed=fixed)

    @cached_property
    def heat_map(self) -> HeatMap:
        """Drawn once a format, computed once."""
        tile = self.tile()
        return HeatMap(
            values=tile.values,
            rows=self.rows,
            cols=self.cols,
            row_pieces=self.row_pieces,
            col_pieces=self.col_pieces,
            levels=self.levels(tile),
            about=self.subject.about_view(self.message.view, self.message.scale),
            title=self.title,
            what=self.what,
            boundary=self.subject.boundary,
            low=tile.low,
            high=tile.high,
        )

    def page(self) -> MatrixPage:
        def whole() -> Iterator[Float32]:
            made = np.empty((self.rows[1] - self.rows[0], self.cols[1] - self.cols[0]), dtype=np.float32)
            done = 0
            for block in self.blocks():
                made[done : done + len(block)] = block
                done += len(block)
            yield made

        return MatrixPage(
            names=(view_title(self.message.view),),
            matrices=whole(),
            rows=self.rows,
            cols=self.cols,
            row_pieces=self.row_pieces,
            col_pieces=self.col_pieces,
            levels=self.levels(self.tile()),
            about=self.subject.about_view(self.message.view, self.message.scale),
            title=self.title,
            what=self.what,
            boundary=self.subject.boundary,
            theme=self.message.theme,
            colormap=self.message.colormap,
        )

    def picture(self, file_format: PictureFormat, out: IO[bytes]) -> None:
        load_figures(self.check)  # which tables do without
        from model.export.render import render  # noqa: PLC0415

        heat = self.heat_map
        draw = partial(draw_heat_map, heat=heat)
        out.write(render(draw, self.spec, file_format, about=heat.about, title=heat.title, check=self.check))


_MAKERS: dict[str, Callable[[_Matrix, IO[bytes]], None]] = {
    "png": lambda matrix, out: matrix.picture("png", out),
    "svg": lambda matrix, out: matrix.picture("svg", out),
    "pdf": lambda matrix, out: matrix.picture("pdf", out),
    "html": lambda matrix, out: write_html(matrix.page(), out),
    "csv": lambda matrix, out: write_csv(matrix.table(), out),
    "json": lambda matrix, out: write_json(matrix.table(), out),
    "npz": lambda matrix, out: write_npz(matrix.table(), out),
    "safetensors": lambda matrix, out: write_safetensors(matrix.table(), out),
}
