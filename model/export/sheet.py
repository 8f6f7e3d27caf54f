"""Many heads of a run as files: the contact sheet, an interactive page of a layer, every matrix in one NPZ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO, Protocol

import numpy as np

from model.colormaps import Levels
from model.errors import BadValueError, UnknownNameError
from model.export.attention import SIGNED_STAGES, MatrixSource
from model.export.contact_sheet import ContactSheet, draw_contact_sheet
from model.export.files import ExportedFile
from model.export.html import MatrixPage, write_html
from model.export.provenance import SCALE_WORDS, STAGE_WORDS, Provenance
from model.export.raster import Float32
from model.export.run_source import RunSource
from model.export.spec import FigureSpec, PictureFormat
from model.export.subject import Subject
from model.export.tables import NpzWriter, write_matrices
from model.export.tiles import Tiles
from model.export.under_way import Check, Report, load_figures, nothing
from model.protocol.attention_requests import HeadView, Stage
from model.protocol.export_requests import ExportSheet
from model.protocol.file_names import safe_stem
from model.run import Run

BLOCK_CELLS = 2**22
"""Cells held at a time (16 MiB): heads of up to 2,048 tokens whole."""
TILE_CELLS = 160
"""A side of the pooled matrix a tile is drawn from, at most."""
LARGE_TILE_CELLS = 1_024
FEW_TILES = 16


class HeadsSource(MatrixSource, Protocol):
    """A source of several heads at a time."""

    def heads(self, layer: int, heads: tuple[int, ...], stage: Stage, rows: tuple[int, int]) -> Float32:
        """`exact` of each head, (H, t, S), over all keys."""


def export_sheet(
    run: Run, message: ExportSheet, *, progress: Report = nothing, check: Check = nothing
) -> Iterator[ExportedFile]:
    """The files of `message`, one at a time; the caller closes each before it takes the next. Raises BadValueError,
    FigureTooLargeError, UnknownNameError or NoRunError before anything is made."""
    return sheet_files(Subject.of(run), RunSource(run, check=check), message, progress=progress, check=check)


def sheet_files(
    subject: Subject, source: HeadsSource, message: ExportSheet, *, progress: Report = nothing, check: Check = nothing
) -> Iterator[ExportedFile]:
    """`export_sheet` of any source."""
    spec = FigureSpec.of(message)
    sheet = _Sheet(
        subject=subject,
        source=source,
        message=message,
        spec=spec,
        progress=progress,
        check=check,
        layers=_indices("layers", message.layers, subject.info.n_layers),
        heads=_indices("heads", message.heads, subject.info.n_heads),
    )
    makers: dict[str, Callable[[IO[bytes]], None]] = {
        "png": partial(sheet.picture, "png"),
        "svg": partial(sheet.picture, "svg"),
        "pdf": partial(sheet.picture, "pdf"),
        "html": sheet.page,
        "npz": sheet.npz,
        "safetensors": sheet.safetensors,
    }
    unknown = [name for name in message.formats if name not in makers]
    if unknown:
        raise UnknownNameError("format", unknown[0], makers)
    if "html" in message.formats and len(sheet.layers) > 1:
        raise BadValueError("layers", len(sheet.layers), "one layer for an interactive page")

    def files() -> Iterator[ExportedFile]:
        sheet.at_head(0)  # before what draws is loaded
        for name in message.formats:
            check()
            yield ExportedFile(f"{safe_stem(message.stem)}.{name}", name, makers[name])

    return files()


def _indices(name: str, asked: tuple[int, ...], count: int) -> tuple[int, ...]:
    if any(not 0 <= index < count for index in asked):
        raise BadValueError(name, list(asked), f"indices from 0 to {count - 1}")
    return tuple(dict.fromkeys(asked)) or tuple(range(count))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sheet:
    """One export's heads, in the shapes its formats want."""

    subject: Subject
    source: HeadsSource
    message: ExportSheet
    spec: FigureSpec
    progress: Report
    check: Check
    layers: tuple[int, ...]
    heads: tuple[int, ...]

    @property
    def whole(self) -> tuple[int, int]:
        return 0, self.subject.length

    @property
    def title(self) -> str:
        words = STAGE_WORDS[self.message.stage]
        return self.message.title or f"{words[0].upper()}{words[1:]} · {self._span('layer', self.layers)}"

    @property
    def about(self) -> Provenance:
        scale = SCALE_WORDS[self.message.scale]
        return self.subject.about(
            STAGE_WORDS[self.message.stage],
            layer=_ranges(self.layers),
            head=_ranges(self.heads),
            stage=self.message.stage,
            scale="each head's own" if self.message.own_scale else scale,
        )

    @staticmethod
    def _span(name: str, indices: tuple[int, ...]) -> str:
        return f"{name}{'s' if len(indices) > 1 else ''} {_ranges(indices)}"

    @property
    def what(self) -> str:
        return STAGE_WORDS[self.message.stage].replace("weights", "weight")

    def groups(self, at_once: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Every layer with at most `at_once` of the heads, layer by layer, with progress."""
        done = 0
        for layer in self.layers:
            for first in range(0, len(self.heads), at_once):
                self.check()
                self.at_head(done)
                heads = self.heads[first : first + at_once]
                yield layer, heads
                done += len(heads)
        self.at_head(done)

    def at_head(self, done: int) -> None:
        """Says how many heads are done."""
        self.progress("heads", done, len(self.layers) * len(self.heads), "heads")

    def views(self) -> Iterator[HeadView]:
        """Every head, layer by layer, with progress."""
        for layer, (head,) in self.groups(1):
            yield HeadView(layer=layer, head=head, stage=self.message.stage)

    @property
    def blocks_are_heads(self) -> bool:
        """Whether whole matrices are held at a time, rather than rows of them."""
        return self.subject.length**2 <= BLOCK_CELLS

    @property
    def blocks(self) -> Iterator[Float32]:
        """All matrices in order: several of a layer at a time (n, T, S) or, of a large one, rows (1, t, S)."""
        length, stage = self.subject.length, self.message.stage
        rows = min(max(1, BLOCK_CELLS // length), length)
        for layer, heads in self.groups(max(1, BLOCK_CELLS // length**2)):
            for first in range(0, length, rows):
                yield self.source.heads(layer, heads, stage, (first, min(first + rows, length)))

    @cached_property
    def watched(self) -> Tiles:
        """The tiles, complete once all blocks were seen."""
        return Tiles(
            len(self.layers) * len(self.heads),
            self.side,
            signed=self.message.stage in SIGNED_STAGES,
            ignore_first=self.message.ignore_first,
        )

    @property
    def side(self) -> int:
        """Of a tile, in cells."""
        few = len(self.layers) * len(self.heads) <= FEW_TILES
        return min(LARGE_TILE_CELLS if few else TILE_CELLS, self.subject.length)

    @cached_property
    def tiles(self) -> tuple[Float32, float, float]:
        """(L, H, h, w) pooled, and the extremes that decide the levels."""
        shape = len(self.layers), len(self.heads), self.side, self.side
        if not self.blocks_are_heads:
            return self._pooled(shape)
        if not self.watched.complete:
            for block in self.blocks:
                self.watched.take(block)
        return self.watched.values.reshape(shape), self.watched.low, self.watched.high

    def _pooled(self, shape: tuple[int, int, int, int]) -> tuple[Float32, float, float]:
        """`tiles` of large matrices, pooled as they are computed."""
        side = self.side
        tiles = np.empty((shape[0] * shape[1], side, side), dtype=np.float32)
        low, high = math.inf, -math.inf
        for index, view in enumerate(self.views()):
            tile = self.source.pooled(view, self.whole, self.whole, side, side)
            tiles[index] = tile.values
            if self.message.ignore_first and self.subject.length > 1:
                tile = self.source.pooled(view, self.whole, (1, self.subject.length), 1, 1)
            if not math.isnan(tile.low):
                low, high = min(low, tile.low), max(high, tile.high)
        found = low <= high
        return tiles.reshape(shape), low if found else math.nan, high if found else math.nan

    def levels(self) -> Levels:
        _, low, high = self.tiles
        fixed = self.message.fixed and self.message.stage == "weights"
        signed = self.message.stage in SIGNED_STAGES
        return Levels.spanning(low, high, scale=self.message.scale, signed=signed, fixed=fixed)

    def picture(self, file_format: PictureFormat, out: IO[bytes]) -> None:
        load_figures(self.check)  # which NPZ does without
        from model.export.render import render  # noqa: PLC0415

        tiles, _, _ = self.tiles
        info = self.subject.info
        shared = info.n_heads // info.n_kv_heads
        sheet = ContactSheet(
            tiles=tiles,
            layers=self.layers,
            heads=self.heads,
            groups=tuple(head // shared for head in self.heads),
            levels=None if self.message.own_scale else self.levels(),
            about=self.about,
            title=self.title,
            what=self.what,
            signed=self.message.stage in SIGNED_STAGES,
            boundary=self.subject.boundary / self.subject.length,
        )
        draw = partial(draw_contact_sheet, sheet=sheet)
        out.write(render(draw, self.spec, file_format, about=sheet.about, title=sheet.title, check=self.check))

    def page(self, out: IO[bytes]) -> None:
        page = MatrixPage(
            names=tuple(f"layer {layer} · head {head}" for layer in self.layers for head in self.heads),
            matrices=(self.source.exact(view, self.whole, self.whole) for view in self.views()),
            rows=self.whole,
            cols=self.whole,
            row_pieces=self.subject.pieces,
            col_pieces=self.subject.pieces,
            levels=self.levels(),
            about=self.about,
            title=self.title,
            what=self.what,
            boundary=self.subject.boundary,
            theme=self.message.theme,
            colormap=self.message.colormap,
        )
        write_html(page, out)

    def npz(self, out: IO[bytes]) -> None:
        """`values` float32 (L, H, T, S), NaN masked; `layers`, `heads`, `kv_heads`; `ids`, `pieces`; `metadata`."""
        with NpzWriter(out, compress=False) as npz:
            npz.add_blocks("values", self.shape, self.blocks, beside=self.watched.take if self.watching else None)
            for name, indices in self.axes.items():
                npz.add(name, np.asarray(indices, dtype=np.int64))
            npz.add("pieces", np.asarray(self.subject.pieces, dtype=np.str_))
            npz.add("metadata", np.asarray(self.about.as_json()))

    def safetensors(self, out: IO[bytes]) -> None:
        """The same tensors; `pieces` are JSON in the metadata, and so are the facts, under `decoderscope`."""
        watching = self.watching

        def blocks() -> Iterator[Float32]:
            for block in self.blocks:
                if watching:
                    self.watched.take(block)
                yield block

        write_matrices(self.shape, blocks, self.axes, {"pieces": self.subject.pieces}, self.about, out)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.layers), len(self.heads), self.subject.length, self.subject.length

    @property
    def axes(self) -> dict[str, tuple[int, ...]]:
        """What `values` are of."""
        shared = self.subject.info.n_heads // self.subject.info.n_kv_heads
        kv_heads = tuple(head // shared for head in self.heads)
        return {"layers": self.layers, "heads": self.heads, "kv_heads": kv_heads, "ids": self.subject.ids}

    @property
    def watching(self) -> bool:
        """Whether a picture will want the tiles of what is being written."""
        drawn_too = not {"png", "svg", "pdf"}.isdisjoint(self.message.formats)
        return self.blocks_are_heads and drawn_too and not self.watched.complete


def _ranges(indices: tuple[int, ...]) -> str:
    """(0, 1, 2, 5) → "0–2, 5"."""
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)
