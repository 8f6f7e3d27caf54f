"""Exports of a live run: against the reference implementation, against the hover, and through the handler."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load

from model.errors import CancelledError, NoRunError
from model.export.attention import export_attention
from model.export.files import ExportedFile
from model.export.raster import pool
from model.export.run_source import RunSource
from model.export.sheet import export_sheet
from model.handler_registry import EngineContext
from model.handlers.exports import export as answer
from model.protocol.attention_requests import HeadView, Stage
from model.protocol.export_requests import ExportAttention, ExportReply, ExportSheet, FilePart
from model.protocol.framing import CHUNK_BYTES
from model.protocol.values import SamplerSettings
from model.run import Run
from model.views.attention_exact import exact
from model.views.selection import chosen
from tests.model.reference import TOLERANCE
from tests.model.tiny import llama, made, random_ids, run_of

STAGES: tuple[Stage, ...] = ("raw", "scores", "masked", "weights", "weighted")


def arrays_of(run: Run, **fields: Any) -> dict[str, Any]:
    [file] = export_attention(run, ExportAttention(formats=("npz",), **fields))
    with file, np.load(io.BytesIO(file.read()), allow_pickle=False) as npz:
        return {name: npz[name] for name in npz.files}


def test_the_npz_holds_the_reference_attention() -> None:
    judge, model = llama()
    ids = random_ids(20)
    run = run_of(model, ids)
    [trace] = judge.run(ids)
    for layer in range(3):
        for head in range(4):
            values = arrays_of(run, view=HeadView(layer=layer, head=head))["values"]
            expected = trace.patterns[layer][head].numpy()
            hidden = np.isnan(values)
            assert np.array_equal(hidden, np.triu(np.ones((20, 20), dtype=bool), 1))
            assert np.abs(values - expected)[~hidden].max() < TOLERANCE


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("head", [1, "mean", "max"])
def test_csv_npz_and_hover_are_equal_bit_for_bit(stage: Stage, head: Any) -> None:
    run = run_of(made(), random_ids(40))
    run.step(SamplerSettings(temperature=0))
    view = HeadView(layer=2, head=head, stage=stage)
    files = {}
    for file in export_attention(run, ExportAttention(view=view, formats=("npz", "csv", "json", "safetensors"))):
        with file:
            files[file.name] = file.read()
    with np.load(io.BytesIO(files["attention.npz"])) as npz:
        values = npz["values"]
    rows = list(csv.reader(io.StringIO(files["attention.csv"].decode())))[1:]
    as_csv = np.array([[np.nan if cell == "" else cell for cell in row[3:]] for row in rows], dtype=np.float32)
    parsed = json.loads(files["attention.json"])["values"]
    as_json = np.array([[np.nan if cell is None else cell for cell in row] for row in parsed], dtype=np.float32)
    as_tensor = load(files["attention.safetensors"])["values"]
    assert values.shape == (41, 41) and as_tensor.dtype == np.float32
    for other in (as_csv, as_json, as_tensor):
        assert np.array_equal(values, other, equal_nan=True)
    for row, col in ((0, 0), (7, 3), (33, 12), (40, 40), (5, 30)):
        [[cell]] = exact(run, chosen(run, view), (row, row + 1), (col, col + 1))
        assert np.array_equal(cell, values[row, col], equal_nan=True)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("height", "width"), [(50, 50), (7, 5), (1, 1), (49, 3)])
def test_pooled_pictures_have_the_extremes_of_the_exact_cells(stage: Stage, height: int, width: int) -> None:
    run = run_of(made(), random_ids(50))
    source = RunSource(run, check=lambda: None)
    view = HeadView(layer=1, head=2, stage=stage)
    values = source.exact(view, (0, 50), (0, 50))
    tile = source.pooled(view, (0, 50), (0, 50), height, width)
    assert tile.values.shape == (height, width)
    # products of other shapes round otherwise in the last bits
    assert (tile.low, tile.high) == pytest.approx((np.nanmin(values), np.nanmax(values)), rel=1e-5)
    expected = pool(values, height, width, signed=stage in {"raw", "scores", "masked"})
    assert np.allclose(tile.values, expected, rtol=1e-5, equal_nan=True)


def test_an_export_of_nothing_is_refused() -> None:
    with pytest.raises(NoRunError):
        export_attention(Run(made(), budget_bytes=1 << 30), ExportAttention(view=HeadView(layer=0, head=0)))


class FakeJob:
    """A job that collects its parts, and is cancelled after so many yields."""

    def __init__(self, cancel_after: int = 10**9) -> None:
        self.parts: list[tuple[FilePart, bytes]] = []
        self.left = cancel_after

    def part(self, part: FilePart, arrays: dict[str, Any]) -> None:
        self.parts.append((part, arrays["data"].tobytes()))

    def progress(self, *_: object) -> None:
        pass

    def yield_point(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise CancelledError


def test_the_handler_sends_files_in_small_parts() -> None:
    torch.set_num_threads(1)
    run = run_of(made(n_ctx=1024), random_ids(700))
    context = EngineContext(model=run.model, run=run)
    message = ExportAttention(view=HeadView(layer=0, head=0, stage="scores"), formats=("npz", "csv"), stem="big")
    job = FakeJob()
    reply, arrays = answer(context, message, job)  # type: ignore[arg-type]
    assert isinstance(reply, ExportReply) and not arrays
    assert [info.name for info in reply.files] == ["big.npz", "big.csv", "big.csv-metadata.json"]
    assert max(len(data) for _, data in job.parts) == CHUNK_BYTES
    for info in reply.files:
        parts = [(part, data) for part, data in job.parts if part.name == info.name]
        assert [part.last for part, _ in parts] == [False] * (len(parts) - 1) + [True]
        assert sum(len(data) for _, data in parts) == info.size
        assert parts[-1][0].sha256 == info.sha256
    with pytest.raises(CancelledError):
        answer(context, message, FakeJob(cancel_after=9))  # type: ignore[arg-type]


def test_how_far_an_export_is_is_told_before_what_draws_is_loaded_and_row_by_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = run_of(made(n_ctx=1024), random_ids(700))
    told: list[Any] = []
    for module in ("sheet", "attention"):
        monkeypatch.setattr(f"model.export.{module}.load_figures", lambda _check: told.append("loading"))
    monkeypatch.setattr("model.views.attention_pooled.BLOCK_CELLS", 700 * 100)

    def steps(files: Iterator[ExportedFile]) -> list[Any]:
        told.clear()
        for file in files:
            with file:
                file.read()
        return list(told)

    def tell(*step: object) -> None:
        told.append(step)

    heads = run.config.n_layers * run.config.n_heads
    sheet = steps(export_sheet(run, ExportSheet(formats=("png",), dpi=40), progress=tell))
    assert sheet[:2] == [("heads", 0, heads, "heads"), "loading"] and sheet[-1] == ("heads", heads, heads, "heads")
    message = ExportAttention(view=HeadView(layer="all", head="mean"), formats=("png", "csv"), dpi=40)
    rows = [step[1] for step in steps(export_attention(run, message, progress=tell)) if step[-1] == "rows"]
    assert rows[0] == 0 and rows[-1] == 700
    drawn = rows[: rows.index(0, 1)]
    assert len(drawn) > 5 and drawn == sorted(drawn)
