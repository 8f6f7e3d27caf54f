"""Exact numbers: CSV, JSON and NPZ of a matrix, written row block by row block.

Every float is written with the shortest digits that read back to the same float32, so all formats and the
value under the mouse are equal bit for bit. Masked cells are an empty field, null and NaN.

CSV is plain (RFC 4180, UTF-8, no comment lines, which readers disagree about); its metadata goes into a file beside
it, `NAME.csv-metadata.json`, where the W3C's "Model for Tabular Data" says that readers look for it. A label begins
with its position, so that none begins a spreadsheet formula.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model.errors import BadValueError
from model.export.labels import escape
from model.export.provenance import Provenance
from model.export.raster import Array, Float32
from model.export.under_way import nothing

FLOAT32: np.dtype[Any] = np.dtype("<f4")

Blocks = Callable[[], Iterator[Float32]]


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixTable:
    """A matrix to be written. `blocks()` yields it from the top as float32 (t, S), NaN masked; `rows`, `cols`: the
    half-open ranges of positions; ids and pieces one a position."""

    rows: tuple[int, int]
    cols: tuple[int, int]
    row_ids: tuple[int, ...]
    col_ids: tuple[int, ...]
    row_pieces: tuple[str, ...]
    col_pieces: tuple[str, ...]
    about: Provenance
    blocks: Blocks
    row_title: str = "query"
    col_title: str = "key"

    def __post_init__(self) -> None:
        for name, (start, stop), ids, pieces in (
            ("rows", self.rows, self.row_ids, self.row_pieces),
            ("cols", self.cols, self.col_ids, self.col_pieces),
        ):
            if not stop - start == len(ids) == len(pieces):
                raise BadValueError(name, (start, stop, len(ids), len(pieces)), "an id and a piece for each position")

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows[1] - self.rows[0], self.cols[1] - self.cols[0]

    def checked_blocks(self) -> Iterator[Float32]:
        """The blocks; raises ValueError if they are not the matrix promised."""
        done = 0
        for block in self.blocks():
            if block.dtype != np.float32 or block.ndim != 2 or block.shape[1] != self.shape[1]:
                raise ValueError(f"a block is {block.dtype} {block.shape}, expected float32 (rows, {self.shape[1]})")
            done += block.shape[0]
            yield block
        if done != self.shape[0]:
            raise ValueError(f"the blocks hold {done} rows, expected {self.shape[0]}")


def shortest(row: Float32, masked: str) -> list[str]:
    """Each float32 as the shortest decimal that reads back to it ("0.1", "1e-10", "inf"), NaN as `masked`."""
    words = [masked] * row.size
    visible = np.flatnonzero(~np.isnan(row))
    for index, word in zip(visible.tolist(), row[visible].astype(np.str_).tolist(), strict=True):
        words[index] = word
    return words


def write_csv(table: MatrixTable, out: IO[bytes]) -> None:
    """Header: query, query_id, query_token, then a column a key: "1 ·animal". A row a query."""
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\r\n")
        name = table.row_title
        writer.writerow([name, f"{name}_id", f"{name}_token", *labels(table.cols[0], table.col_pieces)])
        row_labels = labels(table.rows[0], table.row_pieces)
        at = 0
        for block in table.checked_blocks():
            for row in block:
                writer.writerow([table.rows[0] + at, table.row_ids[at], row_labels[at], *shortest(row, "")])
                at += 1
    finally:
        text.detach()  # the stream is the caller's to close


def csv_metadata(table: MatrixTable, csv_name: str) -> bytes:
    """The JSON document beside the CSV file."""
    return csv_document(csv_name, {**table.about.as_dict(), **_axes(table)})


def csv_document(csv_name: str, facts: Mapping[str, object]) -> bytes:
    """Facts in the form in which the W3C's readers find them beside a CSV file."""
    document = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": csv_name,
        "dialect": {"encoding": "utf-8", "header": True, "lineTerminators": ["\r\n"]},
        "notes": [facts],
    }
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def json_number(word: str) -> str:
    """JSON has no infinities: a number that every parser reads as one."""
    return word.replace("inf", "1e999")


def write_json(table: MatrixTable, out: IO[bytes]) -> None:
    """One object: metadata, axes, and `values`, a list of rows with null where masked."""
    head = json.dumps({"metadata": table.about.as_dict(), **_axes(table)}, ensure_ascii=False)
    out.write(head[:-1].encode())
    out.write(b',\n"values": [\n')
    first = True
    for block in table.checked_blocks():
        for row in block:
            words = json_number(", ".join(shortest(row, "null")))
            out.write(f"{'' if first else ',' + chr(10)}[{words}]".encode())
            first = False
    out.write(b"\n]}\n")


