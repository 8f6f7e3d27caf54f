"""Activations as files: safetensors, NPZ, CSV and JSON of the same exact numbers, written block by block."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import IO

import numpy as np
import torch

from model.errors import UnknownNameError
from model.export.activations import Activation, find
from model.export.files import ExportedFile
from model.export.raster import Array
from model.export.subject import Subject
from model.export.tables import NpzWriter, csv_document, json_number, labels, shortest
from model.export.tensor_file import Piece, write_tensors
from model.export.under_way import Check, Report, nothing
from model.protocol.export_requests import ExportActivations
from model.protocol.file_names import safe_stem
from model.run import Run

AXES = {"H": "head", "K": "kv_head", "k": "choice", "T": "position", "S": "position"}
"""Columns of a CSV file that say where a line is, by the letter of the axis."""


def export_activations(
    run: Run, message: ExportActivations, *, progress: Report = nothing, check: Check = nothing
) -> Iterator[ExportedFile]:
    """The files of `message`, one at a time; the caller closes each before it takes the next. Raises UnknownNameError
    or BadValueError before anything is made."""
    subject, found = Subject.of(run), find(run, message.names)
    makers: dict[str, Callable[..., None]] = {
        "npz": write_activations_npz,
        "safetensors": write_activations_safetensors,
        "json": write_activations_json,
    }
    unknown = [name for name in message.formats if name not in {*makers, "csv"}]
    if unknown:
        raise UnknownNameError("format", unknown[0], [*makers, "csv"])
    stem = safe_stem(message.stem)
    told = _Told(progress, check, len(found) * len(message.formats))

    def files() -> Iterator[ExportedFile]:
        for name in message.formats:
            if name == "csv":
                for activation in found:
                    yield from _csv_files(activation, subject, stem if len(found) == 1 else None, message.stem, told)
            else:
                write = partial(makers[name], found, subject, told=told)
                yield ExportedFile(f"{stem}.{name}", name, write)

    return files()


class _Told:
    """Blocks as they are read: asked about cancelling, told of to whoever waits."""

    def __init__(self, report: Report = nothing, check: Check = nothing, total: int = 0) -> None:
        self._report, self._check, self._total, self._done = report, check, total, 0

    def blocks(self, activation: Activation) -> Iterator[torch.Tensor]:
        self._report(activation.name, self._done, self._total, "activations")
        for block in activation.blocks():
            self._check()
            yield block
        self._done += 1
        self._report(activation.name, self._done, self._total, "activations")


def write_activations_npz(found: Sequence[Activation], subject: Subject, out: IO[bytes], *, told: _Told) -> None:
    """One array an activation, named as its hook; `ids`, `pieces`, `axes` and `metadata` (JSON) beside them, and
    NAME.positions where its rows are not the whole path's."""
    about = subject.about("activations")
    with NpzWriter(out, compress=False) as npz:
        for activation in found:
            kind = np.dtype("<i8") if activation.dtype == torch.int64 else np.dtype("<f4")
            npz.add_blocks(
                activation.name, activation.shape, (block.numpy() for block in told.blocks(activation)), kind
            )
            if activation.positions:
                npz.add(activation.positions_name, np.asarray(activation.positions, dtype=np.int64))
        npz.add("ids", np.asarray(subject.ids, dtype=np.int64))
        npz.add("pieces", np.asarray(subject.pieces, dtype=np.str_))
        npz.add("axes", np.asarray([f"{activation.name} {activation.axes}" for activation in found], dtype=np.str_))
        npz.add("metadata", np.asarray(about.as_json()))


def write_activations_safetensors(
    found: Sequence[Activation], subject: Subject, out: IO[bytes], *, told: _Told
) -> None:
    """One tensor an activation, named as its hook, and `ids`, with NAME.positions as in NPZ; the metadata is JSON under
    `decoderscope`, `pieces` and `axes`."""
    pieces = [
        Piece(
            name=activation.name,
            dtype=activation.dtype,
            shape=activation.shape,
            blocks=partial(told.blocks, activation),
        )
        for activation in found
    ]
    pieces += [Piece.of(one.positions_name, torch.tensor(one.positions)) for one in found if one.positions]
    pieces.append(Piece.of("ids", torch.tensor(subject.ids)))
    metadata = {
        "decoderscope": subject.about("activations").as_json(),
        "pieces": json.dumps(subject.pieces, ensure_ascii=False),
        "axes": json.dumps({one.name: one.axes for one in found}),
    }
    write_tensors(pieces, out, metadata, check=nothing)


