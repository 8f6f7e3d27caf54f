"""Figures filled from a run: their numbers against the engine's own, their files against independent readers."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from PIL import Image

from model.errors import BadValueError, CancelledError, UnknownNameError
from model.export.making import make_files
from model.export.run_figures import export_figure
from model.protocol.attention_requests import HeadView
from model.protocol.export_requests import DrawnRequest, ExportAttention, ExportSheet, FigureTooLargeError
from model.protocol.figure_requests import (
    ExportKvGrowth,
    ExportLens,
    ExportRope,
    ExportSampler,
    ExportText,
    FigureRequest,
)
from model.protocol.values import SamplerSettings
from model.run import Run
from model.views.attention_exact import exact
from model.views.plain_sampler import plain_distribution
from model.views.selection import chosen
from tests.model import tiny

SETTINGS = SamplerSettings(temperature=1.3, top_k=20, top_p=0.8, seed=3)
VIEW = HeadView(layer=1, head=2)


@lru_cache(maxsize=1)
def run() -> Run:
    made = tiny.run_of(tiny.llama()[1], tiny.random_ids(9))
    made.generate(4, SETTINGS)
    return made


ASKED: dict[str, FigureRequest] = {
    "sampler": ExportSampler(settings=SETTINGS),
    "kv": ExportKvGrowth(theme="dark"),
    "lens": ExportLens(),
    "rope": ExportRope(layer=1, head=2, query=8, key=3, theme="transparent"),
    "text": ExportText(),
    "entropy": ExportText(by="entropy", rows=(2, 7)),
    "reads": ExportText(by="reads", view=VIEW, position=5),
    "read_by": ExportText(by="read_by", view=VIEW, position=5),
}


def files(message: FigureRequest, *formats: str) -> dict[str, bytes]:
    found = {}
    for file in export_figure(run(), replace(message, formats=formats, dpi=60)):  # type: ignore[arg-type]
        with file:
            found[file.name.rpartition(".")[2]] = file.read()
    return found


def numbers(message: FigureRequest) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(files(message, "json")["json"])
    return told


@pytest.mark.parametrize(
    "message", [*ASKED.values(), ExportAttention(view=VIEW), ExportSheet()], ids=[*ASKED, "attention", "sheet"]
)
def test_every_figure_can_be_given_up_while_it_is_drawn(message: DrawnRequest) -> None:
    made, asked = 0, 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if made and asked > 20:
            raise CancelledError

    with pytest.raises(CancelledError):  # noqa: PT012 - the files are made one by one
        for file in make_files(run(), replace(message, formats=("png",), dpi=60), check=check):
            made, asked = made + 1, 0
            with file:
                file.read()
    assert made == 1


@pytest.mark.parametrize("name", ASKED)
def test_every_format_opens_elsewhere(name: str, tmp_path: Path) -> None:
    made = files(ASKED[name], "png", "svg", "pdf", "json")
    with Image.open(io.BytesIO(made["png"])) as picture:
        assert picture.size == (60 * ASKED[name].width, 60 * ASKED[name].height)
        assert len(picture.convert("RGB").getcolors(2**24) or ()) > 20
        metadata = json.loads(picture.info["Description"])
    told = json.loads(made["json"])
    assert metadata == told["metadata"]
    texts = ["".join(node.itertext()) for node in ET.fromstring(made["svg"]).iter("{http://www.w3.org/2000/svg}text")]
    assert told["title"] in texts
    path = tmp_path / "a.pdf"
    path.write_bytes(made["pdf"])
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext is not installed: the text of the PDF was not read")
    text = subprocess.run(["pdftotext", path, "-"], capture_output=True, check=True, text=True).stdout
    assert told["title"].split(" ·")[0] in text


def test_the_waterfall_holds_the_samplers_numbers() -> None:
    told, made = numbers(ASKED["sampler"]), run()
    p, kept = plain_distribution(made.logits(made.current), SETTINGS, made.ids)
    assert [stage["kept"] for stage in told["stages"]] == kept
    for candidate in told["candidates"]:
        assert candidate["p"] == pytest.approx(float(p[candidate["id"]]), abs=1e-12)
    assert told["draw"] == made.draw(made.current, SETTINGS.seed)
    assert p[told["would_pick"]["id"]] > 0
    assert told["metadata"]["settings"]["temperature"] == 1.3


def test_the_growth_ends_at_what_is_measured() -> None:
    told, made = numbers(ASKED["kv"]), run()
    assert told["positions"] == list(range(9, 14))
    assert told["used"][-1] == made.cache.bytes_used() == told["per_token"] * 13
    assert told["allocated"][-1] == made.cache.bytes_allocated()
    assert told["boundary"] == 9


def test_the_growth_goes_up_by_chunks_of_the_prefill() -> None:
    made = tiny.run_of(tiny.llama()[1], tiny.random_ids(9), chunk=4)
    made.generate(4, SETTINGS)
    [file] = export_figure(made, replace(ASKED["kv"], formats=("json",)))
    with file:
        told = json.loads(file.read())
    token = told["per_token"]
    assert [(tokens, used) for tokens, used, _ in told["chunks"]] == [(4, 4 * token), (8, 8 * token), (9, 9 * token)]
    assert all(used <= allocated for _, used, allocated in told["chunks"])
    assert [entry[:2] for entry in numbers(ASKED["kv"])["chunks"]] == [[9, 9 * token]]


def test_the_lens_ends_at_the_models_own_head() -> None:
    told, made = numbers(ASKED["lens"]), run()
    assert told["layers"] == [0, 1, 2, 3] and told["rows"] == [0, 13]
    logits = torch.from_numpy(made.logits(made.current).copy())
    assert told["ids"][-1][-1] == int(logits.argmax())
    assert told["p"][-1][-1] == pytest.approx(float(logits.softmax(-1).max()), rel=1e-5)
    inner = made.decoder.unembed(made.resid(2)).softmax(-1).max(-1)
    assert told["ids"][2] == inner.indices.tolist()
    np.testing.assert_allclose(told["p"][2], inner.values.numpy(), rtol=1e-5)


def test_the_planes_add_up_to_the_score() -> None:
    told, made = numbers(ASKED["rope"]), run()
    q, k = made.store.rows("q", 1), made.k(1)
    assert q is not None
    raw = float(q[2, 8] @ k[1, 3])
    assert told["raw"] == pytest.approx(raw, rel=1e-5)
    assert sum(told["contribution"]) + told["rest"] == pytest.approx(raw, rel=1e-4)
    np.testing.assert_allclose(np.array(told["q_after"], dtype=np.float32).T.ravel(), q[2, 8].numpy(), rtol=1e-6)


def test_tints_are_what_the_model_expected_and_what_a_hover_shows() -> None:
    made = run()
    logits = made.decoder.unembed(made.resid(3)).double().log_softmax(-1)
    surprisal = numbers(ASKED["text"])["values"]
    assert surprisal[0] is None
    expected = [-float(logits[at - 1, made.ids[at]]) for at in range(1, 13)]
    np.testing.assert_allclose(surprisal[1:], expected, rtol=1e-5)
    entropy = -(logits.exp() * logits).sum(-1)[2:7]
    np.testing.assert_allclose(numbers(ASKED["entropy"])["values"], entropy.numpy(), rtol=1e-5)
    whole = exact(made, chosen(made, VIEW), (0, 13), (0, 13))
    for by, line in (("reads", whole[5]), ("read_by", whole[:, 5])):
        values = np.array([np.nan if v is None else v for v in numbers(ASKED[by])["values"]], dtype=np.float32)
        assert np.array_equal(values, line, equal_nan=True)


def test_a_long_text_is_made_small_and_the_rest_counted() -> None:
    made = tiny.run_of(tiny.llama(max_position_embeddings=4096)[1], tiny.random_ids(2000))
    [file] = export_figure(made, ExportText(by="reads", formats=("svg",), width=2, height=1.5, dpi=60))
    with file:
        assert "more tokens" in file.read().decode()


def test_what_cannot_be_drawn_is_refused_before_it_begins() -> None:
    with pytest.raises(FigureTooLargeError):
        export_figure(run(), ExportLens(width=150, dpi=200))
    with pytest.raises(BadValueError, match="layer"):
        export_figure(run(), ExportRope(layer=9, head=0, query=1, key=0))
    with pytest.raises(BadValueError, match="depth"):
        export_figure(run(), ExportLens(layers=(4,)))
    with pytest.raises(BadValueError, match="position"):
        export_figure(run(), ExportText(by="reads", view=VIEW, position=13))
    with pytest.raises(UnknownNameError, match="colour map"):
        export_figure(run(), ExportText(colormap="jet"))
    flat = tiny.run_of(tiny.model_of("GPT2")[1], tiny.random_ids(4))
    with pytest.raises(BadValueError, match="rotates its queries and keys"):
        export_figure(flat, ExportRope(layer=0, head=0, query=1, key=0))
