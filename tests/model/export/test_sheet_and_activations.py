"""Many heads, and any activation by name: against the hover, the hooks and the reference implementation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load as load_safetensors

from model.errors import BadValueError, CancelledError, UnknownNameError
from model.export.activation_files import export_activations
from model.export.activations import names_among
from model.export.files import ExportedFile
from model.export.sheet import export_sheet
from model.export.tiles import Tiles
from model.export.under_way import nothing
from model.protocol.attention_requests import HeadView, Stage
from model.protocol.export_requests import ExportActivations, ExportSheet, SheetFormat
from model.protocol.values import SamplerSettings
from model.run import Run
from model.views.attention_exact import exact, exact_heads
from model.views.selection import Chosen, chosen
from tests.model.reference import TOLERANCE
from tests.model.tiny import llama, made, model_of, random_ids, run_of


def bytes_of(files: Iterator[ExportedFile]) -> dict[str, bytes]:
    found = {}
    for file in files:
        with file:
            found[file.name] = file.read()
    return found


def npz(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def activation_arrays(run: Run, *names: str) -> tuple[dict[str, Any], dict[str, Any]]:
    message = ExportActivations(names=names, formats=("npz", "safetensors"))
    found = bytes_of(export_activations(run, message, check=nothing))
    return npz(found["activations.npz"]), load_safetensors(found["activations.safetensors"])


@pytest.fixture(scope="module")
def run() -> Run:
    made_run = run_of(made(), random_ids(12))
    made_run.generate(5, SamplerSettings(temperature=1.2, seed=4))
    return made_run


def test_every_head_in_one_npz(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.export.sheet.BLOCK_CELLS", 60)
    steps: list[Any] = []
    message = ExportSheet(formats=("npz",))
    files = export_sheet(run, message, progress=lambda *step: steps.append(step))
    arrays = npz(bytes_of(files)["heads.npz"])
    assert arrays["values"].shape == (3, 4, 17, 17)
    assert arrays["kv_heads"].tolist() == [0, 0, 1, 1]
    for layer in range(3):
        for head in range(4):
            view = chosen(run, HeadView(layer=layer, head=head))
            expected = exact(run, view, (0, 17), (0, 17))
            assert np.array_equal(arrays["values"][layer, head], expected, equal_nan=True)
    assert steps[-1] == ("heads", 12, 12, "heads")
    assert json.loads(str(arrays["metadata"]))["layer"] == "0–2"


@pytest.mark.parametrize("stage", get_args(Stage))
def test_heads_together_are_what_each_is_alone(run: Run, monkeypatch: pytest.MonkeyPatch, stage: Stage) -> None:
    monkeypatch.setattr("model.views.attention_exact.BLOCK", 5)
    for rows in ((0, 17), (3, 4), (6, 13)):
        together = exact_heads(run, Chosen(layers=(1,), heads=(3, 0), stage=stage, maximum=False), rows)
        for values, head in zip(together, (3, 0), strict=True):
            alone = exact(run, chosen(run, HeadView(layer=1, head=head, stage=stage)), rows, (0, 17))
            assert np.array_equal(values, alone, equal_nan=True)


@pytest.mark.parametrize("stage", ["weights", "masked"])
@pytest.mark.parametrize("ignore_first", [False, True])
def test_a_picture_is_the_same_with_the_table_and_without(run: Run, stage: Stage, ignore_first: bool) -> None:
    def sheet(*formats: SheetFormat) -> bytes:
        message = ExportSheet(formats=formats, stage=stage, ignore_first=ignore_first, width=3, height=3, dpi=80)
        return bytes_of(export_sheet(run, message))["heads.png"]

    assert sheet("npz", "png") == sheet("png") == sheet("png", "npz")


@pytest.mark.parametrize("own_scale", [False, True])
def test_the_sheet_shows_the_chosen_heads(run: Run, own_scale: bool) -> None:
    message = ExportSheet(
        layers=(2, 0), heads=(1, 3), formats=("svg", "png", "pdf"), own_scale=own_scale, width=4, height=3, dpi=80
    )
    found = bytes_of(export_sheet(run, message))
    words = {text.text or "" for text in ET.fromstring(found["heads.svg"]).iter("{http://www.w3.org/2000/svg}text")}
    assert {"2", "0", "1", "3", "heads →", "← layers"} <= words
    assert ("masked" in words) != own_scale
    with Image.open(io.BytesIO(found["heads.png"])) as image:
        assert image.size == (320, 240)


@pytest.mark.parametrize("cells", [60, 2**22])
def test_a_sheets_safetensors_hold_what_its_npz_holds(run: Run, monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr("model.export.sheet.BLOCK_CELLS", cells)
    three: tuple[SheetFormat, ...] = ("safetensors", "npz", "png")
    message = ExportSheet(layers=(2, 0), heads=(1, 3, 0), formats=three, width=3, height=3, dpi=60)
    found = bytes_of(export_sheet(run, message))
    arrays, tensors = npz(found["heads.npz"]), load_safetensors(found["heads.safetensors"])
    assert tensors["values"].shape == (2, 3, 17, 17) and tensors["values"].dtype == np.float32
    assert set(tensors) == {"values", "layers", "heads", "kv_heads", "ids"}
    for name, tensor in tensors.items():
        assert np.array_equal(tensor, arrays[name], equal_nan=name == "values") and tensor.dtype == arrays[name].dtype
    metadata = metadata_of(found["heads.safetensors"])
    assert json.loads(metadata["pieces"]) == arrays["pieces"].tolist()
    assert json.loads(metadata["decoderscope"]) == json.loads(str(arrays["metadata"]))
    alone = bytes_of(export_sheet(run, replace(message, formats=("png",))))
    assert found["heads.png"] == alone["heads.png"]


def metadata_of(data: bytes) -> dict[str, str]:
    """The texts in a safetensors file."""
    length = int.from_bytes(data[:8], "little")
    found: dict[str, str] = json.loads(data[8 : 8 + length])["__metadata__"]
    return found


def test_a_layers_page_has_every_head(run: Run) -> None:
    text = bytes_of(export_sheet(run, ExportSheet(layers=(1,), formats=("html",))))["heads.html"].decode()
    assert text.count('class="values"') == 4
    assert "layer 1 · head 3" in text


def test_what_a_sheet_cannot_be_is_refused(run: Run) -> None:
    with pytest.raises(BadValueError, match="0 to 2"):
        export_sheet(run, ExportSheet(layers=(3,)))
    with pytest.raises(BadValueError, match="heads"):
        export_sheet(run, ExportSheet(heads=(-1,)))
    with pytest.raises(BadValueError, match="one layer"):
        export_sheet(run, ExportSheet(formats=("html",)))
    left = iter(range(5))

    def check() -> None:
        if next(left, None) is None:
            raise CancelledError

    with pytest.raises(CancelledError):
        bytes_of(export_sheet(run, ExportSheet(formats=("npz",)), check=check))


def test_names_and_patterns(run: Run) -> None:
    assert names_among(run.decoder.hook_points, ["layers.*.mlp.post"]) == [
        f"layers.{layer}.mlp.post" for layer in range(3)
    ]
    assert names_among(run.decoder.hook_points, ["kv"])[:2] == ["layers.0.attn.v", "layers.0.attn.rot_k"]
    assert names_among(run.decoder.hook_points, ["logits", "logits", "embed"]) == ["embed", "logits"]
    with pytest.raises(UnknownNameError, match=r"Did you mean 'layers\.1\.attn\.pattern'"):
        names_among(run.decoder.hook_points, ["layers.1.attn.patern"])


def test_activations_are_those_of_the_reference() -> None:
    judge, model = llama()
    ids = random_ids(15)
    run = run_of(model, ids)
    [trace] = judge.run(ids)
    arrays, tensors = activation_arrays(run, "*")
    assert set(tensors) == {*run.decoder.hook_points, "ids"}
    for layer in range(3):
        for name, expected in (
            ("resid_pre", trace.resid[layer]),
            ("resid_post", trace.resid[layer + 1]),
            ("attn.rot_q", trace.q[layer]),
            ("attn.rot_k", trace.k[layer]),
            ("attn.pattern", trace.patterns[layer]),
        ):
            found = arrays[f"layers.{layer}.{name}"]
            assert found.dtype == np.float32
            assert found.shape == tuple(expected.shape)
            assert np.abs(found - expected.numpy()).max() < TOLERANCE
    assert np.abs(arrays["logits"] - trace.logits.numpy()).max() < TOLERANCE
    assert arrays["ids"].tolist() == ids


def test_both_formats_and_the_hooks_agree(run: Run) -> None:
    heard: dict[str, torch.Tensor] = {}

    def listen(rows: torch.Tensor, point: Any) -> None:
        heard[point.name] = rows

    with run.decoder.hooks({"*": listen}):
        run.decoder(torch.tensor(run.ids), run.decoder.new_cache(), logits="all")
    arrays, tensors = activation_arrays(run, "*")
    for name, expected in heard.items():
        assert np.array_equal(arrays[name], tensors[name])
        assert arrays[name].shape == tuple(expected.shape), name
        assert np.abs(arrays[name] - expected.numpy()).max() < TOLERANCE, name
    for position, node in enumerate((*range(run.n_prompt), *run.path)):
        if node in run.store.logits:
            assert np.array_equal(arrays["logits"][position], run.logits(node))


def test_csv_and_json_hold_the_same_numbers(run: Run) -> None:
    names = ("layers.1.mlp.post", "layers.2.attn.pattern", "layers.0.attn.rot_k", "logits")
    steps: list[tuple[str, int, int]] = []
    message = ExportActivations(names=names, formats=("npz", "csv", "json"), stem="a")
    found = bytes_of(
        export_activations(run, message, progress=lambda what, done, total, _unit: steps.append((what, done, total)))
    )
    assert len(steps) == 2 * 3 * 4
    assert steps[-1][1:] == (12, 12)
    arrays, document = npz(found["a.npz"]), json.loads(found["a.json"])
    assert document["ids"] == list(run.ids)
    assert document["metadata"]["what"] == "activations"
    for name in names:
        entry = document["activations"][name]
        assert tuple(entry["shape"]) == arrays[name].shape
        assert np.array_equal(np.array(entry["values"], dtype=np.float32), arrays[name])
        about = json.loads(found[f"a-{name}.csv-metadata.json"])
        assert about["url"] == f"a-{name}.csv"
        assert about["notes"][0]["axes"] == entry["axes"]
        header, *lines = csv.reader(io.StringIO(found[f"a-{name}.csv"].decode(), newline=""))
        rows = arrays[name].reshape(-1, arrays[name].shape[-1])
        assert len(lines) == len(rows)
        skipped = len(header) - rows.shape[1]
        values = np.array([line[skipped:] for line in lines]).astype(np.float32)
        assert np.array_equal(values, rows)
        at = header.index("position")
        assert [int(line[at + 1]) for line in lines[: run.length]] == list(run.ids)
        assert header[:at] == {"logits": [], "layers.1.mlp.post": []}.get(
            name, ["kv_head" if name.endswith("k") else "head"]
        )
    assert header[3] == "v0"
    alone = bytes_of(export_activations(run, ExportActivations(names=("embed",), formats=("csv",), stem="e")))
    assert set(alone) == {"e.csv", "e.csv-metadata.json"}


def test_experts_have_their_own_widths() -> None:
    _, model = model_of(
        "Mixtral", hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=64,
    )  # fmt: skip
    run = run_of(model, random_ids(7))
    arrays, _ = activation_arrays(run, "layers.*.moe.*", "layers.0.mlp.post")
    assert arrays["layers.1.moe.router"].shape == (7, 4)
    assert arrays["layers.0.moe.ids"].dtype == np.int64
    assert arrays["layers.0.moe.ids"].shape == (7, 2)
    assert arrays["layers.0.mlp.post"].shape == (7, 2, 24)
    message = ExportActivations(names=("layers.0.moe.ids", "layers.0.mlp.post"), formats=("csv",), stem="x")
    found = bytes_of(export_activations(run, message))
    table = list(csv.reader(io.StringIO(found["x-layers.0.mlp.post.csv"].decode(), newline="")))
    assert table[0][:5] == ["position", "id", "token", "choice", "f0"]
    assert len(table) == 1 + 7 * 2
    chosen_ids = list(csv.reader(io.StringIO(found["x-layers.0.moe.ids.csv"].decode(), newline="")))
    assert chosen_ids[1][3:] == [str(index) for index in arrays["layers.0.moe.ids"][0]]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("ignore_first", [False, True])
def test_tiles_know_the_extremes_of_all_cells(*, signed: bool, ignore_first: bool) -> None:
    values = np.random.default_rng(1).normal(size=(5, 70, 70)).astype(np.float32)
    values[:, ~np.tri(70, dtype=bool)] = np.nan
    tiles = Tiles(5, 16, signed=signed, ignore_first=ignore_first)
    for some in (values[:2], values[2:]):
        assert not tiles.complete
        tiles.take(some)
    counted = values[..., 1:] if ignore_first else values
    assert tiles.complete
    assert [tiles.low, tiles.high] == [float(np.nanmin(counted)), float(np.nanmax(counted))]
