"""The heat map in view as files: every format of one export holds the same numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load

from model.errors import BadValueError, CancelledError, UnknownNameError
from model.export.attention import Tile, attention_files
from model.export.files import ExportedFile
from model.export.raster import Float32, pool
from model.export.subject import Subject, view_title
from model.protocol.attention_requests import HeadView
from model.protocol.export_kinds import EXPORT_KINDS
from model.protocol.export_requests import ExportAttention, FigureTooLargeError
from model.protocol.file_writing import IncomingFiles
from model.protocol.values import ModelInfo, SamplerSettings
from tests.model.export.examples import attention, pieces

INFO = ModelInfo(
    name="tiny", family="llama", source="/tmp/tiny", sha256="ab" * 32, n_layers=2, n_heads=4, n_kv_heads=2,
    d_model=8, d_head=2, d_mlp=16, d_vocab=32, n_ctx=64, dtype="float32", device="cpu", parameters=1, weight_bytes=4,
    positions="rope", attention_kind="GQA",
)  # fmt: skip
VIEW = HeadView(layer=1, head=3)
N = 14


class Numbers:
    """A source over a matrix at hand; counts what is asked."""

    def __init__(self, values: Float32) -> None:
        self.values, self.asked = values, 0

    def exact(self, view: HeadView, rows: tuple[int, int], cols: tuple[int, int]) -> Float32:
        assert view.layer == 1
        self.asked += 1
        return self.values[slice(*rows), slice(*cols)]

    def pooled(self, view: HeadView, rows: tuple[int, int], cols: tuple[int, int], height: int, width: int) -> Tile:
        values = self.exact(view, rows, cols)
        visible = values[~np.isnan(values)]
        return Tile(values=pool(values, height, width), low=float(visible.min()), high=float(visible.max()))


def subject(n: int = N, n_prompt: int = 10) -> Subject:
    return Subject(
        info=INFO,
        ids=tuple(range(50, 50 + n)),
        pieces=pieces(n),
        n_prompt=n_prompt,
        prompt="The animal",
        text="The animal …",
        settings=SamplerSettings(seed=11),
    )


def export(message: ExportAttention, source: Numbers | None = None, **keywords: Any) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for file in attention_files(subject(), source or Numbers(attention(N)), message, **keywords):
        with file:
            found[file.name] = file.read()
    return found


def npz(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def test_all_formats_of_one_export() -> None:
    message = ExportAttention(view=VIEW, formats=EXPORT_KINDS["attention"].formats, dpi=60, stem="it")  # type: ignore[arg-type]
    steps: list[tuple[str, int, int, str]] = []
    found = export(message, progress=lambda *step: steps.append(step))
    assert list(found) == [
        *("it.png", "it.svg", "it.pdf", "it.html", "it.csv"),
        *("it.csv-metadata.json", "it.npz", "it.json", "it.safetensors"),
    ]
    assert steps[0][1:] == (0, 8, "files")
    assert steps[-1][1:] == (8, 8, "files")
    with Image.open(io.BytesIO(found["it.png"])) as image:
        assert image.size == (420, 360)
    values = attention(N)
    arrays = npz(found["it.npz"])
    assert np.array_equal(arrays["values"], values, equal_nan=True)
    assert arrays["key_ids"].tolist() == list(range(50, 64))
    tensors = load(found["it.safetensors"])
    for name, tensor in tensors.items():
        assert np.array_equal(tensor, arrays[name], equal_nan=name == "values") and tensor.dtype == arrays[name].dtype
    assert len(tensors) == 5
    rows = list(csv.reader(io.StringIO(found["it.csv"].decode())))
    assert np.float32(rows[9][3 + 4]) == values[8, 4]
    assert np.float32(json.loads(found["it.json"])["values"][8][4]) == values[8, 4]


def test_the_metadata_names_the_model_the_view_and_the_step() -> None:
    data = npz(export(ExportAttention(view=VIEW, formats=("npz",), scale="log"))["attention.npz"])
    about = json.loads(str(data["metadata"]))
    assert about["model_sha256"] == "ab" * 32
    assert (about["layer"], about["head"], about["kv_head"]) == ("1", "3", "1")
    assert (about["stage"], about["scale"], about["n_prompt"], about["length"]) == ("weights", "logarithmic", 10, N)
    assert about["settings"]["seed"] == 11 and about["step"] == N - 10
    assert len(about["ids_sha256"]) == 64


def test_a_rectangle_is_clipped_to_what_there_is() -> None:
    message = ExportAttention(view=VIEW, formats=("npz", "svg"), rows=(8, 99), cols=(2, 12))
    found = export(message)
    arrays = npz(found["attention.npz"])
    assert np.array_equal(arrays["values"], attention(N)[8:, 2:12], equal_nan=True)
    assert arrays["query_positions"].tolist() == list(range(8, N))
    assert arrays["key_pieces"].tolist() == list(pieces(N)[2:12])
    assert "prefill ↑" in found["attention.svg"].decode()
    with pytest.raises(BadValueError, match="rows"):
        export(ExportAttention(view=VIEW, rows=(20, 30)))


def test_large_matrices_are_written_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.export.attention.BLOCK_CELLS", 3 * N)
    source = Numbers(attention(N))
    data = npz(export(ExportAttention(view=VIEW, formats=("npz",)), source)["attention.npz"])
    assert source.asked == 5
    assert np.array_equal(data["values"], source.values, equal_nan=True)


def test_a_cancel_ends_it_between_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.export.attention.BLOCK_CELLS", N)
    source = Numbers(attention(N))

    def check() -> None:
        if source.asked == 3:
            raise CancelledError

    with pytest.raises(CancelledError):
        export(ExportAttention(view=VIEW, formats=("npz",)), source, check=check)
    assert source.asked == 3


def test_what_cannot_be_made_is_refused_before_anything_is() -> None:
    def begin(**changes: Any) -> Iterator[ExportedFile]:
        return attention_files(subject(), Numbers(attention(N)), ExportAttention(view=VIEW, **changes))

    with pytest.raises(FigureTooLargeError, match="30,000"):
        begin(width=100.0, height=100.0, dpi=300)
    with pytest.raises(UnknownNameError, match="viridis"):
        begin(colormap="virdis")
    with pytest.raises(UnknownNameError, match="Did you mean 'png'"):
        begin(formats=("pngs",))
    with pytest.raises(BadValueError, match="cols"):
        begin(cols=(99, 100))


def test_levels_follow_the_view() -> None:
    values = attention(N)
    values[:, 0] = 1.0
    values[1:, 1:][~np.isnan(values[1:, 1:])] *= 0.5
    highs = []
    for fixed, ignore_first in ((False, False), (False, True), (True, True), (True, False)):
        message = ExportAttention(view=VIEW, formats=("html",), fixed=fixed, ignore_first=ignore_first)
        text = export(message, Numbers(values))["attention.html"].decode()
        highs.append(json.loads(text.partition('"levels": ')[2].partition("}")[0] + "}")["high"])
    assert highs == [1.0, float(np.nanmax(values[:, 1:])), 1.0, 1.0]
    assert highs[1] <= 0.5


def test_titles() -> None:
    assert view_title(VIEW) == "Attention weights · layer 1 · head 3"
    assert view_title(HeadView(layer=0, head="mean", stage="raw")) == "q·kᵀ, unscaled · layer 0 · mean over heads"
    assert view_title(HeadView(layer="all", head="max")) == "Attention weights · all layers · maximum over heads"


@pytest.mark.parametrize("stem", ["x" * 300, "😀" * 100, "a:b/c", "..", "con"])
def test_odd_names_give_files_that_can_be_written(stem: str, tmp_path: Path) -> None:
    message = ExportAttention(view=VIEW, formats=("csv", "json", "npz"), stem=stem)
    with IncomingFiles(tmp_path) as incoming:
        infos = []
        for file in attention_files(subject(), Numbers(attention(N)), message):
            with file:
                for part, data in file.parts():
                    incoming.add(part, data)
                infos.append(file.info)
        paths = incoming.finish(infos)
    assert [path.name for path in paths] == [info.name for info in infos]
    assert len({path.name for path in tmp_path.iterdir()}) == 4