def write_activations_json(found: Sequence[Activation], subject: Subject, out: IO[bytes], *, told: _Told) -> None:
    """One object: metadata, `ids`, `pieces`, and `activations`: by hook name the axes' letters,
    shape, positions where they are not the whole path's, and values."""
    head = {"metadata": subject.about("activations").as_dict(), "ids": subject.ids, "pieces": subject.pieces}
    out.write(json.dumps(head, ensure_ascii=False)[:-1].encode() + b',\n"activations": {')
    for index, activation in enumerate(found):
        place = json.dumps(_facts(activation))[:-1]
        out.write(f'{"," if index else ""}\n{json.dumps(activation.name)}: {place}, "values": ['.encode())
        first = True
        for block in told.blocks(activation):
            for entry in block.numpy():
                out.write(f"{'' if first else ','}\n{_nested(entry)}".encode())
                first = False
        out.write(b"\n]}")
    out.write(b"\n}}\n")


def _facts(activation: Activation) -> dict[str, object]:
    facts: dict[str, object] = {"axes": activation.axes, "shape": activation.shape}
    return facts | ({"positions": activation.positions} if activation.positions else {})


def _nested(values: Array) -> str:
    if values.ndim > 1:
        return f"[{', '.join(_nested(entry) for entry in values)}]"
    return f"[{', '.join(_words(values, 'null', json_number))}]"


def _words(row: Array, masked: str, spelt: Callable[[str], str] = str) -> list[str]:
    """Integers as they are, each float32 with the shortest digits that read back to it."""
    return [spelt(word) for word in (shortest(row, masked) if row.dtype == np.float32 else map(str, row.tolist()))]


def _csv_files(
    activation: Activation, subject: Subject, alone: str | None, stem: str, told: _Told
) -> Iterator[ExportedFile]:
    """The table of one activation, and its metadata beside it."""
    name = alone if alone is not None else safe_stem(f"{stem}-{activation.name}")
    yield ExportedFile(f"{name}.csv", "csv", partial(write_activation_csv, activation, subject, told=told))
    facts = {**subject.about(activation.name).as_dict(), "activation": activation.name, **_facts(activation)}
    document = csv_document(f"{name}.csv", facts)
    yield ExportedFile(f"{name}.csv-metadata.json", "json", lambda out: _put(document, out))


def _put(data: bytes, out: IO[bytes]) -> None:
    out.write(data)


def write_activation_csv(activation: Activation, subject: Subject, out: IO[bytes], *, told: _Told) -> None:
    """A line for each index but the last axis': where it is (head, position with id and token …), then its values."""
    letters = activation.axes.strip("()").split(", ")
    places, last = letters[:-1], letters[-1]
    pieces = labels(0, subject.pieces)
    header: list[str] = []
    for letter in places:
        header += ["position", "id", "token"] if AXES[letter] == "position" else [AXES[letter]]
    header += pieces if last == "S" else [f"{last.lower()}{index}" for index in range(activation.shape[-1])]
    text = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow(header)
        first = 0
        for block in told.blocks(activation):
            values = block.numpy()
            for index in np.ndindex(values.shape[:-1]):
                where: list[int | str] = []
                for letter, row in zip(places, (index[0] + first, *index[1:]), strict=True):
                    at = activation.positions[row] if letter == "T" and activation.positions else row
                    where += [at, subject.ids[at], pieces[at]] if AXES[letter] == "position" else [at]
                writer.writerow([*where, *_words(values[index], "")])
            first += values.shape[0]
    finally:
        text.detach()  # the stream is the caller's to close
