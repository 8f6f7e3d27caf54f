"""CSV, JSON and NPZ read back by Python's csv and json and by numpy, and compared bit for bit."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from model.errors import BadValueError
from model.export.raster import Float32
from model.export.tables import MatrixTable, csv_metadata, write_csv, write_json, write_npz
from tests.model.export.examples import ODD_PIECES, attention, matrix_table, provenance


def read_csv(data: bytes) -> tuple[list[str], list[list[str]]]:
    header, *rows = csv.reader(io.StringIO(data.decode(), newline=""))
    return header, rows


def csv_values(rows: list[list[str]]) -> Float32:
    return np.array([[float(cell) if cell else np.nan for cell in row[3:]] for row in rows], dtype=np.float32)


def written(table: MatrixTable) -> tuple[bytes, bytes, bytes]:
    outs = io.BytesIO(), io.BytesIO(), io.BytesIO()
    write_csv(table, outs[0])
    write_json(table, outs[1])
    write_npz(table, outs[2])
    return outs[0].getvalue(), outs[1].getvalue(), outs[2].getvalue()


def same_bits(one: Any, other: Any) -> bool:
    """Equal bit for bit, any NaN being the masked cell."""
    hidden = np.isnan(one)
    return bool(
        (hidden == np.isnan(other)).all() and (one.view(np.uint32)[~hidden] == other.view(np.uint32)[~hidden]).all()
    )


@settings(max_examples=40, deadline=None)
@given(arrays(np.float32, st.integers(1, 6).map(lambda n: (n, n)), elements=st.floats(width=32)))
def test_three_formats_hold_the_same_float32(values: Float32) -> None:
    as_csv, as_json, as_npz = written(matrix_table(values, block=2))
    assert same_bits(csv_values(read_csv(as_csv)[1]), values)
    parsed = [[np.nan if cell is None else cell for cell in row] for row in json.loads(as_json)["values"]]
    assert same_bits(np.array(parsed, dtype=np.float32), values)
    with np.load(io.BytesIO(as_npz), allow_pickle=False) as npz:
        assert npz["values"].dtype == np.float32
        assert same_bits(npz["values"], values)


def test_odd_tokens_survive_each_format() -> None:
    words = ODD_PIECES
    as_csv, as_json, as_npz = written(matrix_table(attention(len(words)), words))
    header, rows = read_csv(as_csv)
    assert len(header) == len(words) + 3
    assert {len(row) for row in rows} == {len(header)}
    assert header[:3] == ["query", "query_id", "query_token"]
    assert header[3] == "3 ·$x^2$"
    assert header[7] == "7 a⏎b"
    assert header[8] == "8 ⟨U+202E⟩evil"
    assert rows[7][:3] == ["10", "107", '10 "quoted", too']
    assert not any(cell[:1] in "=+-@" for row in [header, *rows] for cell in row[2:3])
    document = json.loads(as_json)
    assert document["key"]["pieces"] == list(words)
    assert document["key"]["first"] == 3
    with np.load(io.BytesIO(as_npz), allow_pickle=False) as npz:
        assert npz["query_pieces"].tolist() == list(words)
        assert npz["key_ids"].tolist() == list(range(100, 100 + len(words)))
        assert npz["key_positions"].tolist() == list(range(3, 3 + len(words)))
        assert json.loads(str(npz["metadata"])) == json.loads(provenance(len(words)).as_json())


def test_metadata_stands_beside_the_csv() -> None:
    document = json.loads(csv_metadata(matrix_table(attention(4)), "a.csv"))
    assert document["url"] == "a.csv"
    [notes] = document["notes"]
    assert notes["model"] == "SmolLM2-135M-Instruct"
    assert notes["settings"]["seed"] == 7
    assert notes["query"]["ids"] == [100, 101, 102, 103]


def test_numpy_reads_the_csv_without_help() -> None:
    values = attention(6)
    as_csv = written(matrix_table(values))[0].decode()
    read = np.genfromtxt(
        io.StringIO(as_csv), delimiter=",", skip_header=1, usecols=range(3, 9), dtype=np.float32, comments="\0"
    )
    assert same_bits(read, values)


def test_the_same_table_is_the_same_file() -> None:
    assert written(matrix_table(attention(9), block=2)) == written(matrix_table(attention(9), block=7))


def test_a_table_that_does_not_fit_is_refused() -> None:
    values = attention(4)
    with pytest.raises(BadValueError, match="rows"):
        matrix_table(values, ("a",))
    short = matrix_table(values)
    object.__setattr__(short, "blocks", lambda: iter([values[:2]]))
    with pytest.raises(ValueError, match="2 rows, expected 4"):
        write_json(short, io.BytesIO())