def write_npz(table: MatrixTable, out: IO[bytes]) -> None:
    """Arrays: `values` float32 (T, S), NaN masked; `query_positions`, `query_ids` int64 (T,), `query_pieces` str (T,);
    the same for `key_…` (S,); `metadata`, a 0-d string of JSON. numpy.load needs no pickle for any of them."""
    row, col = table.row_title, table.col_title
    with NpzWriter(out) as npz:
        npz.add_blocks("values", table.shape, table.checked_blocks())
        npz.add(f"{row}_positions", np.arange(*table.rows, dtype=np.int64))
        npz.add(f"{row}_ids", np.asarray(table.row_ids, dtype=np.int64))
        npz.add(f"{row}_pieces", np.asarray(table.row_pieces, dtype=np.str_))
        npz.add(f"{col}_positions", np.arange(*table.cols, dtype=np.int64))
        npz.add(f"{col}_ids", np.asarray(table.col_ids, dtype=np.int64))
        npz.add(f"{col}_pieces", np.asarray(table.col_pieces, dtype=np.str_))
        npz.add("metadata", np.asarray(table.about.as_json()))


def write_safetensors(table: MatrixTable, out: IO[bytes]) -> None:
    """Tensors: `values` float32 (T, S), NaN masked; `query_positions`, `query_ids` int64 (T,); the same for `key_…`
    (S,). The metadata is JSON under `decoderscope`, the pieces are under `query_pieces` and `key_pieces`."""
    axes: dict[str, ArrayLike] = {}
    pieces: dict[str, tuple[str, ...]] = {}
    for name, span, ids, words in (
        (table.row_title, table.rows, table.row_ids, table.row_pieces),
        (table.col_title, table.cols, table.col_ids, table.col_pieces),
    ):
        axes |= {f"{name}_positions": range(*span), f"{name}_ids": ids}
        pieces[f"{name}_pieces"] = words
    write_matrices(table.shape, table.checked_blocks, axes, pieces, table.about, out)


def write_matrices(
    shape: tuple[int, ...],
    blocks: Callable[[], Iterable[Float32]],
    axes: Mapping[str, ArrayLike],
    pieces: Mapping[str, tuple[str, ...]],
    about: Provenance,
    out: IO[bytes],
) -> None:
    """A safetensors file: `values` float32 of `shape` from blocks in order, each (…, S) with the last axis whole; int64
    `axes`; pieces as JSON in the metadata, which has no tensors of text."""
    import torch  # noqa: PLC0415 - which all other tables do without

    from model.export.tensor_file import Piece, write_tensors  # noqa: PLC0415

    def rows() -> Iterator[torch.Tensor]:
        for block in blocks():
            yield torch.from_numpy(np.ascontiguousarray(block)).reshape(-1, shape[-1])  # (n, S)

    tensors = [Piece(name="values", dtype=torch.float32, shape=shape, blocks=rows)]
    tensors += [Piece.of(name, torch.from_numpy(np.array(values, dtype=np.int64))) for name, values in axes.items()]
    texts = {name: json.dumps(words, ensure_ascii=False) for name, words in pieces.items()}
    write_tensors(tensors, out, {"decoderscope": about.as_json(), **texts}, check=nothing)


class NpzWriter:
    """Writes an .npz array by array, large ones in blocks, to a stream that need not seek. Without dates, so that the
    same arrays are the same file."""

    def __init__(self, out: IO[bytes], *, compress: bool = True) -> None:
        self._method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
        self._zip = zipfile.ZipFile(out, "w", self._method, compresslevel=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def add(self, name: str, array: NDArray[np.generic]) -> None:
        """A whole array; object arrays are refused."""
        with self._open(name) as entry:
            np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)

    def add_blocks(
        self,
        name: str,
        shape: tuple[int, ...],
        blocks: Iterable[Array],
        dtype: np.dtype[Any] = FLOAT32,
        *,
        beside: Callable[[Array], None] | None = None,
    ) -> None:
        """An array of `shape` given as blocks along its first axis, float32 unless said otherwise. A block is written,
        and given to `beside`, on another thread while the next one is made on this one; two are held. It is not copied:
        whoever makes it leaves it as it is."""

        def put(block: Array) -> None:
            if beside is not None:
                beside(block)
            entry.write(np.ascontiguousarray(block, dtype=dtype).data.cast("B").toreadonly())

        with self._open(name) as entry, ThreadPoolExecutor(1, "write blocks") as writer:
            header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(entry, header)
            written: Future[None] | None = None
            for block in blocks:
                if written is not None:
                    written.result()
                written = writer.submit(put, block)
            if written is not None:
                written.result()

    def _open(self, name: str) -> IO[bytes]:
        info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        info.compress_type = self._method
        return self._zip.open(info, "w", force_zip64=True)


def labels(first: int, pieces: tuple[str, ...]) -> list[str]:
    """Positions with their tokens, escaped: "4 ·animal"."""
    return [f"{first + index} {escape(piece)}" for index, piece in enumerate(pieces)]


def _axes(table: MatrixTable) -> dict[str, object]:
    return {
        table.row_title: {"first": table.rows[0], "ids": table.row_ids, "pieces": table.row_pieces},
        table.col_title: {"first": table.cols[0], "ids": table.col_ids, "pieces": table.col_pieces},
    }
